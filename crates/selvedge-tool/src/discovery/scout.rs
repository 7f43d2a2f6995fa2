//! Looks at a workspace for what tells of its tools.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;

use rustix::fs::FileType;
use tokio_util::sync::CancellationToken;

use super::evidence::{Folder, Survey};
use super::table::TABLE;
use crate::process;
use crate::workspace::{PathError, Walk, Workspace};

/// A file that says which tools are used is not larger.
const FILE_BYTES_MAX: u64 = 256 * 1024;
/// Languages show themselves near the top.
const DEPTH_MAX: usize = 5;
const ENTRIES_MAX: usize = 5_000;
/// Folders below the root in which a project says something of itself.
const INNER: [&str; 5] = [
    ".github/workflows",
    ".circleci",
    ".vscode",
    ".zed",
    ".config",
];

/// What a path, and the folders above it, say.
pub(crate) fn scout(
    workspace: &Workspace,
    cancel: &CancellationToken,
    path: &str,
) -> Result<Survey, PathError> {
    let place = workspace.existing(path)?;
    let is_folder = workspace.open_dir(&place).is_ok();
    let start = match is_folder {
        true => place.as_path(),
        false => place.parent().unwrap_or(Path::new("")),
    };
    let folders = start.ancestors().map(|f| folder(workspace, f)).collect();
    let mut ends = BTreeSet::new();
    let mut entries = 0;
    let walk = Walk::new(workspace, cancel).depth_max(DEPTH_MAX);
    walk.each(start, |found| {
        if found.kind == FileType::RegularFile {
            let end = found.path.extension().and_then(|end| end.to_str());
            let end = end.filter(|end| TABLE.is_of_a_language(end));
            ends.extend(end.map(str::to_owned));
        }
        entries += 1;
        entries < ENTRIES_MAX
    })
    .map_err(|error| PathError::from_io(path, error))?;
    let is_there = |program: &&str| is_installed(workspace, program);
    let installed = TABLE.programs().filter(is_there).map(str::to_owned);
    Ok(Survey {
        folders,
        ends,
        installed: installed.collect(),
    })
}

/// The telling files of a folder, and of those within that belong to it.
fn folder(workspace: &Workspace, path: &Path) -> Folder {
    let mut folder = Folder {
        path: path.to_string_lossy().into_owned(),
        ..Folder::default()
    };
    for inner in [""].iter().chain(&INNER) {
        for name in names(workspace, &path.join(inner)) {
            let shown = match *inner {
                "" => name,
                inner => format!("{inner}/{name}"),
            };
            if TABLE.is_telling(&shown) {
                let text = TABLE
                    .is_read(&shown)
                    .then(|| read(workspace, &path.join(&shown)));
                folder.files.insert(shown, text.flatten());
            }
        }
    }
    folder
}

fn names(workspace: &Workspace, path: &Path) -> Vec<String> {
    let Ok(handle) = workspace.open_dir(path) else {
        return Vec::new();
    };
    let entries = rustix::fs::Dir::read_from(&handle).into_iter().flatten();
    let entries = entries.flatten().take(ENTRIES_MAX);
    let files = entries.filter(|entry| entry.file_type() != FileType::Directory);
    files
        .filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned))
        .collect()
}

fn read(workspace: &Workspace, path: &Path) -> Option<String> {
    let (file, _) = workspace.open_file(&path.to_string_lossy()).ok()?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Whether a program is installed in the project or on the machine.
fn is_installed(workspace: &Workspace, program: &str) -> bool {
    let own = ["node_modules/.bin", ".venv/bin", "venv/bin", "vendor/bin"];
    let mut own = own.iter().map(|folder| Path::new(folder).join(program));
    own.any(|path| workspace.dir().symlink_metadata(path).is_ok())
        || process::find(program, workspace.root()).is_some()
}
