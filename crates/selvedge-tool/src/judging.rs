//! Judging a call where it would happen: paths resolved, scripts read.
//!
//! The decision itself is `policy::judge`, which looks at nothing but its arguments.
//! This gathers them, and what an approval of the call would be bound to.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use crate::policy::{Act, Bound, Decision, Deed, Policy, Site, Verdict, judge_with_scripts};
use crate::process;
use crate::secrets::Wanted;
use crate::tool::{ToolSpec, World};
use crate::workspace::Workspace;

/// What is run and longer than this is not read; its length and name stand for it.
const SCRIPT_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// What is to be judged, owned, so that it can be done where it may block.
pub(crate) struct Case {
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) policy: Arc<Policy>,
    pub(crate) spec: ToolSpec,
    pub(crate) deed: Deed,
    pub(crate) input: Value,
    /// Credentials that would be used for the first time.
    pub(crate) wanted: Vec<Wanted>,
}

impl Case {
    /// Whether files must be looked at. Who reads a file is asked where it leads only
    /// if there are rules about that.
    pub(crate) fn looks_at_files(&self) -> bool {
        match self.deed {
            Deed::Command { .. } => true,
            Deed::Files { .. } => self.spec.world != World::Reads || !self.policy.layers.is_empty(),
            Deed::Git { .. } | Deed::Remote { .. } | Deed::Other => false,
        }
    }

    /// The verdict, with its digests where somebody may be asked.
    pub(crate) fn judge(self) -> Verdict {
        let looks_at_files = self.looks_at_files();
        let Self {
            workspace,
            policy,
            spec,
            deed,
            input,
            wanted,
        } = self;
        let deed = match looks_at_files {
            true => resolved(&workspace, spec.world, deed),
            false => deed,
        };
        let definition = match &deed {
            Deed::Remote { definition, .. } => Some(definition.clone()),
            _ => None,
        };
        let act = Act {
            tool: &spec.name,
            world: spec.world,
            deed,
        };
        let site = Site::of(workspace.root());
        let (mut verdict, scripts) = judge_with_scripts(&policy, &site, &act);
        let is_about_credentials_only = verdict.decision() == Decision::Allow;
        if let Some(first) = wanted.first() {
            verdict = verdict.with_consent(first);
        }
        if verdict.decision() == Decision::Ask {
            let bound = Bound {
                tool: &spec.name,
                arguments: &input,
                workspace: workspace.root().display().to_string(),
                fence: policy.fence.as_deref(),
                scripts: scripts
                    .iter()
                    .map(|path| (path.display().to_string(), hash(&workspace, path)))
                    .collect(),
                definition: definition.as_deref(),
            };
            let names = process::environment().into_iter();
            let mut names: Vec<String> = names
                .map(|(name, _)| name.to_string_lossy().into_owned())
                .collect();
            names.sort();
            verdict.digest = bound.digest(&names);
            verdict.lasting = match wanted.first().filter(|_| is_about_credentials_only) {
                // Agreed to is the use of a credential, not one call.
                Some(wanted) => consent_to(wanted),
                None => bound.lasting(),
            };
        }
        verdict
    }
}

/// What an agreement to use a credential is remembered by.
fn consent_to(wanted: &Wanted) -> String {
    let text = format!("consent\0{}\0{}", wanted.agent, wanted.provider);
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

/// The same deed with the places that its paths lead to: a link to a guarded file
/// is that file.
fn resolved(workspace: &Workspace, world: World, deed: Deed) -> Deed {
    let place = |path: String| {
        let place = match world {
            World::Reads => workspace.existing(&path),
            _ => workspace.destination(&path),
        };
        // The tool itself refuses a path that leads nowhere.
        place.map_or(path, |place: PathBuf| place.to_string_lossy().into_owned())
    };
    match deed {
        Deed::Files { paths } => Deed::Files {
            paths: paths.into_iter().map(place).collect(),
        },
        Deed::Command { command, cwd } => Deed::Command {
            cwd: place(cwd),
            command,
        },
        other => other,
    }
}

fn hash(workspace: &Workspace, path: &Path) -> String {
    let mut hasher = blake3::Hasher::new();
    let read = workspace
        .open_file(&path.to_string_lossy())
        .map(|(file, _)| {
            let mut bytes = Vec::new();
            let length = file.metadata().map_or(0, |metadata| metadata.len());
            hasher.update(&length.to_le_bytes());
            let _ = file.take(SCRIPT_BYTES_MAX).read_to_end(&mut bytes);
            hasher.update(&bytes);
        });
    match read {
        Ok(()) => hasher.finalize().to_hex().to_string(),
        // What is not there now must not be there later, either.
        Err(_) => "absent".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::World;
    use serde_json::json;

    async fn judge(world: &World, tool: &str, input: Value) -> Verdict {
        let checked = world.check(tool, &input.to_string()).unwrap();
        let context = &world.context;
        world
            .toolbox
            .judge(&context.workspace, &context.policy, &checked)
            .await
    }

    #[tokio::test]
    async fn an_approval_is_bound_to_the_bytes_of_the_scripts_that_run() {
        let world = World::new(&[("run.sh", "echo one"), ("sub/run.sh", "echo three")]);
        let input = json!({"command": "sudo bash run.sh"});
        let first = judge(&world, "run_command", input.clone()).await;
        assert_eq!(first.decision(), Decision::Ask);
        assert_eq!(judge(&world, "run_command", input.clone()).await, first);
        world.write("run.sh", "echo two");
        let second = judge(&world, "run_command", input.clone()).await;
        assert_ne!(second.digest, first.digest);
        assert_ne!(second.lasting, first.lasting);
        std::fs::remove_file(world.root().join("run.sh")).unwrap();
        let third = judge(&world, "run_command", input).await;
        assert_ne!(third.digest, second.digest);
        let elsewhere = json!({"command": "sudo bash run.sh", "cwd": "sub"});
        let fourth = judge(&world, "run_command", elsewhere).await;
        assert_ne!(fourth.digest, first.digest);
    }

    #[tokio::test]
    async fn a_link_to_a_guarded_file_is_that_file() {
        let world = World::new(&[("AGENTS.md", "be kind"), (".selvedge/config.toml", "")]);
        for (link, target) in [("notes.md", "AGENTS.md"), ("conf", ".selvedge")] {
            std::os::unix::fs::symlink(target, world.root().join(link)).unwrap();
        }
        for (path, expected) in [
            ("notes.md", Decision::Ask),
            ("conf/config.toml", Decision::Deny),
            ("other.md", Decision::Allow),
        ] {
            let input = json!({"path": path, "content": "x"});
            let verdict = judge(&world, "write_file", input).await;
            assert_eq!(verdict.decision(), expected, "{path}");
        }
    }

    #[tokio::test]
    async fn an_approval_of_a_write_is_bound_to_its_content() {
        let world = World::new(&[]);
        let write = |text: &str| json!({"path": "AGENTS.md", "content": text});
        let first = judge(&world, "write_file", write("a")).await;
        let second = judge(&world, "write_file", write("b")).await;
        assert_eq!(first.decision(), Decision::Ask);
        assert_ne!(first.digest, second.digest);
    }
}
