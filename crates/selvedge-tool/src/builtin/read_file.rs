//! Reads a text file, or an earlier result, a page at a time.
//!
//! The text is given as it is, so that a piece of it can be used as `old` in an
//! edit. Only a page that is not the whole has a line above it that says so.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::blocking;
use crate::policy::Deed;
use crate::schema;
use crate::secrets;
use crate::tool::{Tool, ToolContext, ToolOutput, ToolSpec, World};
use crate::workspace::PathError;

const PAGE_LINES: u64 = 2_000;
const PAGE_BYTES_MAX: usize = 256 * 1024;
// How far a page is looked for: an endless line, or a sparse file of a terabyte, is
// given up here.
const SCAN_BYTES_MAX: u64 = 256 * 1024 * 1024;
// Git looks at as much to tell text from binary.
const BINARY_CHECK_BYTES: usize = 8_000;
// More names than fit into this are not read.
const STUB_BYTES_MAX: u64 = 64 * 1024;
const RESULT_PREFIX: &str = "@result/";

pub(super) struct ReadFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The file, relative to the workspace root; or `@result/NAME`, the whole of an
    /// earlier result.
    #[schemars(length(min = 1))]
    path: String,
    /// The first line to read, counted from 1. Default: 1.
    #[schemars(range(min = 1))]
    offset: Option<u64>,
    /// How many lines to read. Default: 2000, which is also the most.
    #[schemars(range(min = 1))]
    limit: Option<u64>,
}

#[async_trait]
impl Tool for ReadFile {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "read_file".into(),
            description: "Read a text file. A long one comes in pages: continue with the `offset` \
                          that the first line of the answer names."
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
        if let Some(name) = arguments.path.strip_prefix(RESULT_PREFIX) {
            return match context.results.result(name).await {
                Some(text) => answer(&arguments, text.len() as u64, Cursor::new(text.as_bytes())),
                None => ToolOutput::error(format!(
                    "there is no earlier result `{}`: use a name that a shortened result gave",
                    arguments.path
                )),
            };
        }
        let (workspace, known) = (Arc::clone(&context.workspace), context.secrets.clone());
        let is_sensitive = known.is_sensitive(Path::new(&arguments.path));
        if !is_sensitive && let Some(content) = workspace.read_at_once(&arguments.path) {
            let bytes = content.len() as u64;
            return read(&arguments, bytes, Cursor::new(content));
        }
        blocking(move || match workspace.open_file(&arguments.path) {
            Ok((file, place)) if is_sensitive || known.is_sensitive(&place) => {
                known.note(&workspace, &place);
                stub(&arguments.path, file)
            }
            Ok((file, _)) => {
                let bytes = file.metadata().map_or(0, |metadata| metadata.len());
                read(&arguments, bytes, file)
            }
            Err(error) => error.into(),
        })
        .await
    }

    /// A page has its own bound, and a hole in the middle of a file would mislead.
    fn text_chars_max(&self) -> usize {
        PAGE_BYTES_MAX + 1_000
    }
}

fn read(arguments: &Arguments, bytes: u64, content: impl Read) -> ToolOutput {
    let mut reader = BufReader::with_capacity(BINARY_CHECK_BYTES, content);
    match reader.fill_buf() {
        Ok(start) if start.contains(&0) => ToolOutput::error(format!(
            "`{}` is a binary file of {bytes} bytes: use `run_command` with a program that understands it",
            arguments.path
        )),
        Ok(_) => answer(arguments, bytes, reader),
        Err(error) => PathError::from_io(&arguments.path, error).into(),
    }
}

/// What is shown of a sensitive file.
fn stub(path: &str, file: File) -> ToolOutput {
    let mut content = Vec::new();
    if let Err(error) = file.take(STUB_BYTES_MAX).read_to_end(&mut content) {
        return PathError::from_io(path, error).into();
    }
    let text = secrets::stub(path, &String::from_utf8_lossy(&content));
    ToolOutput::ok(text).with_facts(json!({ "path": path, "is_sensitive": true }))
}

fn answer(arguments: &Arguments, whole_bytes: u64, reader: impl BufRead) -> ToolOutput {
    let path = &arguments.path;
    let first = arguments.offset.unwrap_or(1);
    let lines_max = arguments.limit.unwrap_or(PAGE_LINES).min(PAGE_LINES);
    let page = match page(reader, first, lines_max) {
        Ok(page) => page,
        Err(error) => return PathError::from_io(path, error).into(),
    };
    if page.lines == 0 {
        return match (page.end, first) {
            (End::File, 1) => ToolOutput::ok(format!("[`{path}` is empty]")),
            (End::File, _) => ToolOutput::error(format!(
                "`{path}` has {} lines: there is no line {first}",
                page.passed
            )),
            _ => ToolOutput::error(format!(
                "line {first} of `{path}` is too far into the file: use `search_files` or `run_command`"
            )),
        };
    }
    let last = first + page.lines - 1;
    let shown_bytes = page.bytes.len();
    let (text, is_lossy) = match String::from_utf8(page.bytes) {
        Ok(text) => (text, false),
        Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), true),
    };
    let mut header = match page.end {
        End::File => String::new(),
        End::Page => format!(
            "[TRUNCATED: {shown_bytes} of {whole_bytes} bytes; use offset {next}: lines {first} to \
             {last} of `{path}`; more follows: continue with offset {next}]\n",
            next = last + 1
        ),
        End::Line => format!(
            "[line {first} of `{path}`, only its first {PAGE_BYTES_MAX} bytes; the next line has offset {}]\n",
            last + 1
        ),
    };
    if is_lossy {
        header.push_str("[bytes that are not UTF-8 are shown as \u{fffd}]\n");
    }
    ToolOutput::ok(format!("{header}{text}")).with_facts(json!({
        "path": path,
        "first_line": first,
        "last_line": last,
        "is_whole": first == 1 && page.end == End::File,
    }))
}

struct Page {
    bytes: Vec<u8>,
    /// How many lines are in it.
    lines: u64,
    /// How many came before it.
    passed: u64,
    end: End,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    /// Nothing follows.
    File,
    /// More follows.
    Page,
    /// The page is one line, and not the whole of it.
    Line,
}

/// Reads `lines_max` lines from line `first` on, holding no more than a page.
fn page(mut reader: impl BufRead, first: u64, lines_max: u64) -> io::Result<Page> {
    let mut page = Page {
        bytes: Vec::new(),
        lines: 0,
        passed: 0,
        end: End::File,
    };
    let mut scanned = 0;
    let mut line_start = 0;
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            // The last line may lack its line end.
            page.lines += u64::from(page.bytes.len() > line_start);
            return Ok(page);
        }
        if page.lines == lines_max || scanned > SCAN_BYTES_MAX {
            page.end = End::Page;
            return Ok(page);
        }
        let newline = buffer.iter().position(|byte| *byte == b'\n');
        let length = newline.map_or(buffer.len(), |at| at + 1);
        let is_wanted = page.passed + 1 >= first;
        if is_wanted {
            let room = PAGE_BYTES_MAX - page.bytes.len();
            if length > room && page.lines > 0 {
                page.bytes.truncate(line_start);
                page.end = End::Page;
                return Ok(page);
            }
            page.bytes.extend_from_slice(&buffer[..length.min(room)]);
            if length > room {
                page.lines = 1;
                page.end = End::Line;
                return Ok(page);
            }
        }
        reader.consume(length);
        scanned += length as u64;
        if newline.is_some() {
            match is_wanted {
                true => {
                    page.lines += 1;
                    line_start = page.bytes.len();
                }
                false => page.passed += 1,
            }
        } else if !is_wanted && reader.fill_buf()?.is_empty() {
            page.passed += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Results, World};
    use std::os::unix::fs::symlink;

    async fn check(world: &World, input: Value, expected: &str) {
        let output = world.call("read_file", input.clone()).await;
        assert!(output.text.contains(expected), "{input}: {}", output.text);
    }

    #[tokio::test]
    async fn a_short_file_is_given_as_it_is() {
        let world = World::new(&[("a", "one\ntwo"), ("empty", "")]);
        let output = world.call("read_file", json!({"path": "a"})).await;
        assert_eq!((output.text.as_str(), output.whole), ("one\ntwo", None));
        check(&world, json!({"path": "empty"}), "[`empty` is empty]").await;
    }

    #[tokio::test]
    async fn a_long_file_comes_in_pages() {
        let text: String = (1..=5_000).map(|n| format!("line {n}\n")).collect();
        let world = World::new(&[("a", &text)]);
        let mut offset = 1;
        let mut whole = String::new();
        loop {
            let output = world
                .call("read_file", json!({"path": "a", "offset": offset}))
                .await;
            if output.text.starts_with('[') {
                let (header, page) = output.text.split_once('\n').unwrap();
                whole.push_str(page);
                let (_, next) = header.rsplit_once("offset ").unwrap();
                offset = next.trim_end_matches(']').parse().unwrap();
            } else {
                whole.push_str(&output.text);
                break;
            }
        }
        assert_eq!(whole, text);
        check(
            &world,
            json!({"path": "a", "offset": 5_001}),
            "has 5000 lines",
        )
        .await;
        check(
            &world,
            json!({"path": "a", "offset": 7, "limit": 1}),
            "\nline 7\n",
        )
        .await;
    }

    #[tokio::test]
    async fn one_endless_line_is_cut_and_a_page_ends_at_a_line() {
        let world = World::new(&[
            ("a", &"x".repeat(PAGE_BYTES_MAX * 3)),
            ("b", &format!("short\n{}\n", "y".repeat(PAGE_BYTES_MAX))),
        ]);
        check(&world, json!({"path": "a"}), "only its first").await;
        check(
            &world,
            json!({"path": "b"}),
            "lines 1 to 1 of `b`; more follows: continue with offset 2",
        )
        .await;
    }

    #[tokio::test]
    async fn what_is_not_a_text_file_is_refused_without_waiting() {
        let world = World::new(&[("dir/x", "")]);
        let root = world.root();
        std::fs::write(root.join("bin"), b"\x7fELF\0\0").unwrap();
        let sparse = std::fs::File::create(root.join("sparse")).unwrap();
        sparse.set_len(1 << 40).unwrap();
        rustix::fs::mknodat(
            world.context.workspace.dir(),
            "fifo",
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .unwrap();
        for (path, expected) in [
            ("fifo", "a named pipe"),
            ("dir", "a directory, not a regular file: use `list_files`"),
            ("bin", "binary file of 6 bytes"),
            ("sparse", "binary file of 1099511627776 bytes"),
            ("nope", "does not exist"),
        ] {
            check(&world, json!({ "path": path }), expected).await;
        }
    }

    #[tokio::test]
    async fn a_committed_symlink_does_not_lead_out() {
        let world = World::new(&[("in", "inside")]);
        std::fs::write(world.outside().join("key"), "canary").unwrap();
        symlink("../key", world.root().join("relative")).unwrap();
        symlink(world.outside().join("key"), world.root().join("absolute")).unwrap();
        symlink("/dev/zero", world.root().join("device")).unwrap();
        symlink("in", world.root().join("fine")).unwrap();
        for path in ["relative", "absolute", "device", "../key"] {
            check(
                &world,
                json!({ "path": path }),
                "leads outside of the workspace",
            )
            .await;
        }
        check(&world, json!({"path": "fine"}), "inside").await;
    }

    #[tokio::test]
    async fn a_sensitive_file_shows_its_names_and_nowhere_its_values() {
        let world = World::new(&[
            (".env", "API_KEY=s3cret-of-mine\nMODE=fast\n"),
            ("k.pem", "AAAA=\n"),
        ]);
        symlink(".env", world.root().join("plain.txt")).unwrap();
        for path in [".env", "plain.txt", "./.env"] {
            let output = world.call("read_file", json!({ "path": path })).await;
            assert!(
                output.text.contains("API_KEY=[REDACTED]\nMODE=[REDACTED]"),
                "{}",
                output.text
            );
            assert!(!output.text.contains("fast") && !output.text.contains("s3cret"));
            assert_eq!(output.facts["is_sensitive"], true);
        }
        let output = world.call("read_file", json!({"path": "k.pem"})).await;
        assert!(!output.text.contains("AAAA"), "{}", output.text);
    }

    #[tokio::test]
    async fn an_earlier_result_is_read_by_its_name() {
        let mut world = World::new(&[]);
        let text = "first\nsecond\nthird\n";
        world.context.results = Arc::new(Results([("r1", Arc::from(text))].into()));
        let input = json!({"path": "@result/r1", "offset": 2, "limit": 1});
        check(&world, input, "offset 3]\nsecond\n").await;
        check(&world, json!({"path": "@result/r2"}), "no earlier result").await;
    }
}
