//! Which tools fit what somebody wants to do: BM25 over names and descriptions.
//!
//! A few hundred one-line texts need no index and no model. The same words always
//! give the same order, on every machine.

use std::collections::BTreeMap;

use super::Offer;

/// How soon a repeated word stops to count, and how much a long text is held back:
/// the usual values.
const SATURATION: f64 = 1.2;
const LENGTH_PART: f64 = 0.75;
/// A word of the name says more than one of the description.
const NAME_WEIGHT: usize = 3;
/// Words that say nothing about a tool.
const COMMON: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "by", "can", "do", "for", "from", "how", "i", "in", "is",
    "it", "its", "me", "my", "need", "of", "on", "or", "that", "the", "this", "to", "tool", "use",
    "want", "what", "which", "with",
];

/// Those of `offers` that have a word of `intent`, by their place in the list, the
/// best first; of equals, the first in the list.
pub(crate) fn rank(intent: &str, offers: &[Offer]) -> Vec<(usize, f64)> {
    let texts: Vec<BTreeMap<String, usize>> = offers.iter().map(words_of).collect();
    let length = |text: &BTreeMap<String, usize>| text.values().sum::<usize>() as f64;
    let mean = texts.iter().map(length).sum::<f64>() / texts.len().max(1) as f64;
    let mut wanted = words(intent);
    wanted.sort_unstable();
    wanted.dedup();
    let mut scores = vec![0.0; texts.len()];
    for word in &wanted {
        let having = texts.iter().filter(|text| text.contains_key(word)).count() as f64;
        let rarity = (1.0 + (texts.len() as f64 - having + 0.5) / (having + 0.5)).ln();
        for (score, text) in scores.iter_mut().zip(&texts) {
            let times = text.get(word).copied().unwrap_or_default() as f64;
            let held_back = 1.0 - LENGTH_PART + LENGTH_PART * length(text) / mean;
            *score += rarity * times * (SATURATION + 1.0) / (times + SATURATION * held_back);
        }
    }
    let scored = scores.into_iter().enumerate();
    let mut ranked: Vec<(usize, f64)> = scored.filter(|(_, score)| *score > 0.0).collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    ranked
}

fn words_of(offer: &Offer) -> BTreeMap<String, usize> {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for word in words(&offer.name) {
        *found.entry(word).or_default() += NAME_WEIGHT;
    }
    let bundle = offer.bundle.as_deref().unwrap_or_default();
    for word in words(&offer.description).into_iter().chain(words(bundle)) {
        *found.entry(word).or_default() += 1;
    }
    found
}

/// The words of a text, in their plain form. `readFile` and `read_file` are two.
fn words(text: &str) -> Vec<String> {
    let mut spaced = String::with_capacity(text.len());
    let mut before = ' ';
    for c in text.chars() {
        if c.is_uppercase() && before.is_lowercase() {
            spaced.push(' ');
        }
        spaced.extend(c.to_lowercase());
        before = c;
    }
    let split = spaced.split(|c: char| !c.is_alphanumeric());
    let said = split.filter(|word| !word.is_empty() && !COMMON.contains(word));
    said.map(plain).collect()
}

/// A word without the ending that only grammar gave it.
fn plain(word: &str) -> String {
    let endings: &[(&str, usize, &str)] = &[
        ("ies", 5, "y"),
        ("sses", 6, "ss"),
        ("ing", 6, ""),
        ("ed", 5, ""),
        ("es", 5, "e"),
    ];
    for (ending, length_min, instead) in endings {
        if let Some(stem) = word.strip_suffix(ending)
            && word.len() >= *length_min
        {
            return format!("{stem}{instead}").trim_end_matches('e').to_owned();
        }
    }
    let is_plural = word.len() > 3 && word.ends_with('s') && !word.ends_with("ss");
    let word = if is_plural {
        &word[..word.len() - 1]
    } else {
        word
    };
    match word.len() > 3 {
        true => word.trim_end_matches('e').to_owned(),
        false => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Toolbox;

    /// The built-in tools, best first, for an intent.
    fn ranked(intent: &str) -> Vec<String> {
        let specs = Toolbox::core().specs();
        let offers: Vec<Offer> = specs
            .into_iter()
            .map(|spec| Offer {
                name: spec.name,
                description: spec.description,
                bundle: None,
            })
            .collect();
        let ranked = rank(intent, &offers);
        ranked
            .iter()
            .map(|(at, _)| offers[*at].name.clone())
            .collect()
    }

    #[test]
    fn what_somebody_wants_to_do_finds_its_tool() {
        for (intent, expected) in [
            ("who changed this line", "git_blame"),
            ("list the newest commits by author", "git_log"),
            ("searching files for a pattern", "search_files"),
            ("which linters does this project use", "discover_tools"),
            ("make a separate working tree", "git_worktree"),
            ("ask the user a question", "ask_user"),
        ] {
            let ranked = ranked(intent);
            assert_eq!(
                ranked.first().map(String::as_str),
                Some(expected),
                "{intent}: {ranked:?}"
            );
        }
    }

    #[test]
    fn equals_stand_in_the_order_of_the_list() {
        let offer = |name: &str| Offer {
            name: name.into(),
            description: "Paints a door.".into(),
            bundle: None,
        };
        let offers = [offer("z_one"), offer("b_two")];
        let places: Vec<usize> = rank("door", &offers).iter().map(|r| r.0).collect();
        assert_eq!(places, [0, 1]);
        assert_eq!(rank("door", &[]), []);
        assert_eq!(rank("", &offers), []);
    }

    #[test]
    fn grammar_makes_no_difference() {
        for (one, other) in [
            ("files", "file"),
            ("searching", "searched"),
            ("queries", "query"),
            ("changes", "changed"),
            ("readFile", "read_files"),
        ] {
            assert_eq!(words(one), words(other));
        }
    }
}
