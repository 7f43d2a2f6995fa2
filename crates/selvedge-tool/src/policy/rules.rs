//! Rules: patterns of words that allow, ask or deny, in layers.
//!
//! `git push *` speaks of the words `git` and `push`, whatever follows. A pattern
//! that forbids or asks holds for longer commands too (`curl` means every curl); one
//! that allows holds for exactly what it says, unless it ends with `*`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::verdict::{Decision, Source};

/// What somebody allows, wants to be asked about, or forbids.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Rules {
    /// Carried out without a question, such as `npm install *`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<Pattern>,
    /// Asked about each time, such as `make deploy *`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ask: Vec<Pattern>,
    /// Refused, such as `curl` or `@write *.lock`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<Pattern>,
}

/// Rules, and whose they are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layer {
    /// Whose.
    pub source: Source,
    /// The rules.
    #[serde(flatten)]
    pub rules: Rules,
}

/// Words to compare with those of a command, `*` standing for any text.
///
/// A command's words are matched as they are, `@write PATH`, `@read PATH`,
/// `@tool NAME` and `@mcp SERVER/TOOL` match a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Pattern(String);

impl Pattern {
    /// A pattern of these words.
    pub fn new(words: impl Into<String>) -> Self {
        Self(words.into())
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it speaks of these words: of exactly them, or of their beginning if
    /// `is_prefix`.
    pub(super) fn matches(&self, words: &[&str], is_prefix: bool) -> bool {
        let mut patterns: Vec<&str> = self.0.split_whitespace().collect();
        let is_open = patterns.len() > 1 && patterns.last() == Some(&"*");
        if is_open {
            patterns.pop();
        }
        if patterns.is_empty() || words.len() < patterns.len() {
            return false;
        }
        if !is_open && !is_prefix && words.len() > patterns.len() {
            return false;
        }
        patterns.iter().zip(words).all(|(p, word)| glob(p, word))
    }
}

impl Rules {
    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        self.allow.is_empty() && self.ask.is_empty() && self.deny.is_empty()
    }

    /// What they say of these words, the strictest first, with the pattern.
    pub(super) fn decide(&self, words: &[&str]) -> Option<(Decision, &Pattern)> {
        let named = [words.first().map(|w| base(w)).unwrap_or_default()];
        let named = [&named[..], words.get(1..).unwrap_or_default()].concat();
        let lists = [
            (Decision::Deny, &self.deny, &named[..], true),
            (Decision::Ask, &self.ask, &named[..], true),
            // Only by the name as it is written: `./cargo` is not `cargo`.
            (Decision::Allow, &self.allow, words, false),
        ];
        lists
            .into_iter()
            .find_map(|(decision, patterns, words, is_prefix)| {
                let pattern = patterns.iter().find(|p| p.matches(words, is_prefix))?;
                Some((decision, pattern))
            })
    }
}

/// The name of a program without where it is.
pub(super) fn base(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Whether `pattern`, in which `*` stands for any text and `?` for a character, is
/// the whole of `text`.
pub fn glob(pattern: &str, text: &str) -> bool {
    if !pattern.contains(['*', '?']) {
        return pattern == text;
    }
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    let mut star = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(c) if *c == '?' || *c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    p = at + 1;
                    t = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, command: &str, exactly: bool, begins: bool) {
        let words: Vec<&str> = command.split(' ').collect();
        let pattern = Pattern::new(pattern);
        assert_eq!(
            pattern.matches(&words, false),
            exactly,
            "{pattern:?} {command}"
        );
        assert_eq!(
            pattern.matches(&words, true),
            begins,
            "{pattern:?} {command}"
        );
    }

    #[test]
    fn two_words_are_two_words() {
        check("git status", "git status", true, true);
        check("git status", "git status -s", false, true);
        check("git status *", "git status -s", true, true);
        check("git status *", "git status", true, true);
        check("git push", "git pull", false, false);
        check("git", "gitk", false, false);
        check("git p*", "git push", true, true);
        check("@write *.lock", "@write a/b.lock", true, true);
        check("", "ls", false, false);
        check("*", "ls", true, true);
    }

    #[test]
    fn deny_beats_ask_beats_allow_and_only_a_denial_looks_through_a_path() {
        let patterns = |words: &[&str]| words.iter().map(|w| Pattern::new(*w)).collect();
        let rules = Rules {
            allow: patterns(&["git *", "cargo test"]),
            ask: patterns(&["git fetch"]),
            deny: patterns(&["git push"]),
        };
        let decide = |words: &[&str]| rules.decide(words).map(|(decision, _)| decision);
        assert_eq!(decide(&["git", "push", "x"]), Some(Decision::Deny));
        assert_eq!(decide(&["git", "fetch"]), Some(Decision::Ask));
        assert_eq!(decide(&["git", "log", "-1"]), Some(Decision::Allow));
        assert_eq!(decide(&["/usr/bin/git", "push"]), Some(Decision::Deny));
        assert_eq!(decide(&["/tmp/git", "log"]), None);
        assert_eq!(decide(&["cargo", "test", "x"]), None);
    }

    #[test]
    fn a_star_is_any_text() {
        for (pattern, text, expected) in [
            ("a*c", "abbc", true),
            ("a*c", "ab", false),
            ("*a*b*", "xxaxxbxx", true),
            ("?b", "ab", true),
            ("?b", "b", false),
            ("", "", true),
            ("*", "", true),
        ] {
            assert_eq!(glob(pattern, text), expected, "{pattern} {text}");
        }
    }
}
