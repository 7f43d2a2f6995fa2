//! `demo journal`: notes, a slip and its correction, and two questions. The models' words
//! are recorded; the files, the searches, the arithmetic and the ledger are real.

use std::path::Path;
use std::time::Duration;

use jiff::tz::TimeZone;
use selvedge_crews::journal::{Intent, Units};

use super::enter::{Input, Manner, enter};
use super::room::Room;
use crate::config::Config;
use crate::error::{Error, Exit, Result};
use crate::paths::Paths;
use crate::script::Script;
use crate::text::indented;
use crate::wiring::Store;
use crate::{out, path};

/// What the user wrote before, in another editor.
const WRITTEN: [(&str, &str); 3] = [
    (
        "2025/12/2025-12-18.md",
        "## 18:30\nBench 185x5, all reps fast. Sleeping 8 h all week.\n",
    ),
    (
        "2026/01/2026-01-05.md",
        "## 07:10\nBaby up three times, 5 h of sleep at best.\n",
    ),
    (
        "2026/01/2026-01-07.md",
        "## 21:50\nSlept 4.5 h. No lunch, meetings all day.\n",
    ),
];

/// What the user types: the command, the words, the moment, and what models say to it.
const TYPED: [(&str, &str, &str, &str); 5] = [
    (
        "log",
        "Bench 185x5, felt heavy. 4 hours of sleep.",
        "2026-01-09 18:40",
        include_str!("../../demo/journal/note.yaml"),
    ),
    (
        "log",
        "Slept 8 h. Bench 19x3, easy!",
        "2026-01-12 18:20",
        include_str!("../../demo/journal/slip.yaml"),
    ),
    (
        "journal",
        "actually that was 190 not 19",
        "2026-01-12 18:22",
        include_str!("../../demo/journal/correction.yaml"),
    ),
    (
        "ask",
        "Why did my bench feel heavy last week?",
        "2026-01-14 09:30",
        include_str!("../../demo/journal/question.yaml"),
    ),
    (
        "ask",
        "What is my bench record?",
        "2026-01-14 09:31",
        include_str!("../../demo/journal/record.yaml"),
    ),
];

/// Types it all in a fresh folder, and shows what is there afterwards.
pub async fn demo(json: bool, slower: Option<Duration>) -> Result {
    let paths = Paths::find()?;
    paths.make_data()?;
    let failed = |error: std::io::Error| {
        Error::failed("the demo's directory cannot be made")
            .cause(error)
            .hint("make room or set `TMPDIR` to a directory that can be written")
    };
    let directory = tempfile::Builder::new().prefix("selvedge-demo-").tempdir();
    let folder = std::fs::canonicalize(directory.map_err(failed)?.keep()).map_err(failed)?;
    for (file, text) in WRITTEN {
        let file = folder.join(file);
        std::fs::create_dir_all(file.parent().unwrap_or(&folder)).map_err(failed)?;
        std::fs::write(file, text).map_err(failed)?;
    }
    out::say(&format!(
        "The model's words in this demo are recorded. Everything else is real: the notes in\n\
         plain Markdown, the searches, the checks, the arithmetic, and the ledger that every\n\
         step is written to. Three notes are there already, written in another editor.\n\n  \
         notes: {}",
        folder.display()
    ));
    // The user's own configuration has no part in it: no key, no model.
    let room = Room {
        folder,
        zone: TimeZone::UTC,
        units: Units::Imperial,
        config: Config::defaults(),
        paths,
    };
    let mut last = None;
    for (verb, text, at, script) in TYPED {
        out::say(&format!("\n$ selvedge {verb} \"{text}\"   ({at})"));
        let mut script = Script::parse("demo.yaml", "demo", script.to_owned())?;
        if let Some(by) = slower {
            script = script.slower(by);
        }
        let manner = Manner {
            at: Some(at.to_owned()),
            json,
            ..Manner::default()
        };
        let intent = match verb {
            "log" => Intent::Log,
            "ask" => Intent::Ask,
            _ => Intent::Any,
        };
        let input = Input::scripted(text.to_owned(), intent, script);
        let (session, exit) = enter(&room, input, &manner).await?;
        if exit != Exit::Done {
            return Ok(exit);
        }
        let store = Store::open_at(room.paths.clone())?;
        if text.starts_with("Why") {
            let walked = path::of(&store, &session).await?.unwrap_or_default();
            let walked = indented(&walked.join("\n"), "  ");
            out::say(&format!("\nthe way that it took:\n{walked}"));
        }
        last = Some(session);
    }
    let file = |name: &str| read(&room.folder.join(name));
    out::say(&format!(
        "\n2026/01/2026-01-12.md, with both texts:\n{}\n\nwhat is known of you \
         (global-context.md):\n{}",
        file("2026/01/2026-01-12.md"),
        file("global-context.md"),
    ));
    if let Some(session) = last {
        out::say(&format!(
            "\nLook closer:\n  selvedge sessions show {session}\nStart your own:\n  \
             selvedge log \"slept 6 hours\"\n  selvedge journal"
        ));
    }
    Ok(Exit::Done)
}

fn read(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    indented(text.trim_end(), "  ")
}
