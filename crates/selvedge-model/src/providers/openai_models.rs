//! Where OpenAI's own models differ from one another.

use crate::types::Effort;

/// Whether OpenAI has the model always reason, which fixes its temperature.
pub(super) fn always_reasons(model: &str) -> bool {
    let o_series = model.starts_with('o') && model[1..].starts_with(|c: char| c.is_ascii_digit());
    o_series || version(model).is_some_and(|version| version >= (5, 0))
}

/// Whether OpenAI lets the model have tools over Chat Completions only if it
/// does not reason.
pub(super) fn reasons_without_tools(model: &str) -> bool {
    version(model).is_some_and(|version| version >= (5, 4))
}

/// Whether the model is of the time before reasoning: it refuses to be asked
/// for its sealed reasoning.
pub(super) fn never_reasons(model: &str) -> bool {
    let old = ["gpt-3", "gpt-4", "chatgpt-4"];
    old.iter().any(|prefix| model.starts_with(prefix))
}

/// How long one of OpenAI's own models is to think, in a word that it knows; nothing for
/// one that does not think.
pub(super) fn effort(model: &str, effort: Effort) -> Option<&'static str> {
    let always = always_reasons(model).then(|| version(model));
    match (effort, always) {
        _ if never_reasons(model) => None,
        // Before 5.1 none of them could leave it.
        (Effort::None, Some(None)) => Some("low"),
        (Effort::None, Some(Some((5, 0)))) => Some("minimal"),
        (effort, _) => Some(effort.name()),
    }
}

/// The 5 and the 4 of `gpt-5.4-mini`.
fn version(model: &str) -> Option<(u32, u32)> {
    let number = model.strip_prefix("gpt-")?.split('-').next()?;
    let (major, minor) = number.split_once('.').unwrap_or((number, "0"));
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_models_that_differ_are_told_by_their_version() {
        assert!(
            !always_reasons("gpt-4.1-mini")
                && always_reasons("gpt-5-mini")
                && always_reasons("o4-mini")
        );
        assert!(!always_reasons("gpt-oss:20b") && !always_reasons("olmo-3"));
        assert!(!reasons_without_tools("gpt-5.2") && reasons_without_tools("gpt-5.6-sol"));
        assert!(reasons_without_tools("gpt-6-luna") && !reasons_without_tools("gpt-4o"));
        assert!(never_reasons("gpt-4.1") && never_reasons("gpt-4o-mini"));
        assert!(!never_reasons("gpt-6-luna") && !never_reasons("o3") && !never_reasons("qwen3"));
    }

    #[test]
    fn a_model_is_told_how_long_to_think_in_its_own_words() {
        assert_eq!(effort("gpt-4.1-mini", Effort::High), None);
        assert_eq!(effort("o4-mini", Effort::None), Some("low"));
        assert_eq!(effort("gpt-5-mini", Effort::None), Some("minimal"));
        assert_eq!(effort("gpt-5.4", Effort::None), Some("none"));
        assert_eq!(effort("gpt-6-luna", Effort::High), Some("high"));
        assert_eq!(effort("qwen3", Effort::None), Some("none"));
    }
}
