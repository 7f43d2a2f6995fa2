//! How words are found: whole words in any of their forms, and by what they stand for.

use std::collections::BTreeMap;

use super::entry::Entry;

/// Words and what they stand for.
pub type Vocabulary = BTreeMap<String, String>;

/// Endings that a word may have and still be the word.
const ENDINGS: [&str; 8] = ["", "s", "es", "ed", "d", "ing", "er", "'s"];

/// Words that say nothing of what is asked about.
const FILLERS: [&str; 84] = [
    "a",
    "about",
    "am",
    "an",
    "and",
    "any",
    "are",
    "as",
    "at",
    "be",
    "been",
    "but",
    "by",
    "can",
    "compare",
    "could",
    "did",
    "do",
    "does",
    "during",
    "ever",
    "feel",
    "felt",
    "for",
    "from",
    "get",
    "give",
    "had",
    "has",
    "have",
    "how",
    "how's",
    "i",
    "i'm",
    "if",
    "in",
    "is",
    "it",
    "last",
    "like",
    "list",
    "many",
    "me",
    "month",
    "more",
    "most",
    "much",
    "my",
    "of",
    "often",
    "on",
    "or",
    "past",
    "should",
    "show",
    "since",
    "so",
    "some",
    "tell",
    "than",
    "that",
    "the",
    "their",
    "there",
    "this",
    "to",
    "today",
    "was",
    "week",
    "were",
    "what",
    "what's",
    "when",
    "where",
    "which",
    "who",
    "why",
    "will",
    "with",
    "would",
    "year",
    "yesterday",
    "you",
    "your",
];

/// The words of a question that are worth looking for.
pub fn keywords(question: &str) -> Vec<String> {
    let is_inside = |c: char| c.is_alphanumeric() || c == '\'' || c == '-';
    let words = question
        .split(|c: char| !is_inside(c))
        .map(str::to_lowercase);
    let mut kept: Vec<String> = Vec::new();
    for word in words.filter(|word| word.chars().count() > 1) {
        if !FILLERS.contains(&word.as_str()) && !kept.contains(&word) {
            kept.push(word);
        }
    }
    kept
}

/// A word with everything that stands for the same, in both directions.
pub(crate) fn expanded(word: &str, vocabulary: &Vocabulary) -> Vec<String> {
    let word = word.trim().to_lowercase();
    let meaning = vocabulary
        .iter()
        .find(|(short, _)| short.to_lowercase() == word);
    let meaning = meaning.map_or(word.clone(), |(_, long)| long.to_lowercase());
    let same = vocabulary
        .iter()
        .filter(|(_, long)| long.to_lowercase() == meaning);
    let mut forms = vec![word, meaning.clone()];
    forms.extend(same.map(|(short, _)| short.to_lowercase()));
    forms.retain(|form| !form.is_empty());
    forms.sort();
    forms.dedup();
    forms
}

/// Finds words, each given with everything that stands for the same.
pub(super) struct Finder<'a> {
    words: &'a [Vec<String>],
    match_all: bool,
}

impl<'a> Finder<'a> {
    pub(super) fn new(words: &'a [Vec<String>], match_all: bool) -> Self {
        Self { words, match_all }
    }

    /// Whether a file may have an entry with them: the files that do not are not parsed.
    pub(super) fn may_be_in(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        self.holds(|form| text.contains(form))
    }

    /// Whether an entry has them.
    pub(super) fn is_in(&self, entry: &Entry) -> bool {
        let text = entry.text.to_lowercase();
        self.holds(|form| is_word_in(&text, form))
    }

    fn holds(&self, has: impl Fn(&str) -> bool) -> bool {
        let has_one = |forms: &Vec<String>| forms.iter().any(|form| has(form));
        match self.match_all {
            _ if self.words.is_empty() => true,
            true => self.words.iter().all(has_one),
            false => self.words.iter().any(has_one),
        }
    }
}

/// Whether a word stands in a text, both in lower case. Scripts that put no spaces
/// between words are searched as they are.
fn is_word_in(text: &str, word: &str) -> bool {
    if !word.is_ascii() {
        return text.contains(word);
    }
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        // `185lb` has the word `lb`.
        let begins = before.is_none_or(|c| !c.is_alphabetic());
        let rest = &text[at + word.len()..];
        let end = rest
            .find(|c: char| !c.is_alphanumeric() && c != '\'')
            .unwrap_or(rest.len());
        let ending = &rest[..end];
        let doubled = word
            .chars()
            .next_back()
            .and_then(|last| ending.strip_prefix(last));
        let is_form = |ending: &str| {
            ENDINGS.contains(&ending) || ending.starts_with(|c: char| c.is_ascii_digit())
        };
        begins && (is_form(ending) || doubled.is_some_and(|e| !e.is_empty() && is_form(e)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_word_is_not_found_inside_of_others() {
        assert!(is_word_in("new pr today", "pr"));
        assert!(!is_word_in("bench press with protein", "pr"));
        assert!(is_word_in("two runs, running late", "run"));
        assert!(is_word_in("planned to bench, benched", "bench"));
        assert!(is_word_in("100lb squat", "lb"));
        assert!(!is_word_in("the runt", "run"));
    }

    #[test]
    fn vocabulary_works_in_both_directions() {
        let vocabulary = Vocabulary::from([
            ("pr".to_owned(), "personal record".to_owned()),
            ("pb".to_owned(), "personal record".to_owned()),
        ]);
        for word in ["pr", "personal record", "PB"] {
            assert_eq!(
                expanded(word, &vocabulary),
                ["pb", "personal record", "pr"],
                "{word}"
            );
        }
        assert_eq!(expanded("bench", &vocabulary), ["bench"]);
    }

    #[test]
    fn a_question_is_reduced_to_what_it_is_about() {
        assert_eq!(
            keywords("Why did my bench feel heavy last week?"),
            ["bench", "heavy"]
        );
        assert_eq!(
            keywords("How's my swimming progress?"),
            ["swimming", "progress"]
        );
    }
}
