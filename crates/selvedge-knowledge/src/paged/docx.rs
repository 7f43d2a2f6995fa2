//! A DOCX: a zip with one large XML in it. Paragraphs are lines; pages are where the
//! program that wrote it last broke them, or where its author did.

use std::io::Read;

use quick_xml::Reader;
use quick_xml::events::Event;

/// More than this, unpacked, is no document.
const XML_BYTES_MAX: u64 = 64 * 1024 * 1024;

pub(super) fn pages(bytes: &[u8]) -> Result<Vec<String>, String> {
    let mut archive =
        zip::ZipArchive::new(std::io::Cursor::new(bytes)).map_err(|e| e.to_string())?;
    let part = archive.by_name("word/document.xml");
    let part = part.map_err(|_| "it has no `word/document.xml`".to_owned())?;
    let mut xml = Vec::new();
    let read = part.take(XML_BYTES_MAX + 1).read_to_end(&mut xml);
    read.map_err(|error| error.to_string())?;
    if xml.len() as u64 > XML_BYTES_MAX {
        return Err(format!("it unpacks to more than {XML_BYTES_MAX} bytes"));
    }
    let xml = String::from_utf8(xml).map_err(|_| "its XML is not UTF-8".to_owned())?;
    text(&xml)
}

fn text(xml: &str) -> Result<Vec<String>, String> {
    let mut reader = Reader::from_str(xml);
    let mut pages = vec![String::new()];
    let mut is_text = false;
    loop {
        let event = reader.read_event().map_err(|error| error.to_string())?;
        let page = pages.last_mut().expect("there is always one");
        match event {
            Event::Eof => break,
            Event::Start(tag) => match tag.local_name().as_ref() {
                "t" => is_text = true,
                // A heading is one in Markdown, too, so that chunks begin there.
                "pPr" | "r" | "p" => {}
                _ => {}
            },
            Event::Empty(tag) => match tag.local_name().as_ref() {
                "tab" => page.push('\t'),
                "lastRenderedPageBreak" => pages.push(String::new()),
                "br" => {
                    let kind = tag.try_get_attribute("w:type").ok().flatten();
                    match kind.is_some_and(|kind| kind.value == "page") {
                        true => pages.push(String::new()),
                        false => page.push('\n'),
                    }
                }
                "pStyle" => {
                    let style = tag.try_get_attribute("w:val").ok().flatten();
                    let level = style.and_then(|style| {
                        let name = style.value.to_ascii_lowercase();
                        name.strip_prefix("heading")?.trim().parse::<usize>().ok()
                    });
                    if let Some(level) = level.filter(|level| (1..=6).contains(level)) {
                        page.push_str(&format!("{} ", "#".repeat(level)));
                    }
                }
                _ => {}
            },
            Event::End(tag) => match tag.local_name().as_ref() {
                "t" => is_text = false,
                "p" => page.push('\n'),
                "tc" => page.push('\t'),
                _ => {}
            },
            Event::Text(said) if is_text => page.push_str(&said.xml10_content()),
            Event::CData(said) if is_text => page.push_str(&said.xml10_content()),
            Event::GeneralRef(name) if is_text => match name.resolve_char_ref() {
                Ok(Some(character)) => page.push(character),
                _ => page.push_str(match &*name.xml10_content() {
                    "lt" => "<",
                    "gt" => ">",
                    "amp" => "&",
                    "quot" => "\"",
                    "apos" => "'",
                    _ => "",
                }),
            },
            _ => {}
        }
    }
    // A break that the program rendered at the very beginning makes no page.
    if pages.len() > 1 && pages[0].trim().is_empty() {
        pages.remove(0);
    }
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_lines_and_breaks_are_pages() {
        let xml = r#"<?xml version="1.0"?><w:document xmlns:w="x"><w:body>
            <w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>Scope</w:t></w:r></w:p>
            <w:p><w:r><w:t xml:space="preserve">Fish &amp; </w:t></w:r><w:r><w:t>chips</w:t></w:r></w:p>
            <w:p><w:r><w:br w:type="page"/><w:t>Second</w:t></w:r></w:p>
            </w:body></w:document>"#;
        let pages = text(xml).unwrap();
        assert_eq!(pages, ["# Scope\nFish & chips\n", "Second\n"]);
    }

    #[test]
    fn what_is_no_zip_is_refused() {
        assert!(pages(b"hello").is_err());
    }
}
