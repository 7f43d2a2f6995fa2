//! The git tools that only look: they differ in their arguments and in one line.

use std::ffi::OsString;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::git::{GIT, Git};
use crate::policy::{Deed, Operation};
use crate::schema;
use crate::tool::{Tool, ToolContext, ToolOutput, ToolSpec, World};

/// A way to look at a repository.
pub(super) trait Looking: Send + Sync {
    /// The tool's name.
    const NAME: &'static str;
    /// What it is for, in words for a model.
    const DESCRIPTION: &'static str;
    /// What is answered when git prints nothing.
    const NOTHING: &'static str;
    /// Its arguments.
    type Arguments: DeserializeOwned + JsonSchema;

    /// The line for git.
    fn line(
        context: &ToolContext,
        arguments: &Self::Arguments,
    ) -> Result<Vec<OsString>, ToolOutput>;
}

/// The tool that looks in a way.
pub(super) struct Look<T>(pub(super) T);

#[async_trait]
impl<T: Looking> Tool for Look<T> {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: T::NAME.into(),
            description: T::DESCRIPTION.into(),
            schema: schema::of::<T::Arguments>(),
            world: World::Reads,
        }
    }

    fn deed(&self, _: &Value) -> Deed {
        Deed::Git {
            operation: Operation::Read,
            paths: Vec::new(),
        }
    }

    fn bundle(&self) -> Option<&str> {
        Some(GIT)
    }

    async fn run(&self, context: &ToolContext, input: &Value, _: &Value) -> ToolOutput {
        let line = schema::arguments(input).and_then(|arguments| T::line(context, &arguments));
        let looked = match line {
            Ok(line) => Git::look(context, line, T::NOTHING).await,
            Err(refused) => Err(refused),
        };
        looked.unwrap_or_else(|output| output)
    }
}
