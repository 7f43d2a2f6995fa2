//! Adds to the end of a file, at once or not at all.

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
use crate::workspace::{PathError, Workspace};

pub(super) struct AppendFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Where, relative to the workspace root. A missing file is created.
    #[schemars(length(min = 1))]
    path: String,
    /// What is added, as it is.
    content: String,
}

#[async_trait]
impl Tool for AppendFile {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "append_file".into(),
            description: "Add text to the end of a file.".into(),
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
        Ok(json!(plan(context, input).await?.change))
    }

    async fn run(&self, context: &ToolContext, input: &Value, evidence: &Value) -> ToolOutput {
        let recorded = Change::deserialize(evidence).ok();
        let planned = match plan(context, input).await {
            Ok(planned) => planned,
            Err(output) => return output,
        };
        let workspace = Arc::clone(&context.workspace);
        blocking(move || {
            let made = change::unchanged(&workspace, recorded.as_slice())
                .and_then(|()| change::make(&workspace, std::slice::from_ref(&planned)));
            match made {
                Ok(()) => confirm(&planned.change),
                Err(output) => output,
            }
        })
        .await
    }

    async fn probe(&self, context: &ToolContext, _: &Value, evidence: &Value) -> ToolProbe {
        let Ok(recorded) = Change::deserialize(evidence) else {
            return ToolProbe::Unknown;
        };
        let workspace = Arc::clone(&context.workspace);
        blocking(move || {
            let recorded = std::slice::from_ref(&recorded);
            change::probe(&workspace, recorded, || confirm(&recorded[0]))
        })
        .await
    }
}

async fn plan(context: &ToolContext, input: &Value) -> Result<Planned, ToolOutput> {
    let Arguments { path, content } = schema::arguments(input)?;
    let workspace = Arc::clone(&context.workspace);
    let planned = blocking(move || {
        let mut whole = before(&workspace, &path)?;
        whole.extend(content.into_bytes());
        Planned::whole(&workspace, &path, whole)
    })
    .await?;
    change::spare_secrets(context, &planned)?;
    Ok(planned)
}

fn before(workspace: &Workspace, path: &str) -> Result<Vec<u8>, PathError> {
    match workspace.read_whole(path) {
        Ok((content, _)) => Ok(content),
        Err(PathError::Missing { .. }) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn confirm(change: &Change) -> ToolOutput {
    ToolOutput::ok(format!("added to `{}`", change.path))
        .with_facts(change::facts(std::slice::from_ref(change)))
}

#[cfg(test)]
mod tests {
    use crate::testing::World;
    use crate::tool::ToolProbe;
    use serde_json::json;

    #[tokio::test]
    async fn text_is_added_once_and_a_probe_knows_whether_it_was() {
        let world = World::new(&[("log.md", "one\n")]);
        let input = json!({"path": "log.md", "content": "two\n"});
        let (checked, evidence) = world.prepare("append_file", input).await;
        let probe = world.probe(&checked, &evidence).await;
        assert_eq!(probe, ToolProbe::DidNotHappen);
        assert_eq!(
            world.run(&checked, &evidence).await.text,
            "added to `log.md`"
        );
        assert_eq!(world.read("log.md"), "one\ntwo\n");
        let probe = world.probe(&checked, &evidence).await;
        assert!(matches!(probe, ToolProbe::Happened(_)), "{probe:?}");
        // What was prepared before somebody else wrote is not added.
        assert!(world.run(&checked, &evidence).await.is_error);
        let output = world
            .call("append_file", json!({"path": "n.md", "content": "x"}))
            .await;
        assert!(!output.is_error && world.read("n.md") == "x");
    }
}
