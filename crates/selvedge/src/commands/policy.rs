//! `policy`: what agents may do, and why.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand};
use selvedge_tool::{Decision, Finding, Grants, Part, Source, Toolbox, Verdict, Workspace};
use serde_json::json;

use super::run;
use crate::config::{Approve, Config};
use crate::error::{Error, Exit, Result};
use crate::out;
use crate::paths::Paths;
use crate::text::{escape, one_line, plural, table};

#[derive(Subcommand)]
pub enum Policy {
    /// Say what would happen to a command, and which rule decides.
    Explain(Explain),
    /// Show what was approved for a project, or forget it.
    Approvals(Approvals),
}

impl Policy {
    pub async fn perform(self) -> Result {
        match self {
            Self::Explain(explain) => explain.perform().await,
            Self::Approvals(approvals) => approvals.perform(),
        }
    }
}

#[derive(Args)]
pub struct Explain {
    /// The command, as an agent would run it.
    command: String,
    /// The crew whose agent runs it.
    #[arg(long, value_name = "CREW")]
    crew: Option<String>,
    /// The agent. Default: the one that takes the crew's requests.
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// The folder it runs in, from the workspace root.
    #[arg(long, value_name = "FOLDER")]
    cwd: Option<String>,
    /// The directory of the workspace.
    #[arg(short = 'C', long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Print the verdict as JSON.
    #[arg(long)]
    json: bool,
}

impl Explain {
    async fn perform(self) -> Result {
        let root = run::workspace(self.directory.as_deref())?;
        let paths = Paths::find()?;
        let config = Config::load(&paths, &root)?;
        config.warnings().iter().for_each(|w| out::warn(w));
        let settings = config.settings();
        let name = self.crew.as_deref().or(settings.crew.as_deref());
        let crew = selvedge_crews::all().find(name.unwrap_or("solo"), &paths.crews(&root))?;
        let agent = self.agent.as_deref().unwrap_or(&crew.entry);
        let agent = crew.agents.get(agent).ok_or_else(|| {
            let known: Vec<&str> = crew.agents.keys().map(String::as_str).collect();
            Error::usage(format!("crew `{}` has no agent `{agent}`", crew.name))
                .hint(format!("it has: {}", known.join(", ")))
        })?;
        let is_trusted = run::vouched(&paths, &root, &crew);
        let sandbox = settings.sandbox.sandbox(&paths);
        let fenced = config.policy().clone().fenced_by(&sandbox);
        let common = crew.policy(&fenced, is_trusted);
        let policy = Arc::new(agent.policy(&common, is_trusted));

        let arguments = match &self.cwd {
            Some(cwd) => json!({ "command": self.command, "cwd": cwd }),
            None => json!({ "command": self.command }),
        };
        let toolbox = Toolbox::core();
        let call = toolbox
            .check("run_command", &arguments.to_string())
            .map_err(|refused| Error::usage(refused.text))?;
        let workspace = Workspace::open(&root).map_err(|error| {
            Error::failed(format!("`{}` cannot be opened", root.display())).cause(error)
        })?;
        let mut verdict = toolbox.judge(&Arc::new(workspace), &policy, &call).await;
        if verdict.decision() == Decision::Ask {
            let grants = Grants::at(paths.approvals());
            verdict = match settings.approve {
                Some(Approve::Auto) => verdict.overruled(Decision::Allow, Source::Mode, "auto"),
                Some(Approve::Never) => verdict.overruled(Decision::Deny, Source::Mode, "never"),
                _ if grants.has(&root, &verdict.lasting) => {
                    verdict.overruled(Decision::Allow, Source::Remembered, "this project")
                }
                _ => verdict,
            };
        }
        match self.json {
            true => out::json(&verdict),
            false => out::line(&show(&verdict)),
        }
        Ok(Exit::Done)
    }
}

/// A verdict in words: the whole, then its parts.
fn show(verdict: &Verdict) -> String {
    let words = |finding: &Finding| escape(&format!("{} ({})", finding.reason, finding.rule));
    let mut text = format!("{}: {}", verdict.decision(), whole(verdict, words));
    let rows: Vec<Vec<String>> = verdict
        .parts
        .iter()
        .map(|part| {
            let finding = &part.finding;
            let (decision, shown) = (finding.decision.to_string(), one_line(&part.text, 60));
            vec![format!("  {decision}"), shown, words(finding)]
        })
        .collect();
    if !rows.is_empty() {
        text.push_str(&format!("\n{}", table(&rows)));
    }
    text
}

/// What decides about the whole: by name, where it is one part of several.
fn whole(verdict: &Verdict, words: impl Fn(&Finding) -> String) -> String {
    let said = words(&verdict.finding);
    let is_it = |part: &&Part| part.finding == verdict.finding;
    let Some(part) = verdict.parts.iter().find(is_it) else {
        // The whole was doubted, or decided by somebody who may.
        return said;
    };
    let is_alike = |part: &&Part| part.finding.decision == verdict.decision();
    let alike = verdict.parts.iter().filter(is_alike).count();
    match (verdict.decision(), alike) {
        (Decision::Allow, _) => format!("each of its {alike} parts is allowed"),
        (_, 1) => format!("because of `{}`: {said}", one_line(&part.text, 60)),
        _ => format!(
            "because of {alike} parts, first `{}`: {said}",
            one_line(&part.text, 60)
        ),
    }
}

#[derive(Args)]
pub struct Approvals {
    /// Forget all of them.
    #[arg(long)]
    forget: bool,
    /// The directory of the project.
    #[arg(short = 'C', long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Print one approval per line, as JSON.
    #[arg(long)]
    json: bool,
}

impl Approvals {
    fn perform(self) -> Result {
        let root = run::workspace(self.directory.as_deref())?;
        let grants = Grants::at(Paths::find()?.approvals());
        let failed = |error: std::io::Error| {
            Error::failed("the approvals of this project cannot be used")
                .cause(error)
                .hint("look at the folder `approvals` of the data folder")
        };
        if self.forget {
            let forgot = grants.forget(&root).map_err(failed)?;
            out::say(match forgot {
                true => "forgotten: everything will be asked about again",
                false => "nothing was approved for this project",
            });
            return Ok(Exit::Done);
        }
        let known = grants.of(&root).map_err(failed)?;
        for grant in &known {
            match self.json {
                true => out::json(grant),
                false => out::line(&escape(&grant.act)),
            }
        }
        let count = plural(known.len() as u64, "approval");
        out::say(&format!(
            "{count} for {}",
            escape(&root.display().to_string())
        ));
        Ok(Exit::Done)
    }
}
