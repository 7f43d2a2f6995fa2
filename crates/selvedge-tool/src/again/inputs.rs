//! What a command's answer follows from, as one digest.
//!
//! The contents of the files it reads, and the names of all others: a linter may care
//! whether a file exists that it does not open. Ignored files count, for a linter may
//! read them; folders of packages and caches do not.

use std::fs::Metadata;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Dir, FileType};
use tokio_util::sync::CancellationToken;

use super::table::{Known, TABLE};
use crate::policy::glob;
use crate::process;
use crate::workspace::Workspace;

/// More than this is not looked at: running the command is cheaper.
const FILES_MAX: usize = 20_000;
const BYTES_MAX: u64 = 64 * 1024 * 1024;
const DEPTH_MAX: usize = 64;

/// The digest; `None` if something cannot be looked at.
pub(super) fn digest(
    workspace: &Workspace,
    cancel: &CancellationToken,
    known: &Known,
    cwd: &str,
    call: &str,
) -> Option<String> {
    let mut look = Look {
        workspace,
        cancel,
        known,
        hasher: blake3::Hasher::new(),
        files: 0,
        bytes: 0,
    };
    look.field(call.as_bytes());
    look.field(workspace.root().as_os_str().as_encoded_bytes());
    let here = workspace
        .existing(if cwd.is_empty() { "." } else { cwd })
        .ok()?;
    for program in &known.programs {
        look.program(&here, program)?;
    }
    if known.command.packages {
        look.packages()?;
    }
    for folder in workspace.root().ancestors().skip(1) {
        look.above(folder);
    }
    look.folder(Path::new(""), 0)?;
    Some(look.hasher.finalize().to_hex().to_string())
}

struct Look<'a> {
    workspace: &'a Workspace,
    cancel: &'a CancellationToken,
    known: &'a Known,
    hasher: blake3::Hasher,
    files: usize,
    bytes: u64,
}

impl Look<'_> {
    /// Adds bytes so that two of them cannot be taken for one.
    fn field(&mut self, bytes: &[u8]) {
        self.hasher.update(&(bytes.len() as u64).to_le_bytes());
        self.hasher.update(bytes);
    }

    /// Adds which program runs, as it is on disk.
    fn program(&mut self, here: &Path, name: &str) -> Option<()> {
        let root = self.workspace.root();
        let path = match name.contains('/') {
            true => root.join(here).join(name),
            false => process::find(name, root).or_else(|| self.installed(name))?,
        };
        let path = path.canonicalize().ok()?;
        let metadata = path.metadata().ok()?;
        self.field(path.as_os_str().as_encoded_bytes());
        self.field(format!("{:?}", identity(&metadata)).as_bytes());
        Some(())
    }

    /// A program that a runner finds in the workspace.
    fn installed(&self, name: &str) -> Option<PathBuf> {
        let is_run = self.known.programs.len() > 1;
        let places = ["node_modules/.bin", ".venv/bin"];
        let mut places = places.iter().filter(|_| is_run);
        places.find_map(|place| {
            let path = self.workspace.root().join(place).join(name);
            path.is_file().then_some(path)
        })
    }

    /// Adds which packages are installed; fails if nothing says so.
    fn packages(&mut self) -> Option<()> {
        let mut is_known = !self.workspace.root().join("node_modules").is_dir();
        for name in &TABLE.packages {
            match std::fs::read(self.workspace.root().join(name)) {
                Ok(content) => {
                    is_known |= name.starts_with("node_modules/");
                    self.field(name.as_bytes());
                    self.field(&content);
                }
                Err(_) => self.field(b""),
            }
        }
        is_known.then_some(())
    }

    /// Adds what a folder above the workspace says to such commands.
    fn above(&mut self, folder: &Path) {
        for name in &TABLE.above {
            let path = folder.join(name);
            if let Ok(metadata) = path.metadata() {
                self.field(path.as_os_str().as_encoded_bytes());
                self.field(format!("{:?}", identity(&metadata)).as_bytes());
            }
        }
    }

    fn folder(&mut self, folder: &Path, depth: usize) -> Option<()> {
        if depth > DEPTH_MAX || self.cancel.is_cancelled() {
            return None;
        }
        let handle = self.workspace.open_dir(folder).ok()?;
        let mut entries = Vec::new();
        for entry in Dir::read_from(&handle).ok()? {
            let entry = entry.ok()?;
            let name = String::from_utf8(entry.file_name().to_bytes().to_vec()).ok()?;
            if name != "." && name != ".." && !TABLE.skip.contains(&name) {
                entries.push((name, entry.file_type()));
            }
            self.files += 1;
            if self.files > FILES_MAX {
                return None;
            }
        }
        entries.sort_by(|left, right| left.0.cmp(&right.0));
        for (name, kind) in entries {
            let path = folder.join(&name);
            self.field(path.as_os_str().as_encoded_bytes());
            match kind {
                FileType::Directory => self.folder(&path, depth + 1)?,
                FileType::RegularFile => self.file(&path, &name)?,
                FileType::Symlink => {
                    let target = self.workspace.dir().read_link_contents(&path).ok()?;
                    self.field(target.as_os_str().as_encoded_bytes());
                    // What it leads to may be elsewhere, and change there.
                    let is_inside = self.workspace.existing(&path.to_string_lossy()).is_ok();
                    is_inside.then_some(())?;
                }
                // Some file systems do not say, and the rest is nothing to lint.
                _ => return None,
            }
        }
        // A folder that ends is not one that goes on.
        self.field(b"/");
        Some(())
    }

    fn file(&mut self, path: &Path, name: &str) -> Option<()> {
        let inputs = &self.known.command.inputs;
        if !inputs.iter().any(|pattern| glob(pattern, name)) {
            return Some(());
        }
        let file = self.workspace.open_at(path).ok()?;
        let left = BYTES_MAX - self.bytes;
        let mut content = Vec::new();
        file.take(left + 1).read_to_end(&mut content).ok()?;
        self.bytes += content.len() as u64;
        if self.bytes > BYTES_MAX {
            return None;
        }
        self.field(&content);
        Some(())
    }
}

/// What tells one state of a file outside of the workspace from another.
fn identity(metadata: &Metadata) -> (u64, u64, u64, i64, i64) {
    (
        metadata.dev(),
        metadata.ino(),
        metadata.len(),
        metadata.mtime(),
        metadata.mtime_nsec(),
    )
}
