//! Decides about a call before it is carried out: the policy's verdict, and what
//! people have said before.
//!
//! A verdict to ask is settled by what is on record: an approval for the session or
//! for the project, or the mode that the run was started in. Only what is left is
//! asked about. What is forbidden stays so, whoever approves it.

use std::collections::HashMap;
use std::path::Path;

use selvedge_ledger::{Ledger, LedgerError, Payload, Position, StreamId, Time};
use selvedge_runtime::{Nature, Performed, Scene};
use selvedge_tool::{
    Act, Checked, Decision, Deed, Finding, Grant, Granted, Grants, Site, Source, ToolContext,
    ToolOutput, Verdict, World, compact,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::approvals::{ASKED_MAX, Approvals, Scope};
use crate::call::{AgentOutcome, Judged, ToolOutcome, ToolUse};
use crate::hooks::{Failure, Hooked};
use crate::performer::AgentPerformer;
use crate::spec::Approve;

/// What was said before.
#[derive(Default)]
pub(crate) struct Judge {
    sessions: tokio::sync::Mutex<HashMap<StreamId, (Position, Approvals)>>,
    grants: Option<Grants>,
}

/// Why a call was not begun: the evidence of a call that has none.
#[derive(Serialize, Deserialize)]
pub(crate) struct Refused {
    refused: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    denied: Option<Finding>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asks: Option<Box<Verdict>>,
    /// That the tool itself refused, which counts as a failure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    failed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hooked: Option<Hooked>,
}

impl AgentPerformer {
    /// Judges a call and says so.
    pub(crate) async fn judge(&self, scene: Scene, used: ToolUse) -> Performed<AgentOutcome> {
        if used.world == World::Delegates {
            return Performed::Finished(judged(delegation(&used), Hooked::default()));
        }
        // A call that cannot be judged does not get further than this: it is checked
        // again, and says what is wrong with it.
        let unclear = || Verdict::of_nothing("its arguments cannot be judged, and will be refused");
        let Ok(context) = self.context(&scene, &used) else {
            return Performed::Finished(judged(unclear(), Hooked::default()));
        };
        let hooked = self.pre_tool(&scene, &used, &context).await;
        if hooked.instead.is_some() {
            let mut verdict = Verdict::of_nothing("a hook answered in its place");
            verdict.finding = hooked.denial().unwrap_or(verdict.finding);
            return Performed::Finished(judged(verdict, hooked));
        }
        let verdict = match self.check(&used, &hooked).await {
            Ok(checked) => self.verdict(&scene, &used, &context, &checked).await,
            Err(_) => unclear(),
        };
        Performed::Finished(judged(verdict, hooked))
    }

    /// Lets a call pass, or says why not. What was approved must still be the same.
    pub(crate) async fn admit(
        &self,
        scene: &Scene,
        used: &ToolUse,
        context: &ToolContext,
        checked: &Checked,
    ) -> Result<(), Refused> {
        let verdict = self.verdict(scene, used, context, checked).await;
        match (verdict.decision(), &used.approved) {
            (Decision::Allow, _) => {
                // Agreed to before, if credentials were the question.
                if verdict.finding.rule.source == Source::Session {
                    self.toolbox.consent(context, checked, Granted::Once);
                }
                Ok(())
            }
            (Decision::Ask, Some(approved)) if approved.digest == verdict.digest => {
                let is_consent = verdict.finding.rule.source == Source::Credentials;
                let granted = match (is_consent, approved.scope) {
                    (true, Scope::Session) => Granted::Session,
                    (true, Scope::Project) => Granted::Always,
                    // Exactly this call was approved, and nothing beyond it.
                    _ => Granted::Once,
                };
                self.toolbox.consent(context, checked, granted);
                if approved.scope == Scope::Project && !is_consent {
                    self.remember(used, checked, &verdict);
                }
                Ok(())
            }
            (Decision::Ask, _) => Err(Refused {
                asks: Some(Box::new(verdict)),
                ..Refused::because("not begun: a person is asked first")
            }),
            (Decision::Deny, _) => Err(Refused {
                denied: Some(verdict.finding.clone()),
                ..Refused::because(verdict.refusal())
            }),
        }
    }

    async fn verdict(
        &self,
        scene: &Scene,
        used: &ToolUse,
        context: &ToolContext,
        checked: &Checked,
    ) -> Verdict {
        let verdict = match used.spec.approve {
            Approve::Ask => self.toolbox.judge_with_consent(context, checked).await,
            // Nobody is asked, and credentials are not lent without having asked.
            Approve::Auto | Approve::Never => {
                let (workspace, policy) = (&context.workspace, &context.policy);
                self.toolbox.judge(workspace, policy, checked).await
            }
        };
        if verdict.decision() != Decision::Ask {
            return verdict;
        }
        match used.spec.approve {
            Approve::Auto => return verdict.overruled(Decision::Allow, Source::Mode, "auto"),
            Approve::Never => return verdict.overruled(Decision::Deny, Source::Mode, "never"),
            Approve::Ask if used.approved.is_some() => return verdict,
            Approve::Ask => {}
        }
        let (ledger, now) = (&*self.ledger, self.clock.now());
        let session = scene.stream.session();
        self.judge
            .settle(ledger, now, &session, context.workspace.root(), verdict)
            .await
    }

    fn remember(&self, used: &ToolUse, checked: &Checked, verdict: &Verdict) {
        let command = checked.input()["command"].as_str();
        let act = match command {
            Some(command) => compact(command),
            None => format!("{} {}", checked.name(), checked.input()),
        };
        let grant = Grant {
            workspace: used.spec.workspace.clone(),
            lasting: verdict.lasting.clone(),
            act,
        };
        if let Some(grants) = &self.judge.grants
            && let Err(error) = grants.add(&grant)
        {
            // It holds for this once; the next session asks again.
            tracing::warn!(%error, "an approval for the project was not remembered");
        }
    }
}

impl Judge {
    pub(crate) fn with_grants(mut self, grants: Grants) -> Self {
        self.grants = Some(grants);
        self
    }

    /// Settles a verdict to ask by what was said before.
    async fn settle(
        &self,
        ledger: &dyn Ledger,
        now: Time,
        session: &StreamId,
        workspace: &Path,
        verdict: Verdict,
    ) -> Verdict {
        if let Some(grants) = &self.grants
            && grants.has(workspace, &verdict.lasting)
        {
            return verdict.overruled(Decision::Allow, Source::Remembered, "this project");
        }
        let mut sessions = self.sessions.lock().await;
        let (position, approvals) = sessions.entry(session.clone()).or_default();
        if let Err(error) = read(ledger, session, position, approvals).await {
            // Asking once more is the worst that comes of it.
            tracing::warn!(%error, %session, "what was approved before cannot be read");
            return verdict;
        }
        if approvals.has(&verdict.lasting) {
            return verdict.overruled(Decision::Allow, Source::Session, "this session");
        }
        if approvals.is_flooded(now) {
            let says = format!("{ASKED_MAX} approvals in a minute");
            return verdict.overruled(Decision::Deny, Source::Limit, &says);
        }
        verdict
    }
}

fn judged(verdict: Verdict, hooked: Hooked) -> AgentOutcome {
    let hooked = hooked.if_any();
    AgentOutcome::Judged(Box::new(Judged { verdict, hooked }))
}

/// Handing on work is no tool of the toolbox: its role alone decides.
fn delegation(used: &ToolUse) -> Verdict {
    let act = Act {
        tool: &used.call.name,
        world: World::Delegates,
        deed: Deed::Other,
    };
    let site = Site::of(&used.spec.workspace);
    selvedge_tool::judge(&used.spec.policy, &site, &act)
}

/// Folds in what has happened in a session since.
async fn read(
    ledger: &dyn Ledger,
    session: &StreamId,
    position: &mut Position,
    approvals: &mut Approvals,
) -> Result<(), LedgerError> {
    let (events, head) = ledger.session_after(session, *position).await?;
    for event in &events {
        approvals.apply(event)?;
    }
    *position = head;
    Ok(())
}

impl Refused {
    fn because(why: impl Into<String>) -> Self {
        Self {
            refused: why.into(),
            denied: None,
            asks: None,
            failed: false,
            hooked: None,
        }
    }

    /// The same, with what hooks did before.
    pub(crate) fn with(mut self, hooked: Hooked) -> Self {
        self.hooked = hooked.if_any();
        self
    }

    /// What the evidence of a call says, if it was not begun.
    pub(crate) fn read(evidence: &Value) -> Option<Self> {
        evidence.get("refused")?;
        Self::deserialize(evidence).ok()
    }

    /// What came of it.
    pub(crate) fn outcome(self, used: &ToolUse) -> AgentOutcome {
        let counts = self.failed && used.world.nature() == Nature::Changes;
        let arguments = self.hooked.as_ref().and_then(|h| h.arguments.as_deref());
        let arguments = arguments.or_else(|| used.call.arguments.text().map(|text| &**text));
        let arguments = arguments.and_then(|text| serde_json::from_str(text).ok());
        let arguments: Value = arguments.unwrap_or_default();
        let failure = counts.then(|| Failure::of(&used.call.name, &arguments, &self.refused));
        let mut text = self.refused;
        if let Some(hooked) = &self.hooked {
            hooked.annotate(&mut text);
        }
        AgentOutcome::Tool(ToolOutcome {
            tool: used.call.name.clone(),
            text: Payload::new(text),
            whole: None,
            facts: Value::Null,
            is_error: true,
            interrupted: false,
            denied: self.denied,
            asks: self.asks,
            hooked: self.hooked,
            looks: false,
            failure,
        })
    }
}

impl From<ToolOutput> for Refused {
    fn from(output: ToolOutput) -> Self {
        Self {
            failed: true,
            ..Self::because(output.text)
        }
    }
}
