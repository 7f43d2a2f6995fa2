//! `index`: reads a project, so that it can be searched.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use selvedge_knowledge::{
    Embedder, Index, Progress, Project, Report, Watching, index_project, load_jsonl, watch,
};

use super::run;
use crate::config::Config;
use crate::embedder;
use crate::error::{Error, Exit, Result};
use crate::interrupt::Interrupt;
use crate::knowledge::{self, Private};
use crate::paths::Paths;
use crate::text::{count, escape, plural};
use crate::{out, secrets};

/// Of what was left out, so many are named; `--verbose` names all.
const SKIPPED_SHOWN: usize = 5;

#[derive(Args)]
pub struct IndexProject {
    /// The project. Default: this directory.
    #[arg(value_name = "DIR", conflicts_with = "jsonl")]
    directory: Option<PathBuf>,
    /// Stay, and follow every change until told to stop.
    #[arg(long, conflicts_with = "jsonl")]
    watch: bool,
    /// Load a corpus instead: a line of JSON for each text, with `id` and `text`, and
    /// if known `path`, `kind`, `time` and `title`.
    #[arg(long, value_name = "FILE")]
    jsonl: Option<PathBuf>,
    /// Where to make the index, instead of the data folder.
    #[arg(long, value_name = "FILE")]
    index: Option<PathBuf>,
    /// Name everything that was left out.
    #[arg(short, long)]
    verbose: bool,
    /// Print what was done as JSON.
    #[arg(long)]
    json: bool,
}

impl IndexProject {
    pub async fn perform(self) -> Result {
        let paths = Paths::find()?;
        let here = match self.jsonl {
            Some(_) => run::workspace(None)?,
            None => run::workspace(self.directory.as_deref())
                .map_err(|error| error.hint("name a folder: `selvedge index DIR`"))?,
        };
        let config = Config::load(&paths, &here)?;
        secrets::learn(&config)?;
        let stop = Arc::new(AtomicBool::new(false));
        let interrupt = Interrupt::listen(None, out::say)?;
        let (told, cancel) = (stop.clone(), interrupt.cancel.clone());
        tokio::spawn(async move {
            cancel.cancelled().await;
            told.store(true, Ordering::Relaxed);
        });
        let worked = tokio::task::spawn_blocking(move || {
            let embedder = embedder::find(&config);
            self.work(&paths, here, embedder, &stop)
        });
        worked
            .await
            .map_err(|error| Error::failed("the indexer broke off").cause(error))?
    }

    fn work(
        self,
        paths: &Paths,
        here: PathBuf,
        embedder: Arc<dyn Embedder>,
        stop: &AtomicBool,
    ) -> Result {
        if let Some(corpus) = &self.jsonl {
            return self.load(paths, corpus, embedder, stop);
        }
        let index = match &self.index {
            Some(file) => knowledge::open_at(paths, file, embedder)?,
            None => knowledge::open(paths, &here, embedder)?,
        };
        let bar = Bar::new();
        let project = Project {
            root: here,
            discretion: &Private,
            progress: &|progress| bar.show(progress),
            stop,
        };
        if self.watch {
            watch(&index, &project, |event| match event {
                Watching::Ready => out::say("watching; Ctrl-C ends it"),
                Watching::Updated(report) => {
                    bar.clear();
                    if report.indexed + report.removed > 0 {
                        self.tell(report, None);
                    }
                    make_vectors(&index, stop);
                }
                Watching::Failed(error) => out::warn(&error.to_string()),
            })?;
            return Ok(Exit::Done);
        }
        let begun = Instant::now();
        let report = index_project(&index, &project)?;
        bar.clear();
        self.tell(&report, Some(begun));
        make_vectors(&index, stop);
        match report.stopped {
            true => Ok(Exit::Interrupted),
            false => Ok(Exit::Done),
        }
    }

    fn load(
        &self,
        paths: &Paths,
        corpus: &std::path::Path,
        embedder: Arc<dyn Embedder>,
        stop: &AtomicBool,
    ) -> Result {
        let canonical = corpus.canonicalize().map_err(|error| {
            Error::usage(format!("`{}` cannot be read", corpus.display()))
                .cause(error)
                .hint("name a file with a line of JSON for each text")
        })?;
        let file = match &self.index {
            Some(file) => file.clone(),
            None => knowledge::file_of(paths, &canonical),
        };
        let index = knowledge::open_at(paths, &file, embedder)?;
        let bar = Bar::new();
        let begun = Instant::now();
        let report = load_jsonl(&index, &canonical, &Private, &|progress| bar.show(progress))?;
        bar.clear();
        self.tell(&report, Some(begun));
        make_vectors(&index, stop);
        Ok(Exit::Done)
    }

    fn tell(&self, report: &Report, begun: Option<Instant>) {
        if self.json {
            out::json(report);
        }
        if report.files == 0 && report.removed == 0 {
            out::say("there is nothing here that could be indexed: no code, no text");
        }
        let took = begun.map_or(String::new(), |begun| {
            format!(" in {:.1} s", begun.elapsed().as_secs_f64())
        });
        let removed = match report.removed {
            0 => String::new(),
            removed => format!(", {removed} removed"),
        };
        out::say(&format!(
            "{} looked at, {} indexed{removed}: {} lines, {} entries{took}",
            plural(report.files as u64, "file"),
            report.indexed,
            count(report.lines as u64),
            count(report.nodes as u64),
        ));
        let shown = match self.verbose {
            true => report.skipped.len(),
            false => SKIPPED_SHOWN,
        };
        for skipped in report.skipped.iter().take(shown) {
            let path = escape(&skipped.path);
            out::say(&format!("  left out {path}: {}", escape(&skipped.why)));
        }
        let more = report.skipped.len().saturating_sub(shown);
        if more > 0 {
            out::say(&format!("  left out {more} more; `--verbose` names them"));
        }
    }
}

/// Makes the vectors that a slow embedder was left to make. What is searched meanwhile is
/// found by its words, and whoever stops this goes on with it next time.
fn make_vectors(index: &Index, stop: &AtomicBool) {
    if let Some(why) = index.embedder().is_away() {
        out::warn(&format!("no vectors are made, search is by words: {why}"));
        return;
    }
    if !index.embedder().is_slow() {
        return;
    }
    let bar = Bar::new();
    let made = index.make_vectors(usize::MAX, stop, &|progress| bar.show(progress));
    bar.clear();
    match made.and_then(|made| Ok((made, index.vectors_missing()?))) {
        Ok((0, 0)) => {}
        Ok((made, 0)) => out::say(&format!("{} made", plural(made as u64, "vector"))),
        Ok((made, left)) => out::say(&format!(
            "{} made, {left} to be made by the next `selvedge index`",
            plural(made as u64, "vector")
        )),
        Err(error) => out::warn(&format!(
            "{error}; the rest is searched by words until the next `selvedge index`"
        )),
    }
}

/// The bar, where somebody can see it.
struct Bar(ProgressBar);

impl Bar {
    fn new() -> Self {
        let bar = match out::is_live() {
            true => ProgressBar::new(0),
            false => ProgressBar::hidden(),
        };
        let style = ProgressStyle::with_template("indexing {bar:30} {pos}/{len} {elapsed}");
        bar.set_style(style.expect("the template is right"));
        Self(bar)
    }

    fn show(&self, progress: Progress) {
        self.0.set_length(progress.total as u64);
        self.0.set_position(progress.done as u64);
    }

    fn clear(&self) {
        self.0.finish_and_clear();
    }
}
