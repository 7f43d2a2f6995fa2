//! What a command sees of Selvedge's environment: not its secrets, and nothing that
//! makes a shell or a loader run something first.

use std::ffi::OsString;

const SECRET_WORDS: [&str; 7] = [
    "KEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
];

const DROPPED: [&str; 6] = [
    "BASH_ENV",
    "ENV",
    "LD_PRELOAD",
    "LD_AUDIT",
    "PROMPT_COMMAND",
    "PWD",
];

const DROPPED_PREFIXES: [&str; 2] = ["SELVEDGE_", "BASH_FUNC_"];

// A command has no terminal: nothing should page, colour or prompt.
const SET: [(&str, &str); 4] = [
    ("TERM", "dumb"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
];

/// The variables for a command, out of those given.
pub(super) fn filtered(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let mut kept: Vec<_> = variables
        .into_iter()
        .filter(|(name, _)| passes(&name.to_string_lossy()))
        .filter(|(name, _)| SET.iter().all(|(set, _)| name != set))
        .collect();
    kept.extend(SET.map(|(name, value)| (name.into(), value.into())));
    kept
}

/// Whether git may see a variable. The others point it to programs and places.
pub(super) fn is_fit_for_git(name: &str) -> bool {
    let identity = [
        "GIT_AUTHOR_NAME",
        "GIT_AUTHOR_EMAIL",
        "GIT_AUTHOR_DATE",
        "GIT_COMMITTER_NAME",
        "GIT_COMMITTER_EMAIL",
        "GIT_COMMITTER_DATE",
        "GIT_TERMINAL_PROMPT",
    ];
    !name.starts_with("GIT_") || identity.contains(&name)
}

fn passes(name: &str) -> bool {
    let upper = name.to_uppercase();
    !SECRET_WORDS.iter().any(|word| upper.contains(word))
        && !DROPPED.contains(&upper.as_str())
        && !DROPPED_PREFIXES
            .iter()
            .any(|prefix| upper.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_and_hooks_do_not_reach_a_command() {
        let given = [
            "PATH",
            "HOME",
            "OPENAI_API_KEY",
            "github_token",
            "AWS_SECRET_ACCESS_KEY",
            "PGPASSWORD",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "SELVEDGE_HOME",
            "BASH_ENV",
            "LD_PRELOAD",
            "PROMPT_COMMAND",
            "BASH_FUNC_ls%%",
            "LANG",
        ];
        let given = given.map(|name| (OsString::from(name), OsString::from("x")));
        let names: Vec<_> = filtered(given)
            .into_iter()
            .filter(|(_, value)| value == "x")
            .map(|(name, _)| name.into_string().unwrap())
            .collect();
        assert_eq!(names, ["PATH", "HOME", "LANG"]);
    }
}
