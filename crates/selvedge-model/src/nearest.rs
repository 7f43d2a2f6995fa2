//! The names somebody may have meant.

/// Below this likeness a suggestion confuses more than it helps.
const LIKENESS_MIN: f64 = 0.72;
const SUGGESTIONS_MAX: usize = 3;

/// Up to three of `names` that are like `wanted`, the likest first.
pub(crate) fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = wanted.to_lowercase();
    let mut scored: Vec<(f64, &str)> = names
        .into_iter()
        .map(|name| (likeness(&wanted, &name.to_lowercase()), name))
        .filter(|(score, _)| *score >= LIKENESS_MIN)
        .collect();
    scored.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    scored.dedup_by(|(_, a), (_, b)| a == b);
    scored.truncate(SUGGESTIONS_MAX);
    scored.into_iter().map(|(_, name)| name).collect()
}

/// "; did you mean `a` or `b`?", or nothing.
pub(crate) fn did_you_mean<S: AsRef<str>>(names: &[S]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let quoted: Vec<String> = names
        .iter()
        .map(|name| format!("`{}`", name.as_ref()))
        .collect();
    format!("; did you mean {}?", quoted.join(" or "))
}

fn likeness(a: &str, b: &str) -> f64 {
    // A part of a long name is a good guess at it, although few letters agree.
    let part = a.len() >= 3 && b.contains(a);
    strsim::jaro_winkler(a, b).max(if part { 0.9 } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_likest_name_comes_first_and_strangers_are_left_out() {
        let names = [
            "claude-sonnet-5-5",
            "claude-haiku-5-5",
            "gpt-6-sol",
            "sonnet",
        ];
        assert_eq!(nearest("sonet", names), ["sonnet"]);
        assert_eq!(nearest("haiku", names), ["claude-haiku-5-5"]);
        assert!(nearest("zzz", names).is_empty());
        assert_eq!(did_you_mean(&["a", "b"]), "; did you mean `a` or `b`?");
    }
}
