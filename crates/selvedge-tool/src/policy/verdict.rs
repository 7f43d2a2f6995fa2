//! What was decided about a call, and by which rule.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::secrets::Wanted;

/// What happens to a call. The stricter is the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It is carried out.
    Allow,
    /// A person is asked.
    Ask,
    /// It is not carried out, and nobody is asked.
    Deny,
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        })
    }
}

/// Who made a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The table of what roles may do.
    Role,
    /// The table of what agents may do with git.
    Git,
    /// What Selvedge knows of programs and files.
    BuiltIn,
    /// The agent's own file.
    Agent,
    /// The crew's `crew.toml`.
    Crew,
    /// The project's configuration.
    Project,
    /// The user's configuration.
    User,
    /// An answer that holds for this session.
    Session,
    /// An answer that holds for this project.
    Remembered,
    /// `--approve auto` or `--approve never`.
    Mode,
    /// The bound on how often a person is asked.
    Limit,
    /// What credentials may be used for.
    Credentials,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Role => "role",
            Self::Git => "git matrix",
            Self::BuiltIn => "built in",
            Self::Agent => "agent",
            Self::Crew => "crew",
            Self::Project => "project",
            Self::User => "user",
            Self::Session => "session",
            Self::Remembered => "remembered",
            Self::Mode => "mode",
            Self::Limit => "limit",
            Self::Credentials => "credentials",
        })
    }
}

/// The rule that decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// Whose rule it is.
    pub source: Source,
    /// What it says: a pattern, a cell of a table, the name of a check.
    pub says: String,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.source, self.says)
    }
}

/// A decision, the rule that made it, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What happens.
    pub decision: Decision,
    /// By which rule.
    pub rule: Rule,
    /// Why, in words that follow "because".
    pub reason: String,
}

impl Finding {
    pub(super) fn new(
        decision: Decision,
        source: Source,
        says: impl Into<String>,
        reason: impl Into<String>,
    ) -> Self {
        let says = says.into();
        Self {
            decision,
            rule: Rule { source, says },
            reason: reason.into(),
        }
    }

    pub(super) fn ask(says: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::new(Decision::Ask, Source::BuiltIn, says, reason)
    }

    pub(super) fn deny(says: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::new(Decision::Deny, Source::BuiltIn, says, reason)
    }

    pub(super) fn allow(says: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::new(Decision::Allow, Source::BuiltIn, says, reason)
    }
}

/// What was decided about a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// The decision about the whole: the strictest of its parts.
    #[serde(flatten)]
    pub finding: Finding,
    /// The parts of a command, where there is more than one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// What an approval of exactly this is bound to.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// What an answer that holds for longer is remembered by.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub lasting: String,
}

/// What was decided about a part of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The part, as it is written.
    pub text: String,
    /// The decision.
    #[serde(flatten)]
    pub finding: Finding,
}

impl Verdict {
    /// The strictest of `findings`, of which there is at least one; of equals the
    /// first.
    pub(super) fn of(findings: Vec<Finding>, parts: Vec<Part>) -> Self {
        let strictest = findings.into_iter().reduce(|strictest, next| {
            match next.decision > strictest.decision {
                true => next,
                false => strictest,
            }
        });
        Self {
            finding: strictest.expect("something was found, if only that nothing speaks against"),
            parts,
            digest: String::new(),
            lasting: String::new(),
        }
    }

    /// That nothing was found to judge.
    pub fn of_nothing(why: &str) -> Self {
        Self::of(vec![Finding::allow("nothing", why)], Vec::new())
    }

    /// The decision.
    pub fn decision(&self) -> Decision {
        self.finding.decision
    }

    /// The same act, decided otherwise by somebody who may.
    pub fn overruled(mut self, decision: Decision, source: Source, says: &str) -> Self {
        self.finding.decision = decision;
        self.finding.rule = Rule {
            source,
            says: says.to_owned(),
        };
        self
    }

    /// The same act, which would use somebody's credentials for the first time: they
    /// are asked, unless it is forbidden anyway.
    pub(crate) fn with_consent(mut self, wanted: &Wanted) -> Self {
        let Wanted {
            agent,
            tool,
            provider,
            ..
        } = wanted;
        let reason = format!(
            "`{tool}` would use your credentials of `{provider}`, for the first time by `{agent}`"
        );
        match self.finding.decision {
            Decision::Allow => {
                let says = format!("first use of {provider}");
                self.finding = Finding::new(Decision::Ask, Source::Credentials, says, reason);
            }
            Decision::Ask => self.finding.reason = format!("{}; {reason}", self.finding.reason),
            Decision::Deny => {}
        }
        self
    }

    /// What a model is told of a denial.
    pub fn refusal(&self) -> String {
        let Finding { rule, reason, .. } = &self.finding;
        format!(
            "Not done: {reason} (policy, {rule}). Do not try the same again; find another way, \
             or say what you need."
        )
    }
}
