//! Whether a sed or awk script only prints. What is not surely so is not so.

use std::sync::LazyLock;

use regex::Regex;

use super::shell::Word;

// Addresses, then a command that prints, deletes or substitutes. The flags of a
// substitution leave out `w` (writes a file) and `e` (runs a command).
static SED: LazyLock<Regex> = LazyLock::new(|| {
    let address = r"(?:\d+|\$|/(?:[^/\\\n]|\\.)*/I?)";
    let delimited =
        |d: &str| format!(r"s{d}(?:[^{d}\\\n]|\\.)*{d}(?:[^{d}\\\n]|\\.)*{d}[gpiIm0-9]*");
    let substitute: Vec<String> = ["/", r"\|", "#", ",", ":", "@", "!", "_"]
        .map(delimited)
        .into();
    let command = format!(r"(?:[pdqQ=nNDPhHgGx]|{})", substitute.join("|"));
    let one = format!(r"\s*(?:{address}(?:,[+~]?{address})?\s*!?\s*)?{command}\s*");
    Regex::new(&format!(r"^{one}(?:[;\n]{one})*$")).expect("the expression is well-formed")
});

/// Whether every script of a sed command only prints.
pub(super) fn sed_is_plain(words: &[Word]) -> bool {
    let mut scripts = Vec::new();
    let mut rest = words[1..].iter();
    let mut is_given = false;
    while let Some(word) = rest.next() {
        let text = word.shown();
        match text {
            "-e" | "--expression" => {
                is_given = true;
                scripts.extend(rest.next());
            }
            _ if text.starts_with("-f") || text.starts_with("--file") => return false,
            _ if text.starts_with("--expression=") || text.starts_with("-e") => return false,
            // `-ne` takes the next word as its script.
            _ if text.starts_with('-') && !text.starts_with("--") && text.contains(['e', 'f']) => {
                return false;
            }
            _ if text.starts_with('-') => {}
            _ if !is_given => {
                is_given = true;
                scripts.push(word);
            }
            _ => {}
        }
    }
    scripts.iter().all(|word| {
        word.plain_or_quoted()
            .is_some_and(|text| SED.is_match(text))
    })
}

/// Whether an awk program neither writes files nor runs commands.
pub(super) fn awk_is_plain(words: &[Word]) -> bool {
    let mut rest = words[1..].iter();
    while let Some(word) = rest.next() {
        let text = word.shown();
        match text {
            "-F" | "-v" | "--field-separator" | "--assign" => drop(rest.next()),
            _ if text.starts_with("-f") || text.starts_with("--file") => return false,
            _ if text.starts_with('-') => {}
            _ => {
                let is_plain = |text: &str| {
                    let reaches = ["system", "getline", "close", "fflush", "@"];
                    let program = text.replace("||", "");
                    !reaches.iter().any(|word| program.contains(word))
                        && !program.contains('|')
                        && !writes(&program)
                };
                return word.plain_or_quoted().is_some_and(is_plain);
            }
        }
    }
    true
}

/// Whether a `>` is anything but a comparison in a condition.
fn writes(program: &str) -> bool {
    let Some(at) = program.find('>') else {
        return false;
    };
    // After `print` or `printf` it names a file.
    program[..at].contains("print") || program[at + 1..].starts_with('>')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::shell;

    fn check(judge: fn(&[Word]) -> bool, command: &str, expected: bool) {
        let script = shell::read(command);
        assert_eq!(judge(&script.segments[0].words), expected, "{command}");
    }

    #[test]
    fn a_sed_script_that_writes_or_runs_is_told_from_one_that_prints() {
        for (command, expected) in [
            ("sed -n '1,5p' a", true),
            ("sed 's/a/b/g' a", true),
            ("sed -i 's|a/b|c|' a", true),
            ("sed -e 's/a/b/' -e '3d' a", true),
            ("sed '/^$/d; s/x/y/' a", true),
            ("sed -n '$p' a", true),
            ("sed 's/a/b/w out' a", false),
            ("sed 's/a/id/e' a", false),
            ("sed '1e id' a", false),
            ("sed 'w out' a", false),
            ("sed -n '/x/w out' a", false),
            ("sed -f script a", false),
            ("sed -ne '1e id' a", false),
            ("sed \"$x\" a", false),
            ("sed --expression='1e id' a", false),
        ] {
            check(sed_is_plain, command, expected);
        }
    }

    #[test]
    fn an_awk_program_that_writes_or_runs_is_told_from_one_that_prints() {
        for (command, expected) in [
            ("awk '{print $1}' a", true),
            ("awk -F: '$3 > 1000 {print $1}' a", true),
            ("awk 'NR==1 || /x/' a", true),
            ("awk '{print > \"out\"}' a", false),
            ("awk '{print | \"sh\"}' a", false),
            ("awk 'BEGIN{system(\"id\")}'", false),
            ("awk -f x a", false),
            ("awk \"$x\" a", false),
        ] {
            check(awk_is_plain, command, expected);
        }
    }
}
