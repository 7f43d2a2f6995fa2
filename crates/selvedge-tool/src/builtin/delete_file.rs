//! Removes a file.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::blocking;
use crate::policy::Deed;
use crate::schema;
use crate::tool::{Tool, ToolContext, ToolOutput, ToolProbe, ToolSpec, World};
use crate::workspace::{PathError, Place};

pub(super) struct DeleteFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The file, relative to the workspace root.
    #[schemars(length(min = 1))]
    path: String,
}

#[async_trait]
impl Tool for DeleteFile {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "delete_file".into(),
            description: "Delete a file.".into(),
            schema: schema::of::<Arguments>(),
            world: World::Writes,
        }
    }

    fn deed(&self, input: &Value) -> Deed {
        Deed::path(input)
    }

    async fn prepare(&self, context: &ToolContext, input: &Value) -> Result<Value, ToolOutput> {
        let Arguments { path } = schema::arguments(input)?;
        let workspace = Arc::clone(&context.workspace);
        let resolved = blocking(move || {
            let (_, place) = workspace.open_file(&path)?;
            // What git keeps for itself is not deleted either.
            workspace.destination(&path)?;
            Ok::<_, PathError>(place)
        })
        .await?;
        Ok(json!({ "path": resolved }))
    }

    async fn run(&self, context: &ToolContext, _: &Value, evidence: &Value) -> ToolOutput {
        let path = evidence["path"].as_str().unwrap_or_default().to_owned();
        let workspace = Arc::clone(&context.workspace);
        blocking(move || {
            let removed = Place::create(&workspace, std::path::Path::new(&path))
                .and_then(|place| place.remove());
            match removed {
                Ok(()) => deleted(&path),
                Err(error) => PathError::from_io(&path, error).into(),
            }
        })
        .await
    }

    async fn probe(&self, context: &ToolContext, _: &Value, evidence: &Value) -> ToolProbe {
        let path = evidence["path"].as_str().unwrap_or_default().to_owned();
        let workspace = Arc::clone(&context.workspace);
        blocking(move || match workspace.open_file(&path) {
            Ok(_) => ToolProbe::DidNotHappen,
            Err(PathError::Missing { .. }) => ToolProbe::Happened(deleted(&path)),
            Err(_) => ToolProbe::Unknown,
        })
        .await
    }
}

fn deleted(path: &str) -> ToolOutput {
    ToolOutput::ok(format!("deleted `{path}`")).with_facts(json!({ "path": path }))
}

#[cfg(test)]
mod tests {
    use crate::testing::World;
    use crate::tool::ToolProbe;
    use serde_json::json;

    #[tokio::test]
    async fn a_file_is_deleted_and_what_is_outside_is_not() {
        let world = World::new(&[("a/x", "1"), (".git/config", "c")]);
        std::fs::write(world.outside().join("canary"), "c").unwrap();
        let beside = world.outside().join("canary");
        std::os::unix::fs::symlink(&beside, world.root().join("link")).unwrap();
        for path in [
            "../canary",
            beside.to_str().unwrap(),
            "link",
            "a",
            ".git/config",
        ] {
            let output = world.call("delete_file", json!({ "path": path })).await;
            assert!(output.is_error, "{path}: {}", output.text);
        }
        assert!(beside.exists() && world.root().join(".git/config").exists());
        let (checked, evidence) = world.prepare("delete_file", json!({"path": "a/x"})).await;
        let probe = world.probe(&checked, &evidence).await;
        assert_eq!(probe, ToolProbe::DidNotHappen);
        assert_eq!(world.run(&checked, &evidence).await.text, "deleted `a/x`");
        let probe = world.probe(&checked, &evidence).await;
        assert!(matches!(probe, ToolProbe::Happened(_)));
    }
}
