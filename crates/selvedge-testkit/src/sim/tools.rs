//! Tools that leave their effects outside the world, where a crash cannot
//! reach them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use selvedge_tool::{Tool, ToolContext, ToolOutput, ToolProbe, ToolSpec, Toolbox, World};
use serde_json::{Value, json};

use super::check::Counts;
use super::dice::Dice;
use crate::disk::SimDisk;

/// How often each call had its effect.
pub(super) type Effects = Arc<Mutex<BTreeMap<String, u32>>>;

pub(super) struct Bench {
    pub(super) effects: Effects,
    pub(super) disk: Arc<SimDisk>,
    pub(super) dice: Arc<Dice>,
    pub(super) counts: Arc<Mutex<Counts>>,
}

impl Bench {
    /// The simulated tools, and the declarations of the real ones that an agent
    /// handles itself.
    pub(super) fn toolbox(self: &Arc<Self>) -> Toolbox {
        let tool = |name, world| {
            Arc::new(SimTool {
                name,
                world,
                bench: self.clone(),
            }) as Arc<dyn Tool>
        };
        Toolbox::core()
            .only(|spec| matches!(spec.world, World::Asks | World::Ends))
            .with(tool("look", World::Reads))
            .with(tool("write", World::Writes))
            .with(tool("act", World::Writes))
            .with(tool("run", World::Runs))
    }
}

struct SimTool {
    name: &'static str,
    world: World,
    bench: Arc<Bench>,
}

#[async_trait]
impl Tool for SimTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name.into(),
            description: "Simulated.".into(),
            schema: json!({
                "type": "object",
                "properties": { "key": { "type": "string" } },
                "required": ["key"],
            }),
            world: self.world,
        }
    }

    async fn run(&self, context: &ToolContext, input: &Value, _evidence: &Value) -> ToolOutput {
        let key = input["key"].as_str().unwrap_or_default().to_owned();
        if !self.wait(context).await {
            return ToolOutput {
                interrupted: true,
                ..ToolOutput::error("stopped before its effect")
            };
        }
        // A dead process does nothing more.
        if self.bench.disk.is_dead() {
            return std::future::pending().await;
        }
        if self.world != World::Reads {
            let mut effects = self.bench.effects.lock().expect("one thread");
            *effects.entry(format!("{} {key}", self.name)).or_default() += 1;
        }
        if !self.wait(context).await {
            return ToolOutput {
                interrupted: true,
                ..ToolOutput::error("stopped after its effect")
            };
        }
        let bytes = input["bytes"].as_u64().unwrap_or(10) as usize;
        ToolOutput::ok(format!("{key} {}", "y".repeat(bytes)))
    }

    async fn probe(&self, _context: &ToolContext, input: &Value, _evidence: &Value) -> ToolProbe {
        let mut counts = self.bench.counts.lock().expect("one thread");
        if self.name != "write" {
            counts.hit("probe unknown");
            return ToolProbe::Unknown;
        }
        let key = format!("write {}", input["key"].as_str().unwrap_or_default());
        if self
            .bench
            .effects
            .lock()
            .expect("one thread")
            .contains_key(&key)
        {
            counts.hit("probe happened");
            return ToolProbe::Happened(ToolOutput::ok("found done"));
        }
        counts.hit("probe did not happen");
        ToolProbe::DidNotHappen
    }
}

impl SimTool {
    /// Lets time pass; false if the call must stop.
    async fn wait(&self, context: &ToolContext) -> bool {
        let time = Duration::from_millis(self.bench.dice.below(200));
        tokio::select! {
            biased;
            () = context.cancel.cancelled() => false,
            () = tokio::time::sleep(time) => true,
        }
    }
}
