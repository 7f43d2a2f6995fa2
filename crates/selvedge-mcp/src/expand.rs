//! `${NAME}` in an entry: a variable of the user's own, handed over when the server is
//! started and not before.

/// A text with its variables put in, and whether there were any that hold a secret.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Expanded {
    pub(crate) text: String,
    /// The values that were put in for variables whose names say that they are secret.
    pub(crate) secrets: Vec<String>,
}

/// Puts variables in: `${NAME}`, or `${NAME:-instead}` where it may be missing. The
/// error is the name of one that is not set.
pub(crate) fn expand(
    text: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Expanded, String> {
    let mut expanded = Expanded {
        text: String::new(),
        secrets: Vec::new(),
    };
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let Some(end) = rest[at..].find('}') else {
            break;
        };
        expanded.text.push_str(&rest[..at]);
        let inner = &rest[at + 2..at + end];
        let (name, instead) = match inner.split_once(":-") {
            Some((name, instead)) => (name, Some(instead)),
            None => (inner, None),
        };
        match (variable(name), instead) {
            (Some(value), _) => {
                if selvedge_tool::names_a_secret(name) {
                    expanded.secrets.push(value.clone());
                }
                expanded.text.push_str(&value);
            }
            (None, Some(instead)) => expanded.text.push_str(instead),
            (None, None) => return Err(name.to_owned()),
        }
        rest = &rest[at + end + 1..];
    }
    expanded.text.push_str(rest);
    Ok(expanded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(name: &str) -> Option<String> {
        match name {
            "MY_TOKEN" => Some("t0ken".into()),
            "USER" => Some("ada".into()),
            _ => None,
        }
    }

    #[test]
    fn variables_are_put_in_and_secret_ones_are_known() {
        for (text, expected) in [
            ("plain", Ok("plain")),
            ("Bearer ${MY_TOKEN}", Ok("Bearer t0ken")),
            ("${USER}/${USER}", Ok("ada/ada")),
            ("${ABSENT:-none}", Ok("none")),
            ("${ABSENT}", Err("ABSENT")),
            ("${open", Ok("${open")),
            ("$USER", Ok("$USER")),
        ] {
            let expanded = expand(text, variable).map(|expanded| expanded.text);
            assert_eq!(
                expanded.as_deref().map_err(String::as_str),
                expected,
                "{text}"
            );
        }
        let secrets = |text| expand(text, variable).unwrap().secrets;
        assert_eq!(secrets("a ${MY_TOKEN} b"), ["t0ken"]);
        assert!(secrets("${USER}").is_empty());
    }
}
