//! Where OpenAI's own models differ from one another.

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
}
