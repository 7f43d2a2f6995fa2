//! `demo job`: creator, then validator, on a real PDF. The models' words are recorded;
//! folders, documents, citations, graph and ledger are real.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::start::{Order, Place, order};
use crate::config::Config;
use crate::drive::{self, Options, Start};
use crate::error::{Error, Exit, Result};
use crate::out;
use crate::paths::Paths;
use crate::script::Script;
use crate::text::indented;
use crate::wiring::Store;

const HANDBOOK: &[u8] = include_bytes!("../../demo/job/handbook.pdf");
const SCRIPTS: [(&str, &str); 2] = [
    ("creator", include_str!("../../demo/job/creator.yaml")),
    ("validator", include_str!("../../demo/job/validator.yaml")),
];

/// Does both jobs in a fresh directory, and shows what they leave there.
pub async fn demo(json: bool, slower: Option<Duration>) -> Result {
    let paths = Paths::find()?;
    paths.make_data()?;
    let failed = |error: std::io::Error| {
        Error::failed("the demo's directory cannot be made")
            .cause(error)
            .hint("make room or set `TMPDIR` to a directory that can be written")
    };
    let directory = tempfile::Builder::new().prefix("selvedge-demo-").tempdir();
    let base = std::fs::canonicalize(directory.map_err(failed)?.keep()).map_err(failed)?;
    let handbook = base.join("handbook.pdf");
    std::fs::write(&handbook, HANDBOOK).map_err(failed)?;
    out::say(&format!(
        "The model's words in this demo are recorded. Everything else is real: the PDF, the\n\
         folders, the citations, the graph, and the ledger that every step is written to.\n\n  \
         directory: {}\n",
        base.display()
    ));
    let mut folders: Vec<PathBuf> = Vec::new();
    for (name, text) in SCRIPTS {
        let mut script = Script::parse("demo.yaml", "demo", text.to_owned())?;
        if let Some(by) = slower {
            script = script.slower(by);
        }
        // The user's own configuration has no part in it: no key, no model.
        let place = Place::of(&paths, base.clone(), Config::defaults(), name, Some(script))?;
        let documents = match name {
            "creator" => vec![handbook.clone()],
            _ => Vec::new(),
        };
        let wanted = Order::of(name, documents);
        let ordered = order(&place, wanted, false)?;
        let store = Store::open_at(paths.clone())?;
        let (session, spec) = ordered.make(&store, Some(text))?;
        folders.push(spec.run.workspace.clone());
        out::say(&format!("\n== {name}: job {session} =="));
        let options = Options {
            json,
            ..Options::default()
        };
        let start = Start::Job(Box::new(spec));
        let exit = drive::session(
            &store,
            place.models,
            &place.servers,
            &session,
            start,
            options,
        )
        .await?;
        if exit != Exit::Done {
            return Ok(exit);
        }
    }
    for folder in &folders {
        out::say(&format!("\n{}\n{}", folder.display(), listing(folder)));
    }
    if let [creator, validator] = folders.as_slice() {
        for (folder, file) in [
            (creator, "output/requirements.md"),
            (validator, "output/validation.md"),
        ] {
            let text = std::fs::read_to_string(folder.join(file)).unwrap_or_default();
            out::say(&format!("\n{file}:\n{}", indented(text.trim_end(), "  ")));
        }
    }
    out::say("\nLook closer:\n  selvedge job list\n  selvedge job logs ID");
    Ok(Exit::Done)
}

/// The files of a folder, by name.
fn listing(folder: &Path) -> String {
    let mut lines = Vec::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(next) = waiting.pop() {
        let entries = std::fs::read_dir(&next).into_iter().flatten().flatten();
        for entry in entries {
            let path = entry.path();
            if path.is_dir() {
                waiting.push(path);
                continue;
            }
            let bytes = entry.metadata().map_or(0, |metadata| metadata.len());
            let name = path
                .strip_prefix(folder)
                .unwrap_or(&path)
                .display()
                .to_string();
            lines.push(format!("  {name}  ({bytes} bytes)"));
        }
    }
    lines.sort();
    lines.join("\n")
}
