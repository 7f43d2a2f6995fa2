//! Looks at every file below a directory, as git would see it.
//!
//! The walk goes by directory handles and follows no symlink, so it stays inside
//! whatever is renamed meanwhile. It goes level by level: when a bound is reached,
//! it is the deep files that were not seen.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{Dir, FileType};
use tokio_util::sync::CancellationToken;

use super::Workspace;

// A tree with more entries than this is not one that a model reads; the walk says
// that it stopped.
const ENTRIES_MAX: usize = 200_000;
// Real ignore files have a few KB.
const IGNORE_BYTES_MAX: u64 = 256 * 1024;

/// Something that a walk came by.
pub(crate) struct Found {
    /// Where it is, from the workspace root.
    pub(crate) path: PathBuf,
    /// What it is, symlinks as themselves.
    pub(crate) kind: FileType,
}

/// A walk below one directory.
pub(crate) struct Walk<'a> {
    workspace: &'a Workspace,
    depth_max: usize,
    /// Instead of what git ignores: directories of these names.
    skipped: Option<&'a [&'a str]>,
    cancel: &'a CancellationToken,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(workspace: &'a Workspace, cancel: &'a CancellationToken) -> Self {
        Self {
            workspace,
            depth_max: usize::MAX,
            skipped: None,
            cancel,
        }
    }

    /// Looks no deeper than this: 1 is the directory's own entries.
    pub(crate) fn depth_max(mut self, depth_max: usize) -> Self {
        self.depth_max = depth_max;
        self
    }

    /// Looks at what git ignores too, except into directories of these names.
    pub(crate) fn through_ignored(mut self, skipped: &'a [&'a str]) -> Self {
        self.skipped = Some(skipped);
        self
    }

    /// Visits everything below a resolved directory that git would not ignore,
    /// until `visit` answers false. Answers whether it saw all there was.
    pub(crate) fn each(
        &self,
        start: &Path,
        mut visit: impl FnMut(Found) -> bool,
    ) -> io::Result<bool> {
        let mut seen = 0;
        let mut queue = VecDeque::from([(start.to_owned(), self.rules_above(start), 1)]);
        while let Some((directory, rules, depth)) = queue.pop_front() {
            let entries = match self.entries(&directory) {
                Ok(entries) => entries,
                Err(error) if directory == start => return Err(error),
                // It went away, or may not be read: the rest is still worth seeing.
                Err(_) => continue,
            };
            let rules = self.rules_at(&directory, rules);
            for found in entries {
                seen += 1;
                if seen > ENTRIES_MAX || self.cancel.is_cancelled() {
                    return Ok(false);
                }
                let is_dir = found.kind == FileType::Directory;
                let is_skipped = match self.skipped {
                    Some(names) => names.iter().any(|name| found.path.ends_with(name)),
                    None => ignored(&rules, &found.path, is_dir),
                };
                if found.path.ends_with(".git") || is_skipped {
                    continue;
                }
                if is_dir && depth < self.depth_max {
                    queue.push_back((found.path.clone(), rules.clone(), depth + 1));
                }
                if !visit(found) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn entries(&self, directory: &Path) -> io::Result<Vec<Found>> {
        let handle = self.workspace.open_dir(directory)?;
        let mut found = Vec::new();
        for entry in Dir::read_from(&handle)?.take(ENTRIES_MAX) {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let kind = match entry.file_type() {
                // Some file systems do not say.
                FileType::Unknown => {
                    let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
                    match rustix::fs::statat(&handle, name, flags) {
                        Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                        Err(_) => continue,
                    }
                }
                kind => kind,
            };
            let path = directory.join(os_str(name.to_bytes()));
            found.push(Found { path, kind });
        }
        found.sort_by(|left, right| left.path.cmp(&right.path));
        Ok(found)
    }

    /// The rules of the directories above `start`, which hold below it too.
    fn rules_above(&self, start: &Path) -> Option<Arc<Rules>> {
        let mut above: Vec<&Path> = start.ancestors().skip(1).collect();
        above.reverse();
        let exclude = self.read_ignore(Path::new(".git/info/exclude"));
        let rules = exclude.and_then(|text| Rules::parse(Path::new(""), &[text], None));
        above
            .into_iter()
            .fold(rules, |rules, directory| self.rules_at(directory, rules))
    }

    fn rules_at(&self, directory: &Path, outer: Option<Arc<Rules>>) -> Option<Arc<Rules>> {
        let texts: Vec<_> = [".gitignore", ".ignore"]
            .iter()
            .filter_map(|name| self.read_ignore(&directory.join(name)))
            .collect();
        if texts.is_empty() {
            return outer;
        }
        Rules::parse(directory, &texts, outer)
    }

    fn read_ignore(&self, path: &Path) -> Option<String> {
        let file = self.workspace.open_at(path).ok()?;
        if !file.metadata().ok()?.is_file() {
            return None;
        }
        let mut bytes = Vec::new();
        file.take(IGNORE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// The ignore rules of a directory, and of those around it.
struct Rules {
    here: Gitignore,
    outer: Option<Arc<Rules>>,
}

impl Rules {
    fn parse(root: &Path, texts: &[String], outer: Option<Arc<Self>>) -> Option<Arc<Self>> {
        let mut builder = GitignoreBuilder::new(root);
        for line in texts.iter().flat_map(|text| text.lines()) {
            // A line that git would not understand ignores nothing.
            let _ = builder.add_line(None, line);
        }
        match builder.build() {
            Ok(here) => Some(Arc::new(Self { here, outer })),
            Err(_) => outer,
        }
    }
}

/// Whether the nearest rule that speaks of a path says to ignore it.
fn ignored(rules: &Option<Arc<Rules>>, path: &Path, is_dir: bool) -> bool {
    let mut next = rules.as_ref();
    while let Some(rules) = next {
        match rules.here.matched(path, is_dir) {
            Match::Ignore(_) => return true,
            Match::Whitelist(_) => return false,
            Match::None => next = rules.outer.as_ref(),
        }
    }
    false
}

fn os_str(bytes: &[u8]) -> &std::ffi::OsStr {
    std::os::unix::ffi::OsStrExt::from_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, write};
    use std::os::unix::fs::symlink;

    fn check(start: &str, files: &[(&str, &str)], expected: &[&str]) {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().join("app");
        create_dir_all(&root).unwrap();
        for (path, content) in files {
            let path = root.join(path);
            create_dir_all(path.parent().unwrap()).unwrap();
            match content.strip_prefix("-> ") {
                Some(target) => symlink(target, path).unwrap(),
                None => write(path, content).unwrap(),
            }
        }
        let workspace = Workspace::open(&root).unwrap();
        let cancel = CancellationToken::new();
        let mut seen = Vec::new();
        Walk::new(&workspace, &cancel)
            .each(Path::new(start), |found| {
                seen.push(found.path.display().to_string());
                true
            })
            .unwrap();
        seen.sort();
        assert_eq!(seen, expected);
    }

    #[test]
    fn ignored_files_are_passed_over_and_inner_rules_win() {
        check(
            "",
            &[
                (".gitignore", "/target/\n*.log\n"),
                (".git/config", ""),
                ("target/x", ""),
                ("a.log", ""),
                ("keep/.gitignore", "!b.log\n"),
                ("keep/b.log", ""),
                ("keep/target/y", ""),
            ],
            &[
                ".gitignore",
                "keep",
                "keep/.gitignore",
                "keep/b.log",
                "keep/target",
                "keep/target/y",
            ],
        );
    }

    #[test]
    fn rules_of_the_directories_above_the_start_hold() {
        check(
            "src",
            &[
                (".gitignore", "*.log\n/src/gen\n"),
                (".git/info/exclude", "*.swp\n"),
                ("src/a.rs", ""),
                ("src/a.log", ""),
                ("src/a.swp", ""),
                ("src/gen/b.rs", ""),
            ],
            &["src/a.rs"],
        );
    }

    #[test]
    fn a_symlink_is_seen_and_not_entered() {
        check(
            "",
            &[
                ("a/x", ""),
                ("out", "-> .."),
                ("loop", "-> ."),
                ("in", "-> a"),
            ],
            &["a", "a/x", "in", "loop", "out"],
        );
    }

    #[test]
    fn a_directory_that_is_named_is_walked_even_if_ignored() {
        check(
            "target",
            &[(".gitignore", "/target/\n"), ("target/x", "")],
            &["target/x"],
        );
    }
}
