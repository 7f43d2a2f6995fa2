//! The job's own folder: made before the job begins, from what its config says.

use std::io;
use std::path::{Component, Path, PathBuf};

use super::config::JobConfig;
use super::desk::MEMORY;

/// Where jobs have their folders, from the directory they are started in.
const JOBS: &str = "workspace";
const PREFIX: &str = "job_";
/// What every folder has.
const ALWAYS: [&str; 3] = ["documents", "archive", "output"];

/// A job's own folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobFolder {
    /// Where it is.
    pub path: PathBuf,
    /// The inputs, from there.
    pub documents: Vec<String>,
}

/// Why there is no folder.
#[derive(Debug, thiserror::Error)]
#[error("`{path}` cannot be {what}: {why}")]
pub struct FolderError {
    /// What it is about.
    pub path: String,
    /// What was to be done with it.
    pub what: &'static str,
    /// Why it cannot be.
    pub why: String,
}

impl JobFolder {
    /// Makes the folder of job `id` below `base`, with the instructions and the inputs.
    pub fn make(
        base: &Path,
        id: &str,
        config: &JobConfig,
        instructions: &str,
        inputs: &[PathBuf],
    ) -> Result<Self, FolderError> {
        let path = base.join(JOBS).join(format!("{PREFIX}{id}"));
        let failed = |path: &Path, what| {
            let path = path.display().to_string();
            move |error: io::Error| FolderError {
                path,
                what,
                why: error.to_string(),
            }
        };
        let structure = config.workspace.structure.iter().map(String::as_str);
        for name in ALWAYS.into_iter().chain(structure) {
            let folder = path.join(name);
            std::fs::create_dir_all(&folder).map_err(failed(&folder, "made"))?;
        }
        let mut documents: Vec<String> = Vec::new();
        for input in inputs {
            let name = input.file_name().unwrap_or_default().to_string_lossy();
            let mut place = format!("documents/{name}");
            // Two inputs of one name are two documents.
            for n in 2.. {
                if !documents.contains(&place) {
                    break;
                }
                place = format!("documents/{n}_{name}");
            }
            let to = path.join(&place);
            std::fs::copy(input, &to).map_err(failed(input, "copied into the job's folder"))?;
            documents.push(place);
        }
        let listed: Vec<String> = documents.iter().map(|d| format!("- {d}\n")).collect();
        let memory = format!(
            "# Workspace\n\nJob of config `{}`. Instructions: instructions.md\n\n## Inputs\n\n{}",
            config.name(),
            if listed.is_empty() {
                "none\n".into()
            } else {
                listed.concat()
            }
        );
        for (name, text) in [("instructions.md", instructions), (MEMORY, &memory)] {
            let file = path.join(name);
            std::fs::write(&file, text).map_err(failed(&file, "written"))?;
        }
        let path = std::fs::canonicalize(&path).map_err(failed(&path, "found"))?;
        Ok(Self { path, documents })
    }
}

/// The directory that jobs share what they know in: the one that a job's folder was made
/// below, or the folder itself if it is none.
pub fn job_base(folder: &Path) -> &Path {
    let name = folder.file_name().and_then(|name| name.to_str());
    let is_job = name.is_some_and(|name| name.starts_with(PREFIX));
    let above = folder.parent().filter(|above| above.ends_with(JOBS));
    above
        .and_then(Path::parent)
        .filter(|_| is_job)
        .unwrap_or(folder)
}

/// Whether a name of `structure` stays inside of the folder.
pub(super) fn is_inside(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    !name.is_empty() && parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_of_one_directory_share_its_base() {
        assert_eq!(job_base(Path::new("/p/workspace/job_x")), Path::new("/p"));
        assert_eq!(
            job_base(Path::new("/p/other/job_x")),
            Path::new("/p/other/job_x")
        );
        assert_eq!(
            job_base(Path::new("/p/workspace/x")),
            Path::new("/p/workspace/x")
        );
    }

    #[test]
    fn a_structure_stays_inside() {
        for (name, inside) in [("a/b/", true), ("", false), ("../a", false), ("/a", false)] {
            assert_eq!(is_inside(name), inside, "{name}");
        }
    }
}
