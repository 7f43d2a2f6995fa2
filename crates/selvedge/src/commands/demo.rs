//! `demo`: an agent fixes a bug, or a swarm builds something; jobs and the journal are shown
//! elsewhere. The models' words are recorded; the repository, the tools, the ledger and the result are real.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::Args;
use selvedge_tool::try_sandbox;

use super::run::{self, Plan};
use crate::config::Config;
use crate::drive::Options;
use crate::error::{Error, Exit, Result};
use crate::out;
use crate::paths::Paths;
use crate::script::Script;
use crate::text::{did_you_mean, indented};

/// What there is to be seen of a crew.
struct Show {
    crew: &'static str,
    /// What is put into the repository.
    files: &'static [(&'static str, &'static str)],
    script: &'static str,
    request: &'static str,
}

const SHOWS: [Show; 2] = [
    Show {
        crew: "solo",
        files: &[
            ("README.md", include_str!("../demo/README.md")),
            ("wordcount.sh", include_str!("../demo/wordcount.sh")),
            ("test.sh", include_str!("../demo/test.sh")),
        ],
        script: include_str!("../demo/solo.yaml"),
        request: "The test fails. Find the bug, fix it, and show that the test passes.",
    },
    Show {
        crew: "swarm",
        files: &[
            ("README.md", include_str!("../demo/swarm/README.md")),
            ("test.sh", include_str!("../demo/swarm/test.sh")),
        ],
        script: include_str!("../demo/swarm.yaml"),
        request: "Build a hello world command for the shell, with a test.",
    },
];

/// Two jobs, which are shown elsewhere.
const JOB: &str = "job";
/// Notes and questions, likewise.
const JOURNAL: &str = "journal";

// Long enough to find the process and kill it between two steps.
const SLOW: Duration = Duration::from_secs(4);

#[derive(Args)]
pub struct Demo {
    /// The crew to watch.
    #[arg(default_value = "solo")]
    crew: String,
    /// Print one event per line to stdout, as JSON, and nothing else.
    #[arg(long)]
    json: bool,
    /// Take some seconds for each step: time enough to kill it in the middle.
    #[arg(long)]
    slow: bool,
}

impl Demo {
    pub async fn perform(self) -> Result {
        if self.crew == JOB {
            return super::job::demo(self.json, self.slow.then_some(SLOW)).await;
        }
        if self.crew == JOURNAL {
            return super::journal::demo(self.json, self.slow.then_some(SLOW)).await;
        }
        let Some(show) = SHOWS.iter().find(|show| show.crew == self.crew) else {
            let crews = SHOWS.map(|show| show.crew);
            let crews: Vec<&str> = crews.into_iter().chain([JOB, JOURNAL]).collect();
            return Err(
                Error::usage(format!("there is no demo of a crew `{}`", self.crew)).hint(
                    did_you_mean(&self.crew, &crews)
                        .unwrap_or_else(|| format!("there is: {}", crews.join(", "))),
                ),
            );
        };
        let paths = Paths::find()?;
        paths.make_data()?;
        let workspace = make_repository(show.files)?;
        out::say(&format!(
            "The model's words in this demo are recorded. Everything else is real: the files,\n\
             the tools, the commands, and the ledger that every step is written to.\n\n  \
             directory: {}\n  request: {}\n",
            workspace.display(),
            show.request
        ));
        if self.slow {
            out::say(&format!(
                "Kill it in the middle, from another terminal: kill -9 {}\n\
                 Then go on with: selvedge resume --last\n",
                std::process::id()
            ));
        }
        let mut script = Script::parse("demo.yaml", "demo", show.script.to_owned())?;
        if self.slow {
            script = script.slower(SLOW);
        }
        // The user's own configuration has no part in it: no key, no model.
        let mut config = Config::defaults();
        let word = |text: &str| Some(toml::Value::String(text.into()));
        config.flag("crew", "demo", word(show.crew));
        config.flag("approve", "demo", word("auto"));
        let sandbox = config.settings().sandbox.sandbox(&paths);
        if let Err(why) = try_sandbox(&sandbox).await {
            // The words are ours, and so are the commands.
            out::warn(&format!("the demo's commands run without a sandbox: {why}"));
            config.flag("sandbox.mode", "demo", word("off"));
        }
        let plan = Plan {
            request: show.request.into(),
            workspace: workspace.clone(),
            output_schema: None,
            skills: Vec::new(),
            record: None,
            in_place: false,
        };
        let options = Options {
            json: self.json,
            ..Options::default()
        };
        let (session, exit) = run::begin(paths, &config, Some(script), plan, options).await?;
        if exit == Exit::Done {
            out::say(&format!(
                "\nwhat changed (git diff):\n{}\n\nthe test, run once more (sh test.sh):\n{}\n\n\
                 Look closer:\n  selvedge sessions show {session}\n  \
                 selvedge sessions events {session}\n\
                 See it survive: run `selvedge demo {} --slow`, kill it with `kill -9`, and type\n  \
                 selvedge resume --last",
                indented(&difference(&workspace), "  "),
                indented(&output(&workspace, "sh", &["test.sh"]), "  "),
                show.crew,
            ));
        }
        Ok(exit)
    }
}

/// A fresh directory with a repository in it. It is kept, to be looked at.
fn make_repository(files: &[(&str, &str)]) -> Result<PathBuf> {
    let failed = |error: std::io::Error| {
        Error::failed("the demo's directory cannot be made")
            .cause(error)
            .hint("make room or set `TMPDIR` to a directory that can be written")
    };
    let directory = tempfile::Builder::new()
        .prefix("selvedge-demo-")
        .tempdir()
        .map_err(failed)?
        .keep();
    let directory = std::fs::canonicalize(directory).map_err(failed)?;
    for (name, text) in files {
        std::fs::write(directory.join(name), text).map_err(failed)?;
    }
    // Without git there is no diff to show; the rest works all the same.
    for arguments in [
        &["init", "--quiet"][..],
        &["add", "."],
        &[
            "commit",
            "--quiet",
            "--message",
            "A small program, and its test",
        ],
    ] {
        output(&directory, "git", arguments);
    }
    Ok(directory)
}

/// What changed, new files included.
fn difference(directory: &Path) -> String {
    output(directory, "git", &["add", "--intent-to-add", "."]);
    output(directory, "git", &["diff"])
}

/// What a program prints, or why it does not.
fn output(directory: &Path, program: &str, arguments: &[&str]) -> String {
    let run = Command::new(program)
        .args(arguments)
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_PAGER", "cat")
        .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_NAME"), "Demo")))
        .envs(
            ["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_EMAIL"), "demo@example.invalid")),
        )
        .output();
    match run {
        Ok(output) => String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned(),
        Err(error) => format!("({program}: {error})"),
    }
}
