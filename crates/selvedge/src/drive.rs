//! Drives a session in front of a person: shows it, asks what it asks, and says
//! in the end how it went and what to type next.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use selvedge_agent::{AGENT, RunSpec, salvage_note};
use selvedge_crews::journal::{JOURNAL, JournalSpec};
use selvedge_crews::{JOB, JobSpec, JobView, Record};
use selvedge_ledger::{Event, Ledger, LedgerError, Position, StreamId, Tail, Topic};
use selvedge_mcp::Fleet;
use selvedge_runtime::{Ending, Pause, Rest, Seat, Signal, Status};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::ask::{Desk, Lines};
use crate::error::{Error, Exit, Result};
use crate::interrupt::Interrupt;
use crate::mcp::Counter;
use crate::progress::{self, Progress};
use crate::sessions::{self, OpenQuestion, Told};
use crate::story::Story;
use crate::text::{duration, escape, indented, one_line, plural};
use crate::wiring::{self, Models, Store};
use crate::{heads, jobs, lines, markdown, out, secrets};

/// How a session is driven.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Print events to stdout, instead of the result.
    pub json: bool,
    /// Stop after this long.
    pub timeout: Option<Duration>,
    /// Ask questions at the terminal.
    pub can_ask: bool,
    /// Show the result as the Markdown that it is.
    pub markdown: bool,
}

/// What brings a session to life.
pub enum Start {
    /// Its first event.
    New(Box<RunSpec>),
    /// The first event of a job.
    Job(Box<JobSpec>),
    /// The same of a session of the journal.
    Journal(Box<JournalSpec>),
    /// Going on, after these letters were put into inboxes.
    Resume(Vec<(StreamId, Signal)>),
}

/// Drives `session` until it ends, rests, or is told to stop.
pub async fn session(
    store: &Store,
    models: Models,
    servers: &Fleet,
    session: &StreamId,
    start: Start,
    options: Options,
) -> Result<Exit> {
    let is_live = out::is_live() && !options.json;
    let progress = Arc::new(Progress::new(is_live, options.can_ask));
    let teller = progress.clone();
    let interrupt = Interrupt::listen(options.timeout, move |text| teller.say(text))?;
    let lines = Arc::new(Lines::default());
    let counter = Counter::new(progress.clone(), interrupt.cancel.clone(), lines.clone());
    let servers = match options.can_ask {
        true => servers.with_clerk(Arc::new(counter)),
        false => servers.clone(),
    };
    let toolbox = Arc::new(wiring::toolbox(store, &servers));
    let driver = wiring::driver(store, models, toolbox, progress.clone());
    let seat = Seat::take(
        store.ledger.clone(),
        store.clock.clone(),
        &store.chance.id("d"),
    );
    let lease = seat.claim(session).await?;
    let begun = store.clock.now();
    let follower = Follower::begin(store, session, progress.clone(), options.json).await?;

    let outcome: Result<Rest> = async {
        match start {
            Start::New(spec) => {
                let fence = Some(lease.fence());
                driver.start(session, None, AGENT, *spec, fence).await?;
                // Who works on what is told before anything that happens to them.
                follower.catch_up().await;
            }
            Start::Job(spec) => {
                let fence = Some(lease.fence());
                driver.start(session, None, JOB, *spec, fence).await?;
                follower.catch_up().await;
            }
            Start::Journal(spec) => {
                let fence = Some(lease.fence());
                driver.start(session, None, JOURNAL, *spec, fence).await?;
                follower.catch_up().await;
            }
            Start::Resume(letters) => {
                let spec = spec_of(store, session).await?;
                let request = store.ledger.text(&spec.request).await?;
                out::say(&format!(
                    "going on with session {session}: {}\n  in {}",
                    one_line(&request, 60),
                    escape(&spec.directory().display().to_string())
                ));
                for (stream, letter) in letters {
                    sessions::send(store, &stream, &letter).await?;
                }
            }
        }
        let desk = Desk::new(progress.clone(), interrupt.cancel.clone(), lines);
        let mut desk = options.can_ask.then_some(desk);
        loop {
            let cancel = interrupt.cancel.clone();
            let rest = driver.drive(session, Some(lease.fence()), cancel).await?;
            let (Rest::Waiting, Some(desk)) = (&rest, &mut desk) else {
                return Ok(rest);
            };
            follower.catch_up().await;
            if !ask(store, session, desk).await? {
                let is_told = interrupt.cancel.is_cancelled();
                return Ok(if is_told { Rest::Interrupted } else { rest });
            }
        }
    }
    .await;
    let story = follower.end().await;
    progress.pause();
    // What was reached is on record either way; a lease that is not given back
    // ends with this process.
    let released = seat.release(&lease).await;
    let (rest, story) = (outcome?, story?);
    released?;
    if matches!(rest, Rest::Ended(_)) {
        // What its commands left there was temporary; what cannot be removed stays.
        let _ = std::fs::remove_dir_all(store.paths.temp(session));
    }
    // A witness is worth having; that there is none harms no work. Before the end
    // the last events may not be on disk yet, and it would testify too much.
    if matches!(rest, Rest::Ended(_))
        && let Err(error) = heads::sign(store, session).await
    {
        out::warn(&error.in_a_line());
    }
    let report = Report {
        session,
        story: &story,
        millis: u64::try_from(store.clock.now().millis_since(begun)).unwrap_or(0),
        options,
    };
    let exit = report.give(store, rest, &interrupt).await?;
    let info = store.ledger.stream(session).await?;
    if info.is_some_and(|info| info.kind == JOB) {
        jobs::settle(store, session).await?;
    }
    Ok(exit)
}

/// Asks the first open question, and puts the answer into the inbox. False if
/// nobody answered: the question stays open.
async fn ask(store: &Store, session: &StreamId, desk: &mut Desk) -> Result<bool> {
    let open = sessions::open_questions(&*store.ledger, session).await?;
    let Some(open) = open.into_iter().next() else {
        return Ok(false);
    };
    let topic = Topic::Stream(open.stream.inbox());
    let inbox = store.ledger.subscribe(topic);
    let answered = tokio::select! {
        answered = desk.ask(&*store.ledger, &open.question) => answered?,
        // Somebody answered from elsewhere.
        () = inbox.changed() => return Ok(true),
    };
    let Some(text) = answered else {
        return Ok(false);
    };
    if let Err(refused) = secrets::check("answer", &text, false) {
        // The question stays open, and is asked again.
        out::say(&refused.to_string());
        return Ok(true);
    }
    sessions::answer(store, session, &open, &text).await?;
    Ok(true)
}

/// Follows the ledger while the session is driven: prints, shows, folds.
struct Follower {
    task: JoinHandle<std::result::Result<Story, LedgerError>>,
    over: CancellationToken,
    // Told by whoever waits until everything so far is shown.
    caught_up: mpsc::Sender<oneshot::Sender<()>>,
}

impl Follower {
    /// What is there already is folded, and neither printed nor shown.
    async fn begin(
        store: &Store,
        session: &StreamId,
        progress: Arc<Progress>,
        json: bool,
    ) -> Result<Self> {
        let ledger = store.ledger.clone();
        let mut tail = Tail::new(ledger.clone(), session.clone());
        let mut story = Story::default();
        let mut keeper = RecordKeeper::new(store.paths.session(session));
        let mut job = JobProgress::default();
        for Told { event, is_own } in sessions::told(tail.ready().await?) {
            match is_own {
                true => story.tell(&*ledger, &event).await?,
                false => story.recall(&*ledger, &event).await?,
            };
            keeper.tell(&*ledger, &event).await;
            job.tell(&event)?;
        }
        let over = CancellationToken::new();
        let stop = over.clone();
        let (caught_up, mut waiting) = mpsc::channel::<oneshot::Sender<()>>(1);
        let task = tokio::spawn(async move {
            let mut is_over = false;
            while !is_over {
                let mut waiter = None;
                let events = tokio::select! {
                    biased;
                    events = tail.next() => events?,
                    Some(who) = waiting.recv() => {
                        waiter = Some(who);
                        tail.ready().await?
                    }
                    () = stop.cancelled() => {
                        is_over = true;
                        tail.ready().await?
                    }
                };
                for event in events {
                    if json {
                        out::line(&lines::line(&*ledger, &event).await?);
                    }
                    for beat in story.tell(&*ledger, &event).await? {
                        progress.show(&beat, &story);
                    }
                    keeper.tell(&*ledger, &event).await;
                    if let Some(line) = job.tell(&event)? {
                        let spent = progress::spent(&story.spending.total());
                        let is_milestone = !line.contains('□');
                        let parts = [line, spent].into_iter().filter(|part| !part.is_empty());
                        let parts: Vec<String> = parts.collect();
                        progress.standing(format!("  {}", parts.join(" · ")), is_milestone);
                    }
                }
                if let Some(waiter) = waiter {
                    // Who asked may have been told to stop meanwhile.
                    let _ = waiter.send(());
                }
            }
            Ok(story)
        });
        Ok(Self {
            task,
            over,
            caught_up,
        })
    }

    /// Returns when everything that is on record now was shown.
    async fn catch_up(&self) {
        let (done, shown) = oneshot::channel();
        if self.caught_up.send(done).await.is_ok() {
            // A follower that failed says so at its end.
            let _ = shown.await;
        }
    }

    /// Shows what is left, and gives back what was folded.
    async fn end(self) -> Result<Story> {
        self.over.cancel();
        match self.task.await {
            Ok(story) => Ok(story?),
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        }
    }
}

/// Tells how far a job is, whenever that changes.
#[derive(Default)]
pub struct JobProgress {
    view: JobView,
    told: String,
}

impl JobProgress {
    /// The progress after an event, if it is news and the session is a job.
    pub fn tell(&mut self, event: &Event) -> std::result::Result<Option<String>, LedgerError> {
        self.view.apply(event)?;
        if self.view.terms.is_none() || self.view.kind.is_none() {
            return Ok(None);
        }
        let now = self.view.progress();
        let is_news = now != self.told;
        self.told = now;
        let bar = match self.view.ended.is_some() {
            true => String::new(),
            false => {
                let (done, all) = (self.view.todos.done(), self.view.todos.items.len());
                format!("{}{} ", "■".repeat(done), "□".repeat(all - done))
            }
        };
        Ok(is_news.then(|| format!("{bar}{}", self.told)))
    }
}

/// Keeps the folder of what agents are sent and say, for sessions that have one.
struct RecordKeeper {
    folder: PathBuf,
    record: Option<Record>,
}

impl RecordKeeper {
    fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            record: None,
        }
    }

    async fn tell(&mut self, ledger: &dyn Ledger, event: &Event) {
        let is_first = event.stream == event.stream.session() && &*event.kind == "RunStarted";
        if is_first
            && let Ok(started) = event.decode::<selvedge_runtime::RunStarted<RunSpec>>()
            && Record::is_kept(&started.spec)
        {
            self.record = Some(Record::at(&self.folder));
        }
        let Some(record) = &mut self.record else {
            return;
        };
        // A view that cannot be written harms no work, and can be made anew.
        if let Err(error) = record.tell(ledger, event).await {
            out::warn(&format!(
                "the folder of the session is not complete: {error}"
            ));
            self.record = None;
        }
    }
}

/// Writes the folder of a session anew, if it has one; where.
pub async fn record_anew(store: &Store, session: &StreamId) -> Result<Option<PathBuf>> {
    let spec = spec_of(store, session).await?;
    if !Record::is_kept(&spec) {
        return Ok(None);
    }
    let folder = store.paths.session(session);
    let mut record = Record::at(&folder);
    let all = store
        .ledger
        .session_after(session, Position::default())
        .await?;
    for told in sessions::told(all.0) {
        record.tell(&*store.ledger, &told.event).await?;
    }
    Ok(Some(folder))
}

/// Where the work of a session is that has ended without merging it, and how it goes.
pub fn kept_work(spec: &RunSpec, session: &StreamId) -> Option<String> {
    let copy = spec.terms.copy.as_ref().filter(|copy| copy.is_there())?;
    let work = escape(&copy.work().display().to_string());
    Some(format!(
        "  the work is kept, and not merged: {work}\n  \
         remove it: selvedge sessions clean {session}"
    ))
}

/// What is said when a session is not being driven any more.
struct Report<'a> {
    session: &'a StreamId,
    story: &'a Story,
    millis: u64,
    options: Options,
}

impl Report<'_> {
    async fn give(&self, store: &Store, rest: Rest, interrupt: &Interrupt) -> Result<Exit> {
        let session = self.session;
        let resume = format!("selvedge resume {session}");
        match rest {
            Rest::Ended(ending) => self.ended(store, &ending).await,
            Rest::Waiting => {
                self.stats("waiting for an answer");
                for open in sessions::open_questions(&*store.ledger, session).await? {
                    out::say(&describe_question(session, &open));
                }
                next(&[("then", &resume)]);
                Ok(Exit::Waiting)
            }
            Rest::Paused(reasons) => {
                let exit = self.paused(&reasons);
                let how = match exit {
                    Exit::Budget => raising(&reasons, &resume),
                    _ => resume,
                };
                next(&[("go on", &how)]);
                Ok(exit)
            }
            Rest::Idle => {
                self.stats("waiting for a message");
                let steer = format!("selvedge sessions steer {session} \"…\"");
                next(&[("speak", &steer), ("then", &resume)]);
                Ok(Exit::Waiting)
            }
            Rest::Interrupted if interrupt.is_late() => {
                self.stats("stopped: the time is over");
                next(&[("go on", &resume)]);
                Ok(Exit::Deadline)
            }
            Rest::Interrupted => {
                self.stats("interrupted");
                next(&[("go on", &resume)]);
                Ok(Exit::Interrupted)
            }
        }
    }

    async fn ended(&self, store: &Store, ending: &Ending) -> Result<Exit> {
        let text = store.ledger.text(&ending.result).await?;
        let look = format!("selvedge sessions show {}", self.session);
        let exit = match ending.status {
            Status::Done => {
                if !self.options.json && !self.is_seen(&text) {
                    print_result(ending, &text, self.options.markdown);
                }
                if let Some(note) = ending.data.as_ref().and(salvage_note(&text)) {
                    out::warn(&escape(note));
                }
                self.stats("done");
                return Ok(Exit::Done);
            }
            Status::Failed if self.story.is_denied => {
                out::say(&format!("failed: {}", escape(&text)));
                self.stats("failed, after something was denied");
                Exit::Denied
            }
            Status::Failed => {
                out::say(&format!("failed: {}", escape(&text)));
                self.stats("failed");
                Exit::Failed
            }
            Status::Cancelled => {
                self.stats(&format!("cancelled: {}", one_line(&text, 200)));
                Exit::Failed
            }
        };
        next(&[("look", &look)]);
        if let Some(kept) = kept_work(&spec_of(store, self.session).await?, self.session) {
            out::say(&kept);
        }
        Ok(exit)
    }

    /// Whether the same terminal has just shown the result as the last words.
    fn is_seen(&self, result: &str) -> bool {
        out::is_one_screen() && self.story.last_words.trim() == result.trim()
    }

    fn paused(&self, reasons: &BTreeMap<String, Pause>) -> Exit {
        let names: Vec<&str> = reasons.keys().map(String::as_str).collect();
        self.stats(&format!("paused: {}", names.join(", ")));
        match () {
            () if reasons.contains_key("budget") => Exit::Budget,
            () if reasons.contains_key("provider") => Exit::NoProvider,
            () if jobs::is_out_of_tries(reasons.keys()) => Exit::Failed,
            () if reasons.contains_key("ledger") => Exit::Failed,
            () if reasons.contains_key("interrupted") => Exit::Interrupted,
            () => Exit::Waiting,
        }
    }

    /// How it stands, and what it took.
    fn stats(&self, how: &str) {
        let total = self.story.spending.total();
        let mut parts = vec![how.to_owned(), plural(total.calls, "turn")];
        parts.extend(Some(progress::spent(&total)).filter(|spent| !spent.is_empty()));
        parts.push(duration(self.millis));
        parts.push(format!("session {}", self.session));
        out::say(&parts.join(" · "));
    }
}

/// What lets a run go on whose budget is used up.
fn raising(reasons: &BTreeMap<String, Pause>, resume: &str) -> String {
    let detail = reasons.get("budget").map_or("", |pause| &pause.detail);
    match () {
        () if detail.contains("all sessions:") => {
            format!("raise `[budget]` in your configuration, then {resume}")
        }
        () if detail.contains("this call may take") && detail.ends_with("tokens") => {
            format!("{resume} --budget-tokens TOKENS")
        }
        () => format!("{resume} --budget USD"),
    }
}

/// The question, and the command that answers it.
pub fn describe_question(session: &StreamId, open: &OpenQuestion) -> String {
    let options: Vec<String> = open
        .question
        .options
        .iter()
        .map(|o| one_line(o, 60))
        .collect();
    let example = options.first().map_or("…", String::as_str);
    let mut text = format!(
        "  question: {}",
        indented(&escape(&open.question.text), "    ").trim_start()
    );
    if let Some(approval) = &open.question.approval {
        text.push_str(&format!("\n  because: {}", escape(&approval.because)));
    }
    text.push_str(&format!(
        "\n  answer: selvedge answer {session} \"{example}\""
    ));
    if open.question.approval.is_some() {
        text.push_str(&format!(" (or {})", options[1..].join(", ")));
    }
    text
}

fn next(commands: &[(&str, &String)]) {
    for (name, command) in commands {
        out::say(&format!("  {name}: {command}"));
    }
}

fn print_result(ending: &Ending, text: &str, is_markdown: bool) {
    match &ending.data {
        Some(data) => {
            let pretty = serde_json::to_string_pretty(data).expect("a JSON value is JSON");
            out::line(&pretty);
        }
        None if text.trim().is_empty() => {}
        // To a file go the bytes, to a terminal what cannot steer it.
        None if std::io::stdout().is_terminal() => {
            let safe = escape(text.trim_end());
            out::line(&match is_markdown {
                true => markdown::render(&safe),
                false => safe,
            });
        }
        None => out::line(text.trim_end()),
    }
}

/// The spec a session started with.
pub async fn spec_of(store: &Store, session: &StreamId) -> Result<RunSpec> {
    let events = store.ledger.read(session, 0).await?;
    let started = events.iter().find(|e| &*e.kind == "RunStarted");
    let started = started.ok_or_else(|| {
        Error::failed(format!("session `{session}` never began"))
            .cause("its process ended before the first step was on record")
            .hint("start it again with `selvedge run`")
    })?;
    Ok(started
        .decode::<selvedge_runtime::RunStarted<RunSpec>>()?
        .spec)
}
