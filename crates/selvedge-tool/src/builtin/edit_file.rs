//! Changes one place in a file, named by the text that is there.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::blocking;
use super::change::{self, Change, Planned};
use super::replace::replace;
use crate::policy::Deed;
use crate::schema;
use crate::tool::{Tool, ToolContext, ToolOutput, ToolProbe, ToolSpec, World};
use crate::workspace::Workspace;

pub(super) struct EditFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The file, relative to the workspace root.
    #[schemars(length(min = 1))]
    path: String,
    /// The text to replace, exactly as it is in the file. It must occur once.
    #[schemars(length(min = 1))]
    old: String,
    /// What to put in its place.
    new: String,
    /// Replace every occurrence. Default: false.
    all: Option<bool>,
}

#[async_trait]
impl Tool for EditFile {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "edit_file".into(),
            description: "Replace a piece of text in a file. `old` must be exactly what is there, \
                          spaces included, and occur once, unless `all` is set."
                .into(),
            schema: schema::of::<Arguments>(),
            world: World::Writes,
        }
    }

    fn deed(&self, input: &Value) -> Deed {
        Deed::path(input)
    }

    fn contents(&self) -> &'static [&'static str] {
        &["old", "new"]
    }

    async fn prepare(&self, context: &ToolContext, input: &Value) -> Result<Value, ToolOutput> {
        let (planned, _) = plan(context, input).await?;
        Ok(json!(planned.change))
    }

    async fn run(&self, context: &ToolContext, input: &Value, evidence: &Value) -> ToolOutput {
        let recorded = Change::deserialize(evidence).ok();
        let workspace = Arc::clone(&context.workspace);
        // First, so that a changed file is called changed, and not "no match".
        let unchanged = blocking(move || change::unchanged(&workspace, recorded.as_slice())).await;
        if let Err(output) = unchanged {
            return output;
        }
        let (planned, lines) = match plan(context, input).await {
            Ok(plan) => plan,
            Err(output) => return output,
        };
        let workspace = Arc::clone(&context.workspace);
        blocking(
            move || match change::make(&workspace, std::slice::from_ref(&planned)) {
                Ok(()) => confirm(&planned.change, Some(&lines)),
                Err(output) => output,
            },
        )
        .await
    }

    async fn probe(&self, context: &ToolContext, _: &Value, evidence: &Value) -> ToolProbe {
        let Ok(recorded) = Change::deserialize(evidence) else {
            return ToolProbe::Unknown;
        };
        let workspace = Arc::clone(&context.workspace);
        blocking(move || {
            change::probe(&workspace, std::slice::from_ref(&recorded), || {
                confirm(&recorded, None)
            })
        })
        .await
    }
}

async fn plan(context: &ToolContext, input: &Value) -> Result<(Planned, Vec<usize>), ToolOutput> {
    let arguments: Arguments = schema::arguments(input)?;
    let context = context.clone();
    blocking(move || {
        let workspace = &context.workspace;
        let (text, old) = text_of(workspace, &arguments.path)?;
        let resolved = workspace.destination(&arguments.path)?;
        let all = arguments.all.unwrap_or(false);
        let replaced = replace(&text, &arguments.old, &arguments.new, all)
            .map_err(|error| unclear(&context, &resolved, error))
            .map_err(|error| ToolOutput::error(format!("`{}`: {error}", arguments.path)))?;
        let planned = Planned::new(resolved, Some(old), replaced.text.into_bytes());
        change::spare_secrets(&context, &planned)?;
        Ok((planned, replaced.lines))
    })
    .await
}

/// Why an edit does not fit; without a word of what is in a sensitive file.
pub(super) fn unclear(context: &ToolContext, path: &Path, error: String) -> String {
    match context.secrets.is_sensitive(path) {
        true => "`old` does not occur exactly once; the file is sensitive and not shown".into(),
        false => error,
    }
}

/// A file's text, and its bytes.
pub(super) fn text_of(workspace: &Workspace, path: &str) -> Result<(String, Vec<u8>), ToolOutput> {
    let (bytes, _) = workspace.read_whole(path)?;
    match String::from_utf8(bytes.clone()) {
        Ok(text) => Ok((text, bytes)),
        Err(_) => Err(ToolOutput::error(format!(
            "`{path}` is not UTF-8 text and cannot be edited: use `run_command` with a fitting program"
        ))),
    }
}

/// The lines are not on record, so a probe confirms without them.
fn confirm(change: &Change, lines: Option<&[usize]>) -> ToolOutput {
    let place = match lines {
        Some([line]) => format!(" at line {line}"),
        Some(lines) => format!(" at {} places", lines.len()),
        None => String::new(),
    };
    ToolOutput::ok(format!("edited `{}`{place}", change.path))
        .with_facts(change::facts(std::slice::from_ref(change)))
}

#[cfg(test)]
mod tests {
    use crate::testing::World;
    use crate::tool::ToolProbe;
    use serde_json::json;

    #[tokio::test]
    async fn one_place_is_edited_and_the_rest_stays() {
        let world = World::new(&[("a.rs", "one\ntwo\nthree\n")]);
        let input = json!({"path": "a.rs", "old": "two", "new": "2"});
        let output = world.call("edit_file", input).await;
        assert_eq!(output.text, "edited `a.rs` at line 2");
        assert_eq!(world.read("a.rs"), "one\n2\nthree\n");
    }

    #[tokio::test]
    async fn an_unclear_edit_is_refused_before_it_begins() {
        let world = World::new(&[("a.rs", "x\nx\n")]);
        let input = json!({"path": "a.rs", "old": "x", "new": "y"});
        let checked = world.check("edit_file", &input.to_string()).unwrap();
        let refused = world
            .toolbox
            .prepare(&world.context, &checked)
            .await
            .unwrap_err();
        assert!(
            refused.text.contains("occurs 2 times, at lines 1, 2"),
            "{}",
            refused.text
        );
        assert_eq!(world.read("a.rs"), "x\nx\n");
    }

    #[tokio::test]
    async fn a_file_changed_after_it_was_prepared_is_left_alone() {
        let world = World::new(&[("a.rs", "one\n")]);
        let (checked, evidence) = world
            .prepare(
                "edit_file",
                json!({"path": "a.rs", "old": "one", "new": "1"}),
            )
            .await;
        world.write("a.rs", "one\nand the user's line\n");
        let output = world.run(&checked, &evidence).await;
        assert!(output.text.contains("somebody else"), "{}", output.text);
        assert_eq!(world.read("a.rs"), "one\nand the user's line\n");
        assert_eq!(world.probe(&checked, &evidence).await, ToolProbe::Unknown);
    }

    #[tokio::test]
    async fn a_probe_settles_an_edit_that_was_interrupted() {
        let world = World::new(&[("a.rs", "one\n")]);
        let (checked, evidence) = world
            .prepare(
                "edit_file",
                json!({"path": "a.rs", "old": "one", "new": "1"}),
            )
            .await;
        assert_eq!(
            world.probe(&checked, &evidence).await,
            ToolProbe::DidNotHappen
        );
        world.write("a.rs", "1\n");
        let probe = world.probe(&checked, &evidence).await;
        assert!(
            matches!(&probe, ToolProbe::Happened(output) if !output.is_error),
            "{probe:?}"
        );
    }

    #[tokio::test]
    async fn a_file_with_a_secret_is_edited_around_it_and_never_through_it() {
        let text = "api_key = \"q8Zt1VbX0pLr7KdM2nWc\"\nport = 1\n";
        let world = World::new(&[("app.toml", text), (".env", "A=secret-1\nB=2\n")]);
        let edit = |path: &str, old: &str, new: &str| json!({"path": path, "old": old, "new": new});
        let shown = world.call("read_file", json!({"path": "app.toml"})).await;
        assert_eq!(shown.text, "api_key = \"[REDACTED]\"\nport = 1\n");
        for (input, expected) in [
            (
                edit("app.toml", "api_key = \"[REDACTED]\"", "x"),
                "choose an `old`",
            ),
            (
                edit("app.toml", "port = 1", "api_key = \"[REDACTED]\""),
                "would destroy the secret",
            ),
            (edit(".env", "B=[REDACTED]", "B=3"), "not shown"),
            (edit(".env", "B=1", "B=3"), "sensitive and not shown"),
        ] {
            let output = world.call("edit_file", input).await;
            assert!(
                output.is_error && output.text.contains(expected),
                "{}",
                output.text
            );
        }
        assert_eq!(world.read("app.toml"), text);
        let output = world
            .call("edit_file", edit("app.toml", "port = 1", "port = 2"))
            .await;
        assert!(!output.is_error, "{}", output.text);
        assert_eq!(world.read("app.toml"), text.replace("= 1", "= 2"));
    }

    #[tokio::test]
    async fn a_missing_file_and_a_binary_file_are_explained() {
        let world = World::new(&[]);
        std::fs::write(world.root().join("bin"), [0xff, 0xfe, 0]).unwrap();
        for (path, expected) in [
            ("nope", "does not exist"),
            ("bin", "not UTF-8"),
            (".", "a directory"),
        ] {
            let input = json!({"path": path, "old": "a", "new": "b"});
            let output = world.call("edit_file", input).await;
            assert!(
                output.is_error && output.text.contains(expected),
                "{}",
                output.text
            );
        }
    }
}
