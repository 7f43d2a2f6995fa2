//! The text of a document, page by page, so that a citation can say where it stands.

mod docx;
mod quote;
#[cfg(test)]
mod tests;

pub use quote::quoted_on;

use std::path::Path;

use crate::lang;

/// A document as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paged {
    /// What it was: `pdf`, `docx`, `html`, `markdown` or `text`.
    pub format: &'static str,
    /// Its pages. What has none is one page.
    pub pages: Vec<String>,
}

/// Why a document has no text.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PagedError {
    /// Its pages are pictures: somebody has to recognise the words first.
    #[error(
        "its {pages} pages have no text: it seems to be scanned, and has to go through text \
         recognition (OCR) first"
    )]
    Scanned {
        /// How many it has.
        pages: usize,
    },
    /// It cannot be read.
    #[error("it cannot be read as {format}: {why}")]
    Unreadable {
        /// What it was taken for.
        format: &'static str,
        /// Why not.
        why: String,
    },
}

impl Paged {
    /// Reads a document; `name` says what it is.
    pub fn read(name: &str, bytes: &[u8]) -> Result<Self, PagedError> {
        let extension = Path::new(name).extension().and_then(|e| e.to_str());
        let extension = extension.unwrap_or_default().to_ascii_lowercase();
        let unreadable = |format| move |why| PagedError::Unreadable { format, why };
        let (format, pages) = match extension.as_str() {
            "pdf" => ("pdf", lang::pdf_pages(bytes).map_err(unreadable("a PDF"))?),
            "docx" => ("docx", docx::pages(bytes).map_err(unreadable("a DOCX"))?),
            "html" | "htm" | "xhtml" => {
                let text = text(bytes).map_err(unreadable("HTML"))?;
                ("html", vec![lang::untagged(&text)])
            }
            "md" | "markdown" => ("markdown", vec![text(bytes).map_err(unreadable("text"))?]),
            _ => ("text", vec![text(bytes).map_err(unreadable("text"))?]),
        };
        if format == "pdf" && pages.iter().all(|page| page.trim().is_empty()) {
            return Err(PagedError::Scanned { pages: pages.len() });
        }
        Ok(Self { format, pages })
    }
}

fn text(bytes: &[u8]) -> Result<String, String> {
    match String::from_utf8(bytes.to_vec()) {
        Ok(text) if !text.contains('\0') => Ok(text),
        _ => Err("it is not UTF-8 text".into()),
    }
}
