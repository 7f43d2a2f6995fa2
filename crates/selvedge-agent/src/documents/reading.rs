//! The text of documents, whole or in chunks.

use std::io::Read;
use std::path::Path;

use selvedge_knowledge::Paged;
use selvedge_tool::{ToolOutput, Workspace, World};
use serde_json::{Value, json};

use super::{Asked, Row, Trouble, number, text};

/// A larger document is not read into memory.
const DOCUMENT_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// So much text is shown at once; the rest by asking for its pages.
const SHOWN_BYTES_MAX: usize = 24 * 1024;
const CHUNK_CHARS: usize = 4_000;
const OVERLAP_CHARS: usize = 200;
const CHUNKS_MAX: usize = 2_000;

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "extract_document_text",
        description: "The text of a PDF, DOCX, HTML, Markdown or text file, with its page numbers. \
                      A long one comes in page ranges.",
        arguments: || {
            json!({
                "path": text("The document, relative to the workspace root."),
                "first_page": number("The first page. Default: 1."),
                "last_page": number("The last page. Default: the last one that fits."),
            })
        },
        required: &["path"],
        world: World::Reads,
        act: extract,
    },
    Row {
        name: "chunk_document",
        description: "Cut a document into chunks by headings, pages and size. Writes chunks/ and \
                      chunks/manifest.json; a second document gets a folder of its own in chunks/.",
        arguments: || {
            json!({
                "path": text("The document, relative to the workspace root."),
                "size": number("Characters of a chunk. Default: 4000."),
                "overlap": { "type": "integer", "minimum": 0,
                             "description": "Characters that a chunk repeats of the one before. Default: 200." },
            })
        },
        required: &["path"],
        world: World::Writes,
        act: chunk,
    },
];

/// A document of the workspace, read.
pub(super) fn read(asked: &Asked<'_>, path: &str) -> Result<(Paged, String), Trouble> {
    let (file, place) = asked.workspace.open_file(path)?;
    let mut bytes = Vec::new();
    file.take(DOCUMENT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > DOCUMENT_BYTES_MAX {
        let why = format!("`{path}` is larger than {DOCUMENT_BYTES_MAX} bytes");
        return Err(Trouble(why));
    }
    let name = place.to_string_lossy();
    let paged = Paged::read(&name, &bytes);
    let paged = paged.map_err(|error| Trouble(format!("`{path}` has no text: {error}")))?;
    let digest = blake3::hash(&bytes).to_hex()[..16].to_owned();
    Ok((paged, digest))
}

fn extract(asked: &Asked<'_>) -> Result<ToolOutput, Trouble> {
    let path = asked.wanted("path")?;
    let (paged, _) = read(asked, path)?;
    let count = paged.pages.len();
    let first = asked.number("first_page").unwrap_or(1);
    let last = asked.number("last_page").unwrap_or(count).min(count);
    if first > last {
        let why = format!("`{path}` has {count} pages: there is none from {first} to {last}");
        return Err(Trouble(why));
    }
    let mut shown = format!("[`{path}`: {}, {count} pages]\n", paged.format);
    let mut next = None;
    for number in first..=last {
        let page = paged.pages[number - 1].trim();
        if number > first && shown.len() + page.len() > SHOWN_BYTES_MAX {
            next = Some(number);
            break;
        }
        shown.push_str(&format!("[page {number}]\n{page}\n"));
    }
    if let Some(next) = next {
        shown.push_str(&format!("[more follows: go on with first_page {next}]\n"));
    }
    Ok(ToolOutput::ok(shown).with_facts(json!({ "path": path, "pages": count })))
}

fn chunk(asked: &Asked<'_>) -> Result<ToolOutput, Trouble> {
    let path = asked.wanted("path")?;
    let (paged, digest) = read(asked, path)?;
    let size = asked.number("size").unwrap_or(CHUNK_CHARS).max(200);
    let overlap = asked
        .number("overlap")
        .unwrap_or(OVERLAP_CHARS)
        .min(size / 2);
    let chunks = chunks(&paged.pages, size, overlap);
    if chunks.len() > CHUNKS_MAX {
        let why = format!("{} chunks are too many: choose a larger size", chunks.len());
        return Err(Trouble(why));
    }
    let dir = asked.workspace.dir();
    let folder = chunk_folder(asked.workspace, path)?;
    let mut listed = Vec::new();
    for (at, chunk) in (1..).zip(&chunks) {
        let file = format!("{folder}/{at:04}.md");
        dir.write(&file, &chunk.text)?;
        listed.push(json!({
            "file": file, "page": chunk.page, "heading": chunk.heading,
            "characters": chunk.text.chars().count(),
        }));
    }
    let manifest = json!({
        "document": path, "digest": digest, "format": paged.format, "pages": paged.pages.len(),
        "size": size, "overlap": overlap, "chunks": listed,
    });
    let text = serde_json::to_string_pretty(&manifest).expect("a JSON value is JSON");
    let place = format!("{folder}/manifest.json");
    dir.write(&place, text)?;
    let said = format!("wrote {} chunks; see `{place}`", chunks.len());
    Ok(ToolOutput::ok(said).with_facts(json!({ "chunks": chunks.len() })))
}

/// Where the chunks of a document are: those of the first in `chunks/`, of every other in a
/// folder of their own. Chunks that the same document had before are gone.
fn chunk_folder(workspace: &Workspace, document: &str) -> Result<String, Trouble> {
    let dir = workspace.dir();
    let stem = Path::new(document).file_name().unwrap_or_default();
    let own = format!("chunks/{}", stem.to_string_lossy());
    for folder in ["chunks", &own] {
        dir.create_dir_all(folder)?;
        let manifest = dir.read_to_string(format!("{folder}/manifest.json"));
        let Ok(manifest) = manifest else {
            return Ok(folder.to_owned());
        };
        let manifest: Value = serde_json::from_str(&manifest).unwrap_or_default();
        if manifest["document"] != document && folder == "chunks" {
            continue;
        }
        let old = manifest["chunks"].as_array().into_iter().flatten();
        for file in old.filter_map(|chunk| chunk["file"].as_str()) {
            // Somebody may have removed it before.
            let _ = dir.remove_file(file);
        }
        return Ok(folder.to_owned());
    }
    Ok(own)
}

/// A piece of a document.
struct Chunk {
    text: String,
    /// The page it begins on.
    page: usize,
    heading: String,
}

/// The pages in pieces. A heading begins a new one, and so does a piece that is full.
fn chunks(pages: &[String], size: usize, overlap: usize) -> Vec<Chunk> {
    let mut chunks: Vec<Chunk> = Vec::new();
    let mut heading = String::new();
    let mut piece = String::new();
    let mut begun_on = 1;
    let mut close = |piece: &mut String, page: usize, heading: &str, is_full: bool| {
        if piece.trim().is_empty() {
            piece.clear();
            return;
        }
        let repeated: Vec<char> = piece.chars().rev().take(overlap).collect();
        chunks.push(Chunk {
            text: std::mem::take(piece),
            page,
            heading: heading.to_owned(),
        });
        if is_full {
            piece.extend(repeated.into_iter().rev());
        }
    };
    for (page, text) in (1..).zip(pages) {
        for line in text.lines() {
            if is_heading(line) {
                close(&mut piece, begun_on, &heading, false);
                heading = line.trim().trim_start_matches('#').trim().to_owned();
                begun_on = page;
            }
            if piece.trim().is_empty() {
                begun_on = page;
            }
            for part in parts(line, size) {
                if piece.chars().count() + part.chars().count() > size {
                    close(&mut piece, begun_on, &heading, true);
                    begun_on = page;
                }
                piece.push_str(&part);
            }
            piece.push('\n');
        }
    }
    close(&mut piece, begun_on, &heading, false);
    chunks
}

/// A line without end is cut, too.
fn parts(line: &str, size: usize) -> Vec<String> {
    let letters: Vec<char> = line.chars().collect();
    let parts = letters.chunks(size / 2).map(|part| part.iter().collect());
    parts.collect()
}

/// A heading of Markdown, or a numbered one as print has them.
fn is_heading(line: &str) -> bool {
    let line = line.trim();
    let is_marked = line.starts_with('#') && line.trim_start_matches('#').starts_with(' ');
    let mut words = line.splitn(2, ' ');
    let number = words.next().unwrap_or_default().trim_end_matches('.');
    let is_number = number.starts_with(|c: char| c.is_ascii_digit())
        && number.chars().all(|c| c.is_ascii_digit() || c == '.');
    let title = words.next().unwrap_or_default().trim();
    let is_title = title.chars().next().is_some_and(char::is_uppercase)
        && title.len() <= 60
        && !title.ends_with(['.', ';', ',']);
    is_marked || is_number && is_title
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_begin_at_headings_know_their_page_and_overlap() {
        let long = "word ".repeat(200);
        let pages = [
            format!("# One\nshort\n1.2 Retention of records\n{long}"),
            "end".into(),
        ];
        let chunks = chunks(&pages, 400, 50);
        assert_eq!(chunks[0].heading, "One");
        assert_eq!(chunks[1].heading, "1.2 Retention of records");
        assert!(chunks.len() >= 4, "{}", chunks.len());
        let tail: String = chunks[1].text.chars().rev().take(50).collect();
        let head: String = chunks[2].text.chars().take(50).collect();
        assert_eq!(tail.chars().rev().collect::<String>(), head);
        assert!(chunks.iter().all(|chunk| chunk.text.chars().count() <= 401));
        assert!(chunks.last().unwrap().text.contains("end"));
    }

    #[test]
    fn a_list_is_no_heading() {
        assert!(is_heading("2.1 Scope") && is_heading("## Scope"));
        assert!(!is_heading("2 records are kept.") && !is_heading("#hash"));
    }
}
