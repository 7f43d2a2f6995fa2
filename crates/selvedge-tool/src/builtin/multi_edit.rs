//! Makes several edits in one or several files: all of them or none.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::blocking;
use super::change::{self, Change, Planned};
use super::edit_file::{text_of, unclear};
use super::replace::replace;
use crate::policy::Deed;
use crate::schema;
use crate::tool::{Tool, ToolContext, ToolOutput, ToolProbe, ToolSpec, World};

pub(super) struct MultiEdit;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The edits, made in this order. A later edit of a file sees the earlier ones.
    #[schemars(length(min = 1, max = 200))]
    edits: Vec<Edit>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Edit {
    /// The file, relative to the workspace root.
    #[schemars(length(min = 1))]
    path: String,
    /// The text to replace, exactly as it is in the file. It must occur once.
    #[schemars(length(min = 1))]
    old: String,
    /// What to put in its place.
    new: String,
}

#[derive(Deserialize)]
struct Evidence {
    files: Vec<Change>,
}

#[async_trait]
impl Tool for MultiEdit {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "multi_edit".into(),
            description:
                "Replace several pieces of text, in one or several files, all or nothing: \
                          if one edit does not fit, no file changes. Each `old` must occur once."
                    .into(),
            schema: schema::of::<Arguments>(),
            world: World::Writes,
        }
    }

    fn deed(&self, input: &Value) -> Deed {
        let edits = input["edits"].as_array().into_iter().flatten();
        let paths = edits.filter_map(|edit| Some(edit["path"].as_str()?.to_owned()));
        Deed::Files {
            paths: paths.collect(),
        }
    }

    fn contents(&self) -> &'static [&'static str] {
        &["old", "new"]
    }

    async fn prepare(&self, context: &ToolContext, input: &Value) -> Result<Value, ToolOutput> {
        let planned = plan(context, input).await?;
        let files: Vec<_> = planned.iter().map(|item| &item.change).collect();
        Ok(json!({ "files": files }))
    }

    async fn run(&self, context: &ToolContext, input: &Value, evidence: &Value) -> ToolOutput {
        let recorded = recorded(evidence);
        let workspace = Arc::clone(&context.workspace);
        let unchanged = blocking(move || change::unchanged(&workspace, &recorded)).await;
        if let Err(output) = unchanged {
            return output;
        }
        let planned = match plan(context, input).await {
            Ok(planned) => planned,
            Err(output) => return output,
        };
        let workspace = Arc::clone(&context.workspace);
        blocking(move || match change::make(&workspace, &planned) {
            Ok(()) => {
                let changes: Vec<_> = planned.into_iter().map(|item| item.change).collect();
                confirm(&changes)
            }
            Err(output) => output,
        })
        .await
    }

    async fn probe(&self, context: &ToolContext, _: &Value, evidence: &Value) -> ToolProbe {
        let recorded = recorded(evidence);
        let workspace = Arc::clone(&context.workspace);
        blocking(move || change::probe(&workspace, &recorded, || confirm(&recorded))).await
    }
}

fn recorded(evidence: &Value) -> Vec<Change> {
    Evidence::deserialize(evidence).map_or(Vec::new(), |evidence| evidence.files)
}

async fn plan(context: &ToolContext, input: &Value) -> Result<Vec<Planned>, ToolOutput> {
    let Arguments { edits } = schema::arguments(input)?;
    let context = context.clone();
    blocking(move || {
        let workspace = &context.workspace;
        // By resolved path: two names of one file are one file.
        let mut files = BTreeMap::new();
        for (index, edit) in edits.iter().enumerate() {
            let place = format!("edit {} of {} (`{}`)", index + 1, edits.len(), edit.path);
            let refuse = |output: ToolOutput| {
                ToolOutput::error(format!("{place}: {}; nothing was changed", output.text))
            };
            let resolved = workspace
                .destination(&edit.path)
                .map_err(|error| refuse(error.into()))?;
            if !files.contains_key(&resolved) {
                let loaded = text_of(workspace, &edit.path).map_err(refuse)?;
                files.insert(resolved.clone(), loaded);
            }
            let (text, _) = files.get_mut(&resolved).expect("it was inserted above");
            let replaced = replace(text, &edit.old, &edit.new, false)
                .map_err(|error| unclear(&context, &resolved, error))
                .map_err(|error| refuse(ToolOutput::error(error)))?;
            *text = replaced.text;
        }
        let planned: Vec<_> = files
            .into_iter()
            .map(|(resolved, (new, old))| Planned::new(resolved, Some(old), new.into_bytes()))
            .collect();
        let spared = |item| change::spare_secrets(&context, item);
        planned.iter().try_for_each(spared)?;
        Ok(planned)
    })
    .await
}

fn confirm(changes: &[Change]) -> ToolOutput {
    let paths: Vec<_> = changes
        .iter()
        .map(|change| format!("`{}`", change.path))
        .collect();
    ToolOutput::ok(format!("edited {}", paths.join(", "))).with_facts(json!({ "files": changes }))
}

#[cfg(test)]
mod tests {
    use crate::testing::World;
    use crate::tool::ToolProbe;
    use serde_json::{Value, json};

    fn edits(edits: &[(&str, &str, &str)]) -> Value {
        let edits: Vec<_> = edits
            .iter()
            .map(|(path, old, new)| json!({"path": path, "old": old, "new": new}))
            .collect();
        json!({ "edits": edits })
    }

    #[tokio::test]
    async fn edits_across_files_are_made_together() {
        let world = World::new(&[("a", "1 2"), ("b", "3")]);
        let input = edits(&[
            ("a", "1", "one"),
            ("b", "3", "three"),
            ("./a", "one 2", "done"),
        ]);
        let output = world.call("multi_edit", input).await;
        assert_eq!(output.text, "edited `a`, `b`");
        assert_eq!(
            (world.read("a"), world.read("b")),
            ("done".into(), "three".into())
        );
    }

    #[tokio::test]
    async fn one_edit_that_does_not_fit_stops_them_all() {
        let world = World::new(&[("a", "1"), ("b", "3")]);
        let output = world
            .call("multi_edit", edits(&[("a", "1", "one"), ("b", "4", "x")]))
            .await;
        assert!(
            output.text.starts_with("edit 2 of 2 (`b`)"),
            "{}",
            output.text
        );
        assert!(
            output.text.ends_with("nothing was changed"),
            "{}",
            output.text
        );
        assert_eq!((world.read("a"), world.read("b")), ("1".into(), "3".into()));
    }

    #[tokio::test]
    async fn a_probe_says_which_files_were_reached() {
        let world = World::new(&[("a", "1"), ("b", "3")]);
        let input = edits(&[("a", "1", "one"), ("b", "3", "three")]);
        let (checked, evidence) = world.prepare("multi_edit", input).await;
        assert_eq!(
            world.probe(&checked, &evidence).await,
            ToolProbe::DidNotHappen
        );
        world.write("a", "one");
        let ToolProbe::Happened(half) = world.probe(&checked, &evidence).await else {
            panic!("each file is known");
        };
        assert!(half.is_error, "{half:?}");
        assert!(
            half.text
                .contains("`a` have the new content, `b` still the old"),
            "{}",
            half.text
        );
        world.write("b", "three");
        let probe = world.probe(&checked, &evidence).await;
        assert!(
            matches!(&probe, ToolProbe::Happened(output) if !output.is_error),
            "{probe:?}"
        );
        world.write("b", "something else");
        assert_eq!(world.probe(&checked, &evidence).await, ToolProbe::Unknown);
    }

    #[tokio::test]
    async fn a_change_that_cannot_be_completed_is_taken_back() {
        let world = World::new(&[("a", "1"), ("d/b", "3")]);
        let input = edits(&[("a", "1", "one"), ("d/b", "3", "three")]);
        let (checked, evidence) = world.prepare("multi_edit", input).await;
        // The second file cannot be staged: its directory became a symlink.
        std::fs::rename(world.root().join("d"), world.root().join("e")).unwrap();
        std::os::unix::fs::symlink("e", world.root().join("d")).unwrap();
        let recorded = super::recorded(&evidence);
        let planned: Vec<_> = [("a", "one"), ("d/b", "three")]
            .map(|(path, new)| {
                let old = Some(world.read(path).into_bytes());
                super::Planned::new(path.into(), old, new.into())
            })
            .into();
        assert_eq!(recorded[0].after, planned[0].change.after);
        let failed = super::change::make(&world.context.workspace, &planned).unwrap_err();
        assert!(failed.is_error);
        assert_eq!(world.read("a"), "1");
        assert_eq!(
            world.probe(&checked, &evidence).await,
            ToolProbe::DidNotHappen
        );
    }
}
