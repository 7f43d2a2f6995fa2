//! `answer`: answers a question that a session asks.

use clap::Args;
use selvedge_agent::Answer as Approval;
use selvedge_ledger::StreamId;
use selvedge_runtime::{SessionState, session_state};

use super::{resume, run};
use crate::drive::{self, Options};
use crate::error::{Error, Exit, Result};
use crate::out;
use crate::secrets;
use crate::sessions::{self, OpenQuestion};
use crate::text::escape;
use crate::wiring::Store;

#[derive(Args)]
#[command(override_usage = "selvedge answer [OPTIONS] [ID] <TEXT>")]
pub struct Answer {
    /// The session, which may be left out if only one waits, and the answer.
    #[arg(value_names = ["ID", "TEXT"], num_args = 1..=2, required = true)]
    words: Vec<String>,
    /// Which question, if the session asks more than one, such as `t3.0`.
    #[arg(long, value_name = "NAME")]
    question: Option<String>,
    /// Go on with the session at once.
    #[arg(long)]
    resume: bool,
    /// Send the answer although it holds what looks like a secret.
    #[arg(long)]
    allow_secret: bool,
    /// With `--resume`: print new events to stdout, as JSON.
    #[arg(long, requires = "resume")]
    json: bool,
}

impl Answer {
    pub async fn perform(self) -> Result {
        let (session, text) = match self.words.as_slice() {
            [session, text] => (Some(session), text),
            [text] => (None, text),
            _ => unreachable!("clap takes one or two"),
        };
        if text.trim().is_empty() {
            return Err(Error::usage("the answer is empty")
                .hint("say something: `selvedge answer ID \"yes\"`"));
        }
        secrets::learn(&run::config_here()?)?;
        secrets::guard("answer", text, self.allow_secret)?;
        let store = Store::open()?;
        let session = match session {
            Some(text) => sessions::find(&store, text).await?,
            None => the_one_that_waits(&store).await?,
        };
        let open = self.open_question(&store, &session).await?;
        // What is neither a yes nor a no would count as a no, and nobody would know.
        if open.question.approval.is_some() && Approval::plain(text).is_none() {
            let options = Approval::OPTIONS.map(|option| format!("`{option}`"));
            return Err(
                Error::usage(format!("`{}` is neither a yes nor a no", escape(text)))
                    .cause("an approval is asked for, and nothing was sent")
                    .hint(format!(
                        "answer with one of {}; a reason may follow: \"no, use make instead\"",
                        options.join(", ")
                    )),
            );
        }
        let state = session_state(&*store.ledger, &*store.clock, &session).await?;
        sessions::answer(&store, &session, &open, text).await?;
        if let SessionState::Active { pid } = state {
            out::say(&format!("answered; process {pid} goes on with {session}"));
            return Ok(Exit::Done);
        }
        if !self.resume {
            out::say(&format!("answered\n  go on: selvedge resume {session}"));
            return Ok(Exit::Done);
        }
        let options = Options {
            json: self.json,
            can_ask: out::can_ask(),
            ..Options::default()
        };
        resume::resume(&store, &session, Vec::new(), None, options).await
    }

    async fn open_question(&self, store: &Store, session: &StreamId) -> Result<OpenQuestion> {
        let mut open = sessions::open_questions(&*store.ledger, session).await?;
        if let Some(name) = &self.question {
            // `t3.0?` is the approval of call `t3.0`: either name is understood.
            open.retain(|open| {
                let effect = open.effect.as_str();
                effect == name || effect.split('?').next() == Some(name)
            });
        }
        match open.len() {
            1 => Ok(open.remove(0)),
            0 => Err(Error::usage(match &self.question {
                Some(name) => format!("session `{session}` asks no question `{name}`"),
                None => format!("session `{session}` asks nothing"),
            })
            .hint(format!(
                "see what it does with `selvedge sessions show {session}`"
            ))),
            _ => {
                let asked: Vec<String> = open
                    .iter()
                    .map(|open| {
                        let question = drive::describe_question(session, open);
                        format!("{}:\n{question}", open.effect)
                    })
                    .collect();
                Err(
                    Error::usage(format!("session `{session}` asks more than one question"))
                        .cause(asked.join("\n"))
                        .hint(format!(
                            "name one: `selvedge answer {session} \"…\" --question {}`",
                            open[0].effect
                        )),
                )
            }
        }
    }
}

async fn the_one_that_waits(store: &Store) -> Result<StreamId> {
    let mut candidates = Vec::new();
    for listed in sessions::unfinished(store).await? {
        if matches!(listed.state, SessionState::Damaged { .. }) {
            continue;
        }
        let open = sessions::open_questions(&*store.ledger, &listed.info.id).await?;
        if !open.is_empty() {
            candidates.push(listed);
        }
    }
    sessions::only(candidates, "waiting for an answer", "answer")
}
