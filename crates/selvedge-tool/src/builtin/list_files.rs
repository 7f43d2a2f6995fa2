//! Lists what is in a directory and below it, as git would see it.

use std::sync::Arc;

use async_trait::async_trait;
use ignore::overrides::{Override, OverrideBuilder};
use rustix::fs::FileType;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::blocking;
use crate::policy::Deed;
use crate::schema;
use crate::tool::{Tool, ToolContext, ToolOutput, ToolSpec, World};
use crate::workspace::{PathError, Walk, Workspace};
use tokio_util::sync::CancellationToken;

const ENTRIES_SHOWN_MAX: usize = 1_000;

pub(super) struct ListFiles;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The directory, relative to the workspace root. Default: the root.
    path: Option<String>,
    /// How many levels deep; 1 is the directory alone. Default: all.
    #[schemars(range(min = 1))]
    depth: Option<usize>,
    /// Only files that match, such as `*.rs` or `src/**/*.ts`.
    glob: Option<String>,
}

#[async_trait]
impl Tool for ListFiles {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "list_files".into(),
            description: "List files and directories (these end with `/`), without what \
                          .gitignore names."
                .into(),
            schema: schema::of::<Arguments>(),
            world: World::Reads,
        }
    }

    fn deed(&self, input: &Value) -> Deed {
        Deed::path(input)
    }

    async fn run(&self, context: &ToolContext, input: &Value, _: &Value) -> ToolOutput {
        let arguments: Arguments = match schema::arguments(input) {
            Ok(arguments) => arguments,
            Err(output) => return output,
        };
        let (workspace, cancel) = (Arc::clone(&context.workspace), context.cancel.clone());
        blocking(move || list(&workspace, &arguments, &cancel).unwrap_or_else(|output| output))
            .await
    }
}

fn list(
    workspace: &Workspace,
    arguments: &Arguments,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolOutput> {
    let path = arguments.path.as_deref().unwrap_or(".");
    let start = workspace.existing(path)?;
    let filter = filter(arguments.glob.as_deref())?;
    let mut shown = Vec::new();
    let mut count = 0_usize;
    let is_complete = Walk::new(workspace, cancel)
        .depth_max(arguments.depth.unwrap_or(usize::MAX))
        .each(&start, |found| {
            let is_dir = found.kind == FileType::Directory;
            if let Some(filter) = &filter
                && (is_dir || !filter.matched(&found.path, false).is_whitelist())
            {
                return true;
            }
            count += 1;
            if shown.len() < ENTRIES_SHOWN_MAX {
                let mark = match found.kind {
                    FileType::Directory => "/",
                    FileType::Symlink => "@",
                    _ => "",
                };
                shown.push(format!("{}{mark}\n", found.path.display()));
            }
            true
        })
        .map_err(|error| not_a_directory(path, error))?;

    shown.sort();
    let mut text: String = shown.concat();
    if count > shown.len() {
        text.push_str(&format!(
            "[and {} more, deeper down: name a `path`, a `depth` or a `glob`]\n",
            count - shown.len()
        ));
    }
    if text.is_empty() {
        text.push_str("[nothing here that git would not ignore]\n");
    }
    if !is_complete {
        text.push_str("[the tree was not seen whole: name a `path`]\n");
    }
    Ok(ToolOutput {
        interrupted: cancel.is_cancelled(),
        ..ToolOutput::ok(text).with_facts(json!({ "path": start, "entries": count }))
    })
}

/// What a glob lets through.
pub(super) fn filter(glob: Option<&str>) -> Result<Option<Override>, ToolOutput> {
    let Some(glob) = glob else { return Ok(None) };
    let mut builder = OverrideBuilder::new("");
    builder
        .add(glob)
        .and_then(|builder| builder.build())
        .map(Some)
        .map_err(|error| {
            ToolOutput::error(format!(
                "the glob cannot be used: {error}; try one like `*.rs`"
            ))
        })
}

fn not_a_directory(path: &str, error: std::io::Error) -> ToolOutput {
    match error.kind() {
        std::io::ErrorKind::NotADirectory => {
            ToolOutput::error(format!("`{path}` is not a directory: use `read_file`"))
        }
        _ => PathError::from_io(path, error).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::World;

    async fn check(world: &World, input: Value, expected: &str) {
        let output = world.call("list_files", input.clone()).await;
        assert_eq!(output.text, expected, "{input}");
    }

    #[tokio::test]
    async fn a_listing_has_what_git_would_have() {
        let world = World::new(&[
            (".gitignore", "target\n"),
            (".git/HEAD", ""),
            ("target/x", ""),
            ("src/a.rs", ""),
            ("src/deep/b.rs", ""),
            ("README.md", ""),
        ]);
        let all = ".gitignore\nREADME.md\nsrc/\nsrc/a.rs\nsrc/deep/\nsrc/deep/b.rs\n";
        check(&world, json!({}), all).await;
        check(&world, json!({"depth": 1}), ".gitignore\nREADME.md\nsrc/\n").await;
        check(&world, json!({"glob": "*.rs"}), "src/a.rs\nsrc/deep/b.rs\n").await;
        check(
            &world,
            json!({"path": "src", "glob": "src/*.rs"}),
            "src/a.rs\n",
        )
        .await;
        let file = "`README.md` is not a directory: use `read_file`";
        check(&world, json!({"path": "README.md"}), file).await;
    }

    #[tokio::test]
    async fn nothing_outside_is_listed() {
        let world = World::new(&[("a", "")]);
        std::fs::write(world.outside().join("canary"), "").unwrap();
        std::os::unix::fs::symlink("..", world.root().join("out")).unwrap();
        check(&world, json!({}), "a\nout@\n").await;
        for path in ["out", "..", "/", "out/app"] {
            let output = world.call("list_files", json!({ "path": path })).await;
            assert!(
                output.is_error && !output.text.contains("canary"),
                "{}",
                output.text
            );
        }
    }

    #[tokio::test]
    async fn a_long_listing_says_how_much_is_missing_and_keeps_the_top() {
        let world = World::new(&[("z", "")]);
        for n in 0..1_100 {
            world.write(&format!("a/{n:04}"), "");
        }
        let output = world.call("list_files", json!({})).await;
        assert!(output.text.contains("\nz\n"), "{}", output.text);
        assert!(output.text.contains("[and 102 more"), "{}", output.text);
    }
}
