//! The box: notes and questions, one after another.

use std::io::IsTerminal;

use selvedge_crews::journal::{Intent, JOURNAL, Overview, Selection};
use selvedge_ledger::StreamId;
use selvedge_runtime::SessionState;

use super::enter::{Input, Manner, enter, go_on_without};
use super::notes;
use super::room::Room;
use super::{chart, context};
use crate::commands::resume;
use crate::drive::Options;
use crate::error::{Exit, Result};
use crate::sessions;
use crate::text::{escape, one_line};
use crate::wiring::Store;
use crate::{drive, out, path};

mod editor;

use editor::{Editor, Line};

/// What can be said instead of a note or a question.
const COMMANDS: [(&str, &str); 7] = [
    ("/why", "which way the last input took, and why"),
    ("/notes", "list notes with these words: `/notes bench`"),
    ("/context", "what is known of you"),
    ("/domains", "the domains there are"),
    ("/stats", "how much was noted"),
    ("/help", "this list"),
    ("/quit", "leave; so does Ctrl-D"),
];
/// So many of the last inputs are told to the Router.
const REMEMBERED: usize = 3;

/// Reads, answers, repeats.
pub async fn run(manner: Manner) -> Result {
    let room = Room::open(&manner)?;
    let mut chat = Chat {
        said: Vec::new(),
        last: None,
    };
    let names = room.domains().infos().into_iter().map(|info| info.name);
    let words = COMMANDS
        .iter()
        .map(|(name, _)| (*name).to_owned())
        .chain(names);
    let mut editor = Editor::new(words.collect(), &room.paths.journal_history());
    if std::io::stdin().is_terminal() {
        out::say("Write a note or a question; /help lists what else there is, Ctrl-D leaves.");
        say_what_waits(&room).await?;
    }
    let mut worst = Exit::Done;
    loop {
        let line = match editor.line("journal> ")? {
            Line::Typed(line) => line,
            Line::Dropped => {
                out::say("dropped; /quit or Ctrl-D leaves");
                continue;
            }
            Line::End => break,
        };
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        if line == "/quit" {
            break;
        }
        let done = match line.strip_prefix('/') {
            Some(_) => chat.command(&room, line).await,
            None => chat.input(&room, &manner, line, &mut editor).await,
        };
        match done {
            Ok(Exit::Done) => {}
            Ok(exit) => worst = exit,
            Err(error) => {
                worst = error.exit;
                out::say(&error.to_string());
            }
        }
    }
    // At a terminal everything was said already; a script wants to know.
    Ok(match std::io::stdin().is_terminal() {
        true => Exit::Done,
        false => worst,
    })
}

/// Names the questions that earlier conversations wait with.
async fn say_what_waits(room: &Room) -> Result<()> {
    let store = Store::open_at(room.paths.clone())?;
    for listed in sessions::unfinished(&store).await? {
        let is_ours = listed.info.kind == JOURNAL;
        if !is_ours || !matches!(listed.state, SessionState::Waiting { .. }) {
            continue;
        }
        let session = &listed.info.id;
        for open in sessions::open_questions(&*store.ledger, session).await? {
            let asked = open.question.text.lines();
            let asked = asked
                .filter(|line| !line.starts_with('('))
                .collect::<Vec<_>>();
            out::say(&format!(
                "still asked: {}\n  answer it: selvedge answer {session} \"…\" --resume",
                one_line(&asked.join(" "), 100)
            ));
        }
    }
    Ok(())
}

struct Chat {
    said: Vec<String>,
    last: Option<StreamId>,
}

impl Chat {
    async fn input(
        &mut self,
        room: &Room,
        manner: &Manner,
        line: &str,
        editor: &mut Editor,
    ) -> Result<Exit> {
        let mut input = Input::new(line.to_owned(), Intent::Any);
        input.is_asked_elsewhere = true;
        input.session_context = (!self.said.is_empty()).then(|| self.said.join("\n"));
        let (session, mut exit) = enter(room, input, manner).await?;
        self.said.push(line.to_owned());
        if self.said.len() > REMEMBERED {
            self.said.remove(0);
        }
        self.last = Some(session.clone());
        let is_terminal = std::io::stdin().is_terminal();
        while exit == Exit::Waiting && is_terminal {
            let Some(answered) = self.answer(room, manner, &session, editor).await? else {
                out::say(&format!(
                    "the question stays open\n  answer it: selvedge answer {session} \"…\" --resume"
                ));
                break;
            };
            exit = answered;
        }
        Ok(exit)
    }

    /// Asks what the session asks, and goes on; `None` if nobody answers.
    async fn answer(
        &self,
        room: &Room,
        manner: &Manner,
        session: &StreamId,
        editor: &mut Editor,
    ) -> Result<Option<Exit>> {
        let store = Store::open_at(room.paths.clone())?;
        let open = sessions::open_questions(&*store.ledger, session).await?;
        let Some(open) = open.into_iter().next() else {
            return Ok(None);
        };
        out::say(&escape(&open.question.text));
        for (n, option) in open.question.options.iter().enumerate() {
            out::say(&format!("  {}. {}", n + 1, escape(option)));
        }
        let Line::Typed(line) = editor.line("answer> ")? else {
            return Ok(None);
        };
        let number = line
            .trim()
            .parse::<usize>()
            .ok()
            .and_then(|n| n.checked_sub(1));
        let option = number.and_then(|n| open.question.options.get(n));
        let text = option.map_or(line.trim(), String::as_str);
        if text.is_empty() {
            return Ok(None);
        }
        crate::secrets::guard("answer", text, false)?;
        sessions::answer(&store, session, &open, text).await?;
        let options = Options {
            markdown: true,
            ..Options::default()
        };
        let exit = resume::resume(&store, session, Vec::new(), None, options).await?;
        Ok(Some(match exit {
            Exit::NoProvider => go_on_without(room, &store, session, manner, options).await?,
            exit => exit,
        }))
    }

    async fn command(&self, room: &Room, line: &str) -> Result<Exit> {
        let (command, rest) = line.split_once(' ').unwrap_or((line, ""));
        match command {
            "/why" => match &self.last {
                None => out::say("nothing was said yet"),
                Some(session) => {
                    let store = Store::open_at(room.paths.clone())?;
                    let walked = path::of(&store, session).await?.unwrap_or_default();
                    out::line(&walked.join("\n"));
                    let request = drive::spec_of(&store, session).await?.request;
                    let request = store.ledger.text(&request).await?;
                    out::say(&format!(
                        "  input: {}\n  everything: selvedge sessions show {session}",
                        one_line(&request, 60)
                    ));
                }
            },
            "/notes" => {
                let selection = Selection {
                    words: rest.to_owned(),
                    ..Selection::default()
                };
                notes::show(&selection.find(&room.notes())?, false);
            }
            "/context" => context::show(room)?,
            "/domains" => {
                for info in room.domains().infos() {
                    out::line(&format!("{}: {}", info.name, escape(&info.description)));
                }
            }
            "/stats" => {
                let overview = Overview::of(&room.notes(), None)?;
                out::line(&chart::calendar(
                    &overview.by_day,
                    room.moment(None)?.date(),
                    26,
                ));
            }
            "/help" => {
                for (name, what) in COMMANDS {
                    out::line(&format!("{name:<10} {what}"));
                }
            }
            other => out::say(&format!(
                "there is no `{}`; /help lists what there is",
                escape(other)
            )),
        }
        Ok(Exit::Done)
    }
}
