//! Finding sessions, and what can be said of them.

use selvedge_agent::{Answer, RunSpec, Scope};
use selvedge_ledger::{
    Event, Ledger, LedgerError, Payload, Receipt, Seq, StreamFilter, StreamId, StreamInfo,
};
use selvedge_runtime::{
    Book, EffectId, Question, RunStarted, SessionState, Signal, Status, session_state,
};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::text::nearest;
use crate::wiring::Store;

/// Who a letter from the command line is from.
const USER: &str = "user";

/// The event that says where a session was copied from.
pub const FORKED: &str = "SessionForked";
/// The version from which on it follows what was copied.
pub const FORKED_LAST: u16 = 2;

/// The data of that event.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SessionForked {
    /// The session.
    pub from: StreamId,
    /// Its last event that was copied.
    pub at: Seq,
}

/// Puts a letter into a stream's inbox.
pub async fn send(store: &Store, stream: &StreamId, signal: &Signal) -> Result<Receipt> {
    let (ledger, clock, chance) = (&*store.ledger, &*store.clock, &*store.chance);
    let sent = signal.send_once(ledger, clock, chance, stream, USER);
    Ok(sent.await?)
}

/// A question that nobody has answered.
pub struct OpenQuestion {
    /// The stream that asks.
    pub stream: StreamId,
    /// Its name there.
    pub effect: EffectId,
    /// What is asked.
    pub question: Question,
}

/// Answers a question. An approval is bound to what was asked; an answer that holds
/// for more than once, or a no, is given to everybody who asks for the same.
pub async fn answer(
    store: &Store,
    session: &StreamId,
    asked: &OpenQuestion,
    text: &str,
) -> Result<()> {
    let mut meant = vec![(asked.stream.clone(), asked.effect.clone())];
    let approval = asked.question.approval.as_ref();
    let is_once = Answer::read(text) == Answer::Yes(Scope::Once);
    if let Some(approval) = approval.filter(|a| !is_once && !a.lasting.is_empty()) {
        let open = open_questions(&*store.ledger, session).await?;
        let same = open.into_iter().filter(|other| {
            let asks = other.question.approval.as_ref();
            asks.is_some_and(|asks| {
                asks.lasting == approval.lasting && asks.digest == approval.digest
            })
        });
        meant.extend(same.map(|other| (other.stream, other.effect)));
        meant.sort();
        meant.dedup();
    }
    for (stream, effect) in meant {
        let signal = Signal::Answer {
            effect: Some(effect),
            text: Payload::new(text),
            digest: approval.map(|approval| approval.digest.clone()),
        };
        send(store, &stream, &signal).await?;
    }
    Ok(())
}

/// What the driver knows of every stream of a session, its own first, inboxes left out.
pub async fn books(
    ledger: &dyn Ledger,
    session: &StreamId,
) -> std::result::Result<Vec<(StreamId, Book)>, LedgerError> {
    let mut books = Vec::new();
    let filter = StreamFilter::Session(session.clone());
    for info in ledger.streams(filter).await? {
        if info.kind == "inbox" {
            continue;
        }
        let mut book = Book::default();
        for event in ledger.read(&info.id, 0).await? {
            book.apply(&event)?;
        }
        books.push((info.id, book));
    }
    // In a fork, children were opened first.
    books.sort_by_key(|(stream, _)| stream != session);
    Ok(books)
}

/// An event of a session, and whether it happened there.
pub struct Told {
    /// The event.
    pub event: Event,
    /// Whether it happened in the session: in a fork, what was copied did not.
    pub is_own: bool,
}

/// A session's events in the order in which they are told. In a fork children were
/// written first; what was copied comes with the session's own stream before them.
pub fn told(events: Vec<Event>) -> Vec<Told> {
    let copied = copied(&events);
    let tell = |(at, event)| Told {
        event,
        is_own: at >= copied,
    };
    let mut told: Vec<Told> = events.into_iter().enumerate().map(tell).collect();
    told.sort_by_key(|told| match told.is_own {
        true => 2,
        false => u8::from(told.event.stream != told.event.stream.session()),
    });
    told
}

/// How many of a session's events were copied when it was made.
fn copied(events: &[Event]) -> usize {
    let is_fork = |event: &&Event| &*event.kind == FORKED;
    let first = events.iter().position(|event| is_fork(&event));
    let Some(last) = events.iter().rposition(|event| is_fork(&event)) else {
        return 0;
    };
    if events[last].version >= FORKED_LAST {
        return last;
    }
    // It once stood before what was copied, which is older than it.
    let first = first.unwrap_or(last);
    let is_older = |event: &&Event| event.time <= events[first].time;
    first + 1 + events[first + 1..].iter().take_while(is_older).count()
}

/// Every question that nobody has answered, the session's own first.
pub async fn open_questions(
    ledger: &dyn Ledger,
    session: &StreamId,
) -> std::result::Result<Vec<OpenQuestion>, LedgerError> {
    let mut open = Vec::new();
    for (stream, book) in books(ledger, session).await? {
        if book.ended.is_some() {
            continue;
        }
        open.extend(
            book.questions
                .into_iter()
                .map(|(effect, question)| OpenQuestion {
                    stream: stream.clone(),
                    effect,
                    question,
                }),
        );
    }
    Ok(open)
}

/// A session in a list.
pub struct Listed {
    /// What the ledger knows of it.
    pub info: StreamInfo,
    /// How it stands.
    pub state: SessionState,
    /// What it started with; absent if that cannot be read.
    pub spec: Option<RunSpec>,
}

impl Listed {
    /// Looks at a session. One that cannot be read is damaged, not an error.
    pub async fn look(store: &Store, info: StreamInfo) -> Result<Self> {
        let state = match session_state(&*store.ledger, &*store.clock, &info.id).await {
            Ok(state) => state,
            Err(LedgerError::Unusable { path, why }) => {
                return Err(LedgerError::Unusable { path, why }.into());
            }
            Err(error) => SessionState::Damaged {
                what: error.to_string(),
            },
        };
        let spec = match &state {
            SessionState::Damaged { .. } => None,
            _ => spec(&*store.ledger, &info.id).await?,
        };
        Ok(Self { info, state, spec })
    }

    /// The state in a word or two.
    pub fn state_word(&self) -> String {
        match &self.state {
            SessionState::Active { pid } => format!("active (pid {pid})"),
            SessionState::Waiting { .. } => "waiting".into(),
            SessionState::Suspended { reasons } if reasons.is_empty() => "suspended".into(),
            SessionState::Suspended { reasons } => format!("suspended ({})", reasons.join(", ")),
            SessionState::Ended { status } => status_word(*status).into(),
            SessionState::Damaged { .. } => "damaged".into(),
        }
    }

    /// The request, or what is known instead.
    pub async fn request(&self, store: &Store) -> String {
        let text = match (&self.spec, &self.state) {
            (Some(spec), _) => store.ledger.text(&spec.request).await.ok(),
            (None, SessionState::Damaged { what }) => Some(what.as_str().into()),
            _ => None,
        };
        text.unwrap_or_default().to_string()
    }
}

/// The status in a word.
pub fn status_word(status: Status) -> &'static str {
    match status {
        Status::Done => "done",
        Status::Failed => "failed",
        Status::Cancelled => "cancelled",
    }
}

async fn spec(ledger: &dyn Ledger, session: &StreamId) -> Result<Option<RunSpec>> {
    let events = ledger.read(session, 0).await?;
    let started = events.iter().find(|e| &*e.kind == "RunStarted");
    let started = started.and_then(|e| e.decode::<RunStarted<RunSpec>>().ok());
    Ok(started.map(|started| started.spec))
}

/// Every session, newest first, without looking into them.
pub async fn all(store: &Store) -> Result<Vec<StreamInfo>> {
    Ok(store.ledger.streams(StreamFilter::Sessions).await?)
}

/// The session that `text` names, or all of them.
pub async fn chosen(store: &Store, text: Option<&str>) -> Result<Vec<StreamId>> {
    match text {
        Some(text) => Ok(vec![find(store, text).await?]),
        None => Ok(all(store).await?.into_iter().map(|info| info.id).collect()),
    }
}

/// The sessions that have not ended, newest first.
pub async fn unfinished(store: &Store) -> Result<Vec<Listed>> {
    let mut listed = Vec::new();
    for info in all(store).await? {
        if !has_ended(&*store.ledger, &info).await {
            listed.push(Listed::look(store, info).await?);
        }
    }
    Ok(listed)
}

/// Whether a session has ended, by its last events alone. That of a fork says that it
/// is one.
async fn has_ended(ledger: &dyn Ledger, info: &StreamInfo) -> bool {
    let before: Seq = info.head.saturating_sub(2);
    match ledger.read(&info.id, before).await {
        Ok(events) => events.iter().any(|e| &*e.kind == "RunFinished"),
        Err(_) => false,
    }
}

/// The session that `text` names: its id, or the beginning of one.
pub async fn find(store: &Store, text: &str) -> Result<StreamId> {
    let id = StreamId::new(text);
    if store.ledger.stream(&id).await?.is_some() && id == id.session() {
        return Ok(id);
    }
    let all = all(store).await?;
    let names: Vec<&str> = all.iter().map(|info| info.id.as_str()).collect();
    let begins = |name: &&&str| {
        let name = **name;
        name.starts_with(text) || name.strip_prefix("s_").is_some_and(|n| n.starts_with(text))
    };
    let matches: Vec<&&str> = names.iter().filter(begins).collect();
    match matches.as_slice() {
        [only] if !text.is_empty() => Ok(StreamId::new(**only)),
        [_, _, ..] if !text.is_empty() => Err(Error::usage(format!(
            "more than one session begins with `{text}`"
        ))
        .cause(list(matches.iter().copied().copied()))
        .hint("write more of the id")),
        _ => Err(Error::usage(format!("there is no session `{text}`")).hint(
            match nearest(text, &names) {
                Some(name) => format!("did you mean `{name}`?"),
                None => "`selvedge sessions list` shows them".into(),
            },
        )),
    }
}

/// The one session of `candidates`, or an error that lists them.
pub fn only(candidates: Vec<Listed>, what: &str, command: &str) -> Result<StreamId> {
    match candidates.as_slice() {
        [only] => Ok(only.info.id.clone()),
        [] => Err(Error::usage(format!("there is no session {what}"))
            .hint("`selvedge sessions list` shows them all")),
        many => Err(Error::usage(format!("more than one session is {what}"))
            .cause(list(many.iter().map(|l| l.info.id.as_str())))
            .hint(format!(
                "name one: `selvedge {command} {}`",
                many[0].info.id
            ))),
    }
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = names.take(8).map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}
