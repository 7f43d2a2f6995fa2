//! Searches files for a regular expression, as git would see them.

use std::io::Read;
use std::path::Path;

use async_trait::async_trait;
use regex::bytes::{Regex, RegexBuilder};
use rustix::fs::FileType;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::blocking;
use super::list_files::filter;
use crate::policy::Deed;
use crate::schema;
use crate::secrets::Secrets;
use crate::tool::{Tool, ToolContext, ToolOutput, ToolSpec, World};
use crate::workspace::{Walk, Workspace};

const MATCHES_MAX: usize = 500;
const MATCHES_PER_FILE_MAX: usize = 100;
const CONTEXT_LINES_MAX: usize = 10;
// Larger files are data: they would take long and match uselessly.
const FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;
const LINE_CHARS_MAX: usize = 300;
const SENSITIVE_SHOWN_MAX: usize = 10;
const BINARY_CHECK_BYTES: usize = 8_000;

pub(super) struct SearchFiles;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// A regular expression, matched line by line. `(?i)` in front ignores case.
    #[schemars(length(min = 1))]
    pattern: String,
    /// A directory or a file, relative to the workspace root. Default: the root.
    path: Option<String>,
    /// Only files that match, such as `*.rs` or `src/**/*.ts`.
    glob: Option<String>,
    /// How many lines to show around a match. Default: 0, most: 10.
    context: Option<usize>,
}

#[async_trait]
impl Tool for SearchFiles {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "search_files".into(),
            description: "Search files for a regular expression, without what .gitignore names. \
                          Answers with `path:line: text`."
                .into(),
            schema: schema::of::<Arguments>(),
            world: World::Reads,
        }
    }

    fn deed(&self, input: &Value) -> Deed {
        Deed::path(input)
    }

    async fn run(&self, context: &ToolContext, input: &Value, _: &Value) -> ToolOutput {
        let arguments: Arguments = match schema::arguments(input) {
            Ok(arguments) => arguments,
            Err(output) => return output,
        };
        let context = context.clone();
        blocking(move || search(&context, &arguments).unwrap_or_else(|output| output)).await
    }
}

fn search(context: &ToolContext, arguments: &Arguments) -> Result<ToolOutput, ToolOutput> {
    let (workspace, cancel) = (&*context.workspace, &context.cancel);
    let pattern = &arguments.pattern;
    let regex = RegexBuilder::new(pattern)
        .size_limit(1 << 22)
        .build()
        .map_err(|error| {
            ToolOutput::error(format!(
                "`{pattern}` is not a valid regular expression: {error}\nescape \
                 characters such as ( [ {{ . * + ? with a backslash to find them literally"
            ))
        })?;
    let path = arguments.path.as_deref().unwrap_or(".");
    let start = workspace.existing(path)?;
    let filter = filter(arguments.glob.as_deref())?;
    let mut hits = Hits {
        regex,
        secrets: context.secrets.clone(),
        sensitive: Vec::new(),
        context: arguments.context.unwrap_or(0).min(CONTEXT_LINES_MAX),
        text: String::new(),
        matches: 0,
        files: 0,
        too_large: 0,
    };
    let is_file = |kind| kind == FileType::RegularFile;
    let is_dir = workspace
        .open_at(&start)
        .and_then(|file| file.metadata())
        .map_err(|error| crate::PathError::from_io(path, error))?
        .is_dir();
    let is_complete = match is_dir {
        false => {
            hits.look_at(workspace, &start);
            true
        }
        true => Walk::new(workspace, cancel)
            .each(&start, |found| {
                let passes = filter
                    .as_ref()
                    .is_none_or(|filter| filter.matched(&found.path, false).is_whitelist());
                if is_file(found.kind) && passes {
                    hits.look_at(workspace, &found.path);
                }
                hits.matches < MATCHES_MAX
            })
            .map_err(|error| crate::PathError::from_io(path, error))?,
    };
    Ok(ToolOutput {
        interrupted: cancel.is_cancelled(),
        ..hits.answer(pattern, is_complete)
    })
}

/// What a search has found so far.
struct Hits {
    regex: Regex,
    secrets: Secrets,
    /// Files that were left out, because their text is not to be shown.
    sensitive: Vec<String>,
    context: usize,
    text: String,
    matches: usize,
    /// How many files were searched.
    files: usize,
    too_large: usize,
}

impl Hits {
    fn look_at(&mut self, workspace: &Workspace, path: &Path) {
        if self.secrets.is_sensitive(path) {
            return self.sensitive.push(format!("`{}`", path.display()));
        }
        let Ok(file) = workspace.open_at(path) else {
            return;
        };
        let Ok(metadata) = file.metadata() else {
            return;
        };
        if !metadata.is_file() {
            return;
        }
        if metadata.len() > FILE_BYTES_MAX {
            self.too_large += 1;
            return;
        }
        let mut content = Vec::with_capacity(metadata.len() as usize);
        if file.take(FILE_BYTES_MAX).read_to_end(&mut content).is_err() {
            return;
        }
        if content[..content.len().min(BINARY_CHECK_BYTES)].contains(&0) {
            return;
        }
        self.files += 1;
        // Most files have no match: one pass tells, without splitting into lines.
        // `^` and `$` are about lines, so with them the pass would not be fair.
        let is_about_lines = self.regex.as_str().contains(['^', '$', '\\']);
        if is_about_lines || self.regex.is_match(&content) {
            self.show(&path.display().to_string(), &content);
        }
    }

    fn show(&mut self, path: &str, content: &[u8]) {
        let lines: Vec<&[u8]> = content
            .split(|byte| *byte == b'\n')
            .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
            .collect();
        let room = MATCHES_PER_FILE_MAX.min(MATCHES_MAX - self.matches);
        let matching: Vec<usize> = (0..lines.len())
            .filter(|index| self.regex.is_match(lines[*index]))
            .collect();
        let mut next = 0;
        for index in matching.iter().take(room) {
            let from = index.saturating_sub(self.context).max(next);
            let until = (index + self.context + 1).min(lines.len());
            if self.context > 0 && from > next && !self.text.is_empty() {
                self.text.push_str("--\n");
            }
            for (offset, line) in lines[from..until].iter().enumerate() {
                let mark = if self.regex.is_match(line) { ':' } else { '-' };
                let line = String::from_utf8_lossy(line);
                let line = &line[..crate::cut::end_of(&line, LINE_CHARS_MAX)];
                let number = from + offset + 1;
                self.text
                    .push_str(&format!("{path}{mark}{number}{mark} {line}\n"));
            }
            next = next.max(until);
        }
        if matching.len() > room {
            let more = matching.len() - room;
            self.text
                .push_str(&format!("[{more} more matching lines in `{path}`]\n"));
        }
        self.matches += matching.len().min(room);
    }

    fn answer(mut self, pattern: &str, is_complete: bool) -> ToolOutput {
        if self.matches == 0 {
            self.text = format!("[no match for `{pattern}` in {} files]\n", self.files);
        }
        if !is_complete && self.matches >= MATCHES_MAX {
            self.text.push_str(&format!(
                "[stopped at {} matches: narrow the pattern, the path or the glob]\n",
                self.matches
            ));
        } else if !is_complete {
            self.text
                .push_str("[not all files were searched: name a `path`]\n");
        }
        if self.too_large > 0 {
            let bytes = FILE_BYTES_MAX;
            self.text.push_str(&format!(
                "[{} files of more than {bytes} bytes were not searched]\n",
                self.too_large
            ));
        }
        if !self.sensitive.is_empty() {
            let count = self.sensitive.len();
            self.sensitive.truncate(SENSITIVE_SHOWN_MAX);
            let names = self.sensitive.join(", ");
            self.text.push_str(&format!(
                "[not searched, because they are sensitive: {names} ({count} in all)]\n"
            ));
        }
        let facts = json!({ "matches": self.matches, "files_searched": self.files });
        ToolOutput::ok(self.text).with_facts(facts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::World;

    async fn check(world: &World, input: Value, expected: &str) {
        let output = world.call("search_files", input.clone()).await;
        assert_eq!(output.text, expected, "{input}");
    }

    #[tokio::test]
    async fn matches_are_shown_with_path_and_line() {
        let world = World::new(&[
            (".gitignore", "target\n"),
            ("target/a.rs", "fn main"),
            ("src/a.rs", "use x;\nfn main() {}\n"),
            ("notes.txt", "fn main\n"),
        ]);
        world.write("bin", "\0fn main");
        check(
            &world,
            json!({"pattern": r"^fn \w+"}),
            "notes.txt:1: fn main\nsrc/a.rs:2: fn main() {}\n",
        )
        .await;
        let input = json!({"pattern": "fn main", "glob": "*.rs"});
        check(&world, input, "src/a.rs:2: fn main() {}\n").await;
        let input = json!({"pattern": "fn main", "path": "notes.txt"});
        check(&world, input, "notes.txt:1: fn main\n").await;
        let input = json!({"pattern": "nothing like it", "path": "src"});
        check(
            &world,
            input,
            "[no match for `nothing like it` in 1 files]\n",
        )
        .await;
    }

    #[tokio::test]
    async fn context_lines_are_marked_and_not_repeated() {
        let world = World::new(&[("a", "1\nhit\n3\nhit\n5\n6\n7\nhit\n")]);
        check(
            &world,
            json!({"pattern": "hit", "context": 1}),
            "a-1- 1\na:2: hit\na-3- 3\na:4: hit\na-5- 5\n--\na-7- 7\na:8: hit\na-9- \n",
        )
        .await;
    }

    #[tokio::test]
    async fn an_invalid_pattern_is_explained() {
        let world = World::new(&[]);
        let output = world.call("search_files", json!({"pattern": "foo("})).await;
        assert!(output.is_error, "{}", output.text);
        assert!(output.text.contains("unclosed group"), "{}", output.text);
        assert!(output.text.contains("backslash"), "{}", output.text);
    }

    #[tokio::test]
    async fn nothing_outside_is_searched() {
        let world = World::new(&[("a", "")]);
        std::fs::write(world.outside().join("key"), "canary").unwrap();
        std::os::unix::fs::symlink("..", world.root().join("out")).unwrap();
        std::os::unix::fs::symlink("../key", world.root().join("key")).unwrap();
        for path in [".", "out", "..", "key"] {
            let input = json!({"pattern": "can.ry", "path": path});
            let output = world.call("search_files", input).await;
            assert!(!output.text.contains("canary"), "{}", output.text);
        }
    }

    #[tokio::test]
    async fn a_sensitive_file_is_named_and_not_searched() {
        let world = World::new(&[("app/.env", "MODE=fast\n"), ("a.md", "fast\n")]);
        check(
            &world,
            json!({"pattern": "fast"}),
            "a.md:1: fast\n[not searched, because they are sensitive: `app/.env` (1 in all)]\n",
        )
        .await;
        let output = world
            .call(
                "search_files",
                json!({"pattern": "fast", "path": "app/.env"}),
            )
            .await;
        assert!(!output.text.contains("MODE"), "{}", output.text);
    }

    #[tokio::test]
    async fn a_flood_of_matches_is_stopped() {
        let world = World::new(&[]);
        for n in 0..10 {
            world.write(&format!("{n}"), &"hit\n".repeat(150));
        }
        let output = world.call("search_files", json!({"pattern": "hit"})).await;
        assert_eq!(output.facts["matches"], 500);
        assert!(
            output.text.contains("[50 more matching lines in `0`]"),
            "{}",
            output.text
        );
        assert!(
            output.text.contains("stopped at 500 matches"),
            "{}",
            output.text
        );
    }
}
