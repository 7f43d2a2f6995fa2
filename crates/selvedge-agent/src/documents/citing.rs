//! Citations: a quote that stands where it is said to stand, or none.

use selvedge_knowledge::{Citation, RequirementCache, quoted_on};
use selvedge_tool::{ToolOutput, World};
use serde_json::json;

use super::{Asked, Row, Trouble, number, reading, text};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "cite_document",
        description: "Make a citation of a document of the workspace. The quote must stand in it, \
                      word for word; the page is found by itself.",
        arguments: || {
            json!({
                "path": text("The document, relative to the workspace root."),
                "quote": text("The words, as they stand there."),
                "page": number("The page, if you know it: it is checked."),
            })
        },
        required: &["path", "quote"],
        world: World::Writes,
        act: cite_document,
    },
    Row {
        name: "cite_web",
        description: "Make a citation of a web page, with the words that you read there.",
        arguments: || {
            json!({
                "url": text("The address."),
                "quote": text("The words, as they stand there."),
            })
        },
        required: &["url", "quote"],
        world: World::Writes,
        act: cite_web,
    },
];

fn cite_document(asked: &Asked<'_>) -> Result<ToolOutput, Trouble> {
    let (path, quote) = (asked.wanted("path")?, asked.wanted("quote")?);
    let (paged, digest) = reading::read(asked, path)?;
    let page = quoted_on(&paged.pages, quote).ok_or_else(|| {
        Trouble(format!(
            "not cited: these words do not stand in `{path}`. Quote it as it is: \
             `extract_document_text` shows it."
        ))
    })?;
    if let Some(said) = asked.number("page").filter(|said| *said != page) {
        let why = format!("not cited: the words stand on page {page}, not on page {said}");
        return Err(Trouble(why));
    }
    let citation = Citation {
        source: path.to_owned(),
        page: u32::try_from(page).ok(),
        quote: quote.to_owned(),
        digest,
        ..Citation::default()
    };
    let id = asked.shared()?.cite(&citation, &asked.caller.session)?;
    let said = format!("citation `{id}`: `{path}`, page {page}");
    Ok(ToolOutput::ok(said).with_facts(json!({ "citation": id, "page": page })))
}

fn cite_web(asked: &Asked<'_>) -> Result<ToolOutput, Trouble> {
    let (url, quote) = (asked.wanted("url")?, asked.wanted("quote")?);
    if !url.starts_with("https://") && !url.starts_with("http://") {
        return Err(Trouble(format!("`{url}` is not the address of a web page")));
    }
    let citation = Citation {
        source: url.to_owned(),
        quote: quote.to_owned(),
        ..Citation::default()
    };
    let id = asked.shared()?.cite(&citation, &asked.caller.session)?;
    Ok(ToolOutput::ok(format!("citation `{id}`: {url}")).with_facts(json!({ "citation": id })))
}
