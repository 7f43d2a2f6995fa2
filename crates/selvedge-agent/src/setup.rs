//! From a crew's files and a request to what a run starts with.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use selvedge_ledger::Payload;
use selvedge_model::ToolDefinition;
use selvedge_tool::{ToolSpec, Toolbox, World};
use serde_json::{Value, json};

use crate::crew::Crew;
use crate::definition::AgentDefinition;
use crate::spec::{Approve, RunSpec};
use crate::tools::DELEGATE;

/// Instructions longer than this are cut, and say so.
const INSTRUCTIONS_BYTES_MAX: usize = 32 * 1024;

/// What a person decides about a run.
pub struct Setup<'a> {
    /// The request, word for word.
    pub request: String,
    /// The directory to work in.
    pub workspace: PathBuf,
    /// What happens before a command runs.
    pub approve: Approve,
    /// What it may cost in dollars.
    pub budget_usd: Option<f64>,
    /// The schema its result must fit.
    pub output_schema: Option<Value>,
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
    let instructions = instructions(&setup.workspace);
    let assembler = Assembler {
        crew,
        toolbox,
        setup,
        instructions,
    };
    let mut spec = assembler.agent(&crew.agents[&crew.entry], setup.output_schema.as_ref(), &[])?;
    spec.request = Payload::new(setup.request.as_str());
    Ok(spec)
}

struct Assembler<'a> {
    crew: &'a Crew,
    toolbox: &'a Toolbox,
    setup: &'a Setup<'a>,
    instructions: Option<(&'static str, String)>,
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
        let specs = self.tools(agent, schema, &team)?;
        let definitions: Vec<ToolDefinition> = specs
            .iter()
            .map(|s| ToolDefinition {
                name: s.name.clone(),
                description: s.description.clone(),
                schema: s.schema.clone(),
            })
            .collect();
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
            model,
            system: Payload::new(self.prompt(agent)?),
            tools: specs.into_iter().map(|s| (s.name, s.world)).collect(),
            definitions: Payload::new(definitions),
            limits: agent.limits,
            output_schema: schema.cloned(),
            approve: self.setup.approve,
            budget_usd: self.setup.budget_usd,
            workspace: self.setup.workspace.clone(),
            team,
        })
    }

    fn tools(
        &self,
        agent: &AgentDefinition,
        schema: Option<&Value>,
        team: &BTreeMap<String, RunSpec>,
    ) -> Result<Vec<ToolSpec>, SetupError> {
        let mut specs = Vec::new();
        for tool in &agent.tools {
            let spec = self
                .toolbox
                .spec(tool)
                .ok_or_else(|| SetupError::UnknownTool {
                    agent: agent.name.clone(),
                    tool: tool.clone(),
                    known: self.toolbox.specs().into_iter().map(|s| s.name).collect(),
                })?;
            let mut spec = spec.clone();
            if let (World::Ends, Some(schema)) = (spec.world, schema) {
                spec.schema["properties"]["result"] = schema.clone();
                spec.schema["required"] = json!(["result"]);
            }
            specs.push(spec);
        }
        if !team.is_empty() {
            specs.push(delegate(self.crew, team));
        }
        Ok(specs)
    }

    fn prompt(&self, agent: &AgentDefinition) -> Result<String, SetupError> {
        let wrong = |e: minijinja::Error| SetupError::Prompt {
            agent: agent.name.clone(),
            why: e.to_string(),
        };
        let mut environment = minijinja::Environment::new();
        environment.set_undefined_behavior(minijinja::UndefinedBehavior::Strict);
        let (file, text) = match &self.instructions {
            Some((file, text)) => (*file, text.as_str()),
            None => ("", ""),
        };
        environment
            .render_str(
                &agent.prompt,
                minijinja::context! {
                    workspace => self.setup.workspace.display().to_string(),
                    instructions => text,
                    instructions_file => file,
                },
            )
            .map_err(wrong)
    }
}

/// The tool by which an agent hands work to its team.
fn delegate(crew: &Crew, team: &BTreeMap<String, RunSpec>) -> ToolSpec {
    let agents: Vec<String> = team
        .keys()
        .map(|name| format!("- {name}: {}", crew.agents[name].description))
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
                "agent": { "type": "string", "enum": team.keys().collect::<Vec<_>>() },
                "task": { "type": "string", "description": "The whole task." },
            },
            "required": ["agent", "task"],
            "additionalProperties": false,
        }),
        world: World::Delegates,
    }
}

/// The workspace's instructions for agents, and the file they are in.
fn instructions(workspace: &Path) -> Option<(&'static str, String)> {
    ["AGENTS.md", "CLAUDE.md"].into_iter().find_map(|file| {
        let mut text = std::fs::read_to_string(workspace.join(file)).ok()?;
        if text.len() > INSTRUCTIONS_BYTES_MAX {
            let end = text.floor_char_boundary(INSTRUCTIONS_BYTES_MAX);
            let left_out = text.len() - end;
            text.truncate(end);
            text.push_str(&format!(
                "\n[cut: {left_out} more bytes; read the file for the rest]"
            ));
        }
        Some((file, text))
    })
}
