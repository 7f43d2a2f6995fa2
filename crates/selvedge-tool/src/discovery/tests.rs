use super::evidence::Folder;
use super::*;

/// A survey of these files, by their paths, for the folder `path`.
fn survey(path: &str, files: &[(&str, &str)], installed: &[&str]) -> Survey {
    let mut survey = Survey::default();
    let mut at = Some(std::path::Path::new(path));
    while let Some(folder) = at {
        let folder_path = folder.to_string_lossy().into_owned();
        let inside = files.iter().filter_map(|(file, text)| {
            let name = match folder_path.as_str() {
                "" => file,
                folder => file.strip_prefix(folder)?.strip_prefix('/')?,
            };
            TABLE
                .is_telling(name)
                .then(|| (name.to_owned(), Some((*text).to_owned())))
        });
        survey.folders.push(Folder {
            files: inside.collect(),
            path: folder_path,
        });
        at = folder.parent();
    }
    let ends = files.iter().filter(|(file, _)| file.starts_with(path));
    let ends = ends.filter_map(|(file, _)| file.rsplit_once('.'));
    survey.ends = ends.map(|(_, end)| end.to_owned()).collect();
    survey.installed = installed.iter().map(|name| (*name).to_owned()).collect();
    survey
}

fn found(category: Category, files: &[(&str, &str)], installed: &[&str]) -> Discovery {
    discover(&survey("", files, installed), category, &Choices::new())
}

/// What was found, as `NAME for LANGUAGES`.
fn names(discovery: &Discovery) -> Vec<String> {
    let shown = |f: &Found| format!("{} for {}", f.name, f.languages.join(" "));
    discovery.tools.iter().map(shown).collect()
}

use Category::*;

#[test]
fn a_configuration_file_decides() {
    for (category, files, expected) in [
        (
            Linter,
            &[("eslint.config.mjs", ""), ("a.ts", "")][..],
            "eslint",
        ),
        (Linter, &[(".eslintrc.json", ""), ("a.js", "")], "eslint"),
        (
            Linter,
            &[("a.py", ""), ("pyproject.toml", "[tool.ruff]\n")],
            "ruff",
        ),
        (Linter, &[("Cargo.toml", ""), ("a.rs", "")], "clippy"),
        (Formatter, &[(".prettierrc", ""), ("a.ts", "")], "prettier"),
        (Formatter, &[("biome.json", ""), ("a.ts", "")], "biome"),
        (Formatter, &[("Cargo.toml", ""), ("a.rs", "")], "rustfmt"),
        (TypeChecker, &[("tsconfig.json", ""), ("a.ts", "")], "tsc"),
        (TypeChecker, &[("mypy.ini", ""), ("a.py", "")], "mypy"),
        (TestFramework, &[("go.mod", ""), ("a.go", "")], "go test"),
        (
            TestFramework,
            &[("setup.cfg", "[tool:pytest]\n"), ("a.py", "")],
            "pytest",
        ),
        (Lsp, &[("go.mod", ""), ("a.go", "")], "gopls"),
    ] {
        let discovery = found(category, files, &[]);
        let names: Vec<_> = discovery.tools.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(names, [expected], "{category:?} {files:?}: {discovery:?}");
        assert_eq!(discovery.tier, 1);
        assert_eq!(discovery.tools[0].confidence, Confidence::High);
    }
}

#[test]
fn a_file_that_only_could_hold_a_configuration_does_not_decide() {
    let discovery = found(
        TestFramework,
        &[("setup.cfg", "[metadata]"), ("a.py", "")],
        &[],
    );
    assert!(names(&discovery).is_empty());
    assert_eq!(discovery.open[0].options[0], "pytest");
}

#[test]
fn of_two_that_are_there_the_newer_takes_the_place_of_the_older() {
    for (category, files, expected, other) in [
        (
            Formatter,
            &[("biome.json", ""), (".prettierrc", ""), ("a.ts", "")][..],
            "biome",
            "prettier",
        ),
        (
            Linter,
            &[("ruff.toml", ""), (".flake8", ""), ("a.py", "")],
            "ruff",
            "flake8",
        ),
        (
            TestFramework,
            &[("vitest.config.ts", ""), ("jest.config.js", "")],
            "vitest",
            "jest",
        ),
    ] {
        let discovery = found(category, files, &[]);
        assert_eq!(discovery.tools[0].name, expected);
        assert_eq!(discovery.tools[0].alternatives, [other], "{expected}");
    }
}

#[test]
fn two_that_nobody_ranks_are_asked_about() {
    let discovery = found(
        Linter,
        &[(".flake8", ""), (".pylintrc", ""), ("a.py", "")],
        &[],
    );
    assert!(names(&discovery).is_empty());
    let open = &discovery.open[0];
    assert_eq!(open.why, "the project speaks for more than one");
    assert_eq!(open.options[..2], ["flake8", "pylint"]);
    assert_eq!(discovery.tier, 3);
}

#[test]
fn a_dependency_decides_where_it_is_installed() {
    let manifest = r#"{"devDependencies": {"prettier": "^3.2.0"}}"#;
    let files = [("package.json", manifest), ("a.js", "")];
    let discovery = found(Formatter, &files, &["prettier"]);
    let tool = &discovery.tools[0];
    assert_eq!(
        (tool.name.as_str(), tool.confidence),
        ("prettier", Confidence::Medium)
    );
    assert_eq!(tool.version.as_deref(), Some("^3.2.0"));
    assert!(tool.is_installed && tool.warning.is_some());
    let discovery = found(Formatter, &files, &[]);
    assert_eq!(discovery.open[0].options[0], "prettier");

    let python = [("pyproject.toml", "dev = [\"pytest>=8.0\"]"), ("a.py", "")];
    let discovery = found(TestFramework, &python, &["pytest"]);
    assert_eq!(discovery.tools[0].version.as_deref(), Some(">=8.0"));
    let other = [
        ("pyproject.toml", "dev = [\"pytest-mock>=8.0\"]"),
        ("a.py", ""),
    ];
    assert!(names(&found(TestFramework, &other, &["pytest"])).is_empty());
}

#[test]
fn the_project_s_own_command_is_the_one_to_run() {
    for (files, expected) in [
        (
            [
                (
                    ".github/workflows/ci.yml",
                    "steps:\n  - run: ruff check src tests\n",
                ),
                ("a.py", ""),
            ],
            "ruff check src tests",
        ),
        (
            [
                ("Makefile", "lint:\n\t@uv run ruff check .\n"),
                ("a.py", ""),
            ],
            "uv run ruff check .",
        ),
        (
            [
                ("Makefile", "lint:\n\tcd x && ruff check $(DIR)\n"),
                ("a.py", ""),
            ],
            "ruff check .",
        ),
    ] {
        let discovery = found(Linter, &files, &[]);
        let tool = &discovery.tools[0];
        assert_eq!(
            (tool.name.as_str(), tool.run_command.as_str()),
            ("ruff", expected)
        );
        assert_eq!(
            (tool.source, tool.confidence),
            (Source::Script, Confidence::High)
        );
    }
    let manifest = r#"{"scripts": {"lint": "eslint . --max-warnings 0"}}"#;
    let discovery = found(Linter, &[("package.json", manifest), ("a.js", "")], &[]);
    assert_eq!(discovery.tools[0].run_command, "npm run lint");
    let comment = [
        ("Makefile", "# ruff check is not used here\n"),
        ("a.py", ""),
    ];
    assert!(names(&found(Linter, &comment, &[])).is_empty());
}

#[test]
fn each_language_has_its_own_and_the_nearest_folder_counts_most() {
    let files = [
        ("Cargo.toml", ""),
        ("src/main.rs", ""),
        ("web/package.json", "{}"),
        ("web/eslint.config.js", ""),
        ("web/a.ts", ""),
        (".oxlintrc.json", ""),
    ];
    let whole = found(Linter, &files, &[]);
    assert_eq!(
        names(&whole),
        ["oxlint for javascript typescript", "clippy for rust"]
    );
    let web = discover(&survey("web", &files, &[]), Linter, &Choices::new());
    let typescript = web
        .tools
        .iter()
        .find(|t| t.languages.contains(&"typescript".to_owned()))
        .unwrap();
    assert_eq!(typescript.name, "eslint");
    assert_eq!(
        typescript.config_path.as_deref(),
        Some("web/eslint.config.js")
    );
}

#[test]
fn what_the_user_chose_stands_over_what_is_found() {
    let choices = Choices::from([("python".into(), "pylint".into())]);
    let survey = survey("", &[("ruff.toml", ""), ("a.py", "")], &[]);
    let discovery = discover(&survey, Linter, &choices);
    assert_eq!(names(&discovery), ["pylint for python"]);
    assert_eq!(discovery.tools[0].source, Source::UserChoice);
}

#[test]
fn a_language_without_such_a_tool_is_passed_over() {
    let discovery = found(TypeChecker, &[("run.sh", "")], &[]);
    assert!(names(&discovery).is_empty() && discovery.open.is_empty());
}
