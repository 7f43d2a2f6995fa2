//! Uses a tool: hooks, judgement, what must be kept, the act, hooks again.

use selvedge_ledger::Payload;
use selvedge_runtime::{Hold, Nature, Performed, Probe, Scene};
use selvedge_tool::{Checked, ToolContext, ToolOutput, ToolProbe, Touch};
use serde_json::Value;

use crate::call::{AgentOutcome, ToolOutcome, ToolUse};
use crate::hooks::{Hooked, Instead, Readied, failure};
use crate::judging::Refused;
use crate::performer::AgentPerformer;

/// The pause of a run whose tool fails for a reason that may pass.
pub const TOOL: &str = "tool";

// A minute is as long as anybody wants to wait for a search; the first pauses are short,
// for most trouble is over at once.
const PAUSE_MILLIS_MIN: i64 = 250;
const PAUSE_MILLIS_MAX: i64 = 60_000;

/// How long the run waits before the next try, after `nth` that failed.
fn pause_millis(nth: u32) -> i64 {
    (PAUSE_MILLIS_MIN << nth.saturating_sub(1).min(16)).min(PAUSE_MILLIS_MAX)
}

impl AgentPerformer {
    /// What the tool needs on record, or why it was not begun.
    pub(crate) async fn tool_evidence(
        &self,
        scene: &Scene,
        used: &ToolUse,
    ) -> Result<Value, Refused> {
        let context = self.context(scene, used)?;
        let hooked = self.pre_tool(scene, used, &context).await;
        if hooked.instead.is_some() {
            return Ok(Readied::evidence(Value::Null, hooked, None));
        }
        let ready = async {
            let checked = self.check(used, &hooked).await?;
            self.admit(scene, used, &context, &checked).await?;
            let kept = self.keep(scene, used, &context, &checked).await?;
            let evidence = self.toolbox.prepare(&context, &checked).await?;
            Ok((evidence, kept))
        };
        match ready.await {
            Ok((evidence, kept)) => Ok(Readied::evidence(evidence, hooked, kept)),
            Err(refused) => Err(Refused::with(refused, hooked)),
        }
    }

    pub(crate) async fn use_tool(
        &self,
        scene: Scene,
        used: ToolUse,
        evidence: Value,
    ) -> Performed<AgentOutcome> {
        if let Some(refused) = Refused::read(&evidence) {
            return Performed::Finished(refused.outcome(&used));
        }
        let (evidence, hooked) = Readied::read(evidence);
        if let Some(instead) = &hooked.instead {
            let output = match instead {
                Instead::Answer(text) => ToolOutput::ok(text.as_str()),
                Instead::Stop(why) => ToolOutput::error(Hooked::refusal(why)),
            };
            return Performed::Finished(plain_outcome(&scene, &used, output, hooked));
        }
        let ready = self
            .check(&used, &hooked)
            .await
            .and_then(|c| Ok((c, self.context(&scene, &used)?)));
        let (checked, context) = match ready {
            Ok(ready) => ready,
            Err(refusal) => {
                return Performed::Finished(plain_outcome(&scene, &used, refusal, hooked));
            }
        };
        let output = self.toolbox.run(&context, &checked, &evidence).await;
        if output.interrupted && used.world.nature() != Nature::Changes {
            return Performed::Interrupted(None);
        }
        if let Some(hold) = self.until_it_passes(&scene, &used, &output) {
            return Performed::Held(hold, None);
        }
        let outcome = self.outcome(&scene, &used, &context, &checked, output, hooked);
        Performed::Finished(outcome.await)
    }

    /// Why the call is not over: it failed for a reason that may pass, and its run tries
    /// again. After the last try, somebody has to let it go on, and it is tried anew.
    fn until_it_passes(&self, scene: &Scene, used: &ToolUse, output: &ToolOutput) -> Option<Hold> {
        let tries = used.spec.limits.tool_attempts_max;
        if !output.is_transient || tries == 0 {
            return None;
        }
        let (name, nth) = (&used.call.name, scene.attempt % tries);
        let wait = || self.clock.now().plus_millis(pause_millis(nth));
        let detail = match nth {
            0 => format!(
                "`{name}` failed {tries} times; the last time: {}",
                output.text
            ),
            _ => format!("`{name}` failed, and is tried again: {}", output.text),
        };
        Some(Hold {
            reason: TOOL.into(),
            detail,
            until: (nth > 0).then(wait),
        })
    }

    /// What a tool's answer comes to, after the hooks that see it.
    async fn outcome(
        &self,
        scene: &Scene,
        used: &ToolUse,
        context: &ToolContext,
        checked: &Checked,
        mut output: ToolOutput,
        hooked: Hooked,
    ) -> AgentOutcome {
        let arguments = checked.input();
        let failure = failure(used, arguments, &output);
        let later = self.post_tool(scene, used, context, arguments, &mut output);
        let hooked = hooked.and(later.await);
        let touch = self.toolbox.touch(&context.workspace, checked);
        let mut outcome = plain_outcome(scene, used, output, hooked);
        if let (AgentOutcome::Tool(outcome), Nature::Changes) = (&mut outcome, used.world.nature())
        {
            outcome.looks = touch == Touch::Nothing;
            outcome.failure = failure.filter(|_| !outcome.looks);
        }
        outcome
    }

    /// Whether a call happened that was under way when a process ended.
    pub(crate) async fn find_out(
        &self,
        scene: &Scene,
        used: &ToolUse,
        evidence: &Value,
    ) -> Probe<AgentOutcome> {
        if Refused::read(evidence).is_some() {
            return Probe::DidNotHappen;
        }
        let (evidence, hooked) = Readied::read(evidence.clone());
        if hooked.instead.is_some() {
            return Probe::DidNotHappen;
        }
        let ready = (self.check(used, &hooked).await, self.context(scene, used));
        let (Ok(checked), Ok(context)) = ready else {
            return Probe::Unknown;
        };
        match self.toolbox.probe(&context, &checked, &evidence).await {
            ToolProbe::Happened(output) => Probe::Happened(
                self.outcome(scene, used, &context, &checked, output, hooked)
                    .await,
            ),
            ToolProbe::DidNotHappen => Probe::DidNotHappen,
            ToolProbe::Unknown => Probe::Unknown,
        }
    }
}

fn plain_outcome(
    scene: &Scene,
    used: &ToolUse,
    output: ToolOutput,
    mut hooked: Hooked,
) -> AgentOutcome {
    // They are on record with the call's beginning.
    hooked.arguments = None;
    let denied = hooked.denial().filter(|_| output.is_error);
    let mut text = output.text;
    hooked.annotate(&mut text);
    if output.whole.is_some() {
        text.push_str(&format!(
            "\n[the whole: read_file path=@result/{}]",
            scene.effect
        ));
    }
    AgentOutcome::Tool(ToolOutcome {
        tool: used.call.name.clone(),
        text: Payload::new(text),
        whole: output.whole.map(Payload::new),
        facts: output.facts,
        is_error: output.is_error,
        interrupted: output.interrupted,
        denied,
        asks: None,
        hooked: hooked.if_any(),
        looks: false,
        failure: None,
    })
}
