//! `sessions show`: what happened in a session, readably.

use std::borrow::Cow;

use clap::Args;
use selvedge_ledger::{LedgerError, Position, StreamId};
use selvedge_runtime::SessionState;
use selvedge_tool::Risk;

use crate::error::{Exit, Result};
use crate::progress::spent;
use crate::sessions::{self, FORKED, Listed, OpenQuestion, SessionForked, Told};
use crate::story::{Beat, Instead, Story, Tool, What, restored};
use crate::text::{ago, duration, escape, indented, moment, on_model, one_line, plural};
use crate::wiring::Store;
use crate::{drive, out, path, tree};

/// Lines of a tool's answer that are shown without `--full`.
const LINES_SHOWN: usize = 8;

#[derive(Args)]
pub struct Show {
    /// The session.
    #[arg(value_name = "ID")]
    session: String,
    /// Show what tools answered completely.
    #[arg(long)]
    full: bool,
}

impl Show {
    pub async fn perform(self) -> Result {
        let store = Store::open()?;
        let session = sessions::find(&store, &self.session).await?;
        let Some(info) = store.ledger.stream(&session).await? else {
            return Err(LedgerError::NoStream { stream: session }.into());
        };
        let listed = Listed::look(&store, info).await?;
        let mut story = Story::default();
        let mut beats = Vec::new();
        let all = store.ledger.session_after(&session, Position::default());
        let all = all.await?.0;
        if let SessionState::Damaged { what } = &listed.state {
            out::warn(&format!("this session is damaged: {}", escape(what)));
        }
        let forked = all.iter().rfind(|event| &*event.kind == FORKED);
        let forked = forked.and_then(|event| event.decode().ok());
        for Told { event, is_own } in sessions::told(all) {
            let told = match is_own {
                true => story.tell(&*store.ledger, &event).await,
                false => story.recall(&*store.ledger, &event).await,
            };
            // A damaged event is not told; the others are.
            beats.extend(told.unwrap_or_default());
        }
        out::line(&heading(&store, &listed, &story, forked));
        let drawn = tree::draw(&story.tree, &session);
        if drawn.len() > 1 {
            out::line(&format!("\n{}", indented(&drawn.join("\n"), "  ")));
            let timeline = tree::timeline(&story.tree);
            out::line(&format!("\n{}", indented(&timeline.join("\n"), "  ")));
        }
        if let Some(walked) = path::of(&store, &session).await? {
            out::line(&format!("\n{}", indented(&walked.join("\n"), "  ")));
        }
        let telling = Telling { full: self.full };
        for beat in &beats {
            if let Some(text) = telling.tell(&session, beat) {
                out::line(&text);
            }
        }
        for tool in under_way(&beats) {
            let how = match listed.state {
                SessionState::Active { .. } => "is under way",
                _ => "was under way when its process ended",
            };
            out::line(&format!("  … {} {how}", name(tool)));
        }
        let open = match listed.state {
            SessionState::Damaged { .. } => Vec::new(),
            _ => sessions::open_questions(&*store.ledger, &session).await?,
        };
        let ending = ending(&listed, &open);
        if !ending.is_empty() {
            out::line(&format!("\n{ending}"));
        }
        Ok(match listed.state {
            SessionState::Damaged { .. } => Exit::Unverified,
            _ => Exit::Done,
        })
    }
}

/// How beats are told.
pub struct Telling {
    /// Whether what tools answered is told completely.
    pub full: bool,
}

impl Telling {
    /// A beat in words, indented below whose it is; none if there is nothing to tell.
    pub fn tell(&self, session: &StreamId, beat: &Beat) -> Option<String> {
        let depth = beat.stream.as_str().matches('/').count();
        let indent = "    ".repeat(depth);
        let text = match &beat.what {
            What::Began { request, .. } if beat.stream == *session => {
                format!("\nrequest\n{}", indented(&escape(request), "  "))
            }
            What::Began {
                model,
                request,
                is_typed,
            } => {
                let request = match is_typed {
                    true => Cow::Owned(tree::title(request)),
                    false => Cow::Borrowed(&**request),
                };
                format!("\n{} {}: {}", beat.agent, on_model(model), escape(&request))
            }
            What::Kept { text, risks } => {
                let risk = |r: &Risk| format!("\n  look at `{}`: it {}", escape(&r.path), r.reason);
                let risks: String = risks.iter().map(risk).collect();
                format!("  {}{risks}", escape(text))
            }
            What::Said {
                text,
                instead,
                took_ms,
            } => {
                let words = indented(&escape(text.trim()), "  ");
                let instead = instead.as_ref().map_or(String::new(), told_instead);
                let took = took(*took_ms);
                let said = format!("\n{}{took}{instead}\n{words}", beat.agent);
                said.trim_end().to_owned()
            }
            What::BrokeOff { text, model, why } => {
                let words = indented(&self.cut(text), "    ");
                let why = escape(why);
                let said = format!("  {model} broke off ({why}); this does not count:\n{words}");
                said.trim_end_matches([':', '\n']).to_owned()
            }
            What::Unanswered { error } => format!("  no answer: {}", escape(error)),
            What::Used {
                tool,
                text,
                is_error,
                is_probed,
                millis,
            } => {
                let mark = if *is_error { "✗" } else { "✓" };
                let probed = match is_probed {
                    true => " (found done after a restart)",
                    false => "",
                };
                let took = match millis {
                    0..500 => String::new(),
                    millis => format!(" ({})", duration(*millis)),
                };
                format!(
                    "  {mark} {}{took}{probed}\n{}",
                    name(tool),
                    indented(&self.cut(text), "      ")
                )
            }
            What::InDoubt { tool } => format!(
                "  ? {}: in doubt; it may or may not have happened, and was not repeated",
                name(tool)
            ),
            What::Restored {
                failures,
                files,
                left,
            } => format!(
                "  ↶ put back: {}",
                escape(&restored(*failures, files, left))
            ),
            What::Denied { tool, why } => {
                format!("  ✗ {}: denied because {}", name(tool), escape(why))
            }
            What::Asked { question } => format!("  asked: {}", escape(&question.text)),
            What::Answered { text, allows } => match allows {
                None => format!("  answered: {}", escape(text)),
                Some(true) => format!("  answered: {} (allowed)", escape(text)),
                Some(false) => format!("  answered: {} (not allowed)", escape(text)),
            },
            What::Returned { ending } => {
                format!(
                    "  the other agent ended: {}",
                    sessions::status_word(ending.status)
                )
            }
            What::Paused { reason, detail, .. } => {
                format!("  paused ({reason}): {}", escape(detail))
            }
            What::Resumed { reason } => format!("  resumed ({reason})"),
            What::Steered { text } => format!("\nyou\n{}", indented(&escape(text), "  ")),
            What::Ignored { why } => format!("  a letter was ignored: {}", escape(why)),
            What::Cancelled { by, reason } => format!("  cancelled by {by}: {}", escape(reason)),
            What::Ended { ending } => {
                let word = sessions::status_word(ending.status);
                let text = ending.result.text().map_or("", |t| &**t);
                format!("\n{word}\n{}", indented(&escape(text), "  "))
            }
            What::Asking | What::Unheard | What::Using { .. } | What::Delegated { .. } => {
                return None;
            }
        };
        Some(indented(&text, &indent))
    }

    fn cut(&self, text: &str) -> String {
        let safe = escape(text.trim_end());
        let lines = safe.lines().count();
        if self.full || lines <= LINES_SHOWN + 1 {
            return safe;
        }
        let shown: Vec<&str> = safe.lines().take(LINES_SHOWN).collect();
        format!("{}\n… {} more lines", shown.join("\n"), lines - LINES_SHOWN)
    }
}

/// How long an answer took, if anybody had to wait for it.
fn took((first, total): (u64, u64)) -> String {
    match total {
        0..500 => String::new(),
        total if first < total => format!(
            " ({}, first words after {})",
            duration(total),
            duration(first)
        ),
        total => format!(" ({})", duration(total)),
    }
}

/// Who answered, and why not the one that was asked.
fn told_instead(instead: &Instead) -> String {
    let because = escape(&instead.because);
    format!(" (answered by {}, because {because})", instead.model)
}

/// The tools whose end is not on record.
fn under_way(beats: &[Beat]) -> Vec<&Tool> {
    let mut open: Vec<(&StreamId, &Tool)> = Vec::new();
    for beat in beats {
        match &beat.what {
            What::Using { tool } => open.push((&beat.stream, tool)),
            What::Used { tool, .. } | What::InDoubt { tool } => {
                let at = open.iter().position(|o| *o == (&beat.stream, tool));
                at.map(|at| open.remove(at));
            }
            _ => {}
        }
    }
    open.into_iter().map(|(_, tool)| tool).collect()
}

fn name(tool: &Tool) -> String {
    format!("{} {}", tool.name, one_line(&tool.argument, 120))
        .trim_end()
        .to_owned()
}

fn heading(store: &Store, listed: &Listed, story: &Story, forked: Option<SessionForked>) -> String {
    let now = store.clock.now();
    let opened = listed.info.opened;
    let total = story.spending.total();
    let mut lines = vec![format!(
        "session {}: {}",
        listed.info.id,
        listed.state_word()
    )];
    if let Some(spec) = &listed.spec {
        lines.push(format!(
            "  crew       {}, {} {}",
            spec.crew,
            spec.agent,
            on_model(&spec.model)
        ));
        lines.push(format!(
            "  workspace  {}",
            escape(&spec.directory().display().to_string())
        ));
        if let Some(copy) = spec.terms.copy.as_ref().filter(|copy| copy.is_there()) {
            let work = escape(&copy.work().display().to_string());
            lines.push(format!("  copy       {work}"));
        }
        if let Some(budget) = spec.budget_usd {
            lines.push(format!("  budget     ${budget}"));
        }
        if let Some(tokens) = spec.budget_tokens {
            lines.push(format!("  budget     {tokens} tokens"));
        }
    }
    lines.push(format!(
        "  started    {} ({})",
        moment(opened),
        ago(now, opened)
    ));
    if let Some(SessionForked { from, at }) = forked {
        lines.push(format!("  forked     from {from}, as it was at event {at}"));
    }
    let turns = plural(total.calls, "turn");
    let spent = Some(spent(&total)).filter(|spent| !spent.is_empty());
    let spent = spent.map_or(String::new(), |spent| format!(" · {spent}"));
    lines.push(format!("  spent      {turns}{spent}"));
    lines.join("\n")
}

/// What to do next.
fn ending(listed: &Listed, open: &[OpenQuestion]) -> String {
    let id = &listed.info.id;
    let mut lines: Vec<String> = open
        .iter()
        .map(|q| drive::describe_question(id, q))
        .collect();
    match &listed.state {
        SessionState::Active { pid } => lines.push(format!("  process {pid} is at work on it")),
        SessionState::Waiting { .. } | SessionState::Suspended { .. } => {
            lines.push(format!("  go on: selvedge resume {id}"));
        }
        SessionState::Ended { .. } => {
            let spec = listed.spec.as_ref();
            lines.extend(spec.and_then(|spec| drive::kept_work(spec, id)));
        }
        SessionState::Damaged { .. } => {}
    }
    lines.join("\n")
}
