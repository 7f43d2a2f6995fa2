//! Calls hooks around the calls of an agent.

use std::sync::Arc;

use selvedge_ledger::Payload;
use selvedge_model::{
    Answered, Broken, ErrorTier, Message, Part, Request, Response, Role, Stop, Usage, Usd,
};
use selvedge_runtime::{Hold, Scene};
use selvedge_tool::{ToolContext, ToolOutput, Workspace};
use serde::Deserialize;
use serde_json::Value;

use super::hooked::{Hooked, Instead};
use super::reaction::{Moment, Occasion, Seen};
use super::{Hooks, Setting, strikes::Failure};
use crate::call::{ModelCall, Reserved, ToolUse};
use crate::performer::AgentPerformer;
use crate::spec::RunSpec;

impl AgentPerformer {
    /// What hooks make of a tool call before it is judged. Those that were called
    /// before are not called again.
    pub(crate) async fn pre_tool(
        &self,
        scene: &Scene,
        used: &ToolUse,
        context: &ToolContext,
    ) -> Hooked {
        if let Some(hooked) = &used.hooked {
            return hooked.clone();
        }
        if !self.hooks.has(Moment::PreTool, Some(&used.call.name)) {
            return Hooked::default();
        }
        let text = self.ledger.text(&used.call.arguments).await;
        // What is no JSON is answered by the toolbox.
        let Some(arguments) = text.ok().and_then(|text| Occasion::read_arguments(&text)) else {
            return Hooked::default();
        };
        let mut occasion = occasion(Moment::PreTool, scene, &used.spec);
        occasion.tool = Some(used.call.name.clone());
        occasion.arguments = Some(arguments);
        self.hooks.call(setting(context), &mut occasion).await
    }

    /// What hooks make of what a tool answered.
    pub(crate) async fn post_tool(
        &self,
        scene: &Scene,
        used: &ToolUse,
        context: &ToolContext,
        arguments: &Value,
        output: &mut ToolOutput,
    ) -> Hooked {
        if output.interrupted || !self.hooks.has(Moment::PostTool, Some(&used.call.name)) {
            return Hooked::default();
        }
        let mut occasion = occasion(Moment::PostTool, scene, &used.spec);
        occasion.tool = Some(used.call.name.clone());
        occasion.arguments = Some(arguments.clone());
        occasion.result = Some(Seen {
            text: output.text.clone(),
            is_error: output.is_error,
            facts: output.facts.clone(),
        });
        let hooked = self.hooks.call(setting(context), &mut occasion).await;
        let text = occasion.result.unwrap_or_default().text;
        if text != output.text {
            // The whole would show again what a hook took away.
            output.whole = None;
            output.text = text;
        }
        if let Some(Instead::Stop(why)) = &hooked.instead {
            output.whole = None;
            output.is_error = true;
            output.text = format!("It was done, and its result is withheld: {why}.");
        }
        hooked
    }
}

impl Hooks {
    /// What hooks make of a question to a model.
    pub(crate) async fn pre_model(
        &self,
        scene: &Scene,
        call: &ModelCall,
        request: &mut Request,
    ) -> Result<Hooked, Hold> {
        if !self.has(Moment::PreModel, None) {
            return Ok(Hooked::default());
        }
        let workspace = workspace(&call.spec)?;
        let mut occasion = occasion(Moment::PreModel, scene, &call.spec);
        occasion.model = Some(request.model.clone());
        occasion.result = request.messages.last().map(|message| Seen {
            text: words(&message.parts),
            ..Seen::default()
        });
        let setting = Setting {
            workspace: &workspace,
            cancel: &scene.cancel,
        };
        let hooked = self.call(setting, &mut occasion).await;
        if let Some(Instead::Stop(why)) = &hooked.instead {
            return Err(held(why));
        }
        // Only for this once: it is no part of the conversation.
        for note in &hooked.notes {
            request
                .messages
                .push(Arc::new(Message::user(note.as_str())));
        }
        Ok(hooked)
    }

    /// What hooks make of a model's answer.
    pub(crate) async fn post_model(
        &self,
        scene: &Scene,
        call: &ModelCall,
        response: &mut Response,
    ) -> Result<Hooked, Hold> {
        if !self.has(Moment::PostModel, None) {
            return Ok(Hooked::default());
        }
        let workspace = workspace(&call.spec)?;
        let mut occasion = occasion(Moment::PostModel, scene, &call.spec);
        occasion.model = Some(response.model.clone());
        let text = words(&response.message.parts);
        occasion.result = Some(Seen {
            text: text.clone(),
            ..Seen::default()
        });
        let setting = Setting {
            workspace: &workspace,
            cancel: &scene.cancel,
        };
        let hooked = self.call(setting, &mut occasion).await;
        if let Some(Instead::Stop(why)) = &hooked.instead {
            return Err(held(why));
        }
        let new = occasion.result.unwrap_or_default().text;
        if new != text {
            say_instead(&mut response.message.parts, new);
        }
        for note in &hooked.notes {
            let notice = note.clone().into();
            scene.watcher.notice(&scene.stream, &scene.effect, &notice);
        }
        Ok(hooked)
    }
}

/// The answer of a hook, as if a model had given it, if the evidence of a call says
/// that there is one.
pub(crate) fn answered(evidence: Value) -> Option<Answered> {
    let hooked = Reserved::deserialize(evidence).ok()?.hooked?;
    let Some(Instead::Answer(text)) = hooked.instead else {
        return None;
    };
    let text = Payload::new(text);
    Some(Answered {
        response: Response {
            message: Message {
                role: Role::Assistant,
                parts: vec![Part::Text { text }],
            },
            stop: Stop::End,
            usage: Usage::default(),
            model: "hook".into(),
        },
        cost: Some(Usd::ZERO),
        attempts: 0,
        first_token_ms: None,
        total_ms: 0,
        is_cached: false,
        because: None,
    })
}

/// What is on record of an answer that a hook withholds: what it cost.
pub(crate) fn withheld(hold: &Hold, answered: Answered) -> Broken {
    Broken {
        model: answered.response.model,
        text: Payload::new(""),
        why: hold.detail.clone(),
        tier: ErrorTier::UserFixable,
        usage: answered.response.usage,
        cost: answered.cost,
        is_counted: true,
        at_most: None,
    }
}

/// A call's failure, if it counts as one.
pub(crate) fn failure(used: &ToolUse, arguments: &Value, output: &ToolOutput) -> Option<Failure> {
    (output.is_error && !output.interrupted)
        .then(|| Failure::of(&used.call.name, arguments, &output.text))
}

fn occasion(event: Moment, scene: &Scene, spec: &RunSpec) -> Occasion {
    Occasion {
        event,
        session: scene.stream.session().to_string(),
        call: scene.effect.to_string(),
        agent: spec.agent.clone(),
        workspace: spec.workspace.display().to_string(),
        tool: None,
        arguments: None,
        model: None,
        result: None,
    }
}

fn setting(context: &ToolContext) -> Setting<'_> {
    Setting {
        workspace: &context.workspace,
        cancel: &context.cancel,
    }
}

fn workspace(spec: &RunSpec) -> Result<Workspace, Hold> {
    Workspace::open(&spec.workspace).map_err(|error| {
        let root = spec.workspace.display();
        held(&format!("the workspace `{root}` is gone: {error}"))
    })
}

/// A stop is a pause: a person sees why, and can go on when the cause is gone.
fn held(why: &str) -> Hold {
    Hold {
        reason: "hook".into(),
        detail: why.to_owned(),
        until: None,
    }
}

/// The words of a message or of the results in it.
fn words(parts: &[Part]) -> String {
    let words = parts.iter().filter_map(|part| match part {
        Part::Text { text } => text.text(),
        Part::ToolResult(result) => result.content.text(),
        _ => None,
    });
    words.map(|text| &**text).collect::<Vec<_>>().join("\n")
}

/// Puts `new` in the place of all words.
fn say_instead(parts: &mut Vec<Part>, new: String) {
    let at = parts.iter().position(|p| matches!(p, Part::Text { .. }));
    parts.retain(|part| !matches!(part, Part::Text { .. }));
    let text = Payload::new(new);
    let at = at.unwrap_or(0).min(parts.len());
    parts.insert(at, Part::Text { text });
}
