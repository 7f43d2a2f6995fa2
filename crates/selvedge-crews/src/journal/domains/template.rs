//! A domain to begin with.

use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};

const FILES: [(&str, &str); 6] = [
    (
        "domain.toml",
        "# What this domain covers, in a sentence or two. Notes and questions are matched\n\
         # against it, so name the words that people use.\n\
         description = \"NAME: say here what it covers\"\n",
    ),
    (
        "schema.json",
        r#"{
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "activity": { "type": "string", "description": "What was done." },
    "duration": { "type": "number", "minimum": 0 },
    "duration_unit": { "type": "string", "enum": ["min", "h"] },
    "notes": { "type": "string" }
  },
  "x-rows": [
    {
      "measure": "duration",
      "subject": "activity",
      "value": "duration",
      "unit": "duration_unit",
      "metric": "min"
    }
  ]
}
"#,
    ),
    (
        "vocabulary.toml",
        "# A word and what it stands for. Searching for either finds both.\n\
         # wfh = \"worked from home\"\n",
    ),
    (
        "expertise.md",
        "What somebody who knows this field would bear in mind: what goes together, what to\n\
         look at first, over how many days a change shows.\n",
    ),
    (
        "rules.md",
        "Each line is a rule that an answer must keep to.\n\n\
         - Make no claim about the user that no entry supports.\n",
    ),
    (
        "guidance.md",
        "What is worth remembering of the user in this field, over months.\n",
    ),
];

/// Makes a folder with a domain that works and says what to change; where.
pub fn make_template(domains: &Path, name: &str) -> Result<PathBuf> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    if name.is_empty() || !name.chars().all(is_plain) {
        let why = "a name is made of letters, digits, `-` and `_`";
        return Err(Error::new(ErrorKind::InvalidInput, why));
    }
    let folder = domains.join(name);
    if folder.exists() {
        return Err(Error::new(ErrorKind::AlreadyExists, "it is there already"));
    }
    std::fs::create_dir_all(&folder)?;
    for (file, text) in FILES {
        std::fs::write(folder.join(file), text.replace("NAME", name))?;
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::domains::Domains;

    #[test]
    fn a_template_is_a_domain() {
        let folder = tempfile::tempdir().unwrap();
        make_template(folder.path(), "gardening").unwrap();
        let domains = Domains::load(folder.path());
        assert!(domains.faults.is_empty(), "{:?}", domains.faults);
        assert!(domains.get("gardening").is_some());
        assert!(make_template(folder.path(), "gardening").is_err());
        assert!(make_template(folder.path(), "../x").is_err());
    }
}
