//! What is going on, as it goes on: live on a terminal, in plain lines elsewhere.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use selvedge_ledger::{StreamId, Time};
use selvedge_runtime::{Clock, EffectId, Notice, Status, SystemClock, Watcher};
use selvedge_tool::Risk;

use crate::countdown::Countdown;
use crate::env;
use crate::sessions::status_word;
use crate::story::{Beat, Instead, Story, Tool, What, restored};
use crate::text::{count, duration, escape, indented, last_words, on_model, one_line};
use crate::tree;

/// Shows a run to the person who waits for it.
pub struct Progress(Mutex<State>);

struct State {
    // Present while a terminal is being written to.
    bar: Option<ProgressBar>,
    is_live: bool,
    has_colour: bool,
    /// Whether questions are asked here, and need not be told.
    is_asking: bool,
    /// Whether the cursor stands behind a prompt.
    is_prompting: bool,
    since: Instant,
    /// What is under way, the latest last.
    doing: Vec<Doing>,
    /// Who is being heard, and the words that have not filled a line. The words
    /// come ahead of the ledger, so this ends with the answer, not with the
    /// beginning of the next.
    heard: BTreeMap<StreamId, String>,
    countdown: Countdown,
    cost: String,
    /// How far a job is, drawn below the live line.
    standing: Option<String>,
    /// Who works under whom, drawn below that.
    tree: Vec<String>,
}

/// How many lines of a tree leave room for the rest, and how wide they may be.
fn tree_room() -> (usize, usize) {
    let size = rustix::termios::tcgetwinsize(std::io::stderr()).ok();
    let of = |is: Option<u16>, usual: u16| usize::from(is.filter(|n| *n > 0).unwrap_or(usual));
    let rows = of(size.map(|size| size.ws_row), ROWS_USUAL);
    let columns = of(size.map(|size| size.ws_col), COLUMNS_USUAL);
    (rows.saturating_sub(ROWS_FOR_WORDS).max(3), columns.max(20))
}

/// Something that is under way.
struct Doing {
    stream: StreamId,
    agent: String,
    what: String,
}

// A line of a narrow terminal, about: longer words are shown from their end.
const WORDS_CHARS: usize = 48;
const ARGUMENT_CHARS: usize = 72;
const FAILURE_CHARS: usize = 100;
const GIST_CHARS: usize = 200;
// The live line, an answer's last lines, and the line that one is typed on.
const ROWS_FOR_WORDS: usize = 8;
const ROWS_USUAL: u16 = 24;
const COLUMNS_USUAL: u16 = 80;
// A longer pause is not waited for.
const HOUR_MILLIS: u64 = 60 * 60 * 1000;

impl Progress {
    /// Live if `is_live`, plain lines otherwise. Questions are told unless they
    /// are asked here.
    pub fn new(is_live: bool, is_asking: bool) -> Self {
        Self(Mutex::new(State {
            bar: None,
            is_live,
            has_colour: is_live && !env::no_color(),
            is_asking,
            is_prompting: false,
            since: Instant::now(),
            doing: Vec::new(),
            heard: BTreeMap::new(),
            countdown: Countdown::default(),
            cost: String::new(),
            standing: None,
            tree: Vec::new(),
        }))
    }

    /// Says something, above the live line if there is one.
    pub fn say(&self, text: &str) {
        self.state().line(text);
    }

    /// Shows how far a job is: it stays in sight while it lives, and is a line elsewhere.
    /// A milestone is a line everywhere.
    pub fn standing(&self, text: String, is_milestone: bool) {
        let mut state = self.state();
        if is_milestone || !state.is_live {
            state.line(&text);
        }
        if state.is_live {
            state.standing = Some(text);
            state.refresh();
        }
    }

    /// Marks where an answer can be typed.
    pub fn prompt(&self) {
        let mut state = self.state();
        state.is_prompting = true;
        let mut err = std::io::stderr().lock();
        let _ = write!(err, "> ").and_then(|()| err.flush());
    }

    /// Leaves the prompt. What was typed there has ended its line already.
    pub fn end_prompt(&self, is_typed: bool) {
        let mut state = self.state();
        if std::mem::take(&mut state.is_prompting) && !is_typed {
            let _ = writeln!(std::io::stderr().lock());
        }
    }

    /// Shows a beat, and what was spent so far.
    pub fn show(&self, beat: &Beat, story: &Story) {
        let mut state = self.state();
        state.cost = cost(&story.spending.total());
        if state.is_live {
            state.tree = tree::draw_within(&story.tree, &beat.stream.session(), tree_room());
        }
        state.beat(beat);
        state.refresh();
    }

    /// Clears the live line, so that something else can be written or asked.
    pub fn pause(&self) {
        let mut state = self.state();
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
    let about = about(total);
    let tokens = format!("{about}{} tokens", count(total.usage.total()));
    match total.unpriced {
        _ if total.calls + total.broken == 0 => String::new(),
        0 => format!("{tokens} · {about}{}", total.cost),
        _ if total.is_unpriced() => format!("{tokens} · price unknown"),
        _ => format!(
            "{tokens} · {about}{} and more (price partly unknown)",
            total.cost
        ),
    }
}

/// A word before sums that are estimated in part.
pub fn about(row: &selvedge_agent::Row) -> &'static str {
    match row.is_estimated() {
        true => "about ",
        false => "",
    }
}

/// The cost alone, for where there is little room; tokens where it is unknown.
fn cost(total: &selvedge_agent::Row) -> String {
    match total.unpriced {
        _ if total.calls + total.broken == 0 => String::new(),
        0 => format!(" · {}", total.cost),
        _ if total.is_unpriced() => format!(" · {} tokens", count(total.usage.total())),
        _ => format!(" · over {}", total.cost),
    }
}

impl Watcher for Progress {
    fn model_text(&self, stream: &StreamId, _: &EffectId, text: &str) {
        let mut state = self.state();
        if state.is_live {
            state.countdown.set(stream, None);
            state.words(stream, text);
            state.refresh();
        }
    }

    fn notice(&self, stream: &StreamId, _: &EffectId, notice: &Notice) {
        let mut state = self.state();
        if state.end_words(stream) && notice.abandons {
            let mark = state.yellow("✂ the answer broke off here, and does not count");
            state.line(&format!("  {mark}"));
        }
        state.countdown.set(stream, notice.until);
        if !notice.text.is_empty() {
            let text = format!("  {}", one_line(&notice.text, 200));
            state.line(&text);
        }
        state.refresh();
    }
}

impl State {
    fn beat(&mut self, beat: &Beat) {
        let agent = &beat.agent;
        match &beat.what {
            What::Began {
                model,
                request,
                is_typed,
            } => {
                let agent = self.bold(agent);
                let on = on_model(model);
                self.line(&match beat.stream == beat.stream.session() {
                    true => format!("{agent} {on} · session {}", beat.stream),
                    false if *is_typed => {
                        format!("{agent} {on}: {}", one_line(&tree::title(request), 72))
                    }
                    false => format!("{agent} {on}"),
                });
            }
            What::Kept { text, risks } => {
                self.line(&format!("  {agent}: {}", one_line(text, 200)));
                for Risk { path, reason } in risks {
                    let text = format!("look at `{path}`: it {reason}");
                    self.line(&format!("  {}", one_line(&text, 200)));
                }
            }
            What::Asking => self.begin(beat, format!("{agent} is thinking")),
            What::BrokeOff { .. } | What::Unheard => self.end(beat),
            What::Said { text, instead, .. } => {
                self.end(beat);
                if let Some(Instead { model, because }) = instead {
                    let because = one_line(because, FAILURE_CHARS);
                    self.line(&format!("  answered by {model}, because {because}"));
                }
                let is_heard = self.end_words(&beat.stream);
                if !is_heard && !text.trim().is_empty() {
                    let text = gist(&beat.stream, text.trim());
                    self.line(&indented(&escape(&text), "  "));
                }
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
            What::Restored {
                failures,
                files,
                left,
            } => self.line(&format!(
                "  {} {}",
                self.yellow("put back:"),
                escape(&restored(*failures, files, left))
            )),
            What::Denied { tool, why } => {
                self.end(beat);
                let denied = self.red("denied:");
                self.line(&format!("  {denied} {} because {}", show_tool(tool), escape(why)));
            }
            What::Asked { question } => {
                self.end(beat);
                if !self.is_asking {
                    let who = match question.approval {
                        Some(_) => String::new(),
                        None => format!("{agent} asks: "),
                    };
                    self.line(&format!("  {who}{}", escape(&question.text)));
                }
            }
            What::Answered { text, allows } => {
                let heard_as = match allows {
                    None => "",
                    Some(true) => " (allowed)",
                    Some(false) => " (not allowed)",
                };
                self.line(&format!("  answered: {}{heard_as}", one_line(text, 200)));
            }
            // The tree shows it.
            What::Delegated { .. } if self.is_live => {}
            What::Returned { ending } if self.is_live && ending.status == Status::Done => {}
            What::Delegated { to } => self.line(&format!("  {agent} hands work to {to}")),
            What::Returned { ending } => {
                self.line(&format!("  {agent} gets it back: {}", status_word(ending.status)));
            }
            What::Paused {
                reason,
                detail,
                until,
            } if reason != "interrupted" => {
                self.countdown.set(&beat.stream, *until);
                let wait = until.map_or(String::new(), goes_on);
                let reason = self.yellow(&format!("paused ({reason}):"));
                self.line(&format!("  {reason} {}{wait}", escape(detail)));
            }
            What::Steered { text } => self.line(&format!("  you said: {}", one_line(text, 200))),
            What::Cancelled { by, reason } => {
                self.line(&format!("  cancelled by {by}: {}", escape(reason)));
            }
            What::Ended { .. } => self.end(beat),
            What::Resumed { .. } => self.countdown.set(&beat.stream, None),
            What::Paused { .. } | What::Ignored { .. } => {}
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
        self.doing.push(Doing {
            stream: beat.stream.clone(),
            agent: beat.agent.clone(),
            what,
        });
    }

    fn end(&mut self, beat: &Beat) {
        let at = self
            .doing
            .iter()
            .position(|doing| doing.stream == beat.stream);
        if let Some(at) = at {
            self.doing.remove(at);
        }
    }

    /// Shows words as they come, a line at a time.
    fn words(&mut self, stream: &StreamId, text: &str) {
        let unfinished = self.heard.entry(stream.clone()).or_default();
        unfinished.push_str(text);
        let is_data = is_data(stream, unfinished);
        let Some(end) = unfinished.rfind('\n').filter(|_| !is_data) else {
            return;
        };
        let lines: String = unfinished.drain(..=end).collect();
        self.line(&indented(&escape(lines.trim_end()), "  "));
    }

    /// Shows the rest of an answer; false if nothing of it was heard.
    fn end_words(&mut self, stream: &StreamId) -> bool {
        let rest = self.heard.remove(stream);
        if let Some(rest) = rest.as_deref().map(str::trim_end).filter(|r| !r.is_empty()) {
            let rest = gist(stream, rest);
            self.line(&indented(&escape(&rest), "  "));
        }
        rest.is_some()
    }

    fn line(&mut self, text: &str) {
        if std::mem::take(&mut self.is_prompting) {
            let _ = writeln!(std::io::stderr().lock());
        }
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
        let bar = self
            .bar
            .get_or_insert_with(|| bar(self.since.elapsed(), &self.countdown));
        let doing = match self.doing.last() {
            None => "…".to_owned(),
            Some(doing) => match self.heard.get(&doing.stream).map(|words| words.trim()) {
                None | Some("") => doing.what.clone(),
                Some(words) if is_data(&doing.stream, words) => doing.what.clone(),
                Some(words) => format!("{}: {}", doing.agent, last_words(words, WORDS_CHARS)),
            },
        };
        let more = match self.doing.len() {
            0 | 1 => String::new(),
            n => format!(" (and {} more)", n - 1),
        };
        // The cost first: what is last is cut off where the terminal is narrow.
        bar.set_message(format!("{} · {doing}{more}", self.cost));
        // A tree of one is none.
        let tree = self.tree.iter().filter(|_| self.tree.len() > 1);
        let below: Vec<&str> = self.standing.iter().chain(tree).map(|s| &**s).collect();
        if !below.is_empty() {
            if bar.prefix().is_empty() {
                bar.set_style(style(&self.countdown, "\n{prefix}"));
            }
            bar.set_prefix(below.join("\n"));
        }
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

/// Whether what a helper says is data for whoever called it, and no words.
fn is_data(stream: &StreamId, text: &str) -> bool {
    *stream != stream.session() && text.trim_start().starts_with('{')
}

/// What is shown of an answer: of data, what it is about.
fn gist<'a>(stream: &StreamId, text: &'a str) -> Cow<'a, str> {
    match is_data(stream, text) {
        true => Cow::Owned(one_line(&tree::title(text), GIST_CHARS)),
        false => Cow::Borrowed(text),
    }
}

fn show_tool(tool: &Tool) -> String {
    format!("{} {}", tool.name, one_line(&tool.argument, ARGUMENT_CHARS))
        .trim_end()
        .to_owned()
}

/// That a pause ends, and when.
fn goes_on(until: Time) -> String {
    let millis = until.millis_since(SystemClock.now()).max(0).unsigned_abs();
    match millis {
        0..1000 => "; it goes on by itself".to_owned(),
        1000..=HOUR_MILLIS => format!("; it goes on by itself in {}", duration(millis)),
        _ => format!("; it can go on in {}", duration(millis)),
    }
}

fn bar(elapsed: Duration, countdown: &Countdown) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let bar = bar.with_elapsed(elapsed);
    bar.set_style(style(countdown, ""));
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

/// How the live line is drawn, and what is `below` it.
fn style(countdown: &Countdown, below: &str) -> ProgressStyle {
    let countdown = countdown.clone();
    let template = format!("{{spinner}} {{elapsed}}{{countdown}}{{wide_msg}}{below}");
    ProgressStyle::with_template(&template)
        .expect("the template is well-formed")
        .with_key(
            "countdown",
            move |_: &ProgressState, line: &mut dyn std::fmt::Write| {
                let _ = line.write_str(&countdown.show(SystemClock.now()));
            },
        )
}
