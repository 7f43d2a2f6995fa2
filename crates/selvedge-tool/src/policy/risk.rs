//! What a set of changes would let run, or decide, later.
//!
//! Whoever approves a merge or a commit reads the change of a program and thinks of the
//! program. A changed workflow runs with the secrets of a CI server, a changed editor
//! task when the folder is opened, a changed hook of a package on every machine that
//! installs it. So these are listed by themselves, each with its reason.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::site::{Guard, guard};

/// A changed file that does more than it seems to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Risk {
    /// The file, from the root of the workspace.
    pub path: String,
    /// What it does, in words that follow the path.
    pub reason: String,
}

const CI: &str = "runs in CI";
const EDITOR: &str = "runs when the folder is opened in an editor or entered in a shell";
const BUILD: &str = "runs when the project is built or tested";
const INSTALL: &str = "runs when packages are installed, and decides which";
const HOOK: &str = "runs when git is used";
const AGENTS: &str = "tells agents what to do, or which servers to use";
const CONTAINER: &str = "decides what containers and machines run";
const OWNERS: &str = "decides who reviews and what git does with files";

/// Names in lower case, at any depth; one with `/` begins at the root, one that begins
/// with `*` is how a name ends. A folder means everything in it.
const TABLE: &[(&str, &str)] = &[
    (".github/workflows", CI),
    (".github/actions", CI),
    (".github/dependabot.yml", CI),
    (".gitlab-ci.yml", CI),
    (".gitlab", CI),
    (".circleci", CI),
    (".buildkite", CI),
    (".drone.yml", CI),
    (".woodpecker", CI),
    (".woodpecker.yml", CI),
    (".travis.yml", CI),
    ("appveyor.yml", CI),
    ("azure-pipelines.yml", CI),
    ("bitbucket-pipelines.yml", CI),
    ("cloudbuild.yaml", CI),
    ("jenkinsfile", CI),
    (".forgejo", CI),
    (".gitea", CI),
    (".ci", CI),
    ("renovate.json", CI),
    (".vscode", EDITOR),
    (".idea", EDITOR),
    (".zed", EDITOR),
    (".nvim.lua", EDITOR),
    (".exrc", EDITOR),
    (".vimrc", EDITOR),
    (".dir-locals.el", EDITOR),
    ("*.code-workspace", EDITOR),
    (".devcontainer", EDITOR),
    (".envrc", EDITOR),
    (".env", EDITOR),
    ("mise.toml", EDITOR),
    (".mise.toml", EDITOR),
    (".tool-versions", EDITOR),
    ("build.rs", BUILD),
    (".cargo/config.toml", BUILD),
    (".cargo/config", BUILD),
    ("rust-toolchain", BUILD),
    ("rust-toolchain.toml", BUILD),
    ("makefile", BUILD),
    ("gnumakefile", BUILD),
    ("*.mk", BUILD),
    ("cmakelists.txt", BUILD),
    ("*.cmake", BUILD),
    ("configure", BUILD),
    ("configure.ac", BUILD),
    ("meson.build", BUILD),
    ("justfile", BUILD),
    ("taskfile.yml", BUILD),
    ("rakefile", BUILD),
    ("build.gradle", BUILD),
    ("build.gradle.kts", BUILD),
    ("settings.gradle", BUILD),
    ("gradlew", BUILD),
    ("gradle/wrapper", BUILD),
    ("mvnw", BUILD),
    (".mvn", BUILD),
    ("pom.xml", BUILD),
    ("build.xml", BUILD),
    ("build.zig", BUILD),
    ("build", BUILD),
    ("workspace.bazel", BUILD),
    ("module.bazel", BUILD),
    ("*.bzl", BUILD),
    ("conftest.py", BUILD),
    ("noxfile.py", BUILD),
    ("tox.ini", BUILD),
    ("pytest.ini", BUILD),
    ("sitecustomize.py", BUILD),
    ("*.pth", BUILD),
    ("jest.config.js", BUILD),
    ("vite.config.js", BUILD),
    ("vite.config.ts", BUILD),
    ("vitest.config.ts", BUILD),
    ("webpack.config.js", BUILD),
    ("rollup.config.js", BUILD),
    ("eslint.config.js", BUILD),
    ("eslint.config.mjs", BUILD),
    (".eslintrc.js", BUILD),
    (".eslintrc.cjs", BUILD),
    ("babel.config.js", BUILD),
    ("gulpfile.js", BUILD),
    ("gruntfile.js", BUILD),
    ("package.json", INSTALL),
    ("package-lock.json", INSTALL),
    ("npm-shrinkwrap.json", INSTALL),
    ("yarn.lock", INSTALL),
    (".yarnrc", INSTALL),
    (".yarnrc.yml", INSTALL),
    (".yarn", INSTALL),
    ("pnpm-lock.yaml", INSTALL),
    (".pnpmfile.cjs", INSTALL),
    (".npmrc", INSTALL),
    ("binding.gyp", INSTALL),
    ("setup.py", INSTALL),
    ("setup.cfg", INSTALL),
    ("pyproject.toml", INSTALL),
    ("requirements.txt", INSTALL),
    ("pip.conf", INSTALL),
    ("composer.json", INSTALL),
    ("gemfile", INSTALL),
    ("*.gemspec", INSTALL),
    ("extconf.rb", INSTALL),
    ("cargo.toml", INSTALL),
    ("cargo.lock", INSTALL),
    ("go.mod", INSTALL),
    ("go.sum", INSTALL),
    (".husky", HOOK),
    (".githooks", HOOK),
    (".lefthook", HOOK),
    ("lefthook.yml", HOOK),
    (".pre-commit-config.yaml", HOOK),
    (".pre-commit-hooks.yaml", HOOK),
    (".gitmodules", HOOK),
    (".gitattributes", OWNERS),
    (".lfsconfig", HOOK),
    ("codeowners", OWNERS),
    ("dockerfile", CONTAINER),
    ("*.dockerfile", CONTAINER),
    ("containerfile", CONTAINER),
    ("docker-compose.yml", CONTAINER),
    ("docker-compose.yaml", CONTAINER),
    ("compose.yaml", CONTAINER),
    ("compose.yml", CONTAINER),
    ("vagrantfile", CONTAINER),
    ("procfile", CONTAINER),
    ("*.service", CONTAINER),
    ("agents.md", AGENTS),
    ("agents.override.md", AGENTS),
    ("claude.md", AGENTS),
    ("claude.local.md", AGENTS),
    ("gemini.md", AGENTS),
    ("skill.md", AGENTS),
    (".cursorrules", AGENTS),
    (".windsurfrules", AGENTS),
    (".clinerules", AGENTS),
    (".roo", AGENTS),
    (".mcp.json", AGENTS),
    (".claude", AGENTS),
    (".agents", AGENTS),
    (".cursor", AGENTS),
    (".codex", AGENTS),
    (".gemini", AGENTS),
    (".github/copilot-instructions.md", AGENTS),
    (".aider.conf.yml", AGENTS),
];

/// Those of `paths`, from the root of the workspace, that are a risk, in their order.
pub fn risks<'a>(paths: impl IntoIterator<Item = &'a str>) -> Vec<Risk> {
    let risk = |path: &'a str| {
        Some(Risk {
            path: path.to_owned(),
            reason: reason(Path::new(path))?.to_owned(),
        })
    };
    paths.into_iter().filter_map(risk).collect()
}

/// One line that names them all; none if there are none.
pub(super) fn summary(risks: &[Risk]) -> Option<String> {
    let named: Vec<String> = risks
        .iter()
        .map(|risk| format!("`{}` ({})", super::compact(&risk.path), risk.reason))
        .collect();
    (!named.is_empty()).then(|| format!("it changes more than code: {}", named.join(", ")))
}

fn reason(path: &Path) -> Option<&'static str> {
    // To some file systems case does not matter.
    let lower = path.to_string_lossy().to_lowercase();
    let lower = Path::new(lower.trim_start_matches("./"));
    match guard(lower) {
        Some(Guard::Git) => return Some(HOOK),
        Some(Guard::Selvedge) => return Some("decides what agents may do"),
        Some(Guard::Instructions | Guard::Automation) | None => {}
    }
    let is_meant = |name: &str| {
        if let Some(end) = name.strip_prefix('*') {
            return lower.to_string_lossy().ends_with(end);
        }
        match name.contains('/') {
            true => lower.starts_with(name),
            false => lower.iter().any(|part| part == name),
        }
    };
    let found = TABLE.iter().find(|(name, _)| is_meant(name));
    found.map(|(_, reason)| *reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_or_decides_later_is_listed_with_its_reason() {
        for (path, expected) in [
            (".github/workflows/ci.yml", Some(CI)),
            ("./.github/workflows/ci.yml", Some(CI)),
            (".GitHub/Workflows/CI.yml", Some(CI)),
            (".vscode/tasks.json", Some(EDITOR)),
            ("app.code-workspace", Some(EDITOR)),
            ("crates/a/build.rs", Some(BUILD)),
            ("tools/Makefile", Some(BUILD)),
            ("web/package.json", Some(INSTALL)),
            ("setup.py", Some(INSTALL)),
            (".husky/pre-commit", Some(HOOK)),
            (".gitmodules", Some(HOOK)),
            ("docs/AGENTS.md", Some(AGENTS)),
            (".claude/settings.json", Some(AGENTS)),
            ("skills/x/SKILL.md", Some(AGENTS)),
            ("Dockerfile", Some(CONTAINER)),
            (".selvedge/config.toml", Some("decides what agents may do")),
            ("sub/.git/hooks/x", Some(HOOK)),
            // What only sounds like it.
            ("src/main.rs", None),
            ("src/makefile_parser.rs", None),
            ("docs/package.json.md", None),
            ("workflows/ci.yml", None),
            ("src/agents.rs", None),
            ("README.md", None),
        ] {
            assert_eq!(reason(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn whatever_is_guarded_when_it_is_written_is_listed_when_it_is_merged() {
        for path in [
            "AGENTS.override.md",
            "CLAUDE.local.md",
            ".windsurfrules",
            ".cursor/rules/x",
            ".codex/config.toml",
            ".github/copilot-instructions.md",
            ".github/actions/a/action.yml",
            ".circleci/config.yml",
            "Jenkinsfile",
            ".travis.yml",
            "azure-pipelines.yml",
            ".pre-commit-config.yaml",
            ".idea/x.xml",
            ".devcontainer/devcontainer.json",
            ".envrc",
        ] {
            assert!(guard(Path::new(path)).is_some(), "{path} is guarded");
            assert!(reason(Path::new(path)).is_some(), "{path} is listed");
        }
    }

    #[test]
    fn the_table_is_in_lower_case_and_names_nothing_twice() {
        let mut names: Vec<&str> = TABLE.iter().map(|(name, _)| *name).collect();
        assert!(names.iter().all(|name| *name == name.to_lowercase()));
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    }
}
