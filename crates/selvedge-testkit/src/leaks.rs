//! Looks for secrets in everything below a directory, in every form.
//!
//! Written apart from what takes secrets out, so that a form forgotten there is found
//! here. Databases are read row by row, and what is compressed in them is opened:
//! nothing hides a secret better than zstd.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use aho_corasick::AhoCorasick;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

/// A secret where none should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leak {
    /// In which file.
    pub file: PathBuf,
    /// Where in it: empty, or a table and column.
    pub place: String,
    /// In which form.
    pub form: &'static str,
}

/// A variable that every test has, and that nobody may write down: its name says that it is
/// a secret. Set in `.cargo/config.toml`, so that no suite can forget it.
pub const CANARY: (&str, &str) = ("CANARY_TOKEN", "c4nary/that+n0body-writes-down/83");

/// Looks below a folder when a test is over, before the folder goes: nobody has written the
/// canary down, nor what else was named.
#[derive(Debug)]
pub struct Watch {
    root: PathBuf,
    secrets: Vec<String>,
}

impl Watch {
    /// Watches over what is written below `root`.
    pub fn over(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            secrets: vec![CANARY.1.to_owned()],
        }
    }

    /// Looks for this one too.
    pub fn and(mut self, secret: &str) -> Self {
        self.secrets.push(secret.to_owned());
        self
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let secrets: Vec<&str> = self.secrets.iter().map(String::as_str).collect();
            let found = leaks(&self.root, &secrets);
            assert!(found.is_empty(), "a secret was left behind: {found:?}");
        }
    }
}

/// Every place below `root` where one of `secrets` can be read.
pub fn leaks(root: &Path, secrets: &[&str]) -> Vec<Leak> {
    let search = Search::new(secrets);
    let mut leaks = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(path) = open.pop() {
        // A link is not followed: it may lead out, or round in a circle.
        if let Ok(target) = std::fs::read_link(&path) {
            search.look(&path, "", target.as_os_str().as_bytes(), &mut leaks);
        } else if let Ok(entries) = std::fs::read_dir(&path) {
            open.extend(entries.flatten().map(|entry| entry.path()));
        } else if path.is_file()
            && let Ok(bytes) = std::fs::read(&path)
        {
            search.look(&path, "", &bytes, &mut leaks);
            if bytes.starts_with(b"SQLite format 3\0") {
                search.database(&path, &mut leaks);
            }
        }
    }
    leaks
}

/// The forms in which `text` has one of `secrets`.
pub fn leaks_in(text: &str, secrets: &[&str]) -> Vec<&'static str> {
    let search = Search::new(secrets);
    let found = search.automaton.find_overlapping_iter(text);
    found
        .map(|found| search.names[found.pattern().as_usize()])
        .collect()
}

struct Search {
    automaton: AhoCorasick,
    names: Vec<&'static str>,
}

impl Search {
    fn new(secrets: &[&str]) -> Self {
        let forms: Vec<(&'static str, String)> = secrets.iter().flat_map(|s| forms(s)).collect();
        let automaton = AhoCorasick::new(forms.iter().map(|(_, form)| form));
        Self {
            automaton: automaton.expect("a test has few secrets"),
            names: forms.into_iter().map(|(name, _)| name).collect(),
        }
    }

    fn look(&self, file: &Path, place: &str, bytes: &[u8], leaks: &mut Vec<Leak>) {
        if let Some(found) = self.automaton.find(bytes) {
            leaks.push(Leak {
                file: file.to_owned(),
                place: place.to_owned(),
                form: self.names[found.pattern().as_usize()],
            });
        }
        // The magic number of zstd.
        if bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd])
            && let Ok(content) = zstd::stream::decode_all(bytes)
        {
            self.look(file, &format!("{place} (compressed)"), &content, leaks);
        }
    }

    fn database(&self, file: &Path, leaks: &mut Vec<Leak>) {
        let mut read = || -> rusqlite::Result<()> {
            let database = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
            let mut tables =
                database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'")?;
            let tables: Vec<String> = tables.query_map([], |row| row.get(0))?.flatten().collect();
            for table in tables {
                let mut rows = database.prepare(&format!("SELECT * FROM \"{table}\""))?;
                let columns: Vec<String> = rows.column_names().map(str::to_owned).collect();
                let mut rows = rows.query([])?;
                while let Some(row) = rows.next()? {
                    for (at, column) in columns.iter().enumerate() {
                        if let ValueRef::Text(bytes) | ValueRef::Blob(bytes) = row.get_ref(at)? {
                            self.look(file, &format!("{table}.{column}"), bytes, leaks);
                        }
                    }
                }
            }
            Ok(())
        };
        read().unwrap_or_else(|error| panic!("`{}` cannot be searched: {error}", file.display()));
    }
}

fn forms(secret: &str) -> Vec<(&'static str, String)> {
    let quoted = serde_json::Value::from(secret).to_string();
    let escaped = |byte: u8| match byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    let mut forms = vec![
        ("plain", secret.to_owned()),
        ("JSON", quoted.trim_matches('"').to_owned()),
        ("an address", secret.bytes().map(escaped).collect()),
        (
            "hexadecimal",
            secret.bytes().map(|byte| format!("{byte:02x}")).collect(),
        ),
        (
            "HEXADECIMAL",
            secret.bytes().map(|byte| format!("{byte:02X}")).collect(),
        ),
        ("backwards", secret.chars().rev().collect()),
    ];
    // Whatever stands before it, one of three shifts fits; the ends depend on
    // neighbours and are left out.
    for shift in 0..3 {
        let bytes = [&[b' '; 2][..shift], secret.as_bytes()].concat();
        for engine in [&STANDARD, &URL_SAFE] {
            let encoded = engine.encode(&bytes);
            let encoded = encoded.trim_end_matches('=');
            forms.push(("base64", encoded[4..encoded.len() - 2].to_owned()));
        }
    }
    forms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_test_has_the_canary_among_its_variables() {
        let value = std::env::var(CANARY.0).unwrap_or_default();
        assert_eq!(
            value, CANARY.1,
            "`.cargo/config.toml` sets it for all tests"
        );
    }

    #[test]
    #[should_panic(expected = "a secret was left behind")]
    fn a_test_that_leaves_a_secret_behind_fails_when_it_is_over() {
        let folder = std::env::temp_dir().join(format!("watched-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let watch = Watch::over(&folder).and("another-secret-value");
        std::fs::write(folder.join("note"), "it is another-secret-value").unwrap();
        drop(watch);
    }

    #[test]
    fn a_secret_is_found_in_files_and_in_compressed_rows() {
        let folder = std::env::temp_dir().join(format!("leaks-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("deep")).unwrap();
        let secret = "some-s3cret-value";
        std::fs::write(
            folder.join("deep/note"),
            STANDARD.encode(format!("x {secret}")),
        )
        .unwrap();
        let database = Connection::open(folder.join("a.db")).unwrap();
        database
            .execute("CREATE TABLE kept (id INTEGER, content BLOB)", [])
            .unwrap();
        let blob = zstd::stream::encode_all(secret.repeat(3).as_bytes(), 1).unwrap();
        database
            .execute("INSERT INTO kept VALUES (1, ?1)", [blob])
            .unwrap();
        drop(database);
        let mut found: Vec<_> = leaks(&folder, &[secret, "another-value"])
            .into_iter()
            .map(|leak| (leak.place, leak.form))
            .collect();
        found.sort();
        found.dedup();
        std::fs::remove_dir_all(&folder).unwrap();
        let place = "kept.content (compressed)".to_owned();
        assert!(found.contains(&(String::new(), "base64")), "{found:?}");
        assert!(found.contains(&(place, "plain")), "{found:?}");
        assert!(leaks_in("nothing here", &[secret]).is_empty());
    }
}
