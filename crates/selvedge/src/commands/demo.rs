//! `demo`: an agent fixes a bug. The model's words are recorded; the repository,
//! the tools, the ledger and the result are real.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::Args;

use super::run::{self, Plan};
use crate::config::Config;
use crate::drive::Options;
use crate::error::{Error, Exit, Result};
use crate::out;
use crate::paths::Paths;
use crate::script::Script;
use crate::text::{did_you_mean, indented};

/// What is put into the repository.
const FILES: [(&str, &str); 3] = [
    ("README.md", include_str!("../demo/README.md")),
    ("wordcount.sh", include_str!("../demo/wordcount.sh")),
    ("test.sh", include_str!("../demo/test.sh")),
];
const SCRIPT: &str = include_str!("../demo/solo.yaml");
const REQUEST: &str = "The test fails. Find the bug, fix it, and show that the test passes.";
const CREWS: [&str; 1] = ["solo"];

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
        if !CREWS.contains(&self.crew.as_str()) {
            return Err(
                Error::usage(format!("there is no demo of a crew `{}`", self.crew)).hint(
                    did_you_mean(&self.crew, &CREWS)
                        .unwrap_or_else(|| format!("there is: {}", CREWS.join(", "))),
                ),
            );
        }
        let paths = Paths::find()?;
        paths.make_data()?;
        let workspace = make_repository()?;
        out::say(&format!(
            "The model's words in this demo are recorded. Everything else is real: the files,\n\
             the tools, the commands, and the ledger that every step is written to.\n\n  \
             directory: {}\n  request: {REQUEST}\n",
            workspace.display()
        ));
        if self.slow {
            out::say(&format!(
                "Kill it in the middle, from another terminal: kill -9 {}\n\
                 Then go on with: selvedge resume --last\n",
                std::process::id()
            ));
        }
        let mut script = Script::parse("solo.yaml", "demo", SCRIPT.to_owned())?;
        if self.slow {
            script = script.slower(SLOW);
        }
        // The user's own configuration has no part in it: no key, no model.
        let mut config = Config::defaults();
        let auto = toml::Value::String("auto".into());
        config.flag("approve", "demo", Some(auto));
        let plan = Plan {
            request: REQUEST.into(),
            workspace: workspace.clone(),
            output_schema: None,
            record: None,
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
                 See it survive: run `selvedge demo --slow`, kill it with `kill -9`, and type\n  \
                 selvedge resume --last",
                indented(&output(&workspace, "git", &["diff"]), "  "),
                indented(&output(&workspace, "sh", &["test.sh"]), "  "),
            ));
        }
        Ok(exit)
    }
}

/// A fresh directory with a repository in it. It is kept, to be looked at.
fn make_repository() -> Result<PathBuf> {
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
    for (name, text) in FILES {
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
            "A word counter, and its test",
        ],
    ] {
        output(&directory, "git", arguments);
    }
    Ok(directory)
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
