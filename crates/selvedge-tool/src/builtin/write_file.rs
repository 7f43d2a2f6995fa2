//! Writes a whole file, at once or not at all.
//!
//! The answer confirms and does not repeat the content, which the model has just
//! written itself.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::blocking;
use super::change::{self, Change, Planned};
use crate::policy::Deed;
use crate::schema;
use crate::tool::{Tool, ToolContext, ToolOutput, ToolProbe, ToolSpec, World};

pub(super) struct WriteFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Where, relative to the workspace root. Missing directories are created.
    #[schemars(length(min = 1))]
    path: String,
    /// The whole new content.
    content: String,
}

#[async_trait]
impl Tool for WriteFile {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "write_file".into(),
            description: "Write a whole file: create it, or replace what is there. To change a \
                          part of a file, use `edit_file`."
                .into(),
            schema: schema::of::<Arguments>(),
            world: World::Writes,
        }
    }

    fn deed(&self, input: &Value) -> Deed {
        Deed::path(input)
    }

    fn contents(&self) -> &'static [&'static str] {
        &["content"]
    }

    async fn prepare(&self, context: &ToolContext, input: &Value) -> Result<Value, ToolOutput> {
        let planned = plan(context, input).await?;
        Ok(json!(planned.change))
    }

    async fn run(&self, context: &ToolContext, input: &Value, evidence: &Value) -> ToolOutput {
        let planned = match plan(context, input).await {
            Ok(planned) => planned,
            Err(output) => return output,
        };
        let recorded = Change::deserialize(evidence).ok();
        let workspace = Arc::clone(&context.workspace);
        blocking(move || {
            let recorded = recorded.as_slice();
            let made = change::unchanged(&workspace, recorded)
                .and_then(|()| change::make(&workspace, std::slice::from_ref(&planned)));
            match made {
                Ok(()) => confirm(&planned.change, planned.is_new(), planned.bytes()),
                Err(output) => output,
            }
        })
        .await
    }

    async fn probe(&self, context: &ToolContext, input: &Value, evidence: &Value) -> ToolProbe {
        let (Ok(arguments), Ok(recorded)) = (
            schema::arguments::<Arguments>(input),
            Change::deserialize(evidence),
        ) else {
            return ToolProbe::Unknown;
        };
        let workspace = Arc::clone(&context.workspace);
        blocking(move || {
            change::probe(&workspace, std::slice::from_ref(&recorded), || {
                confirm(
                    &recorded,
                    recorded.before.is_none(),
                    arguments.content.len(),
                )
            })
        })
        .await
    }
}

async fn plan(context: &ToolContext, input: &Value) -> Result<Planned, ToolOutput> {
    let Arguments { path, content } = schema::arguments(input)?;
    let workspace = Arc::clone(&context.workspace);
    let planned = blocking(move || Planned::whole(&workspace, &path, content.into_bytes())).await?;
    change::spare_secrets(context, &planned)?;
    Ok(planned)
}

fn confirm(change: &Change, is_new: bool, bytes: usize) -> ToolOutput {
    let did = if is_new { "created" } else { "replaced" };
    ToolOutput::ok(format!("{did} `{}` ({bytes} bytes)", change.path))
        .with_facts(change::facts(std::slice::from_ref(change)))
}

#[cfg(test)]
mod tests {
    use crate::testing::World;
    use crate::tool::ToolProbe;
    use serde_json::json;

    #[tokio::test]
    async fn a_file_is_written_with_its_directories_and_the_answer_is_short() {
        let world = World::new(&[]);
        let input = json!({"path": "a/b/c.txt", "content": "hello\n"});
        let output = world.call("write_file", input).await;
        assert_eq!(output.text, "created `a/b/c.txt` (6 bytes)");
        assert_eq!(world.read("a/b/c.txt"), "hello\n");
        assert_eq!(output.facts["after"].as_str().unwrap().len(), 64);
    }

    #[tokio::test]
    async fn what_looks_like_a_secret_is_written_as_it_is_with_a_warning() {
        let world = World::new(&[]);
        let content = format!("token: {}{}\n", "ghp_", "q8Zt1VbX0pLr7KdM2nWc".repeat(2));
        let input = json!({"path": "fixture.yml", "content": content});
        let output = world.call("write_file", input).await;
        assert_eq!(world.read("fixture.yml"), content);
        assert!(
            output.text.contains("holds a secret (github_token)"),
            "{}",
            output.text
        );
        // What was read is not written back with markers in it.
        let input = json!({"path": "fixture.yml", "content": "token: [REDACTED]\n"});
        let output = world.call("write_file", input).await;
        assert!(
            output.text.contains("would destroy the secret"),
            "{}",
            output.text
        );
        assert_eq!(world.read("fixture.yml"), content);
        let input = json!({"path": "log.rs", "content": "const MARK: &str = \"[REDACTED]\";\n"});
        assert!(!world.call("write_file", input).await.is_error);
    }

    #[tokio::test]
    async fn paths_out_of_the_workspace_are_refused_and_nothing_is_written() {
        let world = World::new(&[("x", "")]);
        let sibling = format!("{}-evil", world.root().display());
        std::fs::create_dir(&sibling).unwrap();
        std::os::unix::fs::symlink(&sibling, world.root().join("link")).unwrap();
        let absolute = format!("{sibling}/canary");
        for path in [
            absolute.as_str(),
            "../app-evil/canary",
            "x/../../canary",
            "link/canary",
            "~/canary",
            "a\0b",
            ".git/hooks/pre-commit",
        ] {
            let input = json!({"path": path, "content": "x"});
            let output = world.call("write_file", input).await;
            assert!(output.is_error, "{path}: {}", output.text);
        }
        assert_eq!(std::fs::read_dir(&sibling).unwrap().count(), 0);
        assert!(!world.root().join(".git").exists());
    }

    #[tokio::test]
    async fn an_absolute_path_inside_the_workspace_is_accepted() {
        let world = World::new(&[]);
        let path = world.root().join("x.txt");
        let input = json!({"path": path, "content": "x"});
        assert!(!world.call("write_file", input).await.is_error);
        assert_eq!(world.read("x.txt"), "x");
    }

    #[tokio::test]
    async fn a_probe_tells_before_from_after_from_neither() {
        let world = World::new(&[("x", "old")]);
        let (checked, evidence) = world
            .prepare("write_file", json!({"path": "x", "content": "new"}))
            .await;
        assert_eq!(
            world.probe(&checked, &evidence).await,
            ToolProbe::DidNotHappen
        );
        let output = world.run(&checked, &evidence).await;
        assert_eq!(
            world.probe(&checked, &evidence).await,
            ToolProbe::Happened(output)
        );
        world.write("x", "a third thing");
        assert_eq!(world.probe(&checked, &evidence).await, ToolProbe::Unknown);
    }

    #[tokio::test]
    async fn a_file_that_was_to_be_created_and_is_absent_was_not_written() {
        let world = World::new(&[]);
        let (checked, evidence) = world
            .prepare("write_file", json!({"path": "x", "content": "new"}))
            .await;
        assert!(evidence["before"].is_null());
        assert_eq!(
            world.probe(&checked, &evidence).await,
            ToolProbe::DidNotHappen
        );
    }

    #[tokio::test]
    async fn writing_what_is_already_there_counts_as_happened() {
        let world = World::new(&[("x", "same")]);
        let (checked, evidence) = world
            .prepare("write_file", json!({"path": "x", "content": "same"}))
            .await;
        let probe = world.probe(&checked, &evidence).await;
        assert!(matches!(probe, ToolProbe::Happened(_)), "{probe:?}");
        assert!(!world.run(&checked, &evidence).await.is_error);
    }

    #[tokio::test]
    async fn a_file_that_somebody_changed_meanwhile_is_not_overwritten() {
        let world = World::new(&[("x", "old")]);
        let (checked, evidence) = world
            .prepare("write_file", json!({"path": "x", "content": "new"}))
            .await;
        world.write("x", "the user's own words");
        let output = world.run(&checked, &evidence).await;
        assert!(
            output.is_error && output.text.contains("somebody else"),
            "{}",
            output.text
        );
        assert_eq!(world.read("x"), "the user's own words");
    }
}
