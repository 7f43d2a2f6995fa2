//! What is going on, as it goes on: live on a terminal, in plain lines elsewhere.

use std::io::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use selvedge_ledger::StreamId;
use selvedge_runtime::{EffectId, Watcher};

use crate::env;
use crate::story::{Beat, Story, Tool, What};
use crate::text::{count, duration, escape, indented, one_line};

/// Shows a run to the person who waits for it.
pub struct Progress(Mutex<State>);

struct State {
    // Present while a terminal is being written to.
    bar: Option<ProgressBar>,
    is_live: bool,
    has_colour: bool,
    since: Instant,
    /// What is under way, the latest last.
    doing: Vec<(StreamId, String)>,
    /// The words of an answer that have not filled a line.
    unfinished: String,
    /// Whether the words of the present answer were shown as they came.
    is_streamed: bool,
    spent: String,
}

const ARGUMENT_CHARS: usize = 72;
const FAILURE_CHARS: usize = 100;

impl Progress {
    /// Live if `is_live`, plain lines otherwise.
    pub fn new(is_live: bool) -> Self {
        Self(Mutex::new(State {
            bar: None,
            is_live,
            has_colour: is_live && !env::no_color(),
            since: Instant::now(),
            doing: Vec::new(),
            unfinished: String::new(),
            is_streamed: false,
            spent: String::new(),
        }))
    }

    /// Shows a beat, and what was spent so far.
    pub fn show(&self, beat: &Beat, story: &Story) {
        let mut state = self.state();
        let total = story.spending.total();
        state.spent = spent(&total);
        state.beat(beat);
        state.refresh();
    }

    /// Clears the live line, so that something else can be written or asked.
    pub fn pause(&self) {
        let mut state = self.state();
        state.end_words();
        if let Some(bar) = state.bar.take() {
            bar.finish_and_clear();
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        // What is shown is never the truth; a half-shown line harms nobody.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tokens and dollars, with an unknown price called unknown.
pub fn spent(total: &selvedge_agent::Row) -> String {
    let tokens = format!("{} tokens", count(total.usage.total()));
    match (total.calls, total.unpriced) {
        (0, _) => String::new(),
        (_, 0) => format!("{tokens} · {}", total.cost),
        (calls, unpriced) if calls == unpriced => format!("{tokens} · price unknown"),
        _ => format!("{tokens} · {} and more (price partly unknown)", total.cost),
    }
}

impl Watcher for Progress {
    fn model_text(&self, _: &StreamId, _: &EffectId, text: &str) {
        let mut state = self.state();
        if state.is_live {
            state.is_streamed = true;
            state.words(text);
            state.refresh();
        }
    }

    fn notice(&self, _: &StreamId, _: &EffectId, text: &str) {
        let mut state = self.state();
        state.end_words();
        let text = format!("  {}", one_line(text, 200));
        state.line(&text);
    }
}

impl State {
    fn beat(&mut self, beat: &Beat) {
        let agent = &beat.agent;
        match &beat.what {
            What::Began { model, .. } => {
                self.line(&format!("{} on {model}", self.bold(agent)));
            }
            What::Asking => {
                self.is_streamed = false;
                self.begin(beat, format!("{agent} is thinking"));
            }
            What::Said { text } => {
                self.end(beat);
                self.end_words();
                if !self.is_streamed && !text.trim().is_empty() {
                    self.line(&indented(&escape(text.trim()), "  "));
                }
                self.is_streamed = false;
            }
            What::Unanswered { error } => {
                self.end(beat);
                self.line(&format!("  {} {}", self.red("no answer:"), escape(error)));
            }
            What::Using { tool } => {
                let shown = show_tool(tool);
                if !self.is_live {
                    self.line(&format!("  {agent}: {shown}"));
                }
                self.begin(beat, format!("{agent}: {shown}"));
            }
            What::Used {
                tool,
                text,
                is_error,
                is_probed,
                millis,
            } => {
                self.end(beat);
                self.used(tool, text, *is_error, *is_probed, *millis);
            }
            What::InDoubt { tool } => self.line(&format!(
                "  {} {}: it was under way when the process ended, and may or may not have happened",
                self.yellow("in doubt:"),
                show_tool(tool)
            )),
            What::Asked { question } => {
                if !self.is_live {
                    self.line(&format!("  {agent} asks: {}", escape(&question.text)));
                }
            }
            What::Answered { text } => self.line(&format!("  answered: {}", one_line(text, 200))),
            What::Delegated { to } => self.line(&format!("  {agent} hands work to {to}")),
            What::Returned { ending } => {
                self.line(&format!("  {agent} gets it back: {:?}", ending.status));
            }
            What::Paused {
                reason,
                detail,
                until,
            } if reason != "interrupted" => {
                let wait = until.map_or("", |_| "; it goes on by itself");
                let reason = self.yellow(&format!("paused ({reason}):"));
                self.line(&format!("  {reason} {}{wait}", escape(detail)));
            }
            What::Steered { text } => self.line(&format!("  you said: {}", one_line(text, 200))),
            What::Cancelled { by, reason } => {
                self.line(&format!("  cancelled by {by}: {}", escape(reason)));
            }
            What::Ended { .. } => self.end(beat),
            What::Paused { .. } | What::Resumed { .. } | What::Ignored { .. } => {}
        }
    }

    fn used(&mut self, tool: &Tool, text: &str, is_error: bool, is_probed: bool, millis: u64) {
        let probed = match is_probed {
            true => " (found done after the restart)",
            false => "",
        };
        // The last line of a failing command says more than its first.
        let failure = || {
            let lines = text.lines().rev();
            let line = lines
                .map(str::trim)
                .find(|l| !l.is_empty() && !l.starts_with('['));
            one_line(line.unwrap_or_default(), FAILURE_CHARS)
        };
        let took = match millis {
            0..500 => String::new(),
            _ => format!(" ({})", duration(millis)),
        };
        if is_error {
            let shown = match self.is_live {
                true => format!("{}{took}: ", show_tool(tool)),
                false => format!("{} failed: ", tool.name),
            };
            self.line(&format!("  {} {shown}{}", self.red("✗"), failure()));
        } else if self.is_live {
            let shown = format!("{}{took}{probed}", show_tool(tool));
            self.line(&format!("  {} {shown}", self.green("✓")));
        } else if is_probed {
            self.line(&format!("  {}{probed}", show_tool(tool)));
        }
    }

    fn begin(&mut self, beat: &Beat, what: String) {
        self.doing.push((beat.stream.clone(), what));
    }

    fn end(&mut self, beat: &Beat) {
        let at = self.doing.iter().position(|(s, _)| *s == beat.stream);
        if let Some(at) = at {
            self.doing.remove(at);
        }
    }

    /// Shows words as they come, a line at a time.
    fn words(&mut self, text: &str) {
        self.unfinished.push_str(text);
        while let Some(end) = self.unfinished.find('\n') {
            let line: String = self.unfinished.drain(..=end).collect();
            self.line(&format!("  {}", escape(line.trim_end())));
        }
    }

    fn end_words(&mut self) {
        let rest = std::mem::take(&mut self.unfinished);
        if !rest.trim().is_empty() {
            self.line(&format!("  {}", escape(rest.trim_end())));
        }
    }

    fn line(&mut self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => drop(writeln!(std::io::stderr().lock(), "{text}")),
        }
    }

    /// Draws the live line anew.
    fn refresh(&mut self) {
        if !self.is_live {
            return;
        }
        let bar = self.bar.get_or_insert_with(bar);
        let doing = match (self.doing.last(), self.unfinished.trim()) {
            (None, _) => "…".to_owned(),
            (Some((_, what)), "") => what.clone(),
            (Some(_), words) => one_line(words, 80),
        };
        let more = match self.doing.len() {
            0 | 1 => String::new(),
            n => format!(" (and {} more)", n - 1),
        };
        let since = self.since.elapsed().as_millis();
        let elapsed = duration(u64::try_from(since).unwrap_or(u64::MAX));
        let spent = match self.spent.as_str() {
            "" => String::new(),
            spent => format!(" · {spent}"),
        };
        bar.set_message(format!("{doing}{more} · {elapsed}{spent}"));
    }

    fn bold(&self, text: &str) -> String {
        self.paint("1", text)
    }

    fn red(&self, text: &str) -> String {
        self.paint("31", text)
    }

    fn green(&self, text: &str) -> String {
        self.paint("32", text)
    }

    fn yellow(&self, text: &str) -> String {
        self.paint("33", text)
    }

    fn paint(&self, code: &str, text: &str) -> String {
        match self.has_colour {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.to_owned(),
        }
    }
}

fn show_tool(tool: &Tool) -> String {
    format!("{} {}", tool.name, one_line(&tool.argument, ARGUMENT_CHARS))
        .trim_end()
        .to_owned()
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{spinner} {wide_msg}");
    bar.set_style(style.expect("the template is well-formed"));
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}
