//! `skills`: what there is, what it says, and what is wrong with it.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use selvedge_tool::{
    FoundSkills, LeftOut, Owner, Skill, SkillFault, SkillFile, check_skill, find_skills, visible,
};
use serde_json::{Value, json};

use super::run;
use crate::error::{Error, Exit, Result};
use crate::out;
use crate::paths::Paths;
use crate::text::{did_you_mean, escape, one_line, plural, table};
use crate::trust::Trust;

#[derive(Subcommand)]
pub enum Skills {
    /// List the skills that agents can use here, and those that are left out.
    List(List),
    /// Show what a skill says.
    Show(Show),
    /// Check skills: those of a folder, or all that are found here.
    Check(Check),
}

impl Skills {
    pub fn perform(self) -> Result {
        match self {
            Self::List(list) => list.perform(),
            Self::Show(show) => show.perform(),
            Self::Check(check) => check.perform(),
        }
    }
}

#[derive(Args)]
pub struct List {
    /// The directory of the workspace.
    #[arg(short = 'C', long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Print one skill per line, as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub struct Show {
    /// Its name.
    name: String,
    /// The directory of the workspace.
    #[arg(short = 'C', long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Print it as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub struct Check {
    /// The folder of a skill, or a folder of such folders. Default: everywhere that
    /// skills are looked for.
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Print one skill per line, as JSON.
    #[arg(long)]
    json: bool,
}

impl List {
    fn perform(self) -> Result {
        let found = found(self.directory.as_deref())?.1;
        if self.json {
            found.skills.iter().for_each(|skill| out::json(&row(skill)));
            for (folder, why) in &found.left_out {
                out::json(&json!({
                    "folder": folder, "state": state(why), "why": why.to_string(),
                }));
            }
            return Ok(Exit::Done);
        }
        let heading = ["NAME", "WHOSE", "FOLDER", "DESCRIPTION"].map(str::to_owned);
        let mut rows = vec![heading.to_vec()];
        for skill in &found.skills {
            rows.push(vec![
                escape(&skill.name),
                whose(skill.owner).to_owned(),
                escape(&skill.folder.display().to_string()),
                one_line(&visible(&skill.description), 80),
            ]);
        }
        match found.skills.is_empty() {
            true => out::say("there are no skills here"),
            false => out::line(&table(&rows)),
        }
        for (folder, why) in &found.left_out {
            let folder = escape(&folder.display().to_string());
            let why = escape(&why.to_string());
            out::warn(&format!("`{folder}` is left out: {why}"));
        }
        Ok(Exit::Done)
    }
}

impl Show {
    fn perform(self) -> Result {
        let (workspace, found) = found(self.directory.as_deref())?;
        let names: Vec<&str> = found.skills.iter().map(|skill| &*skill.name).collect();
        let skill = found.skills.iter().find(|skill| skill.name == self.name);
        let skill = skill.ok_or_else(|| {
            let error = Error::usage(format!("there is no skill `{}`", self.name));
            let near = did_you_mean(&self.name, &names);
            error.hint(near.unwrap_or_else(|| "`selvedge skills list` shows them".into()))
        })?;
        let (file, others) = check_skill(&place(&workspace, skill)).map_err(|fault| {
            Error::failed(format!("skill `{}` cannot be read", skill.name)).cause(fault)
        })?;
        if self.json {
            let mut row = row(skill);
            row["license"] = json!(file.license);
            row["compatibility"] = json!(file.compatibility);
            row["metadata"] = json!(file.metadata);
            row["files"] = json!(others);
            row["body"] = json!(file.body);
            out::json(&row);
            return Ok(Exit::Done);
        }
        let mut lines = vec![
            format!("{}: {}", skill.name, visible(&skill.description)),
            format!("  whose     {}", whose(skill.owner)),
            format!("  folder    {}", skill.folder.display()),
        ];
        let said = [("license", &file.license), ("needs", &file.compatibility)];
        for (name, text) in said {
            lines.extend(text.as_ref().map(|text| format!("  {name:9} {text}")));
        }
        if !skill.allowed_tools.is_empty() {
            let tools = skill.allowed_tools.join(", ");
            lines.push(format!("  for tools {tools} (it gives none of them)"));
        }
        for other in others {
            lines.push(format!("  file      {}", other.display()));
        }
        lines.push(format!("\n{}", visible(&file.body)));
        out::line(&escape(&lines.join("\n")));
        Ok(Exit::Done)
    }
}

impl Check {
    fn perform(self) -> Result {
        let checked: Vec<(PathBuf, Checked)> = match &self.directory {
            Some(directory) => folders(directory)?
                .into_iter()
                .map(|folder| {
                    let checked = check_skill(&folder).map(|(file, _)| file);
                    (folder, checked)
                })
                .collect(),
            None => everywhere()?,
        };
        let mut broken = 0;
        for (folder, checked) in &checked {
            broken += u64::from(checked.is_err());
            self.tell(folder, checked);
        }
        let count = plural(checked.len() as u64, "skill");
        out::say(&format!("{count}, {broken} broken"));
        Ok(match broken {
            0 => Exit::Done,
            _ => Exit::Failed,
        })
    }

    fn tell(&self, folder: &Path, checked: &Checked) {
        let shown = escape(&folder.display().to_string());
        let fault = checked.as_ref().err().map(SkillFault::to_string);
        let unknown: &[String] = checked.as_ref().map_or(&[], |file| &file.unknown);
        if self.json {
            out::json(&json!({
                "folder": folder, "ok": fault.is_none(), "why": fault, "ignored_keys": unknown,
            }));
            return;
        }
        match fault {
            Some(why) => out::line(&format!("{shown}: broken: {}", escape(&why))),
            None if unknown.is_empty() => out::line(&format!("{shown}: fine")),
            None => {
                let keys = escape(&unknown.join(", "));
                out::line(&format!("{shown}: fine; ignored keys: {keys}"));
            }
        }
    }
}

type Checked = std::result::Result<SkillFile, SkillFault>;

/// Every skill that is found here, whether it counts or not.
fn everywhere() -> Result<Vec<(PathBuf, Checked)>> {
    let (workspace, found) = found(None)?;
    let mut places: Vec<PathBuf> = found.skills.iter().map(|s| place(&workspace, s)).collect();
    places.extend(
        found
            .left_out
            .iter()
            .map(|(folder, _)| workspace.join(folder)),
    );
    places.sort();
    let check = |place: PathBuf| {
        let checked = check_skill(&place).map(|(file, _)| file);
        let shown = place.strip_prefix(&workspace).unwrap_or(&place);
        (shown.to_owned(), checked)
    };
    Ok(places.into_iter().map(check).collect())
}

/// The folder itself, if it is a skill; else those in it that are.
fn folders(directory: &Path) -> Result<Vec<PathBuf>> {
    let wrong = |why: String| {
        Error::usage(format!("`{}` cannot be checked", directory.display()))
            .cause(why)
            .hint("name the folder of a skill, or a folder of such folders")
    };
    if directory.join("SKILL.md").exists() {
        return Ok(vec![directory.to_owned()]);
    }
    let entries = std::fs::read_dir(directory).map_err(|error| wrong(error.to_string()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let mut skills: Vec<PathBuf> = paths
        .filter(|path| path.join("SKILL.md").exists())
        .collect();
    skills.sort();
    match skills.is_empty() {
        true => Err(wrong(
            "there is no `SKILL.md` in it, nor in its folders".into(),
        )),
        false => Ok(skills),
    }
}

fn found(directory: Option<&Path>) -> Result<(PathBuf, FoundSkills)> {
    let workspace = run::workspace(directory)?;
    let paths = Paths::find()?;
    let is_trusted = Trust::of(&paths, &workspace).is_given();
    let found = find_skills(&workspace, &paths.contents("skills"), is_trusted);
    Ok((workspace, found))
}

/// Where a skill is. A folder of the user's own is absolute already.
fn place(workspace: &Path, skill: &Skill) -> PathBuf {
    workspace.join(&skill.folder)
}

fn row(skill: &Skill) -> Value {
    let mut row = serde_json::to_value(skill).expect("a skill is plain data");
    row["state"] = json!("ready");
    row
}

fn state(why: &LeftOut) -> &'static str {
    match why {
        LeftOut::Broken(_) => "broken",
        LeftOut::Shadowed { .. } => "shadowed",
        LeftOut::Untrusted => "untrusted",
    }
}

fn whose(owner: Owner) -> &'static str {
    match owner {
        Owner::User => "yours",
        Owner::Project => "the project's",
    }
}
