//! Whether a value is a secret, or only stands where one would.
//!
//! Documentation is full of keys that open nothing, and code is full of names that
//! hold secrets without being one. Taking those away would make a file unreadable
//! for nothing.

use crate::process::names_a_secret;

/// Whether the value of a service's key could be one: not an example.
pub(super) fn is_key(value: &str, _: &str) -> bool {
    !is_placeholder(value) && entropy(value) >= 2.5
}

/// As [`is_key`], and not made of words: what a person would type in its place.
pub(super) fn is_wordless(value: &str, after: &str) -> bool {
    is_key(value, after) && has_digit(value) && value.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// Anything but an example.
pub(super) fn is_word(value: &str, _: &str) -> bool {
    !is_placeholder(value)
}

/// Whether the value in the place of a password is one.
pub(super) fn is_password(value: &str, _: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    !is_placeholder(value) && !EXAMPLES.contains(&lower.as_str()) && !is_template(value)
}

/// As [`is_password`], in an address, where a port may be in the same place, and
/// which may lead to nobody.
pub(super) fn is_userinfo(value: &str, after: &str) -> bool {
    let port = value.split('/').next().unwrap_or_default();
    let is_port = port.len() < value.len() && port.bytes().all(|byte| byte.is_ascii_digit());
    let is_example = after.starts_with("@example.");
    !is_port && !is_example && is_password(value, after)
}

/// Whether a value is an example, or says that it stands for another.
pub(super) fn is_placeholder(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    PLACEHOLDERS.iter().any(|word| lower.contains(word)) || is_one_character(&lower)
}

/// Whether a value is filled in later: `$NAME`, `${name}`, `{name}`, `<name>`, `%s`.
pub(super) fn is_template(value: &str) -> bool {
    let begins = |prefix: &[&str]| prefix.iter().any(|prefix| value.starts_with(prefix));
    let is_variable = value.strip_prefix('$').is_some_and(|rest| {
        let first = rest.chars().next();
        first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_' || c == '{' || c == '(')
    });
    is_variable
        || begins(&[
            "{",
            "<",
            "%s",
            "%(",
            "#{",
            "@{",
            "[",
            "process.env",
            "os.environ",
            "env.",
        ])
        || value.contains("${")
        || value.contains("{{")
        || value.contains("$(")
        || value.contains("{}")
}

/// Whether an environment variable holds a secret that must not be shown.
pub(super) fn is_secret_variable(name: &str, value: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let also = ["PGPASS", "_PAT", "_AUTH"];
    let says_so = names_a_secret(name) || also.iter().any(|end| upper.ends_with(end));
    let says_not = [
        "_FILE",
        "_PATH",
        "_DIR",
        "_URL",
        "_ID",
        "_NAME",
        "SSH_AUTH_SOCK",
    ];
    if !says_so || says_not.iter().any(|end| upper.ends_with(end)) {
        return false;
    }
    is_valuable(value)
}

/// Whether a value may be taken for a secret wherever it occurs: long enough not to
/// be found by accident, and neither an example, a place, a number nor a word.
pub(super) fn is_valuable(value: &str) -> bool {
    value.chars().count() >= 8
        && is_password(value, "")
        && !is_place(value)
        && !is_number(value)
        && !is_plain_word(value)
        && value.split_whitespace().count() == 1
}

/// Whether a value is a path or an address.
pub(super) fn is_place(value: &str) -> bool {
    let begins = ["/", "./", "../", "~/", "C:\\"]
        .iter()
        .any(|prefix| value.starts_with(prefix));
    begins || value.contains("://")
}

/// Whether a value is a number, a date or a version.
pub(super) fn is_number(value: &str) -> bool {
    value.len() < 20
        && value
            .bytes()
            .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b':' | b'_' | b','))
}

/// One word in one case, as in a dictionary or a configuration.
pub(super) fn is_plain_word(value: &str) -> bool {
    let letters = value.trim_end_matches(|c: char| c.is_ascii_digit());
    let rest = letters.strip_prefix(|c: char| c.is_ascii_uppercase());
    let is_lower = |text: &str| {
        text.bytes()
            .all(|b| b.is_ascii_lowercase() || b == b'-' || b == b'_')
    };
    let is_upper = letters
        .bytes()
        .all(|b| b.is_ascii_uppercase() || b == b'-' || b == b'_');
    value.len() - letters.len() < 2 && (is_lower(rest.unwrap_or(letters)) || is_upper)
}

/// Shannon entropy in bits for each character.
pub(super) fn entropy(value: &str) -> f64 {
    let mut counts = [0_u32; 256];
    value
        .bytes()
        .for_each(|byte| counts[usize::from(byte)] += 1);
    let total = value.len() as f64;
    let bits = |count: u32| {
        let share = f64::from(count) / total;
        -share * share.log2()
    };
    counts
        .into_iter()
        .filter(|count| *count > 0)
        .map(bits)
        .sum()
}

pub(super) fn has_digit(value: &str) -> bool {
    value.bytes().any(|byte| byte.is_ascii_digit())
}

fn is_one_character(value: &str) -> bool {
    let mut characters = value.chars();
    let first = characters.next();
    characters.all(|character| Some(character) == first)
}

// Long enough, or with such neighbours, that no random key has them by accident.
const PLACEHOLDERS: [&str; 36] = [
    "example",
    "placeholder",
    "changeme",
    "change-me",
    "change_me",
    "your-",
    "your_",
    "yourkey",
    "yourapi",
    "yourtoken",
    "yoursecret",
    "yourpassword",
    "my-secret",
    "my_secret",
    "mysecret",
    "insert-",
    "insert_",
    "replace-",
    "replace_",
    "replaceme",
    "dummy",
    "not-a-real",
    "notareal",
    "not_a_real",
    "redacted",
    "xxxxx",
    "*****",
    ".....",
    "-----",
    "_____",
    "-here",
    "_here",
    "0000000000",
    "1234567890",
    "abcdefghij",
    "deadbeefdeadbeef",
];

// What people write in the place of a password.
const EXAMPLES: [&str; 22] = [
    "password",
    "passwd",
    "pass",
    "pwd",
    "secret",
    "user",
    "username",
    "root",
    "admin",
    "postgres",
    "mysql",
    "guest",
    "test",
    "testing",
    "none",
    "null",
    "undefined",
    "true",
    "false",
    "string",
    "password123",
    "p4ssw0rd",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_and_templates_are_no_secrets() {
        for value in [
            "your-key-here",
            "xxxxxxxxxxxx",
            "AKIAIOSFODNN7EXAMPLE",
            "aaaaaaaaaaaa",
            "CHANGEME",
        ] {
            assert!(is_placeholder(value), "{value}");
        }
        for value in ["$DB_PASSWORD", "${PASS}", "{password}", "<password>", "%s"] {
            assert!(is_template(value), "{value}");
        }
        assert!(!is_template("$2b$12$abc"), "a hash is not a variable");
    }

    #[test]
    fn a_value_worth_hiding_is_no_place_number_or_word() {
        for value in [
            "development",
            "/run/secrets/x",
            "https://a.b/c",
            "12345678",
            "Production",
        ] {
            assert!(!is_valuable(value), "{value}");
        }
        for value in ["hunter2hunter2", "s3cr3t-v4lue", "tr0ub4dor&3"] {
            assert!(is_valuable(value), "{value}");
        }
    }

    #[test]
    fn entropy_tells_a_word_from_noise() {
        assert!(entropy("aaaaaaaa") < 0.1);
        assert!(entropy("password") < 3.0);
        assert!(entropy("q8Zt1VbX0pLr7KdM") >= 4.0);
    }
}
