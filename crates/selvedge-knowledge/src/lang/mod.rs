//! What is in a file: its symbols, what they refer to, and what is said of them.
//!
//! Each language is a table for one walk over its syntax tree. What a table does not
//! know is not lost: text outside of every symbol belongs to its file.

mod documents;
mod outline;
mod tables;
mod walk;

pub use outline::{Mention, Outline};
use tables::Table;

use std::path::Path;

use crate::kind::NodeType;

/// How a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// By the table of a language.
    Code(&'static Table),
    /// By its headings.
    Markdown,
    /// A page, whose text is between its tags.
    Html,
    /// A document that is no text.
    Pdf,
    /// What somebody wrote for people, in pieces.
    Prose,
    /// Settings, scripts and the like, in pieces.
    Text,
}

impl Language {
    /// How a file of this name is read; `None` if it is no text.
    pub fn of(path: &Path) -> Option<Self> {
        let extension = path
            .extension()
            .and_then(|e| e.to_str())
            .unwrap_or_default();
        let extension = extension.to_ascii_lowercase();
        let table = tables::ALL
            .iter()
            .find(|table| table.extensions.contains(&extension.as_str()));
        if let Some(table) = table {
            return Some(Self::Code(table));
        }
        match extension.as_str() {
            "md" | "markdown" | "mdx" => Some(Self::Markdown),
            "html" | "htm" | "xhtml" => Some(Self::Html),
            "pdf" => Some(Self::Pdf),
            "txt"
                if path
                    .file_name()
                    .is_some_and(|name| NOT_PROSE.iter().any(|n| name == *n)) =>
            {
                Some(Self::Text)
            }
            "txt" | "rst" | "adoc" | "org" | "tex" => Some(Self::Prose),
            other if NOT_TEXT.contains(&other) => None,
            _ => Some(Self::Text),
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Code(table) => table.name,
            Self::Markdown => "markdown",
            Self::Html => "html",
            Self::Pdf => "pdf",
            Self::Prose => "prose",
            Self::Text => "text",
        }
    }

    /// Whether its files are documents rather than code.
    pub fn is_document(self) -> bool {
        matches!(self, Self::Markdown | Self::Html | Self::Pdf | Self::Prose)
    }
}

/// What is in a file. `text` has no secrets any more.
pub fn read(language: Language, text: &str) -> Outline {
    match language {
        Language::Code(table) => walk::outline(table, text),
        Language::Markdown => documents::markdown(text),
        Language::Html => documents::html(text),
        Language::Pdf | Language::Prose => documents::plain(text, NodeType::Documentation),
        Language::Text => documents::plain(text, NodeType::Passage),
    }
}

pub(crate) use documents::untagged;

/// The text of a PDF, page by page, or why it has none.
pub fn pdf_pages(bytes: &[u8]) -> Result<Vec<String>, String> {
    // See `pdf_text`.
    let read = std::panic::catch_unwind(|| pdf_extract::extract_text_from_mem_by_pages(bytes));
    match read {
        Ok(Ok(pages)) => Ok(pages),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("it is not a PDF that can be read".into()),
    }
}

/// The text of a PDF, or why it has none.
pub fn pdf_text(bytes: &[u8]) -> Result<String, String> {
    // The reader gives up on some files by panicking; that must not end the index.
    let read = std::panic::catch_unwind(|| pdf_extract::extract_text_from_mem(bytes));
    match read {
        Ok(Ok(text)) => Ok(text),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("it is not a PDF that can be read".into()),
    }
}

/// Text files that are settings.
const NOT_PROSE: &[&str] = &["requirements.txt", "CMakeLists.txt", "robots.txt"];

/// Extensions of files that hold no text; others are looked at.
const NOT_TEXT: &[&str] = &[
    "png",
    "jpg",
    "jpeg",
    "gif",
    "webp",
    "ico",
    "bmp",
    "tif",
    "tiff",
    "avif",
    "mp3",
    "mp4",
    "wav",
    "ogg",
    "flac",
    "mov",
    "avi",
    "mkv",
    "webm",
    "zip",
    "gz",
    "bz2",
    "xz",
    "zst",
    "tar",
    "7z",
    "rar",
    "jar",
    "class",
    "o",
    "a",
    "so",
    "dylib",
    "dll",
    "exe",
    "wasm",
    "pyc",
    "pyo",
    "rlib",
    "rmeta",
    "ttf",
    "otf",
    "woff",
    "woff2",
    "eot",
    "db",
    "sqlite",
    "sqlite3",
    "bin",
    "dat",
    "pack",
    "idx",
    "parquet",
    "npy",
    "npz",
    "onnx",
    "safetensors",
    "pt",
    "psd",
    "sketch",
    "doc",
    "docx",
    "xls",
    "xlsx",
    "ppt",
    "pptx",
    "lock",
    "map",
    "snap",
];
