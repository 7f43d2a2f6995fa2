//! What an agent can do, and the fence around it.

mod tool;
mod workspace;

pub use tool::{ResultStore, Tool, ToolContext, ToolOutput, ToolProbe, ToolSpec, World};
pub use workspace::Workspace;
