//! Tells from what a command printed that the fence held.
//!
//! A command may go on after something was denied it (`… || true`) and end well. Its
//! exit code says nothing then; what it printed usually does. Whoever reads the result
//! is told what the fence lets pass, instead of trying the same in other ways.

/// What the fence probably refused, in words for whoever reads the result.
pub(crate) fn refusals(text: &str) -> Vec<&'static str> {
    let is_said = |signs: &[&str]| signs.iter().any(|sign| text.contains(sign));
    SIGNS
        .iter()
        .filter(|(signs, _)| is_said(signs))
        .map(|(_, words)| *words)
        .collect()
}

const SIGNS: [(&[&str], &str); 3] = [
    (
        &[
            "Read-only file system",
            "EROFS",
            "read-only file system",
            "os error 30",
        ],
        "commands write only to the workspace (without `.git` and `.selvedge`), `/tmp` and a \
         private home",
    ),
    (
        &[
            "Network is unreachable",
            "ENETUNREACH",
            "Could not resolve host",
            "Temporary failure in name resolution",
            "EAI_AGAIN",
            "ENOTFOUND",
            "not among the hosts that commands may reach",
        ],
        "commands have no network, or only the hosts that were allowed",
    ),
    (
        &["Operation not permitted", "EPERM"],
        "commands cannot change the system, look into other processes or make namespaces",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denial_is_seen_though_the_command_went_on() {
        let said = "touch: cannot touch '/etc/x': Read-only file system\ndone\n";
        assert_eq!(refusals(said).len(), 1);
        let said = "curl: (6) Could not resolve host: evil.org\n";
        assert!(refusals(said)[0].contains("no network"));
        assert_eq!(refusals("all 12 tests passed\n"), Vec::<&str>::new());
    }
}
