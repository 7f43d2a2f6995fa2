//! Says which linter, formatter, type checker, test runner or language server to use.

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::blocking;
use crate::discovery::{Category, Discovery, Found, Memory, Open, discover, languages_of, scout};
use crate::schema;
use crate::tool::{Tool, ToolContext, ToolOutput, ToolSpec, World};

/// Finds out which tools a project uses.
#[derive(Default)]
pub struct DiscoverTools {
    memory: Arc<Memory>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// What is looked for.
    category: Category,
    /// The folder or file it is for, relative to the workspace root. Default: the root.
    path: Option<String>,
    /// The tool that the user chose, to be remembered for this project.
    choice: Option<String>,
    /// Look again, whatever was found before.
    force_refresh: Option<bool>,
}

impl DiscoverTools {
    /// One that remembers in `folder` what was found and chosen, by project.
    pub fn remembering(folder: impl Into<PathBuf>) -> Self {
        Self {
            memory: Arc::new(Memory::at(folder.into())),
        }
    }
}

#[async_trait]
impl Tool for DiscoverTools {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "discover_tools".into(),
            description: "Find out which linter, formatter, type checker, test framework or \
                          language server this project uses, and how to run it. Looks at \
                          configuration files, manifests, CI files and scripts."
                .into(),
            schema: schema::of::<Arguments>(),
            world: World::Reads,
        }
    }

    async fn run(&self, context: &ToolContext, input: &Value, _: &Value) -> ToolOutput {
        let arguments: Arguments = match schema::arguments(input) {
            Ok(arguments) => arguments,
            Err(output) => return output,
        };
        let (memory, context) = (Arc::clone(&self.memory), context.clone());
        blocking(move || look(&memory, &context, &arguments).unwrap_or_else(|refusal| refusal))
            .await
    }
}

fn look(
    memory: &Memory,
    context: &ToolContext,
    arguments: &Arguments,
) -> Result<ToolOutput, ToolOutput> {
    let Arguments {
        category,
        path,
        choice,
        force_refresh,
    } = arguments;
    let path = path.as_deref().unwrap_or(".");
    let root = context.workspace.root();
    let survey = scout(&context.workspace, &context.cancel, path)?;
    if let Some(choice) = choice {
        let languages =
            languages_of(*category, choice).ok_or_else(|| unknown(*category, choice))?;
        let kept = memory.choose(root, *category, &languages, choice);
        kept.map_err(|error| {
            ToolOutput::error(format!("the choice cannot be remembered: {error}"))
        })?;
    }
    let is_forced = force_refresh.unwrap_or(false);
    let known = memory.recall(root, *category, path, &survey);
    if let Some(known) = known.filter(|_| !is_forced) {
        return Ok(answer(*category, &known, true));
    }
    let choices = memory.choices(root, *category);
    let discovery = discover(&survey, *category, &choices);
    if let Err(error) = memory.found(root, *category, path, &survey, &discovery) {
        // It is found out again the next time.
        tracing::warn!(%error, "what was found out about tools is not remembered");
    }
    Ok(answer(*category, &discovery, false))
}

fn unknown(category: Category, choice: &str) -> ToolOutput {
    ToolOutput::error(format!(
        "there is no {} called `{}` that is known here; choose one of the options of \
         `discover_tools`, or run what the user wants with `run_command`",
        category.name(),
        choice.escape_debug()
    ))
}

fn answer(category: Category, discovery: &Discovery, is_cached: bool) -> ToolOutput {
    let mut text = String::new();
    for found in &discovery.tools {
        describe(&mut text, category, found);
    }
    for open in &discovery.open {
        ask(&mut text, category, open);
    }
    if text.is_empty() {
        let name = category.name();
        text = format!("There is no {name} to be found here, and none that is known for it.\n");
    }
    let mut facts = serde_json::to_value(discovery).expect("plain data");
    facts["category"] = json!(category);
    facts["requires_user"] = json!(!discovery.open.is_empty());
    facts["cached"] = json!(is_cached);
    ToolOutput::ok(text).with_facts(facts)
}

fn describe(text: &mut String, category: Category, found: &Found) {
    let confidence = serde_json::to_value(found.confidence).expect("a word");
    let source = serde_json::to_value(found.source).expect("a word");
    let (category, version) = (
        category.name(),
        found.version.as_deref().unwrap_or_default(),
    );
    let words = [&confidence, &source].map(|word| word.as_str().unwrap_or_default());
    let mut push = |line: String| writeln!(text, "{line}").expect("a text takes what it is given");
    push(format!(
        "{category} for {}: {} {version}({}, {}{})",
        found.languages.join(", "),
        found.name,
        words[0],
        words[1].replace('_', " "),
        found
            .config_path
            .as_ref()
            .map_or(String::new(), |path| format!(" `{path}`")),
    ));
    push(format!("  run: {}", found.run_command));
    if !found.is_installed {
        match &found.install_command {
            Some(install) => push(format!("  not installed; install: {install}")),
            None => push("  not installed".into()),
        }
    }
    if let Some(warning) = &found.warning {
        push(format!("  note: {warning}"));
    }
    if !found.alternatives.is_empty() {
        push(format!("  also there: {}", found.alternatives.join(", ")));
    }
}

fn ask(text: &mut String, category: Category, open: &Open) {
    let Open {
        languages,
        options,
        why,
    } = open;
    writeln!(
        text,
        "{} for {}: {why}. Ask the user which to use (recommended: {}; also: {}), then \
         call `discover_tools` again with `choice`. If nobody can be asked, use the recommended \
         one and say so.",
        category.name(),
        languages.join(", "),
        options[0],
        match &options[1..] {
            [] => "none".to_owned(),
            others => others.join(", "),
        }
    )
    .expect("a text takes what it is given");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    async fn call(world: &testing::World, tool: &DiscoverTools, input: Value) -> ToolOutput {
        tool.run(&world.context, &input, &Value::Null).await
    }

    #[tokio::test]
    async fn a_configured_linter_is_found_on_disk() {
        let world = testing::World::new(&[(".golangci.yml", "version: 2\n")]);
        let output = world
            .call("discover_tools", json!({"category": "linter"}))
            .await;
        let tool = &output.facts["tools"][0];
        assert_eq!(output.facts["tier"], 1, "{}", output.text);
        assert_eq!(output.facts["requires_user"], false);
        assert_eq!(tool["name"], "golangci-lint");
        assert_eq!(tool["confidence"], "high");
        assert_eq!(tool["source"], "config_file");
        assert_eq!(tool["config_path"], ".golangci.yml");
        assert!(
            output.text.contains("run: golangci-lint run"),
            "{}",
            output.text
        );
    }

    #[tokio::test]
    async fn a_choice_is_remembered_beyond_the_process_and_only_for_its_project() {
        let world = testing::World::new(&[("app.py", "")]);
        let folder = world.outside().join("memory");
        let linter = json!({"category": "linter"});
        let tool = DiscoverTools::remembering(&folder);
        let output = call(&world, &tool, linter.clone()).await;
        assert_eq!(output.facts["requires_user"], true);
        assert!(output.text.contains("Ask the user"), "{}", output.text);
        let chosen = json!({"category": "linter", "choice": "pylint"});
        let output = call(&world, &tool, chosen).await;
        assert_eq!(output.facts["requires_user"], false, "{}", output.text);

        let later = DiscoverTools::remembering(&folder);
        let output = call(&world, &later, linter.clone()).await;
        assert_eq!(output.facts["tools"][0]["name"], "pylint");
        assert_eq!(output.facts["tools"][0]["source"], "user_choice");
        assert_eq!(output.facts["tier"], 3);
        let elsewhere = testing::World::new(&[("app.py", "")]);
        let output = call(&elsewhere, &later, linter).await;
        assert_eq!(output.facts["requires_user"], true);
    }

    #[tokio::test]
    async fn a_finding_is_used_again_until_a_file_it_rests_on_changes() {
        let world = testing::World::new(&[("app.py", ""), ("ruff.toml", "")]);
        let tool = DiscoverTools::remembering(world.outside().join("memory"));
        let linter = json!({"category": "linter"});
        let cached = |output: &ToolOutput| output.facts["cached"] == json!(true);
        assert!(!cached(&call(&world, &tool, linter.clone()).await));
        assert!(cached(&call(&world, &tool, linter.clone()).await));
        world.write("README.md", "no matter");
        assert!(cached(&call(&world, &tool, linter.clone()).await));
        let forced = json!({"category": "linter", "force_refresh": true});
        assert!(!cached(&call(&world, &tool, forced).await));
        world.write("ruff.toml", "line-length = 100\n");
        assert!(!cached(&call(&world, &tool, linter.clone()).await));
        std::fs::remove_file(world.root().join("ruff.toml")).unwrap();
        world.write(".flake8", "");
        let output = call(&world, &tool, linter).await;
        assert!(!cached(&output));
        assert_eq!(output.facts["tools"][0]["name"], "flake8");
    }

    #[tokio::test]
    async fn what_cannot_be_is_explained() {
        let world = testing::World::new(&[]);
        for (input, words) in [
            (json!({"category": "linter", "path": "../other"}), "outside"),
            (
                json!({"category": "linter", "choice": "magic"}),
                "no linter called `magic`",
            ),
            (json!({"category": "linters"}), "does not fit"),
        ] {
            let output = world.call("discover_tools", input).await;
            assert!(output.is_error, "{}", output.text);
            let text = output.text.replace("do not fit", "does not fit");
            assert!(text.contains(words), "{text}");
        }
        let output = world
            .call("discover_tools", json!({"category": "lsp"}))
            .await;
        assert!(
            output.text.contains("no lsp to be found"),
            "{}",
            output.text
        );
    }
}
