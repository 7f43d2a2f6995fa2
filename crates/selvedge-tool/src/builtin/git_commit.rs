//! Commits exactly the paths that are named, and nothing of the repository's own runs.
//!
//! What is staged already stays staged, and is not committed along.

use std::ffi::OsString;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::git::{Commit, GIT, Git, path as plain};
use crate::policy::{Deed, Operation, risks};
use crate::schema;
use crate::tool::{Tool, ToolContext, ToolOutput, ToolProbe, ToolSpec, World};

pub(super) struct GitCommit;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The commit message.
    #[schemars(length(min = 1))]
    message: String,
    /// The files to commit, new, changed or deleted, relative to the workspace root.
    #[schemars(length(min = 1))]
    paths: Vec<String>,
}

/// What is on record before a commit.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Evidence {
    /// The commit at HEAD; none in a repository without commits.
    head: Option<String>,
    message: String,
}

#[async_trait]
impl Tool for GitCommit {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "git_commit".into(),
            description: "Commit the named files, as they are now, with a message. Nothing else \
                          that is staged or changed is committed."
                .into(),
            schema: schema::of::<Arguments>(),
            world: World::Writes,
        }
    }

    fn deed(&self, input: &Value) -> Deed {
        let paths = input["paths"].as_array().into_iter().flatten();
        Deed::Git {
            operation: Operation::Commit,
            paths: paths.filter_map(Value::as_str).map(str::to_owned).collect(),
        }
    }

    fn bundle(&self) -> Option<&str> {
        Some(GIT)
    }

    async fn prepare(&self, context: &ToolContext, input: &Value) -> Result<Value, ToolOutput> {
        let Arguments { message, paths } = schema::arguments(input)?;
        if message.trim().is_empty() {
            return Err(ToolOutput::error(
                "the commit message is empty: say why the change is made",
            ));
        }
        for path in &paths {
            plain(context, path)?;
        }
        let git = Git::open_to_commit(context).await?;
        let head = git.head().await?.map(|commit| commit.id);
        Ok(json!(Evidence { head, message }))
    }

    async fn run(&self, context: &ToolContext, input: &Value, evidence: &Value) -> ToolOutput {
        commit(context, input, evidence)
            .await
            .unwrap_or_else(|output| output)
    }

    async fn probe(&self, context: &ToolContext, _: &Value, evidence: &Value) -> ToolProbe {
        let Ok(before) = Evidence::deserialize(evidence) else {
            return ToolProbe::Unknown;
        };
        let Ok(git) = Git::open_to_commit(context).await else {
            return ToolProbe::Unknown;
        };
        match git.head().await {
            Ok(now) => judge(&before, now),
            Err(_) => ToolProbe::Unknown,
        }
    }
}

async fn commit(
    context: &ToolContext,
    input: &Value,
    evidence: &Value,
) -> Result<ToolOutput, ToolOutput> {
    let Arguments { message, paths } = schema::arguments(input)?;
    let paths = paths
        .iter()
        .map(|path| plain(context, path))
        .collect::<Result<Vec<_>, _>>()?;
    let git = Git::open_to_commit(context).await?;
    if let Ok(before) = Evidence::deserialize(evidence)
        && before.head != git.head().await?.map(|commit| commit.id)
    {
        return Err(ToolOutput::error(
            "HEAD was moved by somebody else meanwhile; nothing was committed: \
             look at the log, then decide",
        ));
    }
    let with_paths = |arguments: &[&str]| {
        let arguments = arguments.iter().map(OsString::from);
        arguments.chain(paths.iter().map(OsString::from)).collect()
    };
    git.must("stage", with_paths(&["add", "--"])).await?;
    let status = with_paths(&["status", "--porcelain", "--untracked-files=no", "--"]);
    if git.must("see what changed", status).await?.is_empty() {
        return Err(ToolOutput::error(
            "these paths have no changes since the last commit; nothing was committed",
        ));
    }
    let message = format!("--message={message}");
    let arguments = [
        "commit",
        "--quiet",
        "--only",
        "--cleanup=verbatim",
        "--no-verify",
    ];
    let arguments = [&arguments[..], &["--no-edit", &message, "--"]].concat();
    git.must("commit", with_paths(&arguments)).await?;
    match git.head().await? {
        Some(commit) => {
            let mut output = confirm(&commit);
            let names = paths.iter().map(|path| path.to_string_lossy());
            let names: Vec<String> = names.map(Into::into).collect();
            let listed = risks(names.iter().map(String::as_str));
            if !listed.is_empty() {
                output.note("risks", json!(listed));
            }
            Ok(output)
        }
        None => Err(ToolOutput::error(
            "git reported success, yet there is no commit",
        )),
    }
}

/// What the commit at HEAD says of a commit that was begun.
fn judge(before: &Evidence, now: Option<Commit>) -> ToolProbe {
    let Some(now) = now else {
        return match before.head {
            None => ToolProbe::DidNotHappen,
            Some(_) => ToolProbe::Unknown,
        };
    };
    if before.head.as_ref() == Some(&now.id) {
        return ToolProbe::DidNotHappen;
    }
    let follows = now.parents.first() == before.head.as_ref();
    if follows && now.message.trim_end() == before.message.trim_end() {
        return ToolProbe::Happened(confirm(&now));
    }
    ToolProbe::Unknown
}

fn confirm(commit: &Commit) -> ToolOutput {
    let subject = commit.message.lines().next().unwrap_or("");
    ToolOutput::ok(format!("committed `{}`: {subject}", &commit.id[..12]))
        .with_facts(json!({ "commit": commit.id, "parents": commit.parents }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::World;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    /// Runs git as a user would, with no configuration but the repository's.
    fn git(world: &World, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .args(["-c", "user.name=Test", "-c", "user.email=test@localhost"])
            .args(arguments)
            .current_dir(world.root())
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim_end().into()
    }

    fn repository(files: &[(&str, &str)]) -> World {
        let world = World::new(files);
        git(&world, &["init", "--quiet"]);
        world
    }

    #[tokio::test]
    async fn exactly_the_named_paths_are_committed() {
        let world = repository(&[("a", "1"), ("b", "1"), ("*", "1"), ("gone", "1")]);
        let input = json!({"message": "First\n\n# not a comment", "paths": ["a", "gone"]});
        let output = world.call("git_commit", input).await;
        assert!(!output.is_error, "{}", output.text);
        assert_eq!(
            git(&world, &["log", "-1", "--format=%B"]),
            "First\n\n# not a comment"
        );
        git(&world, &["add", "b"]);
        world.write("a", "2");
        std::fs::remove_file(world.root().join("gone")).unwrap();
        let input = json!({"message": "Second", "paths": ["a", "gone", "*"]});
        let output = world.call("git_commit", input).await;
        assert!(!output.is_error, "{}", output.text);
        assert_eq!(git(&world, &["ls-tree", "--name-only", "HEAD"]), "*\na");
        assert_eq!(git(&world, &["diff", "--cached", "--name-only"]), "b");
        assert_eq!(output.facts["commit"], git(&world, &["rev-parse", "HEAD"]));
    }

    #[tokio::test]
    async fn a_commit_says_which_of_its_files_run_later() {
        let world = repository(&[(".github/workflows/ci.yml", "on: push"), ("a", "1")]);
        let paths = |paths: &[&str]| json!({"message": "Change", "paths": paths});
        let input = paths(&[".github/workflows/ci.yml", "a"]);
        let checked = world.check("git_commit", &input.to_string()).unwrap();
        let (workspace, mut policy) = (&world.context.workspace, (*world.context.policy).clone());
        policy.crafts = vec![crate::policy::Craft::Tester];
        let verdict = world
            .toolbox
            .judge(workspace, &policy.into(), &checked)
            .await;
        let reason = verdict.finding.reason;
        assert!(reason.contains("a tester commits"), "{reason}");
        assert!(
            reason.contains("`.github/workflows/ci.yml` (runs in CI)"),
            "{reason}"
        );
        let output = world.call("git_commit", input).await;
        let listed = json!([{"path": ".github/workflows/ci.yml", "reason": "runs in CI"}]);
        assert_eq!(output.facts["risks"], listed, "{}", output.text);
        world.write("a", "2");
        let output = world.call("git_commit", paths(&["a"])).await;
        assert_eq!(
            output.facts["risks"],
            serde_json::Value::Null,
            "{}",
            output.text
        );
    }

    #[tokio::test]
    async fn a_probe_recognizes_its_own_commit() {
        let world = repository(&[("a", "1")]);
        for n in 1..=2 {
            world.write("a", &n.to_string());
            let input = json!({"message": format!("Change {n}"), "paths": ["a"]});
            let (checked, evidence) = world.prepare("git_commit", input).await;
            assert_eq!(evidence["head"].is_null(), n == 1);
            assert_eq!(
                world.probe(&checked, &evidence).await,
                ToolProbe::DidNotHappen
            );
            let output = world.run(&checked, &evidence).await;
            assert!(!output.is_error, "{}", output.text);
            assert_eq!(
                world.probe(&checked, &evidence).await,
                ToolProbe::Happened(output)
            );
            git(
                &world,
                &["commit", "--quiet", "--amend", "-m", "Somebody else's"],
            );
            assert_eq!(world.probe(&checked, &evidence).await, ToolProbe::Unknown);
        }
    }

    #[tokio::test]
    async fn nothing_of_the_repository_runs() {
        let world = repository(&[("a", "1"), (".gitattributes", "* filter=evil\n")]);
        let canary = world.outside().join("canary");
        let touch = format!("touch {}; cat", canary.display());
        let hooks = world.root().join(".git/hooks");
        std::fs::create_dir_all(&hooks).unwrap();
        for name in [
            "pre-commit",
            "prepare-commit-msg",
            "post-commit",
            "post-index-change",
        ] {
            let hook = hooks.join(name);
            std::fs::write(&hook, format!("#!/bin/sh\n{touch}\n")).unwrap();
            std::fs::set_permissions(&hook, Permissions::from_mode(0o755)).unwrap();
        }
        for (name, value) in [
            ("filter.evil.clean", touch.as_str()),
            ("filter.evil.process", &touch),
            ("filter.evil.required", "true"),
            ("core.fsmonitor", &touch),
            ("core.pager", &touch),
            ("core.editor", &touch),
            ("commit.gpgSign", "true"),
            ("gpg.program", &touch),
            ("core.hooksPath", ".git/hooks"),
        ] {
            git(&world, &["config", name, value]);
        }
        let input = json!({"message": "Quiet", "paths": ["a", ".gitattributes"]});
        let output = world.call("git_commit", input).await;
        assert!(!output.is_error, "{}", output.text);
        assert!(!canary.exists(), "something of the repository ran");
    }

    #[tokio::test]
    async fn what_cannot_be_committed_is_explained() {
        let world = repository(&[("a", "1")]);
        std::os::unix::fs::symlink(world.outside(), world.root().join("out")).unwrap();
        std::fs::write(world.outside().join("key"), "").unwrap();
        for (path, expected) in [
            ("nope", "did not match any files"),
            ("?", "did not match any files"),
            (":/", "did not match any files"),
            ("../key", "leads outside"),
            ("out/key", "beyond a symbolic link"),
            ("a/../a", "`..` is not used"),
            (".git/config", "inside `.git`"),
        ] {
            let input = json!({"message": "x", "paths": [path]});
            let output = world.call("git_commit", input).await;
            assert!(
                output.is_error && output.text.contains(expected),
                "{path}: {}",
                output.text
            );
        }
        let input = json!({"message": "x", "paths": ["a"]});
        assert!(!world.call("git_commit", input.clone()).await.is_error);
        let output = world.call("git_commit", input).await;
        assert!(
            output.is_error && output.text.contains("no changes"),
            "{}",
            output.text
        );
        let world = World::new(&[("a", "")]);
        let output = world
            .call("git_commit", json!({"message": "x", "paths": ["a"]}))
            .await;
        assert!(
            output.text.contains("not a git repository"),
            "{}",
            output.text
        );
    }
}
