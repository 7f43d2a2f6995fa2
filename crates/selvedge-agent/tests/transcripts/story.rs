//! A story in, a transcript out: only this file knows the API.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use selvedge_agent::{
    AGENT, AgentCall, AgentMachine, AgentOutcome, AgentPerformer, Approve, Crew, Hook, Hooks, Lazy,
    Limits, Setup, Spending, assemble,
};
use selvedge_ledger::{
    Event, Ledger, Payload, SqliteLedger, SqliteOptions, StreamFilter, StreamId, Time,
};
use selvedge_model::{
    Catalogue, DeltaSink, Gate, ModelError, Price, Provider, Providers, Request, Response, Retry,
    ScriptedModel,
};
use selvedge_runtime::{
    Clock, Driver, Hold, Machine, NoWatcher, Patience, Performed, Performer, Probe, Rest, Scene,
    SeededChance, SessionState, Signal, SteerMode, SystemClock, session_state,
};
use selvedge_testkit::Watch;
use selvedge_tool::{ContentRoot, Owner, Policy, Sandbox, Skill, Tool, Toolbox, find_skills};
use serde_json::Value;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// What is lent to the tools of some stories, and written down in none.
pub const LENT: &str = "t0ken-of-the-user/17";

/// When the process dies, seen from a call.
#[derive(Clone, Copy, PartialEq)]
pub enum Dies {
    /// After it was written down that the call begins, before it does anything.
    BeforeIts(&'static str),
    /// After it did everything, before that is written down.
    AfterIts(&'static str),
}

/// What happens in a story, besides what the model says.
#[derive(Clone)]
pub enum Beat {
    /// The process dies in a call; a new one goes on.
    Crash(Dies),
    /// A human answers the open question.
    Answer(&'static str),
    /// A yes to this question, if any, for what has this digest.
    Forged(Option<&'static str>, Option<&'static str>),
    /// Somebody says something while the run rests.
    Say(SteerMode, &'static str),
    /// Somebody edits a file of the workspace while the run rests.
    Edit(&'static str, &'static str),
    /// Somebody cancels while the run rests.
    Cancel,
    /// Somebody allows more money and lets it go on.
    Raise(f64),
}

pub struct Story {
    script: String,
    crew: Option<(&'static str, Vec<(&'static str, &'static str)>)>,
    files: Vec<(&'static str, &'static str)>,
    beats: Vec<Beat>,
    approve: Approve,
    policy: Policy,
    budget_usd: Option<f64>,
    schema: Option<Value>,
    limits: Option<Limits>,
    hooks: Hooks,
    shown: Vec<&'static str>,
    attempts: u32,
    toolbox: fn(&Path) -> Toolbox,
    lazy: Lazy,
    tools: Vec<Arc<dyn Tool>>,
    requests: Requests,
    spending: Arc<Mutex<Spending>>,
}

/// What the model was sent, in order.
pub type Requests = Arc<Mutex<Vec<Request>>>;

/// A story in which the engineer gives these answers, as in a script file.
pub fn story(engineer: &str) -> Story {
    Story {
        script: format!(
            "price: {{input: 3.0, output: 15.0}}\nagents:\n  engineer:\n{}",
            indented(engineer)
        ),
        crew: None,
        files: Vec::new(),
        beats: Vec::new(),
        approve: Approve::Auto,
        policy: Policy::default(),
        budget_usd: None,
        schema: None,
        limits: None,
        hooks: Hooks::new(),
        shown: Vec::new(),
        attempts: 1,
        toolbox: |_| Toolbox::core(),
        lazy: Lazy::Auto,
        tools: Vec::new(),
        requests: Requests::default(),
        spending: Arc::default(),
    }
}

fn indented(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
    let margin = lines
        .iter()
        .map(|l| l.len() - l.trim_start().len())
        .min()
        .unwrap_or(0);
    lines
        .iter()
        .map(|l| format!("    {}\n", &l[margin..]))
        .collect()
}

impl Story {
    pub fn file(mut self, path: &'static str, text: &'static str) -> Self {
        self.files.push((path, text));
        self
    }

    pub fn then(mut self, beat: Beat) -> Self {
        self.beats.push(beat);
        self
    }

    pub fn approve(mut self, approve: Approve) -> Self {
        self.approve = approve;
        self
    }

    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    pub fn budget(mut self, usd: f64) -> Self {
        self.budget_usd = Some(usd);
        self
    }

    pub fn schema(mut self, schema: Value) -> Self {
        self.schema = Some(schema);
        self
    }

    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }

    pub fn hook(mut self, hook: impl Hook + 'static) -> Self {
        self.hooks = self.hooks.with(Arc::new(hook));
        self
    }

    /// Ends the transcript with what these files of the workspace have become.
    pub fn show(mut self, path: &'static str) -> Self {
        self.shown.push(path);
        self
    }

    /// With tools beside the built-in ones.
    pub fn tools(mut self, tools: Vec<Arc<dyn Tool>>) -> Self {
        self.tools = tools;
        self
    }

    pub fn lazy(mut self, lazy: Lazy) -> Self {
        self.lazy = lazy;
        self
    }

    /// What the model will have been sent, once the story was played.
    pub fn requests(&self) -> Requests {
        self.requests.clone()
    }

    /// What will have been spent, as the ledger has it.
    pub fn spending(&self) -> Arc<Mutex<Spending>> {
        self.spending.clone()
    }

    /// With a gate that asks so often before it gives up.
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// With other tools; what they keep goes into the folder that is given.
    pub fn toolbox(mut self, toolbox: fn(&Path) -> Toolbox) -> Self {
        self.toolbox = toolbox;
        self
    }

    /// With another crew than solo, and the answers of its other agents.
    pub fn crew(
        mut self,
        crew: &'static str,
        agents: Vec<(&'static str, &'static str)>,
        others: &str,
    ) -> Self {
        self.crew = Some((crew, agents));
        self.script.push_str(others);
        self
    }

    /// Plays it and returns what the ledger says, a line for each event.
    pub fn play(self) -> String {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(Stage::new(self).play())
    }
}

/// The machine's clock, with nobody's patience.
struct Hasty;

#[async_trait]
impl Clock for Hasty {
    fn now(&self) -> Time {
        SystemClock.now()
    }

    async fn sleep(&self, duration: Duration) {
        SystemClock
            .sleep(duration.min(Duration::from_millis(5)))
            .await;
    }
}

struct Stage {
    story: Story,
    /// Before the folder: it is looked through before it goes.
    _watch: Watch,
    folder: tempfile::TempDir,
    ledger: Arc<dyn Ledger>,
    clock: Arc<dyn Clock>,
    lives: u32,
}

fn session() -> StreamId {
    StreamId::new("s")
}

impl Stage {
    fn new(story: Story) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        for (path, text) in &story.files {
            let path = folder.path().join("work").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let options = SqliteOptions::new(folder.path().join("ledger.db"));
        let ledger = Arc::new(SqliteLedger::open(&options).unwrap());
        Self {
            story,
            _watch: Watch::over(folder.path()).and(LENT),
            folder,
            ledger,
            clock: Arc::new(Hasty),
            lives: 0,
        }
    }

    async fn play(mut self) -> String {
        let mut beats = std::mem::take(&mut self.story.beats).into_iter().peekable();
        loop {
            let dies = beats
                .next_if(|b| matches!(b, Beat::Crash(_)))
                .map(|b| match b {
                    Beat::Crash(dies) => dies,
                    _ => unreachable!(),
                });
            let rest = self.live(dies).await;
            match rest {
                None => continue,
                Some(Rest::Ended(_)) => break,
                Some(_) => match beats.next() {
                    Some(beat) => self.perform(beat).await,
                    None => break,
                },
            }
        }
        assert!(
            beats.peek().is_none(),
            "the story has beats that nobody heard"
        );
        self.transcript().await
    }

    /// One process; `None` if it died.
    async fn live(&mut self, dies: Option<Dies>) -> Option<Rest> {
        self.lives += 1;
        let died = Arc::new(Notify::new());
        let driver = self.driver(dies, died.clone());
        driver
            .start(&session(), None, AGENT, self.spec(), None)
            .await
            .unwrap();
        let session = session();
        tokio::select! {
            biased;
            rest = driver.drive(&session, None, CancellationToken::new()) => Some(rest.unwrap()),
            () = died.notified() => None,
        }
    }

    async fn perform(&self, beat: Beat) {
        let (ledger, clock) = (&*self.ledger, &*self.clock);
        let (to, signal) = match beat {
            Beat::Answer(text) => match session_state(ledger, clock, &session()).await.unwrap() {
                SessionState::Waiting { stream, effect, .. } => (
                    stream,
                    Signal::Answer {
                        effect: Some(effect),
                        text: Payload::new(text),
                        digest: None,
                    },
                ),
                other => panic!("nothing is asked: {other:?}"),
            },
            Beat::Forged(effect, digest) => (
                session(),
                Signal::Answer {
                    effect: effect.map(selvedge_runtime::EffectId::new),
                    text: Payload::new("yes"),
                    digest: digest.map(str::to_owned),
                },
            ),
            Beat::Say(mode, text) => (
                session(),
                Signal::Steer {
                    mode,
                    text: Payload::new(text),
                },
            ),
            Beat::Edit(path, text) => {
                std::fs::write(self.work().join(path), text).unwrap();
                return;
            }
            Beat::Cancel => (
                session(),
                Signal::Cancel {
                    reason: "enough".into(),
                },
            ),
            Beat::Raise(usd) => {
                let raise = Signal::RaiseBudget {
                    usd: Some(usd),
                    tokens: None,
                    model_calls: None,
                };
                raise
                    .send(ledger, clock, &session(), "user", "raise".into())
                    .await
                    .unwrap();
                (session(), Signal::Resume { reason: None })
            }
            Beat::Crash(_) => panic!("a process that rests cannot die in a call"),
        };
        let id = format!("beat-{}", self.lives);
        signal.send(ledger, clock, &to, "user", id).await.unwrap();
    }

    fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    fn spec(&self) -> selvedge_agent::RunSpec {
        let mut folders = Vec::new();
        let mut name = "solo";
        if let Some((crew, agents)) = &self.story.crew {
            name = crew;
            let folder = self.folder.path().join("crews");
            let agents_folder = folder.join(crew).join("agents");
            std::fs::create_dir_all(&agents_folder).unwrap();
            let toml = format!("name = '{crew}'\nentry = 'engineer'\n");
            std::fs::write(folder.join(crew).join("crew.toml"), toml).unwrap();
            for (agent, text) in agents {
                std::fs::write(agents_folder.join(format!("{agent}.md")), text).unwrap();
            }
            folders.push(folder);
        }
        let setup = Setup {
            request: "do it".into(),
            workspace: self.work(),
            approve: self.story.approve,
            sandbox: Sandbox::off(),
            policy: self.story.policy.clone(),
            is_trusted: true,
            budget_usd: self.story.budget_usd,
            budget_tokens: None,
            output_schema: self.story.schema.clone(),
            instructions: None,
            skills: self.skills(),
            lazy: self.story.lazy,
            resolve: &|_| Ok("scripted/story".into()),
        };
        let crew = Crew::find(name, &folders).unwrap();
        let mut spec = assemble(&crew, &self.toolbox(), &setup).unwrap();
        spec.limits = self.story.limits.unwrap_or(spec.limits);
        spec
    }

    fn skills(&self) -> Vec<Skill> {
        let root = ContentRoot {
            owner: Owner::Project,
            folder: "skills".into(),
        };
        find_skills(&self.work(), &[root], true).skills
    }

    fn toolbox(&self) -> Toolbox {
        let tools = self.story.tools.iter().cloned();
        let toolbox = (self.story.toolbox)(self.folder.path());
        tools.fold(toolbox, Toolbox::with)
    }

    fn driver(&self, dies: Option<Dies>, died: Arc<Notify>) -> Driver<AgentCall> {
        let script = ScriptedModel::parse("story", &self.story.script).unwrap();
        let watched = Watched {
            script,
            requests: self.story.requests.clone(),
        };
        let chance = Arc::new(SeededChance::new(1));
        let gate = Gate::new(
            Providers::new().with("scripted", Arc::new(watched)),
            Catalogue::built_in(),
            self.clock.clone(),
            chance,
        )
        .with_retry(Retry {
            attempts_max: self.story.attempts,
            ..Retry::default()
        });
        let inner = AgentPerformer::new(
            self.ledger.clone(),
            self.clock.clone(),
            Arc::new(gate),
            Arc::new(self.toolbox()),
        )
        .with_hooks(self.story.hooks.clone())
        .with_checkpoints(self.folder.path().join("sessions"));
        Driver {
            ledger: self.ledger.clone(),
            clock: self.clock.clone(),
            performer: Arc::new(Mortal { inner, dies, died }),
            machines: Arc::new(|kind: &str| {
                let machine =
                    || Box::new(AgentMachine::default()) as Box<dyn Machine<Call = AgentCall>>;
                (kind == AGENT).then(machine)
            }),
            watcher: Arc::new(NoWatcher),
            patience: Patience::Return,
        }
    }

    async fn transcript(&self) -> String {
        let mut lines = Vec::new();
        for info in self
            .ledger
            .streams(StreamFilter::Session(session()))
            .await
            .unwrap()
        {
            if info.kind == "inbox" {
                continue;
            }
            for event in self.ledger.read(&info.id, 0).await.unwrap() {
                self.story.spending.lock().unwrap().apply(&event).unwrap();
                lines.extend(self.line(&event));
            }
        }
        for path in &self.story.shown {
            let content = std::fs::read_to_string(self.work().join(path));
            lines.push(format!("-- {path}: {:?}", content.ok()));
        }
        // Calls that run side by side end in any order.
        for ends in lines.chunk_by_mut(|a, b| [a, b].iter().all(|l| l.starts_with("ToolCallF"))) {
            ends.sort();
        }
        lines.join("\n") + "\n"
    }

    /// An event as one line, with what a reader of the story wants to know.
    fn line(&self, event: &Event) -> Option<String> {
        let data: Value = event.decode().unwrap();
        let stream = event.stream.as_str().trim_start_matches("s");
        let text = |v: &Value| -> String {
            let text = v
                .as_str()
                .map(str::to_owned)
                .unwrap_or_else(|| v.to_string());
            let text = text.replace(&*self.work().to_string_lossy(), "WORK");
            text.lines()
                .next()
                .unwrap_or_default()
                .chars()
                .take(72)
                .collect()
        };
        let detail = match &*event.kind {
            "StreamOpened" => return None,
            "RunStarted" => text(&data["spec"]["request"]),
            "ModelCallStarted" => {
                format!(
                    "{} attempt={} messages={}",
                    text(&data["effect"]),
                    data["attempt"],
                    data["what"]["messages"]
                )
            }
            "ModelCallFinished" => text(&data["effect"]),
            "ModelCallInterrupted" => {
                let left = &data["left"];
                let said = match left["text"].as_str() {
                    Some(said) => format!(" {said:?} ({})", text(&left["why"])),
                    None => String::new(),
                };
                format!("{}{said}", text(&data["effect"]))
            }
            "ToolCallStarted" => {
                format!(
                    "{} {} attempt={}",
                    text(&data["effect"]),
                    text(&data["what"]["tool"]),
                    data["attempt"]
                )
            }
            "ToolCallFinished" => {
                let outcome = &data["outcome"];
                let probed = if data["probed"] == true {
                    " (probed)"
                } else {
                    ""
                };
                let error = if outcome["is_error"] == true {
                    "error: "
                } else {
                    ""
                };
                format!(
                    "{}{probed} {error}{}",
                    text(&data["effect"]),
                    text(&outcome["text"])
                )
            }
            "RestoreFinished" => format!(
                "{} {} failures={}",
                text(&data["effect"]),
                data["outcome"]["restored"],
                data["outcome"]["failures"].as_array().unwrap().len()
            ),
            "JudgementFinished" => format!(
                "{} {} ({}: {})",
                text(&data["effect"]),
                text(&data["outcome"]["decision"]),
                text(&data["outcome"]["rule"]["source"]),
                text(&data["outcome"]["rule"]["says"])
            ),
            "QuestionAsked" => format!(
                "{} {}",
                text(&data["effect"]),
                text(&data["question"]["text"])
            ),
            "QuestionAnswered" => format!("{} {}", text(&data["effect"]), text(&data["answer"])),
            "ChildFinished" => {
                format!(
                    "{} {} {}",
                    text(&data["effect"]),
                    text(&data["ending"]["status"]),
                    text(&data["ending"]["result"])
                )
            }
            "RunFinished" => format!(
                "{} {}{}",
                text(&data["ending"]["status"]),
                text(&data["ending"]["result"]),
                data["ending"]
                    .get("data")
                    .map(|d| format!(" {d}"))
                    .unwrap_or_default()
            ),
            "LetterIgnored" => text(&data["why"]),
            "RunPaused" => text(&data["reason"]),
            "RunResumed" => text(&data["reason"]),
            "RunCancelled" => text(&data["reason"]),
            "MessageTaken" => format!("{} {}", text(&data["mode"]), text(&data["text"])),
            _ => text(&data["effect"]),
        };
        Some(format!(
            "{stream}{}{} {detail}{}",
            if stream.is_empty() { "" } else { " " },
            event.kind,
            hooks_in(&data)
        ))
    }
}

/// Which hooks are on record in an event, and what they did.
fn hooks_in(data: &Value) -> String {
    let hooked = [&data["outcome"]["hooked"], &data["evidence"]["hooked"]];
    let did = hooked.iter().flat_map(|h| h["did"].as_array()).flatten();
    did.map(|did| {
        let word = |name: &str| did[name].as_str().unwrap_or_default().to_owned();
        format!(" [{} {}]", word("hook"), word("did"))
    })
    .collect()
}

/// A script that remembers what it was asked.
struct Watched {
    script: ScriptedModel,
    requests: Requests,
}

#[async_trait]
impl Provider for Watched {
    async fn ask(
        &self,
        request: &Request,
        deltas: &mut dyn DeltaSink,
        cancel: &CancellationToken,
    ) -> Result<Response, ModelError> {
        self.requests.lock().unwrap().push(request.clone());
        self.script.ask(request, deltas, cancel).await
    }

    fn price(&self, model: &str) -> Option<Price> {
        self.script.price(model)
    }
}

/// A performer whose process dies in one of its calls.
struct Mortal {
    inner: AgentPerformer,
    dies: Option<Dies>,
    died: Arc<Notify>,
}

#[async_trait]
impl Performer<AgentCall> for Mortal {
    async fn prepare(&self, scene: &Scene, call: &AgentCall) -> Result<Value, Hold> {
        self.inner.prepare(scene, call).await
    }

    async fn perform(
        &self,
        scene: Scene,
        call: AgentCall,
        evidence: Value,
    ) -> Performed<AgentOutcome> {
        let effect = scene.effect.clone();
        if matches!(self.dies, Some(Dies::BeforeIts(e)) if e == effect.as_str()) {
            self.die().await;
        }
        let performed = self.inner.perform(scene, call, evidence).await;
        if matches!(self.dies, Some(Dies::AfterIts(e)) if e == effect.as_str()) {
            self.die().await;
        }
        performed
    }

    async fn probe(
        &self,
        scene: &Scene,
        call: &AgentCall,
        evidence: &Value,
    ) -> Probe<AgentOutcome> {
        self.inner.probe(scene, call, evidence).await
    }
}

impl Mortal {
    async fn die(&self) {
        self.died.notify_one();
        std::future::pending().await
    }
}
