//! Files that are secret by their name, and what is shown in their place.

use std::path::Path;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::{MARK, RuleError};

/// As lines of a `.gitignore`: a name matches at any depth, `!` takes back.
const BUILT_IN: &[&str] = &[
    ".env",
    ".env.*",
    "*.env",
    ".envrc",
    "!.env.example",
    "!.env.sample",
    "!.env.template",
    "!.env.dist",
    "!.env.test.example",
    "*.pem",
    "*.key",
    "*.p8",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.ppk",
    "*.kdbx",
    "*.asc",
    "!*.pub.asc",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "**/.ssh/*",
    "!**/.ssh/*.pub",
    "**/.aws/credentials",
    "**/.gnupg/**",
    "**/.kube/config",
    "**/.docker/config.json",
    "**/.config/gcloud/**",
    "**/.config/gh/hosts.yml",
    ".npmrc",
    ".pypirc",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".my.cnf",
    ".git-credentials",
    ".htpasswd",
    ".vault-token",
    ".dockercfg",
    "terraform.tfvars",
    "*.tfstate",
    "*service-account*.json",
    "*service_account*.json",
];

// A file called after credentials is data if it ends like data; `credentials.rs` is
// code.
const CALLED: [&str; 4] = ["*credentials*", "*credential", "*secrets*", "*secret"];
const DATA: [&str; 13] = [
    "",
    ".json",
    ".yaml",
    ".yml",
    ".toml",
    ".ini",
    ".cfg",
    ".conf",
    ".properties",
    ".xml",
    ".csv",
    ".txt",
    ".enc",
];

/// Which files are not to be shown.
#[derive(Clone)]
pub struct SensitiveFiles {
    globs: Gitignore,
    lines: Vec<String>,
}

impl Default for SensitiveFiles {
    fn default() -> Self {
        let named = CALLED.iter().flat_map(|name| {
            let stem = name.trim_end_matches('*');
            DATA.map(|end| match end {
                "" => stem.to_owned(),
                end => format!("{name}{end}"),
            })
        });
        let lines = BUILT_IN.iter().map(ToString::to_string).chain(named);
        Self::of(lines.collect()).expect("the built-in globs are tested")
    }
}

impl SensitiveFiles {
    /// These and some more; later lines win.
    pub(super) fn with(&self, more: &[String]) -> Result<Self, RuleError> {
        match more.is_empty() || self.lines.ends_with(more) {
            true => Ok(self.clone()),
            false => Self::of([self.lines.as_slice(), more].concat()),
        }
    }

    fn of(lines: Vec<String>) -> Result<Self, RuleError> {
        let wrong = |glob: &str, error: ignore::Error| RuleError::Glob {
            glob: glob.to_owned(),
            why: error.to_string(),
        };
        let mut builder = GitignoreBuilder::new("");
        // Upper-case endings are the same kind of file.
        builder.case_insensitive(true).map_err(|e| wrong("", e))?;
        for line in &lines {
            builder.add_line(None, line).map_err(|e| wrong(line, e))?;
        }
        let globs = builder.build().map_err(|e| wrong("", e))?;
        Ok(Self { globs, lines })
    }

    /// Whether a file, named from the workspace's root or in full, is not to be shown.
    pub fn is_sensitive(&self, path: &Path) -> bool {
        let path = path.strip_prefix("/").unwrap_or(path);
        matches!(self.globs.matched(path, false), Match::Ignore(_))
    }
}

/// What is shown in the place of a sensitive file: its size, and the names in it.
pub(crate) fn stub(path: &str, content: &str) -> String {
    // Base64 ends with a sign that looks like an empty value.
    let is_pair = |value: &str| !value.trim_matches('=').is_empty();
    let is_text = !content.contains(['\0', '\u{fffd}']) && !content.contains("-----BEGIN");
    let pairs = super::harvest::pairs(content).filter(|(_, value)| is_text && is_pair(value));
    let names: Vec<&str> = pairs.map(|(name, _)| name).collect();
    let mut text = format!(
        "[`{path}` is a sensitive file of {} bytes: its values are not shown",
        content.len()
    );
    match names.is_empty() {
        true => text.push_str("]\n"),
        false => {
            text.push_str("; it has these names]\n");
            names
                .iter()
                .for_each(|name| text.push_str(&format!("{name}={MARK}\n")));
        }
    }
    text.push_str(
        "[do not ask for the values: programs can use the file; a user can allow it to be read \
         with `files = [\"!NAME\"]` under `[secrets]` in the configuration]\n",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_sensitive_by_name_at_any_depth() {
        let files = SensitiveFiles::default();
        for path in [
            ".env",
            "deep/down/.env",
            ".env.production",
            "prod.env",
            "certs/server.pem",
            "a.KEY",
            "b.p12",
            "c.pfx",
            "credentials",
            "aws_credentials",
            "gcp-credentials.json",
            "secrets.yaml",
            "config/secrets.yml",
            ".ssh/id_rsa",
            "home/.ssh/config",
            ".npmrc",
            "x/.pypirc",
            "h/.aws/credentials",
            "id_ed25519",
            ".netrc",
            "/root/.kube/config",
            "prod.tfstate",
            "my-service-account-1.json",
            "client_secret",
            "client_secret.json",
        ] {
            assert!(files.is_sensitive(Path::new(path)), "{path}");
        }
        for path in [
            ".env.example",
            "env",
            "src/env.rs",
            "environment.ts",
            "credentials.rs",
            "src/credentials/mod.rs",
            "secrets.py",
            "secrets/mod.rs",
            ".ssh/id_rsa.pub",
            "key.rs",
            "keys.md",
            "monkey.txt",
            "src/aws/credentials.go",
            "docs/secrets.md",
            "tests/secret.rs",
        ] {
            assert!(!files.is_sensitive(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn a_user_adds_files_and_allows_others() {
        let more = ["*.vault".to_owned(), "!.env".to_owned()];
        let files = SensitiveFiles::default().with(&more).unwrap();
        assert!(files.is_sensitive(Path::new("a.vault")));
        assert!(!files.is_sensitive(Path::new("x/.env")));
        assert!(files.is_sensitive(Path::new("x/.env.local")));
        assert!(
            SensitiveFiles::default()
                .with(&["[z-a]".to_owned()])
                .is_err()
        );
    }

    #[test]
    fn a_stub_has_names_and_no_values() {
        let shown = stub(
            ".env",
            "# note\nexport API_KEY=abc\nDEBUG=1\n\nnot a pair\n",
        );
        assert!(
            shown.contains("`.env` is a sensitive file of 46 bytes"),
            "{shown}"
        );
        assert!(
            shown.contains("\nAPI_KEY=[REDACTED]\nDEBUG=[REDACTED]\n"),
            "{shown}"
        );
        assert!(!shown.contains("abc"), "{shown}");
    }
}
