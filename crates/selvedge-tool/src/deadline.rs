//! Runs a tool within its time: told to stop first, left behind if it does not.
//!
//! A tool that is told has a moment to say what it did, because half a result is worth
//! more than none.

use std::time::Duration;

use serde_json::Value;

use crate::tool::{Tool, ToolContext, ToolOutput};

// A tool that was told to stop has this long to say what it did. The staged kill of
// a command takes up to eleven seconds of it.
const STOP_GRACE: Duration = Duration::from_secs(15);

/// Runs a tool. When it is cancelled or out of time it is told so through a token of
/// its own, and may still answer with what there is.
pub(crate) async fn run(
    name: &str,
    tool: &dyn Tool,
    context: &ToolContext,
    input: &Value,
    evidence: &Value,
) -> ToolOutput {
    if context.cancel.is_cancelled() {
        return ToolOutput {
            interrupted: true,
            ..ToolOutput::error(format!(
                "`{name}` was cancelled before it began; nothing was done"
            ))
        };
    }
    let deadline = tool.deadline(context, input);
    let inner = ToolContext {
        cancel: context.cancel.child_token(),
        ..context.clone()
    };
    let act = tool.run(&inner, input, evidence);
    tokio::pin!(act);
    let timed_out = tokio::select! {
        biased;
        output = &mut act => return output,
        () = context.cancel.cancelled() => false,
        () = tokio::time::sleep(deadline) => true,
    };
    inner.cancel.cancel();
    let reason = match timed_out {
        true => format!("stopped after {} s, its deadline", deadline.as_secs_f64()),
        false => "cancelled".into(),
    };
    match tokio::time::timeout(STOP_GRACE, act).await {
        Ok(mut output) if timed_out && output.interrupted => {
            output.text.push_str(&format!("\n[`{name}` was {reason}]"));
            // Interrupted means by somebody, and this was the clock.
            output.interrupted = false;
            output.is_error = true;
            output
        }
        Ok(output) => output,
        Err(_) => ToolOutput {
            interrupted: !timed_out,
            ..ToolOutput::error(format!(
                "`{name}` was {reason} and did not answer: what it began may or may not have \
                 happened; look before you repeat it"
            ))
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::World;
    use crate::tool::{self, ToolSpec};
    use crate::toolbox::Toolbox;
    use async_trait::async_trait;
    use serde_json::json;
    use std::sync::Arc;

    /// Sleeps; when told to stop, answers or does not.
    struct Slow {
        answers: bool,
    }

    #[async_trait]
    impl Tool for Slow {
        fn spec(&self) -> ToolSpec {
            ToolSpec {
                name: "slow".into(),
                description: String::new(),
                schema: json!({"type": "object"}),
                world: tool::World::Reads,
            }
        }

        async fn run(&self, context: &ToolContext, _: &Value, _: &Value) -> ToolOutput {
            context.cancel.cancelled().await;
            if !self.answers {
                std::future::pending::<()>().await;
            }
            ToolOutput {
                interrupted: true,
                ..ToolOutput::ok("half of it")
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_tool_past_its_deadline_is_told_to_stop_and_its_answer_kept() {
        let mut world = World::new(&[]);
        world.toolbox = Toolbox::new().with(Arc::new(Slow { answers: true }));
        let output = world.call("slow", json!({})).await;
        assert_eq!(
            output.text,
            "half of it\n[`slow` was stopped after 60 s, its deadline]"
        );
        assert!(output.is_error && !output.interrupted);
    }

    #[tokio::test(start_paused = true)]
    async fn a_tool_that_does_not_stop_is_left_behind() {
        let mut world = World::new(&[]);
        world.toolbox = Toolbox::new().with(Arc::new(Slow { answers: false }));
        let output = world.call("slow", json!({})).await;
        assert!(
            output.text.contains("may or may not have happened"),
            "{}",
            output.text
        );
    }

    #[tokio::test]
    async fn a_cancelled_call_does_not_begin() {
        let world = World::new(&[]);
        world.context.cancel.cancel();
        let output = world
            .call("write_file", json!({"path": "a", "content": ""}))
            .await;
        assert!(
            output.interrupted && output.text.contains("before it began"),
            "{}",
            output.text
        );
        assert!(!world.root().join("a").exists());
    }
}
