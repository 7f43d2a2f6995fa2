//! Secrets that only their name betrays: `api_key = …`, `"password": "…"`,
//! `--token …`, `<secret>…</secret>`.
//!
//! A name and an operator are found by an expression. The value is then read as a
//! person would read it, and judged: `password = get_password()` and
//! `secret: SecretString` are code and stay.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::pattern::{Hit, Severity};
use super::plausible::{
    entropy, has_digit, is_number, is_password, is_place, is_plain_word, is_template,
};

/// A name has one of these in it.
pub(super) const WORDS: [&str; 9] = [
    "key",
    "token",
    "secret",
    "passw",
    "passphrase",
    "pwd",
    "credential",
    "auth",
    "salt",
];

/// Adds the values of secret names in one line.
pub(super) fn find(line: &str, hits: &mut Vec<Hit>) {
    for captures in NAMED.captures_iter(line) {
        let (Some(whole), Some(name)) = (captures.get(0), captures.name("name")) else {
            continue;
        };
        let operator = captures
            .name("operator")
            .map_or(" ", |found| found.as_str());
        let fits = match operator {
            " " => name.as_str().starts_with("--"),
            ">" => line[..name.start()].ends_with('<'),
            // A user's name in an address; the password there is found by its place.
            _ => !line[..name.start()].ends_with("://"),
        };
        let Some(value) = value_at(line, operator, whole.end()).filter(|_| fits) else {
            continue;
        };
        let is_variable = operator == "=" && is_environment(line, name.start());
        let text = &line[value.range.clone()];
        let judged = judge(name.as_str(), text, value.is_quoted, is_variable);
        if let Some((pattern, severity)) = judged {
            hits.push(Hit::new(value.range, pattern, severity));
        }
    }
}

/// Whether the value of a field is a secret by the field's name.
pub(super) fn is_secret(name: &str, value: &str) -> bool {
    let is_name = NAME.is_match(name);
    is_name && judge(name, value, true, false).is_some_and(|(_, s)| s >= Severity::High)
}

static NAMED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?ix)
        (?P<name> [A-Z0-9_.-]*
            (?:key|token|secret|passw(?:or)?d|passphrase|pwd|credentials?|auth|salt)
            [A-Z0-9_-]* )
        (?: \\? ["'`]? \]? [\ \t]* (?P<operator> := | => | [!=]==? | = | : | > ) | [\ \t] )"#,
    )
    .expect("the pattern is valid")
});

static NAME: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new("(?i)key|token|secret|passw(or)?d|passphrase|pwd|credential").expect("valid")
});

/// `SecretString`, `Sha256Hash`.
static TYPE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("^(?:[A-Z][a-z]+[0-9]*)+$").expect("valid"));

struct Read {
    range: Range<usize>,
    is_quoted: bool,
}

/// The value that begins at or after `from`.
fn value_at(line: &str, operator: &str, from: usize) -> Option<Read> {
    let rest = &line[from..];
    let begins = from + (rest.len() - rest.trim_start_matches([' ', '\t']).len());
    let rest = &line[begins..];
    if operator == ">" {
        let length = rest.find('<')?;
        let is_closed = rest[length..].starts_with("</");
        let range = begins..begins + length;
        return is_closed.then_some(Read {
            range,
            is_quoted: true,
        });
    }
    // In a text within a text, quotes are escaped.
    let opening = rest.trim_start_matches('\\');
    let quote = opening
        .chars()
        .next()
        .filter(|c| matches!(c, '"' | '\'' | '`'));
    let Some(quote) = quote else {
        let length = rest
            .find(|c: char| c.is_whitespace() || r#",;&"'`\"#.contains(c))
            .unwrap_or(rest.len());
        let bare = rest[..length].trim_end_matches([')', ']', '}', '>']);
        let range = begins..begins + bare.len();
        return Some(Read {
            range,
            is_quoted: false,
        });
    };
    let escape = &rest[..rest.len() - opening.len()];
    let begins = begins + escape.len() + 1;
    let rest = &line[begins..];
    let closing = format!("{escape}{quote}");
    let length = rest.find(&closing)?;
    let range = begins..begins + length;
    // In prose, names stand between backticks.
    Some(Read {
        range,
        is_quoted: quote != '`',
    })
}

/// `NAME=value` at the beginning of a line, as in a file of variables.
fn is_environment(line: &str, name_start: usize) -> bool {
    let before = line[..name_start].trim();
    let is_first = matches!(
        before,
        "" | "export" | "set" | "ENV" | "ARG" | "+" | "-" | "declare -x"
    );
    let name: String = line[name_start..]
        .chars()
        .take_while(|c| *c != '=')
        .collect();
    is_first && !name.contains(|c: char| c.is_ascii_lowercase() || c.is_whitespace())
}

/// Which kind of secret a named value is, if it is one.
fn judge(
    name: &str,
    value: &str,
    is_quoted: bool,
    is_variable: bool,
) -> Option<(&'static str, Severity)> {
    let name = snake_case(name);
    let length = value.chars().count();
    if length < 8 || !is_password(value, "") || is_template(value) || is_harmless(&name) {
        return None;
    }
    let flat = name.replace('_', "");
    if value.eq_ignore_ascii_case(&name) || value.eq_ignore_ascii_case(&flat) {
        return None;
    }
    if value.contains(char::is_whitespace) || is_place(value) || is_number(value) {
        return None;
    }
    if !is_quoted && !is_variable && is_code(value) {
        return None;
    }
    let has = |words: &[&str]| words.iter().any(|word| flat.contains(word));
    if has(&["password", "passwd", "passphrase", "pwd"]) {
        let is_typed = is_variable || !is_plain_word(value);
        return is_typed.then_some(("password_assignment", Severity::High));
    }
    let is_random = length >= 16
        && has_digit(value)
        && value.bytes().any(|byte| byte.is_ascii_alphabetic())
        && entropy(value) >= 3.0;
    let is_key = has(&[
        "apikey",
        "secret",
        "token",
        "accesskey",
        "authkey",
        "privatekey",
        "encryptionkey",
        "signingkey",
        "masterkey",
        "servicekey",
        "clientkey",
        "credential",
    ]);
    if is_key && (is_random || (is_variable && length >= 16)) {
        return Some(("api_key_assignment", Severity::High));
    }
    // Hexadecimal has no more than four bits: checksums are not meant here.
    let is_noise = length >= 40 && is_random && entropy(value) >= 4.3;
    is_noise.then_some(("high_entropy_assignment", Severity::Medium))
}

/// `apiKey-Name` as `api_key_name`.
fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    let mut was_lower = false;
    for c in name.chars() {
        if was_lower && c.is_ascii_uppercase() {
            snake.push('_');
        }
        was_lower = c.is_ascii_lowercase();
        snake.push(if c == '-' {
            '_'
        } else {
            c.to_ascii_lowercase()
        });
    }
    snake
}

/// Names that speak of a secret and do not hold one.
fn is_harmless(name: &str) -> bool {
    const ENDS: [&str; 40] = [
        "_file",
        "_path",
        "_dir",
        "_url",
        "_uri",
        "_name",
        "_id",
        "_ids",
        "_type",
        "_field",
        "_label",
        "_hint",
        "_length",
        "_len",
        "_size",
        "_count",
        "_regex",
        "_pattern",
        "_format",
        "_prefix",
        "_header",
        "_env",
        "_var",
        "_variable",
        "_endpoint",
        "_provider",
        "_expiry",
        "_ttl",
        "_policy",
        "_version",
        "_algorithm",
        "_arn",
        "_class",
        "_schema",
        "_max",
        "_min",
        "_bytes",
        "_placeholder",
        "_title",
        "_message",
    ];
    const WITHIN: [&str; 10] = [
        "tokeniz",
        "keyword",
        "keyboard",
        "secretar",
        "passwordless",
        "public_key",
        "publickey",
        "monkey",
        "turnkey",
        "max_token",
    ];
    let is_about_people = name.contains("author") && !name.contains("authori");
    is_about_people
        || ENDS.iter().any(|end| name.ends_with(end))
        || WITHIN.iter().any(|word| name.contains(word))
}

/// Whether a value without quotes is an expression, a name or a type.
fn is_code(value: &str) -> bool {
    if value.contains(['(', '[', '<', '{', '|'])
        || value.starts_with(':')
        || value.contains("::")
        || value.contains("->")
    {
        return true;
    }
    let is_name_character =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '?' | '!');
    if !value.chars().all(is_name_character) {
        return false;
    }
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let is_dotted = value.contains('.')
        && value
            .split('.')
            .all(|part| part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'));
    // Names have a digit here and there; keys have many.
    is_dotted || TYPE.is_match(value) || digits < 2 || (digits < 4 && value.contains('_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, secret: Option<&str>) {
        let mut hits = Vec::new();
        find(line, &mut hits);
        let found: Vec<&str> = hits.iter().map(|hit| &line[hit.range.clone()]).collect();
        assert_eq!(found, Vec::from_iter(secret), "{line}");
    }

    #[test]
    fn the_value_alone_is_the_secret() {
        let key = "q8Zt1VbX0pLr7KdM2nWc";
        for (before, after) in [
            ("api_key = ", ""),
            ("api_key = \"", "\""),
            ("  apiKey: '", "',"),
            ("{\"api-key\": \"", "\"}"),
            ("\\\"client_secret\\\": \\\"", "\\\","),
            ("config[\"auth_token\"] = \"", "\";"),
            ("deploy --api-token ", " --now"),
            ("deploy --api-token=", ""),
            ("<apiKey>", "</apiKey>"),
            ("export SERVICE_TOKEN=", ""),
            ("let secret := `", "`"),
        ] {
            check(&format!("{before}{key}{after}"), Some(key));
        }
    }

    #[test]
    fn a_password_may_be_short() {
        check("password: hunter22!", Some("hunter22!"));
        check("DB_PASSWORD=correcthorse", Some("correcthorse"));
        check("password = \"correct1horse\"", Some("correct1horse"));
    }

    #[test]
    fn code_types_places_and_prose_stay() {
        for line in [
            "password = get_password()",
            "secret: SecretString",
            "token: &'a str,",
            "let api_key = std::env::var(\"API_KEY\")?;",
            "password = self.config.password_value",
            "api_key = os.environ['API_KEY_PRODUCTION_1']",
            "password: \"Enter your password\"",
            "token_url = \"https://example.org/oauth/token2\"",
            "private_key_path: ./keys/2024/server1.pem",
            "max_tokens: 4096000000",
            "keyword: \"abc123def456ghi789\"",
            "\"password\": \"password\"",
            "token: Base64String",
        ] {
            check(line, None);
        }
    }
}
