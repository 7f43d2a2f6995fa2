//! From a crew's files and a request to what a run starts with.

use std::collections::BTreeMap;
use std::path::PathBuf;

use selvedge_ledger::Payload;
use selvedge_model::{Message, ToolDefinition};
use selvedge_tool::{
    Policy, REQUEST_TOOLS, Sandbox, Skill, ToolSpec, Toolbox, USE_SKILL, World, skills_list,
};
use serde_json::{Value, json};

use crate::context::{Context, Fit};
use crate::crew::Crew;
use crate::definition::AgentDefinition;
use crate::instructions::Instructions;
use crate::offers::{Lazy, Offers, definition};
use crate::spec::{Approve, RunSpec};
use crate::terms::Terms;
use crate::tools::DELEGATE;

/// What a person decides about a run.
pub struct Setup<'a> {
    /// The request, word for word.
    pub request: String,
    /// The directory to work in.
    pub workspace: PathBuf,
    /// What happens when something must be approved.
    pub approve: Approve,
    /// What its commands may reach.
    pub sandbox: Sandbox,
    /// What holds for every agent of the run.
    pub policy: Policy,
    /// Whether somebody vouches for the crew's files: only then do they allow anything.
    pub is_trusted: bool,
    /// What it may cost in dollars.
    pub budget_usd: Option<f64>,
    /// How many tokens it may use.
    pub budget_tokens: Option<u64>,
    /// The schema its result must fit.
    pub output_schema: Option<Value>,
    /// What the user has to say to every agent, in every project.
    pub instructions: Option<String>,
    /// The skills there are.
    pub skills: Vec<Skill>,
    /// When tools are put on offer instead of at hand.
    pub lazy: Lazy,
    /// Turns a tier, an alias or a name into `provider/model`.
    pub resolve: &'a dyn Fn(&str) -> Result<String, String>,
}

/// Why a run cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// An agent names a tool that does not exist.
    #[error("agent `{agent}` wants the tool `{tool}`, which does not exist")]
    UnknownTool {
        /// Which agent.
        agent: String,
        /// Which tool.
        tool: String,
        /// The tools there are.
        known: Vec<String>,
    },
    /// A prompt template is wrong.
    #[error("the prompt of agent `{agent}` cannot be rendered: {why}")]
    Prompt {
        /// Which agent.
        agent: String,
        /// Why not.
        why: String,
    },
    /// No model answers for an agent.
    #[error("agent `{agent}` has no model: {why}")]
    Model {
        /// Which agent.
        agent: String,
        /// Why not.
        why: String,
    },
    /// The request alone is more than the agent can have before it.
    #[error("the request of about {tokens} tokens does not fit into {tokens_max}")]
    RequestTooLong {
        /// Its size, estimated.
        tokens: u64,
        /// What fits.
        tokens_max: u64,
    },
    /// The schema that was asked for is not a schema.
    #[error("the output schema is not a valid JSON Schema: {why}")]
    Schema {
        /// Why not.
        why: String,
    },
}

/// What the crew's first agent starts with.
pub fn assemble(crew: &Crew, toolbox: &Toolbox, setup: &Setup<'_>) -> Result<RunSpec, SetupError> {
    if let Some(schema) = &setup.output_schema {
        jsonschema::validator_for(schema).map_err(|e| SetupError::Schema { why: e.to_string() })?;
    }
    let instructions = Instructions::find(&setup.workspace);
    let assembler = Assembler {
        crew,
        toolbox,
        setup,
        instructions,
        policy: crew.policy(&setup.policy, setup.is_trusted),
    };
    let mut spec = assembler.agent(&crew.agents[&crew.entry], setup.output_schema.as_ref(), &[])?;
    spec.request = Payload::new(setup.request.as_str());
    let mut conversation = Context::default();
    conversation.push(Message::user(spec.request.clone()));
    if let Fit::TooLarge { tokens } = conversation.fit(&spec.limits) {
        let tokens_max = spec.limits.context_tokens_max;
        return Err(SetupError::RequestTooLong { tokens, tokens_max });
    }
    Ok(spec)
}

/// The tools of an agent.
#[derive(Default)]
struct Tools {
    at_hand: Vec<ToolSpec>,
    more: Vec<ToolSpec>,
    offers: Option<Offers>,
    /// What the prompt says of those on offer.
    list: String,
}

struct Assembler<'a> {
    crew: &'a Crew,
    toolbox: &'a Toolbox,
    setup: &'a Setup<'a>,
    instructions: Option<Instructions>,
    policy: Policy,
}

impl Assembler<'_> {
    /// `above` are the agents that led here: a chain of helpers has no circles.
    fn agent(
        &self,
        agent: &AgentDefinition,
        schema: Option<&Value>,
        above: &[&str],
    ) -> Result<RunSpec, SetupError> {
        let schema = schema.or(agent.output_schema.as_ref());
        let mut chain = above.to_vec();
        chain.push(&agent.name);
        let mut team = BTreeMap::new();
        for name in agent.agents.iter().filter(|n| !chain.contains(&n.as_str())) {
            team.insert(
                name.clone(),
                self.agent(&self.crew.agents[name], None, &chain)?,
            );
        }
        let Tools {
            at_hand,
            more,
            offers,
            list,
        } = self.tools(agent, schema, &team)?;
        let has_skills = at_hand.iter().any(|spec| spec.name == USE_SKILL);
        let definitions: Vec<ToolDefinition> = at_hand.iter().map(definition).collect();
        let definitions = serde_json::to_string(&definitions).expect("definitions are plain data");
        let model = (self.setup.resolve)(&agent.model).map_err(|why| SetupError::Model {
            agent: agent.name.clone(),
            why,
        })?;
        Ok(RunSpec {
            crew: self.crew.name.clone(),
            agent: agent.name.clone(),
            request: Payload::new(""),
            fallbacks: agent
                .fallback
                .iter()
                .filter_map(|name| (self.setup.resolve)(name).ok())
                .filter(|name| *name != model)
                .collect(),
            awaited: false,
            priority: agent.priority,
            model,
            system: Payload::new(self.prompt(agent, has_skills, &list)?),
            tools: at_hand
                .into_iter()
                .chain(more)
                .map(|spec| (spec.name, spec.world))
                .collect(),
            definitions: Payload::new(definitions),
            offers,
            skills: has_skills.then(|| {
                let skills = serde_json::to_string(&self.setup.skills);
                Payload::new(skills.expect("skills are plain data"))
            }),
            limits: agent.limits,
            output_schema: schema.cloned(),
            approve: self.setup.approve,
            sandbox: self.setup.sandbox.clone(),
            policy: agent.policy(&self.policy, self.setup.is_trusted),
            budget_usd: self.setup.budget_usd,
            budget_tokens: self.setup.budget_tokens,
            workspace: self.setup.workspace.clone(),
            terms: self.terms(agent),
            team,
        })
    }

    fn tools(
        &self,
        agent: &AgentDefinition,
        schema: Option<&Value>,
        team: &BTreeMap<String, RunSpec>,
    ) -> Result<Tools, SetupError> {
        let (mut at_hand, more) = self.split(agent)?;
        if self.setup.skills.is_empty() {
            at_hand.retain(|spec| spec.name != USE_SKILL);
        }
        for spec in &mut at_hand {
            if let (World::Ends, Some(schema)) = (spec.world, schema) {
                spec.schema["properties"]["result"] = schema.clone();
                spec.schema["required"] = json!(["result"]);
            }
        }
        let offers = self.toolbox.spec(REQUEST_TOOLS).and_then(|request| {
            let bundle = |spec: &ToolSpec| self.toolbox.bundle(&spec.name).map(str::to_owned);
            let more = more.iter().map(|spec| (spec.clone(), bundle(spec)));
            let more: Vec<_> = more.collect();
            let (offers, list) = Offers::of(self.setup.lazy, &at_hand, &more, request)?;
            Some((request, offers, list))
        });
        let mut tools = match offers {
            Some((request, offers, list)) => {
                at_hand.push(request.clone());
                Tools {
                    at_hand,
                    more,
                    offers: Some(offers),
                    list,
                }
            }
            None => Tools {
                at_hand: at_hand.into_iter().chain(more).collect(),
                ..Tools::default()
            },
        };
        tools.at_hand.extend(self.ending(agent));
        tools.at_hand.extend(self.handing_on(team));
        Ok(tools)
    }

    /// The tools by which an agent hands work to its team: one for each that has a
    /// schema for it, and one for all others.
    fn handing_on(&self, team: &BTreeMap<String, RunSpec>) -> Vec<ToolSpec> {
        let (typed, others): (Vec<_>, Vec<_>) = team
            .iter()
            .partition(|(_, helper)| helper.terms.called_by.is_some());
        let typed = typed.into_iter().filter_map(|(name, helper)| {
            Some(ToolSpec {
                name: helper.terms.called_by.clone()?,
                description: self.crew.agents[name].description.clone(),
                schema: helper.terms.input_schema.clone()?,
                world: World::Delegates,
            })
        });
        let mut tools: Vec<ToolSpec> = typed.collect();
        if !others.is_empty() {
            let names: Vec<&String> = others.into_iter().map(|(name, _)| name).collect();
            tools.push(delegate(self.crew, &names));
        }
        tools
    }

    /// What binds the agent beyond the loop, as its file says.
    fn terms(&self, agent: &AgentDefinition) -> Terms {
        let own_tool = || agent.called_by.clone().unwrap_or(agent.name.clone());
        Terms {
            called_by: agent.input_schema.as_ref().map(|_| own_tool()),
            input_schema: agent.input_schema.clone(),
            ends_by: agent.ends_by.clone(),
            // A result with a schema of its own is held to that.
            ends_schema: match agent.output_schema {
                Some(_) => None,
                None => self.ending(agent).map(|spec| spec.schema),
            },
            claims: agent.claims.clone(),
            answerable: agent.answerable,
            alone: agent.alone,
            record: self.crew.ways.record,
            ..Terms::default()
        }
    }

    /// The tool that ends the work, under a name of the agent's own.
    fn ending(&self, agent: &AgentDefinition) -> Option<ToolSpec> {
        let finish = self.toolbox.spec("finish")?.clone();
        Some(ToolSpec {
            name: agent.ends_by.clone()?,
            schema: agent.ends_schema.clone().unwrap_or(finish.schema),
            ..finish
        })
    }

    /// The tools that an agent has at hand, and those that can be put on offer: what
    /// its file does not name outright. How a run ends or asks is always at hand.
    fn split(&self, agent: &AgentDefinition) -> Result<(Vec<ToolSpec>, Vec<ToolSpec>), SetupError> {
        let is_pattern = |tool: &&String| tool.contains('*');
        let (patterns, outright): (Vec<&String>, Vec<&String>) =
            agent.tools.iter().partition(is_pattern);
        let mut at_hand: Vec<ToolSpec> = Vec::new();
        for spec in self.named(agent, &outright)? {
            if at_hand.iter().all(|known| known.name != spec.name) {
                at_hand.push(spec.clone());
            }
        }
        let mut more: Vec<ToolSpec> = Vec::new();
        let others: Vec<&String> = patterns.into_iter().chain(&agent.more_tools).collect();
        for spec in self.named(agent, &others)? {
            let mut known = at_hand.iter().chain(&more);
            if spec.name == REQUEST_TOOLS || known.any(|known| known.name == spec.name) {
                continue;
            }
            match spec.world {
                _ if spec.name == USE_SKILL => at_hand.push(spec.clone()),
                World::Asks | World::Ends | World::Delegates => at_hand.push(spec.clone()),
                World::Reads | World::Writes | World::Runs => more.push(spec.clone()),
            }
        }
        Ok((at_hand, more))
    }

    /// What an agent's file means by these, in their order. A pattern may mean none.
    fn named(
        &self,
        agent: &AgentDefinition,
        tools: &[&String],
    ) -> Result<Vec<&ToolSpec>, SetupError> {
        let mut specs = Vec::new();
        for tool in tools {
            let names = self.toolbox.named(tool);
            if names.is_empty() && !tool.contains('*') {
                return Err(SetupError::UnknownTool {
                    agent: agent.name.clone(),
                    tool: (*tool).clone(),
                    known: self.toolbox.specs().into_iter().map(|s| s.name).collect(),
                });
            }
            specs.extend(names.into_iter().filter_map(|name| self.toolbox.spec(name)));
        }
        Ok(specs)
    }

    /// The whole system prompt: the agent's own, what the user has to say, the skills,
    /// and the list of tools on offer.
    fn prompt(
        &self,
        agent: &AgentDefinition,
        has_skills: bool,
        list: &str,
    ) -> Result<String, SetupError> {
        let wrong = |e: minijinja::Error| SetupError::Prompt {
            agent: agent.name.clone(),
            why: e.to_string(),
        };
        let mut environment = minijinja::Environment::new();
        environment.set_undefined_behavior(minijinja::UndefinedBehavior::Strict);
        let (file, text) = match &self.instructions {
            Some(found) => (found.file.as_str(), found.text.as_str()),
            None => ("", ""),
        };
        let mut prompt = environment
            .render_str(
                &agent.prompt,
                minijinja::context! {
                    workspace => self.setup.workspace.display().to_string(),
                    instructions => text,
                    instructions_file => file,
                },
            )
            .map_err(wrong)?;
        let said = self.setup.instructions.as_deref().map(|text| {
            let text = text.trim();
            format!(
                "The user asks this of every agent, in every project:\n\n<instructions>\n{text}\n\
                 </instructions>"
            )
        });
        let skills = has_skills.then(|| skills_list(&self.setup.skills));
        let list = Some(list.to_owned()).filter(|list| !list.is_empty());
        for section in [said, skills, list].into_iter().flatten() {
            prompt = format!("{}\n\n{section}\n", prompt.trim_end());
        }
        // A workspace's instructions may hold a key that somebody left there.
        Ok(self.toolbox.secrets().redact(&prompt).into_owned())
    }
}

/// The tool by which an agent hands work to its team.
fn delegate(crew: &Crew, team: &[&String]) -> ToolSpec {
    let agents: Vec<String> = team
        .iter()
        .map(|name| format!("- {name}: {}", crew.agents[*name].description))
        .collect();
    ToolSpec {
        name: DELEGATE.into(),
        description: format!(
            "Hands a task to another agent and returns its result. It sees nothing of this \
             conversation: say everything it needs to know. Agents:\n{}",
            agents.join("\n")
        ),
        schema: json!({
            "type": "object",
            "properties": {
                "agent": { "type": "string", "enum": team },
                "task": { "type": "string", "description": "The whole task." },
            },
            "required": ["agent", "task"],
            "additionalProperties": false,
        }),
        world: World::Delegates,
    }
}
