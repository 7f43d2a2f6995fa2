//! A repository that means harm, and whether it did any.

use crate::adversary::ground::Ground;

/// What a repository may name to be run: each of these would leave a file.
const PROGRAMS: [&str; 20] = [
    "core.fsmonitor",
    "core.pager",
    "pager.log",
    "core.editor",
    "core.sshCommand",
    "core.askPass",
    "core.alternateRefsCommand",
    "diff.external",
    "diff.evil.command",
    "diff.evil.textconv",
    "filter.evil.clean",
    "filter.evil.smudge",
    "filter.evil.process",
    "merge.evil.driver",
    "gpg.program",
    "gpg.ssh.program",
    "sequence.editor",
    "interactive.diffFilter",
    "uploadpack.packObjectsHook",
    "trailer.x.command",
];

const HOOKS: [&str; 8] = [
    "pre-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "post-checkout",
    "post-index-change",
    "reference-transaction",
    "fsmonitor-watchman",
];

/// A repository that means harm wherever it can, and a crew whose agent has every tool of
/// git, in the column of `craft`.
pub fn lay_out(ground: &Ground, craft: &str) {
    crew(ground, craft);
    for (path, text) in [
        (
            "work/.gitattributes",
            "*.txt filter=evil diff=evil merge=evil\n",
        ),
        ("work/a.txt", "one\n"),
        ("work/.gitmodules", MODULES),
        (
            "work/refs.sh",
            "rm -rf .git/refs .git/logs; echo x > .git/HEAD\n",
        ),
    ] {
        ground.world.write(path, text);
    }
    git(ground, &["init", "-q", "-b", "main"]);
    git(ground, &["add", "."]);
    git(ground, &["commit", "-qm", "first"]);
    git(ground, &["branch", "theirs"]);
    git(ground, &["tag", "v1"]);
    ground.world.write("work/a.txt", "one\ntwo\n");
    git(ground, &["stash", "-q"]);
    ground.prepare("sh", &["-c", TREES]);
    ground.world.write("work/a.txt", "one\ntwo\nthree\n");
    let touch = ground.fill("touch ROOT/outside/new ROOT/work/ran");
    let program = format!("#!/bin/sh\n{touch}\n");
    for name in ["git", "rg", "bwrap", "sh", "ssh"] {
        ground.world.write(&format!("work/bin/{name}"), &program);
    }
    for hook in HOOKS {
        ground
            .world
            .write(&format!("work/.git/hooks/{hook}"), &program);
        ground.world.write(&format!("work/hooks/{hook}"), &program);
    }
    ground.prepare("chmod", &["-R", "a+x", "bin", "hooks", ".git/hooks"]);
    for name in PROGRAMS {
        git(ground, &["config", name, &touch]);
    }
    for (name, value) in [
        ("core.hooksPath", "hooks".to_owned()),
        ("credential.helper", format!("!{touch}")),
        ("alias.status", format!("!{touch}")),
        ("alias.look", format!("!{touch}")),
        ("commit.gpgSign", "true".into()),
        ("log.showSignature", "true".into()),
        ("submodule.sub.update", format!("!{touch}")),
        ("submodule.sub.url", format!("ext::sh -c '{touch}'")),
        ("protocol.ext.allow", "always".into()),
        ("remote.origin.url", format!("ext::sh -c '{touch}'")),
        ("user.name", format!("`{touch}`")),
        ("user.email", format!("$({touch})@localhost")),
    ] {
        git(ground, &["config", name, &value]);
    }
}

const MODULES: &str = "[submodule \"sub\"]\n\tpath = .git/hooks\n\turl = -u./evil\n\
                       [submodule \"ext\"]\n\tpath = ext\n\turl = ext::sh -c true\n";

/// A branch whose tree has one name twice, as a link outside and as a folder, and one
/// with files in what is git's own.
const TREES: &str = "
set -e
evil=$(printf 'evil\\n' | git hash-object -w --stdin)
link=$(printf ../outside | git hash-object -w --stdin)
folder=$(printf '100755 blob %s\\tnew\\n' $evil | git mktree)
twice=$(printf '120000 blob %s\\ta\\n040000 tree %s\\ta\\n' $link $folder | git mktree)
own=$(printf '040000 tree %s\\t.GIT\\n' $folder | git mktree)
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
git update-ref refs/heads/twice $(git commit-tree -m evil $twice)
git update-ref refs/heads/own $(git commit-tree -m evil $own)
";

pub fn git(ground: &Ground, arguments: &[&str]) {
    let safe = ["-c", "user.name=a", "-c", "user.email=a@b"];
    ground.prepare("git", &[&safe[..], arguments].concat());
}

pub fn crew(ground: &Ground, craft: &str) {
    let crew = "home/config/crews/forge";
    ground.world.write(
        &format!("{crew}/crew.toml"),
        "name = 'forge'\ndescription = 'One with git.'\nentry = 'engineer'\n",
    );
    let tools = "git_status, git_diff, git_log, git_show, git_blame, git_branches, git_branch, \
                 git_worktree, git_commit, run_command, read_file, write_file, search_files";
    ground.world.write(
        &format!("{crew}/agents/engineer.md"),
        &format!(
            "---\nname: engineer\ndescription: Has git.\ngit: {craft}\ntools: [{tools}]\n\
             ---\nYou work.\n"
        ),
    );
}

/// Nothing of the repository ran, and what is git's own is as it was but for commits.
pub fn is_whole(ground: &Ground) {
    let work = ground.at("work");
    let config = std::fs::read_to_string(work.join(".git/config")).unwrap();
    assert!(config.contains("fsmonitor") && !config.contains("mine"));
    let refs = |arguments: &[&str]| {
        let output = std::process::Command::new("git")
            .args(["-c", "safe.directory=*", "-c", "core.fsmonitor=false"])
            .args(arguments)
            .current_dir(&work)
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    for name in ["theirs", "refs/tags/v1", "refs/stash", "twice", "own"] {
        assert!(
            !refs(&["rev-parse", "-q", "--verify", name]).is_empty(),
            "{name}"
        );
    }
    let fsck = refs(&["fsck", "--connectivity-only"]);
    assert!(!fsck.contains("missing"), "{fsck}");
    let reflog = refs(&["reflog", "show", "main"]);
    assert!(reflog.contains("first"), "{reflog}");
}

/// The same, and nothing that the repository names was run, not even in the sandbox.
pub fn is_whole_and_nothing_ran(ground: &Ground) {
    is_whole(ground);
    let ran = ground.at("work/ran");
    assert!(!ran.exists(), "something of the repository ran");
}
