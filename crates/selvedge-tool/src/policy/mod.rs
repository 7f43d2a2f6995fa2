//! When a call is carried out, asked about or refused.
//!
//! The kernel is the fence; rules only decide when to ask. `judge` is a pure
//! function of a policy, which is recorded with a run, and of what a call would do.
//! Deny beats ask beats allow: no layer can loosen what another forbids.
//!
//! In reading order: `verdict` (what a decision is), `rules` (patterns in layers),
//! `roles` and `git` (the two tables), `site` (where paths lead), `shell` (a command
//! taken apart), `programs` and `arguments` (what is known of them), `command` (the
//! judging of commands), `bound` (what an approval is bound to), `grants` (what was
//! approved for longer), `risk` (which changes do more than they seem to), `visible` (how
//! it is shown).

mod arguments;
mod bound;
mod command;
mod git;
mod grants;
mod programs;
mod risk;
mod roles;
mod rules;
mod script;
mod shell;
mod site;
mod tested;
mod verdict;
mod visible;
mod wrapper;

pub(crate) use bound::Bound;
pub use git::{CRAFTS, Cell, Craft, MATRIX, Operation};
pub use grants::{Grant, Grants};
pub use risk::{Risk, risks};
pub use roles::{CAPABILITIES, Capability, ROLES, Role};
pub use rules::{Layer, Pattern, Rules, glob};
pub use site::{Guard, Site, guard};
pub use tested::Tested;
pub use verdict::{Decision, Finding, Part, Rule, Source, Verdict};
pub use visible::{compact, visible};

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::sandbox::Sandbox;
use crate::tool::World;

/// What an agent may do. Recorded with its run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Policy {
    /// What it is trusted with.
    pub role: Role,
    /// Its columns in the table of git: its own, and those of the agents above it.
    /// None is no git at all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub crafts: Vec<Craft>,
    /// The digest of the sandbox that commands run in; none is no sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fence: Option<String>,
    /// Rules. Their order does not matter: the strictest wins.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<Layer>,
}

impl Policy {
    /// The policy of a helper: never more than that of the agent that sends it.
    pub fn within(mut self, parent: &Self) -> Self {
        self.role = self.role.min(parent.role);
        // A chief without a column has no git of its own to hand on, and none to
        // withhold: it is the crew's author who gave the helper its craft.
        for craft in &parent.crafts {
            if !self.crafts.contains(craft) && !self.crafts.is_empty() {
                self.crafts.push(*craft);
            }
        }
        for layer in &parent.layers {
            // What the parent's own file allows is for the parent.
            let is_own = layer.source == Source::Agent;
            let mut rules = layer.rules.clone();
            if is_own {
                rules.allow.clear();
            }
            let layer = Layer {
                source: layer.source,
                rules,
            };
            if !layer.rules.is_empty() && !self.layers.contains(&layer) {
                self.layers.push(layer);
            }
        }
        self
    }

    /// The same where commands run in `sandbox`.
    pub fn fenced_by(mut self, sandbox: &Sandbox) -> Self {
        self.fence = sandbox.is_on().then(|| sandbox.digest());
        self
    }

    /// Adds a layer of rules, if they say anything.
    pub fn with(mut self, source: Source, rules: Rules) -> Self {
        if !rules.is_empty() {
            self.layers.push(Layer { source, rules });
        }
        self
    }
}

/// A call, as far as a policy is concerned.
#[derive(Clone, Debug, PartialEq)]
pub struct Act<'a> {
    /// The tool.
    pub tool: &'a str,
    /// What the tool does to the world.
    pub world: World,
    /// What this call really does.
    pub deed: Deed,
}

/// What a call really does.
#[derive(Clone, Debug, PartialEq)]
pub enum Deed {
    /// Runs a shell command.
    Command {
        /// The command.
        command: String,
        /// The folder it runs in, from the workspace root.
        cwd: String,
    },
    /// Reads or changes files of the workspace.
    Files {
        /// Which, from the workspace root.
        paths: Vec<String>,
    },
    /// Uses git.
    Git {
        /// For what.
        operation: Operation,
        /// The files that it puts on record, from the workspace root.
        paths: Vec<String>,
    },
    /// Calls a tool of a server, of which only the server knows what it does.
    Remote {
        /// The server, by the name it was given here.
        server: String,
        /// The tool, by the name the server gave it.
        tool: String,
        /// The digest of what was approved of both.
        definition: String,
    },
    /// What its tool says it does, and no more is known.
    Other,
}

impl Deed {
    /// What a tool does whose argument `path` names a file.
    pub(crate) fn path(input: &serde_json::Value) -> Self {
        let path = input["path"].as_str().map(str::to_owned);
        Self::Files {
            paths: path.into_iter().collect(),
        }
    }
}

/// Decides about a call.
pub fn judge(policy: &Policy, site: &Site, act: &Act<'_>) -> Verdict {
    judge_with_scripts(policy, site, act).0
}

/// The same, with the files of the workspace that the call would run.
pub(crate) fn judge_with_scripts(
    policy: &Policy,
    site: &Site,
    act: &Act<'_>,
) -> (Verdict, Vec<PathBuf>) {
    if let Some(objection) = policy.role.objection(act.world) {
        return (Verdict::of(vec![objection], Vec::new()), Vec::new());
    }
    let mut findings = by_rules(policy, &["@tool", act.tool]);
    let is_allowed = !findings.is_empty() && findings.iter().all(|f| f.decision == Decision::Allow);
    let (mut parts, mut scripts) = (Vec::new(), Vec::new());
    match &act.deed {
        Deed::Command { command, cwd } => {
            let judged = command::judge(policy, site, command, Path::new(cwd));
            findings.extend(judged.findings);
            (parts, scripts) = (judged.parts, judged.scripts);
        }
        Deed::Git { operation, paths } => {
            let mut finding = git::judge(&policy.crafts, *operation);
            // Whoever is asked, or reads it later, is told what runs because of it.
            let listed = risks(paths.iter().map(String::as_str));
            if let Some(summary) = risk::summary(&listed) {
                finding.reason = format!("{}; {summary}", finding.reason);
            }
            findings.push(finding);
        }
        Deed::Files { paths } => {
            for path in paths {
                findings.extend(by_files(policy, site, act.world, path));
            }
        }
        Deed::Remote { server, tool, .. } => {
            findings.extend(by_server(policy, server, tool, is_allowed));
        }
        Deed::Other if act.world == World::Runs && !is_allowed => {
            let reason = format!("nothing is known of what `{}` does", act.tool);
            findings.push(Finding::ask("@tool", reason));
        }
        Deed::Other => {}
    }
    if findings.is_empty() {
        findings.push(Finding::allow(act.tool, "nothing speaks against it"));
    }
    (Verdict::of(findings, parts), scripts)
}

fn by_files(policy: &Policy, site: &Site, world: World, path: &str) -> Vec<Finding> {
    let verb = match world {
        World::Reads => "@read",
        _ => "@write",
    };
    // A rule speaks of the place, however it is written.
    let place = match site.place(Path::new(""), path) {
        site::Place::Inside(place) => place,
        // The tool itself refuses what leads outside.
        _ => PathBuf::from(path),
    };
    let shown = place.to_string_lossy();
    let mut findings = by_rules(policy, &[verb, &shown]);
    let is_allowed = !findings.is_empty() && findings.iter().all(|f| f.decision == Decision::Allow);
    if world != World::Reads {
        let guarded = arguments::guarded(&place);
        findings.extend(guarded.filter(|f| !is_allowed || f.decision == Decision::Deny));
    }
    findings
}

/// A server does what it wants with a call, so it is asked about unless a rule says
/// otherwise.
fn by_server(policy: &Policy, server: &str, tool: &str, is_allowed: bool) -> Vec<Finding> {
    let mut findings = by_rules(policy, &["@mcp", &format!("{server}/{tool}")]);
    let is_said = findings.iter().any(|f| f.decision == Decision::Allow);
    if !is_allowed && !is_said {
        let reason = format!("only the server `{server}` knows what its tool `{tool}` does");
        findings.push(Finding::ask("@mcp", reason));
    }
    findings
}

fn by_rules(policy: &Policy, words: &[&str]) -> Vec<Finding> {
    let decided = |layer: &Layer| {
        let (decision, pattern) = layer.rules.decide(words)?;
        let says = pattern.as_str();
        let reason = format!("a rule says {decision} to `{says}`");
        Some(Finding::new(decision, layer.source, says, reason))
    };
    policy.layers.iter().filter_map(decided).collect()
}

#[cfg(test)]
mod tests;
