//! What an agent wrote is checked before it becomes history.
//!
//! What fails is stored all the same, marked and demoted, so that it never comes back as
//! evidence. Verified means that at least one statement was found to hold; a text that
//! states nothing that can be checked is neither verified nor marked as doubtful. Only
//! facts are checked: that named files and symbols exist. The mark is a column, so that
//! it is not found as a word of the text.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;
use serde::Serialize;

use crate::kind::Verification;

/// What a statement says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimKind {
    /// "we use X for Y"
    Uses,
    /// "X implements Y"
    Implements,
    /// "the X is in Y"
    Location,
}

/// A statement that can be checked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Claim {
    /// What it says.
    pub kind: ClaimKind,
    /// X.
    pub subject: String,
    /// Y.
    pub object: String,
}

/// What the world answers to a check.
pub trait Evidence {
    /// The id of the node that is or mentions this, if there is one in code.
    fn supports(&self, subject: &str) -> Option<String>;

    /// Whether a file exists.
    fn has_file(&self, path: &str) -> bool;

    /// What history has said for the same purpose: the id, and what it named instead.
    fn said_before(&self, claim: &Claim) -> Vec<(String, String)>;
}

/// What the check found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// Whether something was checked, and all of it held.
    pub verified: bool,
    /// Whether something did not hold.
    pub refuted: bool,
    /// Against what.
    pub verification: Verification,
    /// From 0 to 1.
    pub confidence: f64,
    /// What did not hold.
    pub warnings: Vec<String>,
    /// What history said otherwise.
    pub contradictions: Vec<String>,
    /// The nodes that support it.
    pub evidence: Vec<String>,
}

/// The check itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Firewall;

/// What is left of the confidence after a claim, a file or a contradiction.
const UNSUPPORTED: f64 = 0.5;
const MISSING_FILE: f64 = 0.8;
const CONTRADICTED: f64 = 0.7;
/// Below this, nothing counts as checked against code.
const CONFIDENT: f64 = 0.8;

impl Firewall {
    /// Checks a text, and the symbols that it is said to be about.
    pub fn check(self, text: &str, symbols: &[String], world: &dyn Evidence) -> Verdict {
        let mut verdict = Verdict {
            verified: false,
            refuted: false,
            verification: Verification::Unchecked,
            confidence: 1.0,
            warnings: Vec::new(),
            contradictions: Vec::new(),
            evidence: Vec::new(),
        };
        let mut held = 0;
        for claim in claims(text) {
            match world.supports(&claim.subject) {
                Some(node) => {
                    held += 1;
                    verdict.evidence.push(node);
                }
                None => {
                    verdict.doubt(
                        UNSUPPORTED,
                        format!("nothing in the code is `{}`", claim.subject),
                    );
                }
            }
            for (node, other) in world.said_before(&claim) {
                let said = format!(
                    "`{node}` says `{other}` where this says `{}` for {}",
                    claim.subject, claim.object
                );
                verdict.contradictions.push(said);
            }
        }
        for path in paths_in(text) {
            match world.has_file(&path) {
                true => held += 1,
                false => verdict.doubt(MISSING_FILE, format!("there is no file `{path}`")),
            }
        }
        for symbol in symbols {
            match world.supports(symbol) {
                Some(node) => {
                    held += 1;
                    verdict.evidence.push(node);
                }
                None => verdict.doubt(UNSUPPORTED, format!("there is no symbol `{symbol}`")),
            }
        }
        if !verdict.contradictions.is_empty() {
            verdict.confidence *= CONTRADICTED;
        }
        verdict.evidence.sort();
        verdict.evidence.dedup();
        verdict.verified = held > 0 && !verdict.refuted && verdict.contradictions.is_empty();
        if verdict.verified && verdict.confidence >= CONFIDENT {
            verdict.verification = Verification::AgainstCode;
        }
        verdict
    }
}

impl Verdict {
    fn doubt(&mut self, factor: f64, warning: String) {
        self.refuted = true;
        self.confidence *= factor;
        self.warnings.push(warning);
    }
}

static USES: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)\bwe use `?([\w./:-]+)`? for ([\w ./-]{2,60})").expect("it is right")
});
static IMPLEMENTS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)`?\b([\w:]+)`? implements (?:the )?`?([\w:]+)`?").expect("it is right")
});
static LOCATION: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)\bthe `?([\w:]+)`?(?: \w+)? is (?:in|at|located in|defined in) `?([\w./-]+)`?")
        .expect("it is right")
});
static PATH: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?:^|[\s`(\[])((?:[\w.-]+/)+[\w.-]+\.[A-Za-z]\w{0,5})(?::\d+)?\b")
        .expect("it is right")
});

/// The statements of a text that can be checked.
pub fn claims(text: &str) -> Vec<Claim> {
    let mut found = BTreeSet::new();
    for (kind, pattern) in [
        (ClaimKind::Uses, &USES),
        (ClaimKind::Implements, &IMPLEMENTS),
        (ClaimKind::Location, &LOCATION),
    ] {
        for captures in pattern.captures_iter(text) {
            let part = |at: usize| captures[at].trim().trim_end_matches('.').to_owned();
            found.insert(Claim {
                kind,
                subject: part(1),
                object: part(2).to_lowercase(),
            });
        }
    }
    found.into_iter().collect()
}

/// The files that a text names.
pub fn paths_in(text: &str) -> Vec<String> {
    let found: BTreeSet<String> = PATH
        .captures_iter(text)
        .map(|captures| captures[1].to_owned())
        .filter(|path| !path.contains("//"))
        .collect();
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct World {
        symbols: &'static [&'static str],
        files: &'static [&'static str],
        said: Vec<(String, String)>,
    }

    impl Evidence for World {
        fn supports(&self, subject: &str) -> Option<String> {
            self.symbols
                .contains(&subject)
                .then(|| format!("code:{subject}"))
        }

        fn has_file(&self, path: &str) -> bool {
            self.files.contains(&path)
        }

        fn said_before(&self, claim: &Claim) -> Vec<(String, String)> {
            let other = |(_, said): &&(String, String)| *said != claim.subject;
            self.said.iter().filter(other).cloned().collect()
        }
    }

    fn check(text: &str) -> Verdict {
        let world = World {
            symbols: &["Redis", "RetryPolicy"],
            files: &["src/retry.rs"],
            said: Vec::new(),
        };
        Firewall.check(text, &[], &world)
    }

    #[test]
    fn a_statement_that_holds_is_verified_against_code() {
        let verdict = check("We use Redis for caching. The RetryPolicy is in src/retry.rs.");
        assert!(verdict.verified, "{:?}", verdict.warnings);
        assert_eq!(verdict.verification, Verification::AgainstCode);
        assert_eq!(verdict.evidence, ["code:Redis", "code:RetryPolicy"]);
    }

    #[test]
    fn a_symbol_or_file_that_does_not_exist_is_told() {
        let verdict = check("We use Memcached for caching; see src/cache.rs.");
        assert!(verdict.refuted && !verdict.verified);
        assert_eq!(
            verdict.warnings,
            [
                "nothing in the code is `Memcached`",
                "there is no file `src/cache.rs`"
            ]
        );
        assert!((verdict.confidence - 0.4).abs() < 1e-9);
    }

    #[test]
    fn a_text_without_a_checkable_statement_is_neither_verified_nor_refuted() {
        let verdict = check("It went well and everybody was happy.");
        assert!(!verdict.verified && !verdict.refuted);
        assert_eq!(verdict.verification, Verification::Unchecked);
    }

    #[test]
    fn another_tool_for_the_same_purpose_is_a_contradiction() {
        let world = World {
            symbols: &["Redis"],
            files: &[],
            said: vec![("history:1".into(), "Memcached".into())],
        };
        let verdict = Firewall.check("we use Redis for caching", &[], &world);
        assert!(!verdict.verified);
        assert_eq!(verdict.contradictions.len(), 1);
        assert!((verdict.confidence - 0.7).abs() < 1e-9);
    }
}
