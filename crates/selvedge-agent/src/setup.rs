//! From a crew's files and a request to what a run starts with.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use selvedge_ledger::Payload;
use selvedge_model::{Message, ToolDefinition};
use selvedge_tool::{Policy, ToolSpec, Toolbox, Workspace, World, visible};
use serde_json::{Value, json};

use crate::context::{Context, Fit};
use crate::crew::Crew;
use crate::definition::AgentDefinition;
use crate::spec::{Approve, RunSpec};
use crate::tools::DELEGATE;

/// Instructions longer than this are cut, and say so.
const INSTRUCTIONS_BYTES_MAX: u64 = 32 * 1024;

/// What a person decides about a run.
pub struct Setup<'a> {
    /// The request, word for word.
    pub request: String,
    /// The directory to work in.
    pub workspace: PathBuf,
    /// What happens when something must be approved.
    pub approve: Approve,
    /// What holds for every agent of the run.
    pub policy: Policy,
    /// Whether somebody vouches for the crew's files: only then do they allow anything.
    pub is_trusted: bool,
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
    let instructions = instructions(&setup.workspace);
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

struct Assembler<'a> {
    crew: &'a Crew,
    toolbox: &'a Toolbox,
    setup: &'a Setup<'a>,
    instructions: Option<(&'static str, String)>,
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
            priority: agent.priority,
            model,
            system: Payload::new(self.prompt(agent)?),
            tools: specs.into_iter().map(|s| (s.name, s.world)).collect(),
            definitions: Payload::new(definitions),
            limits: agent.limits,
            output_schema: schema.cloned(),
            approve: self.setup.approve,
            policy: agent.policy(&self.policy, self.setup.is_trusted),
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

/// The workspace's instructions for agents, and the file they are in. They are
/// content of the repository: a link that leads out of it, or something that is
/// not a file, is not read.
fn instructions(workspace: &Path) -> Option<(&'static str, String)> {
    let workspace = Workspace::open(workspace).ok()?;
    ["AGENTS.md", "CLAUDE.md"].into_iter().find_map(|name| {
        let (file, _) = workspace.open_file(name).ok()?;
        let bytes = file.metadata().ok()?.len();
        let mut text = Vec::new();
        let kept = file.take(INSTRUCTIONS_BYTES_MAX).read_to_end(&mut text);
        let left_out = bytes.saturating_sub(kept.ok()? as u64);
        // What no reader of the file would see, no model is told in secret.
        let mut text = visible(&String::from_utf8_lossy(&text));
        if left_out > 0 {
            text.push_str(&format!(
                "\n[cut: {left_out} more bytes; read the file for the rest]"
            ));
        }
        Some((name, text))
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn instructions_are_read_from_the_workspace_and_from_nowhere_else() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("key"), "secret").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        assert_eq!(instructions(folder.path()), None);
        symlink(outside.path().join("key"), path("AGENTS.md")).unwrap();
        assert_eq!(instructions(folder.path()), None);
        std::fs::remove_file(path("AGENTS.md")).unwrap();
        let mut mkfifo = std::process::Command::new("mkfifo");
        assert!(mkfifo.arg(path("AGENTS.md")).status().unwrap().success());
        assert_eq!(instructions(folder.path()), None, "and nobody waits for it");
        std::fs::write(path("CLAUDE.md"), "be kind").unwrap();
        let found = instructions(folder.path()).unwrap();
        assert_eq!(found, ("CLAUDE.md", "be kind".to_owned()));
    }

    #[test]
    fn long_instructions_are_cut_and_say_so() {
        let folder = tempfile::tempdir().unwrap();
        let long = "ä".repeat(INSTRUCTIONS_BYTES_MAX as usize);
        std::fs::write(folder.path().join("AGENTS.md"), long).unwrap();
        let (_, text) = instructions(folder.path()).unwrap();
        assert!(text.ends_with("[cut: 32768 more bytes; read the file for the rest]"));
    }
}
