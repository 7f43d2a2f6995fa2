//! What the sandbox costs: the same command with it and without.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use selvedge_tool::{
    Caller, Fence, Lent, ResultStore, Sandbox, Secrets, ToolContext, Toolbox, Workspace,
};
use tokio_util::sync::CancellationToken;

use crate::figures::{Figures, median};
use crate::rig;

const ROUNDS: usize = 100;

/// Measures a command that does nothing, and one that starts a shell and prints.
pub fn measure(figures: &mut Figures) -> anyhow::Result<()> {
    let runtime = selvedge_runtime::executor().build()?;
    for (name, command) in [("true", "true"), ("a shell", "echo one; echo two")] {
        let folder = rig::scratch()?;
        let fenced = Sandbox {
            temp: Some(folder.path().join("temp")),
            ..Sandbox::default()
        };
        let mut medians = Vec::new();
        for sandbox in [Sandbox::off(), fenced] {
            let mut times = runtime.block_on(rounds(sandbox, command))?;
            medians.push(median(&mut times));
        }
        let cost = medians[1] - medians[0];
        figures.add(format!("{name}, no sandbox"), medians[0], "ms", None);
        figures.add(format!("{name}, in the sandbox"), medians[1], "ms", None);
        figures.add(
            format!("cost of the sandbox, {name}"),
            cost,
            "ms",
            Some(25.0),
        );
        if std::path::Path::new("/usr/bin/bwrap").exists() {
            let borrowed = Sandbox {
                fence: Fence::Bubblewrap,
                temp: Some(folder.path().join("temp")),
                ..Sandbox::default()
            };
            let mut times = runtime.block_on(rounds(borrowed, command))?;
            let cost = median(&mut times) - medians[0];
            let figure = format!("cost of bubblewrap's, {name}");
            figures.add(figure, cost, "ms", None);
        }
        let ratio = medians[1] / medians[0];
        figures.add(format!("times as long, {name}"), ratio, "×", None);
    }
    Ok(())
}

async fn rounds(sandbox: Sandbox, command: &str) -> anyhow::Result<Vec<f64>> {
    let folder = rig::scratch()?;
    let context = ToolContext {
        workspace: Arc::new(Workspace::open(folder.path())?),
        cancel: CancellationToken::new(),
        output: Arc::new(|_| {}),
        timeout: Duration::from_secs(60),
        awaited: true,
        policy: Arc::default(),
        sandbox: Arc::new(sandbox),
        results: Arc::new(NoResults),
        caller: Caller::default(),
        desk: Default::default(),
        secrets: Secrets::new(),
        credentials: Lent::default(),
    };
    let toolbox = Toolbox::core();
    let arguments = serde_json::json!({ "command": command }).to_string();
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        let call = toolbox
            .check("run_command", &arguments)
            .map_err(|output| anyhow::anyhow!(output.text))?;
        let output = toolbox.run(&context, &call, &serde_json::Value::Null).await;
        anyhow::ensure!(!output.is_error, "{}", output.text);
        times.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    Ok(times)
}

struct NoResults;

#[async_trait]
impl ResultStore for NoResults {
    async fn result(&self, _: &str) -> Option<Arc<str>> {
        None
    }
}
