//! What there is in a workspace: folders, files, sizes, and what was changed last.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use rustix::fs::FileType;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::blocking;
use crate::schema;
use crate::tool::{Tool, ToolContext, ToolOutput, ToolSpec, World};
use crate::workspace::{Walk, Workspace};
use tokio_util::sync::CancellationToken;

/// Files that are named.
const LATEST_MAX: usize = 15;

pub(super) struct GetWorkspaceSummary;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {}

#[async_trait]
impl Tool for GetWorkspaceSummary {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "get_workspace_summary".into(),
            description: "Show what the workspace holds: folders with their sizes, and the files \
                          that changed last."
                .into(),
            schema: schema::of::<Arguments>(),
            world: World::Reads,
        }
    }

    async fn run(&self, context: &ToolContext, _: &Value, _: &Value) -> ToolOutput {
        let (workspace, cancel) = (Arc::clone(&context.workspace), context.cancel.clone());
        blocking(move || summary(&workspace, &cancel)).await
    }
}

fn summary(workspace: &Workspace, cancel: &CancellationToken) -> ToolOutput {
    let mut folders: BTreeMap<String, (usize, u64)> = BTreeMap::new();
    let mut files = Vec::new();
    let walked = Walk::new(workspace, cancel).each(std::path::Path::new(""), |found| {
        if found.kind != FileType::RegularFile {
            return true;
        }
        let Ok(metadata) = workspace.open_at(&found.path).and_then(|f| f.metadata()) else {
            return true;
        };
        let parent = found.path.parent().unwrap_or(std::path::Path::new(""));
        let folder = match parent.as_os_str().is_empty() {
            true => "./".to_owned(),
            false => format!("{}/", parent.display()),
        };
        let entry = folders.entry(folder).or_default();
        *entry = (entry.0 + 1, entry.1 + metadata.len());
        let path = found.path.display().to_string();
        files.push((metadata.modified().ok(), path, metadata.len()));
        true
    });
    if let Err(error) = walked {
        return ToolOutput::error(format!("the workspace cannot be walked: {error}"));
    }
    if files.is_empty() {
        return ToolOutput::ok("the workspace is empty");
    }
    let mut text = String::from("folders:\n");
    for (folder, (count, bytes)) in &folders {
        text.push_str(&format!("  {folder}  {count} files, {bytes} bytes\n"));
    }
    files.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    text.push_str("changed last:\n");
    for (_, path, bytes) in files.iter().take(LATEST_MAX) {
        text.push_str(&format!("  {path}  {bytes} bytes\n"));
    }
    ToolOutput::ok(text)
}

#[cfg(test)]
mod tests {
    use crate::testing::World;
    use serde_json::json;

    #[tokio::test]
    async fn folders_and_files_are_counted() {
        let world = World::new(&[("a/x.md", "12345"), ("a/y.md", "1"), ("z", "")]);
        let output = world.call("get_workspace_summary", json!({})).await;
        assert!(
            output.text.contains("  a/  2 files, 6 bytes\n"),
            "{}",
            output.text
        );
        assert!(
            output.text.contains("  ./  1 files, 0 bytes\n"),
            "{}",
            output.text
        );
        assert!(
            output.text.contains("  a/x.md  5 bytes\n"),
            "{}",
            output.text
        );
    }
}
