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

// Where agents and displays listen is dropped too: nobody is to speak to them.
const DROPPED: [&str; 17] = [
    "BASH_ENV",
    "DBUS_SESSION_BUS_ADDRESS",
    "DBUS_SYSTEM_BUS_ADDRESS",
    "DISPLAY",
    "DOCKER_HOST",
    "ENV",
    "GPG_AGENT_INFO",
    "LD_AUDIT",
    "LD_PRELOAD",
    "PROMPT_COMMAND",
    "PWD",
    "SSH_AGENT_PID",
    "SSH_AUTH_SOCK",
    "SSH_CONNECTION",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
];

const DROPPED_PREFIXES: [&str; 4] = ["SELVEDGE_", "BASH_FUNC_", "AWS_", "AZURE_"];

// Which program runs, and what it loads, is not for a caller to say.
const STEERING: [&str; 17] = [
    "BROWSER",
    "EDITOR",
    "GIT_ASKPASS",
    "GIT_EDITOR",
    "GIT_EXEC_PATH",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "HOME",
    "IFS",
    "MANPAGER",
    "PAGER",
    "PATH",
    "SHELL",
    "TMPDIR",
    "VISUAL",
];

// A command has no terminal: nothing should page, colour or prompt.
// And git does not have to write when it is asked to read.
const SET: [(&str, &str); 5] = [
    ("TERM", "dumb"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
];

/// The environment for a command of the user's.
pub(crate) fn environment() -> Vec<(OsString, OsString)> {
    filtered(std::env::vars_os())
}

/// The environment for git, when it is the runtime that calls it.
pub(crate) fn git_environment() -> Vec<(OsString, OsString)> {
    let mut variables = environment();
    variables.retain(|(name, _)| is_fit_for_git(&name.to_string_lossy()));
    variables
}

/// Whether a caller may set a variable: one that neither holds a secret nor makes a
/// program run or load something else.
pub(crate) fn is_fit_for_commands(name: &str) -> bool {
    let is_name = |name: &str| {
        let mut bytes = name.bytes();
        bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
    };
    is_name(name) && passes(name) && !STEERING.contains(&name) && !is_loader(name)
}

/// The variables for a command, out of those given.
fn filtered(
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
fn is_fit_for_git(name: &str) -> bool {
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

fn is_loader(name: &str) -> bool {
    ["LD_", "DYLD_", "GIT_CONFIG"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

/// Whether a variable holds a secret, by its name.
pub fn names_a_secret(name: &str) -> bool {
    let upper = name.to_uppercase();
    SECRET_WORDS.iter().any(|word| upper.contains(word))
}

fn passes(name: &str) -> bool {
    let upper = name.to_uppercase();
    !names_a_secret(name)
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
            "AWS_REGION",
            "SSH_AUTH_SOCK",
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

    #[test]
    fn a_caller_sets_what_informs_and_not_what_steers() {
        for name in ["RUST_LOG", "CI", "NODE_ENV", "_x1"] {
            assert!(is_fit_for_commands(name), "{name}");
        }
        for name in [
            "ANTHROPIC_API_KEY",
            "AWS_REGION",
            "PATH",
            "LD_LIBRARY_PATH",
            "GIT_SSH_COMMAND",
            "GIT_CONFIG_COUNT",
            "BASH_ENV",
            "A B",
            "A=B",
            "",
        ] {
            assert!(!is_fit_for_commands(name), "{name}");
        }
    }
}
