//! The folder of a skill: what is in it, and whether that is what it was.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cap_std::fs::Dir;

use super::file::{SkillFault, SkillFile};
use crate::workspace::Workspace;

/// The file that makes a folder a skill.
pub(super) const SKILL_FILE: &str = "SKILL.md";
/// How long it may be, how many files a skill is looked through for, how deep, and how
/// much of each counts.
const SKILL_BYTES_MAX: u64 = 128 * 1024;
const FILES_MAX: usize = 500;
const DEPTH_MAX: usize = 6;
const HASHED_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// What is in the folder of a skill.
pub(crate) struct Contents {
    /// Its files, by path.
    pub(crate) files: Vec<Bundled>,
    /// The hash of each.
    hashes: Vec<blake3::Hash>,
}

/// A file of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bundled {
    /// From the skill's folder.
    pub(crate) path: String,
    /// Whether it is there to be run.
    pub(crate) is_code: bool,
}

impl Contents {
    /// Looks through a folder; `None` if it cannot be read, or is too large to be
    /// vouched for.
    pub(crate) fn read(folder: &Workspace) -> Option<Self> {
        let mut contents = Self {
            files: Vec::new(),
            hashes: Vec::new(),
        };
        contents.walk(folder.dir(), Path::new(""), 0)?;
        Some(contents)
    }

    fn walk(&mut self, dir: &Dir, below: &Path, depth: usize) -> Option<()> {
        let mut names = Vec::new();
        for entry in dir.entries().ok()? {
            names.push(entry.ok()?.file_name());
        }
        names.sort();
        for name in names {
            let path = below.join(&name);
            let kind = dir.symlink_metadata(&name).ok()?.file_type();
            if kind.is_dir() {
                (depth < DEPTH_MAX).then_some(())?;
                self.walk(&dir.open_dir(&name).ok()?, &path, depth + 1)?;
                continue;
            }
            let text = path.to_str()?.to_owned();
            (self.files.len() < FILES_MAX).then_some(())?;
            let (hash, is_executable) = match kind.is_file() {
                true => hash(dir, Path::new(&name))?,
                // A link, a pipe: what it leads to is not the skill's.
                false => (blake3::hash(b"no file"), false),
            };
            let is_code = is_executable || text.starts_with("scripts/");
            self.files.push(Bundled {
                path: text,
                is_code,
            });
            self.hashes.push(hash);
        }
        Some(())
    }

    /// What stands for all files together.
    pub(crate) fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for (file, hash) in self.files.iter().zip(&self.hashes) {
            hasher.update(&(file.path.len() as u64).to_le_bytes());
            hasher.update(file.path.as_bytes());
            hasher.update(hash.as_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }

    /// Whether it has something that could be run.
    pub(crate) fn brings_code(&self) -> bool {
        self.files.iter().any(|file| file.is_code)
    }
}

fn hash(dir: &Dir, name: &Path) -> Option<(blake3::Hash, bool)> {
    let file = dir.open(name).ok()?;
    let metadata = file.metadata().ok()?;
    let is_executable = file
        .try_clone()
        .ok()?
        .into_std()
        .metadata()
        .ok()?
        .permissions()
        .mode()
        & 0o111
        != 0;
    (metadata.len() <= HASHED_BYTES_MAX).then_some(())?;
    let mut hasher = blake3::Hasher::new();
    std::io::copy(&mut file.take(HASHED_BYTES_MAX), &mut hasher).ok()?;
    Some((hasher.finalize(), is_executable))
}

/// The `SKILL.md` of a folder called `name`.
pub(crate) fn skill_file(folder: &Workspace, name: &str) -> Result<SkillFile, SkillFault> {
    let unreadable = |why: String| SkillFault::Unreadable(why);
    let opened = folder.open_file(SKILL_FILE);
    let (file, _) = opened.map_err(|e| unreadable(e.to_string()))?;
    let bytes = file.metadata().map_or(0, |metadata| metadata.len());
    if bytes > SKILL_BYTES_MAX {
        return Err(SkillFault::TooLong {
            bytes,
            bytes_max: SKILL_BYTES_MAX,
        });
    }
    let mut text = String::new();
    file.take(SKILL_BYTES_MAX)
        .read_to_string(&mut text)
        .map_err(|e| unreadable(e.to_string()))?;
    SkillFile::parse(name, &text)
}

/// Checks the folder of one skill: what its file says, and the names of its others.
pub fn check_skill(folder: &Path) -> Result<(SkillFile, Vec<PathBuf>), SkillFault> {
    let unreadable = |e: std::io::Error| SkillFault::Unreadable(e.to_string());
    let folder = Workspace::open(folder).map_err(unreadable)?;
    let name = folder.root().file_name().unwrap_or_default();
    let file = skill_file(&folder, &name.to_string_lossy())?;
    let contents = Contents::read(&folder).ok_or_else(|| {
        SkillFault::Unreadable(format!(
            "its folder has more than {FILES_MAX} files, files over {} MB, or what cannot be read",
            HASHED_BYTES_MAX >> 20
        ))
    })?;
    let others = contents.files.into_iter().map(|file| file.path);
    let others = others.filter(|path| path != SKILL_FILE);
    Ok((file, others.map(PathBuf::from).collect()))
}
