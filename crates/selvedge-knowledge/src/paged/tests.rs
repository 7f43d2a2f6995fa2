//! A DOCX that is made here, packed as a word processor packs it.

use std::io::Write;

use super::*;

fn docx(xml: &str) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default()
        .compression_method(zip::CompressionMethod::Deflated);
    for (name, text) in [
        ("[Content_Types].xml", "<Types/>"),
        ("word/document.xml", xml),
    ] {
        writer.start_file(name, options).unwrap();
        writer.write_all(text.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

#[test]
fn a_docx_has_its_text_and_its_pages() {
    let xml = "<w:document><w:body><w:p><w:r><w:t>First page.</w:t></w:r></w:p><w:p><w:r>\
               <w:lastRenderedPageBreak/><w:t>Second page.</w:t></w:r></w:p></w:body></w:document>";
    let paged = Paged::read("a.DOCX", &docx(xml)).unwrap();
    assert_eq!(paged.format, "docx");
    assert_eq!(paged.pages, ["First page.\n", "Second page.\n"]);
    assert_eq!(quoted_on(&paged.pages, "Second page."), Some(2));
}

#[test]
fn what_cannot_be_read_says_why() {
    for (name, bytes, why) in [
        ("a.docx", &b"no zip"[..], "as a DOCX"),
        ("a.pdf", b"no pdf", "as a PDF"),
        ("a.txt", b"\xff\xfe", "not UTF-8"),
    ] {
        let error = Paged::read(name, bytes).unwrap_err().to_string();
        assert!(error.contains(why), "{name}: {error}");
    }
    let page = Paged::read("a.html", b"<h1>T</h1><p>a &amp; b</p>").unwrap();
    assert!(page.pages[0].contains("# T") && page.pages[0].contains("a & b"));
}
