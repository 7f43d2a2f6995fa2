//! One door to every model provider.

mod error;
mod provider;
mod types;

pub use error::{ErrorTier, ModelError};
pub use provider::{DeltaSink, Provider};
pub use types::{
    Delta, Message, Part, Request, Response, Role, Stop, ToolCall, ToolDefinition, ToolResult,
    Usage,
};
