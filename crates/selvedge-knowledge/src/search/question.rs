//! A question, as each of the lists wants to hear it.

use crate::words::{identifiers, is_empty, is_identifier_like, telling};

/// The parts of a question.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Question {
    /// Words that tell texts apart.
    pub words: Vec<String>,
    /// Identifiers, whole.
    pub identifiers: Vec<String>,
    /// What it names and hardly says anything else of: `Parser.parse` or `retry_after`.
    pub names: Vec<String>,
    /// What it means, apart from whom it names.
    pub embedded: String,
}

/// Names of people and places are left out of what is embedded only if this many other
/// words remain.
const WORDS_MIN: usize = 2;
/// A question with more words than this beside the names is about something else than
/// their definitions: "turns a `Value` into a request that can be sent".
const BESIDE_NAMES_MAX: usize = 1;

impl Question {
    /// Takes a question apart. `is_called` tells whether anything in the index is called
    /// by a word.
    pub fn of(text: &str, is_called: impl Fn(&str) -> bool) -> Self {
        let text = text.trim();
        let mut names = Vec::new();
        // One word alone is taken for a name, as is what only an identifier looks like.
        let is_alone = !text.contains(char::is_whitespace);
        for word in text.split_whitespace() {
            let word = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '_');
            let is_qualified = word.contains("::")
                || word.contains('.')
                    && !word.ends_with('.')
                    && !word.starts_with(char::is_numeric)
                || word.contains('#');
            let is_name = identifiers(word).next().is_some()
                && (is_alone || is_qualified || is_identifier_like(word));
            if is_name && !names.iter().any(|name| name == word) {
                names.push(word.to_owned());
            }
        }
        let words = telling(text);
        let named = telling(&names.join(" "));
        if words.iter().filter(|word| !named.contains(word)).count() > BESIDE_NAMES_MAX {
            names.clear();
        }
        let mut whole: Vec<String> = identifiers(text)
            .filter(|word| is_alone || is_identifier_like(word))
            .map(str::to_lowercase)
            .collect();
        whole.sort();
        whole.dedup();
        Self {
            words,
            identifiers: whole,
            names,
            embedded: without_people(text, is_called),
        }
    }
}

/// The question without the names of people and places. They are found by their letters;
/// in a vector they would drown everything else that is asked. A capital letter is also
/// what types have, so a word that something in the index is called by stays.
fn without_people(text: &str, is_called: impl Fn(&str) -> bool) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_name = |(at, word): &(usize, &&str)| {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        let bare = bare.split('\'').next().unwrap_or_default();
        let mut chars = bare.chars();
        let is_capital = chars.next().is_some_and(char::is_uppercase);
        let is_lower_after = bare.chars().count() > 1 && chars.all(char::is_lowercase);
        *at > 0 && is_capital && is_lower_after && !word.contains('`') && !is_called(bare)
    };
    let (named, kept): (Vec<_>, Vec<_>) = words.iter().enumerate().partition(is_name);
    let rest: Vec<&str> = kept.into_iter().map(|(_, word)| *word).collect();
    let rest = rest.join(" ");
    match named.is_empty() || said(&rest) < WORDS_MIN {
        true => text.to_owned(),
        false => rest,
    }
}

/// How many words of a text say something.
fn said(text: &str) -> usize {
    telling(text).iter().filter(|word| !is_empty(word)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Question {
        Question::of(text, |word| word == "Value")
    }

    #[test]
    fn a_name_is_taken_whole_and_in_parts() {
        let question = of("where is retry_after used?");
        assert_eq!(question.names, ["retry_after"]);
        assert_eq!(question.words, ["retry", "after"]);
        assert_eq!(of("Parser::parse").names, ["Parser::parse"]);
        assert_eq!(of("retry").names, ["retry"]);
        assert!(of("retry the request").names.is_empty());
        let sentence = "turns a `RequestBuilder` into something that can be sent";
        assert!(of(sentence).names.is_empty());
        assert_eq!(of(sentence).identifiers, ["requestbuilder"]);
    }

    #[test]
    fn a_capital_letter_alone_makes_no_person() {
        for kept in [
            "Turns a Value into text for people",
            "Turns a `Melanie` into text for people",
        ] {
            assert_eq!(of(kept).embedded, kept);
        }
    }

    #[test]
    fn people_are_matched_by_their_letters_only() {
        let question = of("What did Melanie paint last summer?");
        assert_eq!(question.embedded, "What did paint last summer?");
        assert!(question.words.contains(&"melanie".to_owned()));
        assert_eq!(
            of("Who is Ada").embedded,
            "Who is Ada",
            "or nothing is left"
        );
    }
}
