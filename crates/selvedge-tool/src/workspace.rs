//! The files a tool may touch: a directory handle, and paths below it.
//!
//! A path is resolved from the handle, component by component, by the kernel.
//! No string comparison decides what is inside.

use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;

/// A directory that tools work in.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
    dir: Dir,
}

impl Workspace {
    /// Opens a directory as a workspace.
    pub fn open(root: &Path) -> std::io::Result<Self> {
        let root = root.canonicalize()?;
        let dir = Dir::open_ambient_dir(&root, ambient_authority())?;
        Ok(Self { root, dir })
    }

    /// Where it is, for commands and messages. Files go through `dir`.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The handle that files are reached by.
    pub fn dir(&self) -> &Dir {
        &self.dir
    }
}
