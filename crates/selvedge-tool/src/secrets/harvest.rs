//! What is in the sensitive files of a workspace, so that it is known wherever it
//! turns up: `cat .env` prints values whose shape says nothing.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::FileType;
use tokio_util::sync::CancellationToken;

use super::plausible::{is_secret_variable, is_valuable};
use super::{Secrets, sighting};
use crate::workspace::{Walk, Workspace};

// Files with secrets lie near the root; a deep tree is dependencies.
const DEPTH_MAX: usize = 4;
// Ten milliseconds of looking, about.
const ENTRIES_MAX: usize = 5_000;
const FILES_MAX: usize = 100;
const FILE_BYTES_MAX: u64 = 256 * 1024;
const VALUES_PER_FILE_MAX: usize = 200;
// Trees that are not the user's own work.
const SKIPPED: [&str; 8] = [
    "node_modules",
    "target",
    ".venv",
    "venv",
    "vendor",
    "dist",
    "build",
    "__pycache__",
];

/// The sensitive files of a workspace, and when each was read.
pub(super) type Harvest = BTreeMap<PathBuf, Option<SystemTime>>;

/// Learns what is new in the sensitive files of a workspace. They are looked for
/// once; later, only those are read again that have changed.
pub(super) fn refresh(secrets: &Secrets, workspace: &Workspace) {
    let mut all = secrets
        .0
        .harvested
        .lock()
        .expect("no panic under this lock");
    let harvest = all
        .entry(workspace.root().to_owned())
        .or_insert_with(|| seek(secrets, workspace));
    for (path, read) in harvest {
        let Ok(file) = workspace.open_at(path) else {
            continue;
        };
        let changed = file
            .metadata()
            .and_then(|metadata| metadata.modified())
            .ok();
        if changed.is_none() || changed != *read {
            *read = changed;
            learn(secrets, file);
        }
    }
}

/// Adds a file that a tool has come by, to be read at the next chance.
pub(super) fn note(secrets: &Secrets, workspace: &Workspace, path: &Path) {
    let mut all = secrets
        .0
        .harvested
        .lock()
        .expect("no panic under this lock");
    if let Some(harvest) = all.get_mut(workspace.root())
        && harvest.len() < FILES_MAX
    {
        harvest.entry(path.to_owned()).or_insert(None);
    }
}

/// The names and values of a file of variables, quotes taken off.
pub(super) fn pairs(content: &str) -> impl Iterator<Item = (&str, &str)> {
    content.lines().filter_map(|line| {
        let line = line.trim();
        let line = line.strip_prefix("export ").unwrap_or(line);
        let (name, value) = line.split_once('=')?;
        let name = name.trim();
        let is_name = |c: char| c.is_ascii_alphanumeric() || "_.:/-".contains(c);
        if name.is_empty() || !name.chars().all(is_name) {
            return None;
        }
        let value = value.trim();
        let quoted = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
        Some((name, quoted('"').or_else(|| quoted('\'')).unwrap_or(value)))
    })
}

/// Where the sensitive files of a workspace are, ignored ones included.
fn seek(secrets: &Secrets, workspace: &Workspace) -> Harvest {
    let mut found = Harvest::new();
    let mut seen = 0;
    let never = CancellationToken::new();
    let walk = Walk::new(workspace, &never)
        .depth_max(DEPTH_MAX)
        .through_ignored(&SKIPPED);
    let walked = walk.each(Path::new(""), |entry| {
        seen += 1;
        if entry.kind == FileType::RegularFile && secrets.is_sensitive(&entry.path) {
            found.insert(entry.path, None);
        }
        seen < ENTRIES_MAX && found.len() < FILES_MAX
    });
    if !walked.unwrap_or(false) {
        tracing::debug!("not all files were looked at for secrets");
    }
    found
}

fn learn(secrets: &Secrets, file: File) {
    let mut content = Vec::new();
    if file.take(FILE_BYTES_MAX).read_to_end(&mut content).is_err() {
        return;
    }
    let content = String::from_utf8_lossy(&content);
    let values = values(secrets, &content);
    secrets.know_all(values.into_iter().take(VALUES_PER_FILE_MAX));
}

/// What is worth hiding in a sensitive file.
fn values<'a>(secrets: &Secrets, content: &'a str) -> Vec<&'a str> {
    let named = pairs(content).filter(|(name, value)| {
        // A name that says nothing may have a value that does.
        is_secret_variable(name, value) || (is_valuable(value) && has_noise(value))
    });
    let mut values: Vec<&str> = named.map(|(_, value)| value).collect();
    let shapes = sighting::scan(&secrets.rules(), content);
    values.extend(shapes.iter().map(|found| &content[found.start..found.end]));
    // The lines of a key, which are also shown one by one.
    let lines = content.lines().map(str::trim);
    values.extend(lines.filter(|line| line.len() >= 40 && is_base64(line)));
    values
}

fn has_noise(value: &str) -> bool {
    value.len() >= 16
        && super::plausible::is_wordless(value, "")
        && super::plausible::entropy(value) >= 3.0
}

fn is_base64(line: &str) -> bool {
    line.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::World;

    #[test]
    fn values_of_ignored_and_deep_files_are_known_and_ordinary_ones_are_not() {
        let world = World::new(&[
            (".gitignore", ".env*\n"),
            (
                ".env",
                "API_KEY='s3cr3t-of-the-root'\nNODE_ENV=development\nPORT=8080\n",
            ),
            ("apps/web/.env.local", "export DB_PASSWORD=hunter2hunter2\n"),
            ("node_modules/x/.env", "TOKEN=n0t-the-users-0wn\n"),
            (
                "key.pem",
                &format!(
                    "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
                    "Ab1+".repeat(16)
                ),
            ),
        ]);
        let secrets = Secrets::new();
        secrets.know_workspace(&world.context.workspace);
        for secret in ["s3cr3t-of-the-root", "hunter2hunter2", &"Ab1+".repeat(16)] {
            assert_eq!(secrets.redact(&format!("= {secret} .")), "= [REDACTED] .");
        }
        for word in ["development", "n0t-the-users-0wn", "8080"] {
            assert_eq!(secrets.redact(word), word);
        }
    }

    #[test]
    fn a_file_that_changes_is_read_again() {
        let world = World::new(&[(".env", "TOKEN=the-f1rst-value\n")]);
        let secrets = Secrets::new();
        secrets.know_workspace(&world.context.workspace);
        world.write(".env", "TOKEN=the-s3cond-value\n");
        let later = SystemTime::now() + std::time::Duration::from_secs(2);
        let file = File::options()
            .append(true)
            .open(world.root().join(".env"))
            .unwrap();
        file.set_modified(later).unwrap();
        secrets.know_workspace(&world.context.workspace);
        assert_eq!(secrets.redact("the-s3cond-value"), super::super::MARK);
        assert_eq!(secrets.redact("the-f1rst-value"), super::super::MARK);
    }
}
