//! The shipped configs on a real PDF: what the creator stores carries citations that hold,
//! and the validator finds the planted duplicate.

use serde_json::json;

use super::*;

/// A PDF of plain lines, as small as one can be: the same that a printer driver writes,
/// without compression.
pub(super) fn pdf(pages: &[&[&str]]) -> Vec<u8> {
    let count = pages.len();
    let kids: Vec<String> = (0..count).map(|n| format!("{} 0 R", 4 + 2 * n)).collect();
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!(
            "<< /Type /Pages /Kids [{}] /Count {count} >>",
            kids.join(" ")
        ),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
            .to_owned(),
    ];
    for (n, lines) in pages.iter().enumerate() {
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {} 0 R \
             /Resources << /Font << /F1 3 0 R >> >> >>",
            5 + 2 * n
        ));
        let shown: Vec<String> = lines
            .iter()
            .map(|line| format!("({line}) Tj T*\n"))
            .collect();
        let stream = format!("BT /F1 12 Tf 14 TL 72 770 Td\n{}ET", shown.concat());
        objects.push(format!(
            "<< /Length {} >>\nstream\n{stream}\nendstream",
            stream.len()
        ));
    }
    file_of(&objects)
}

/// A PDF of one page that is a picture and nothing else, as a scanner makes it.
fn scan() -> Vec<u8> {
    let object = |dictionary: &str, stream: &str| {
        let length = stream.len();
        format!("<< {dictionary} /Length {length} >>\nstream\n{stream}\nendstream")
    };
    let dots = "00FF".repeat(64);
    file_of(&[
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R \
         /Resources << /XObject << /Im1 5 0 R >> >> >>"
            .to_owned(),
        object("", "q 595 0 0 842 0 0 cm /Im1 Do Q"),
        object(
            "/Type /XObject /Subtype /Image /Width 16 /Height 8 /ColorSpace /DeviceGray \
             /BitsPerComponent 8 /Filter /ASCIIHexDecode",
            &format!("{dots}>"),
        ),
    ])
}

/// The file that these objects are.
fn file_of(objects: &[String]) -> Vec<u8> {
    let mut file = b"%PDF-1.4\n".to_vec();
    let mut places = Vec::new();
    for (n, object) in objects.iter().enumerate() {
        places.push(file.len());
        file.extend(format!("{} 0 obj\n{object}\nendobj\n", n + 1).into_bytes());
    }
    let begin = file.len();
    file.extend(format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).into_bytes());
    for place in places {
        file.extend(format!("{place:010} 00000 n \n").into_bytes());
    }
    let size = objects.len() + 1;
    file.extend(
        format!("trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{begin}\n%%EOF\n")
            .into_bytes(),
    );
    file
}

/// What stands in the document: the page, and the words.
pub(super) const STATEMENTS: [(u32, &str); 3] = [
    (1, "The operator must keep invoices for ten years."),
    (2, "Access to the archive must be logged."),
    (2, "The operator must keep all invoices for ten years."),
];

/// The name of something stored, which follows from what it says.
pub(super) fn id(prefix: &str, words: &[&str]) -> String {
    let mut hasher = blake3::Hasher::new();
    for word in words {
        hasher.update(&(word.len() as u64).to_le_bytes());
        hasher.update(word.as_bytes());
    }
    format!("{prefix}-{}", &hasher.finalize().to_hex()[..10])
}

fn plan(tactical: Vec<Value>) -> Value {
    json!({
        "strategic/task-001": [turn(&[todo_write(5)]), turn(&completing(4))],
        "tactical/task-002": tactical,
        "strategic/task-003": [turn(&[json!({ "job_complete": { "summary": "Done." } })])],
    })
}

fn creator() -> Value {
    let path = "documents/handbook.pdf";
    let cite = |quote: &str| json!({ "cite_document": { "path": path, "quote": quote } });
    let add = |(page, text): (u32, &str)| {
        let citation = id("cite", &[path, &page.to_string(), text]);
        json!({ "add_requirement": { "text": text, "kind": "compliance", "citations": [citation] } })
    };
    plan(vec![
        turn(&[
            json!({ "extract_document_text": { "path": path } }),
            json!({ "extract_document_text": { "path": path, "first_page": 2 } }),
            json!({ "extract_document_text": { "path": "documents/scan.pdf" } }),
            json!({ "chunk_document": { "path": path } }),
        ]),
        turn(&STATEMENTS.map(|(_, text)| cite(text))),
        turn(&[
            cite("The operator may burn all invoices."),
            json!({ "cite_document": { "path": path, "page": 1, "quote": STATEMENTS[1].1 } }),
            json!({ "add_requirement": { "text": "Burn invoices.", "citations": [] } }),
            json!({ "add_requirement": { "text": "Burn invoices.", "citations": ["cite-none"] } }),
            json!({ "tool_search": { "query": "search by meaning" } }),
        ]),
        turn(&STATEMENTS.map(add)),
        turn(&[
            json!({ "semantic_search": { "query": "how long are invoices kept" } }),
            json!({ "query_similar_requirements": { "text": "invoices are kept for ten years" } }),
        ]),
        turn(&[write_file("output/requirements.md", "three\n")]),
        turn(&completing(5)),
    ])
}

fn validator() -> Value {
    let requirement = |n: usize| id("req", &[STATEMENTS[n].1]);
    let create = |node: &str, n: usize, status: &str| json!({ "create_requirement_node": { "id": node, "requirement": requirement(n), "status": status } });
    plan(vec![
        turn(&[
            json!({ "list_requirements": { "status": "pending" } }),
            json!({ "get_database_schema": {} }),
            json!({ "check_for_duplicates": {} }),
            json!({ "generate_requirement_id": {} }),
        ]),
        turn(&[
            create("R-0001", 0, "accepted"),
            create("R-0002", 1, "accepted"),
            create("R-0003", 2, "duplicate"),
            json!({ "create_fulfillment_relationship": { "source": "R-0003", "target": "R-0001", "kind": "DUPLICATES" } }),
            json!({ "create_fulfillment_relationship": { "source": "R-0001", "target": "archive", "kind": "FULFILLED_BY" } }),
        ]),
        turn(&[
            json!({ "get_entity_relationships": { "id": "R-0001" } }),
            json!({ "count_graph_statistics": {} }),
            json!({ "validate_schema_compliance": {} }),
            json!({ "query_graph": { "label": "Requirement", "having": { "status": "duplicate" } } }),
            json!({ "find_similar_requirements": { "text": "access is logged" } }),
        ]),
        turn(&[write_file("output/validation.md", "one duplicate\n")]),
        turn(&completing(5)),
    ])
}

fn answers_of(world: &World, session: &str) -> Vec<(String, String, bool)> {
    let events = world.selvedge(&["sessions", "events", session, "--json"]);
    let events: Vec<Value> = events
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    answers(&events)
}

fn text_of<'a>(answers: &'a [(String, String, bool)], tool: &str) -> Vec<&'a str> {
    let of = answers.iter().filter(|(name, _, _)| name == tool);
    of.map(|(_, text, _)| text.as_str()).collect()
}

#[test]
fn creator_and_validator_work_end_to_end_on_a_real_pdf() {
    let world = World::new();
    let pages: [&[&str]; 2] = [
        &["1 Retention", STATEMENTS[0].1, "Nobody has to like it."],
        &["2 Access", STATEMENTS[1].1, STATEMENTS[2].1],
    ];
    let handbook = world.work().join("handbook.pdf");
    std::fs::write(&handbook, pdf(&pages)).unwrap();
    std::fs::write(world.work().join("scan.pdf"), scan()).unwrap();
    let documents = [
        "--config",
        "creator",
        "--document",
        "handbook.pdf",
        "--document",
        "scan.pdf",
    ];
    let output = world.output(&mut run_command(&world, &creator(), &documents));
    assert_eq!(output.code, 0, "{}", output.stderr);
    let session = world.session();
    let answers = answers_of(&world, &session);
    let extracted = text_of(&answers, "extract_document_text");
    assert!(
        extracted[0].contains("2 pages") && extracted[0].contains("[page 2]"),
        "{}",
        extracted[0]
    );
    assert!(extracted[1].contains("[page 2]") && !extracted[1].contains("[page 1]"));
    assert!(
        extracted[2].contains("seems to be scanned"),
        "{}",
        extracted[2]
    );
    let cited = text_of(&answers, "cite_document");
    assert!(
        cited[0].ends_with("page 1") && cited[1].ends_with("page 2"),
        "{cited:?}"
    );
    assert!(cited[3].contains("do not stand in"), "{cited:?}");
    assert!(
        cited[4].contains("stand on page 2, not on page 1"),
        "{cited:?}"
    );
    let added = text_of(&answers, "add_requirement");
    assert!(
        added[0].contains("without a citation") && added[1].contains("no citation `cite-none`"),
        "{added:?}"
    );
    assert!(text_of(&answers, "tool_search")[0].contains("- semantic_search"));
    assert!(
        text_of(&answers, "semantic_search")[0].contains("invoices"),
        "a deferred tool works"
    );
    let folder = folder(&world);
    let manifest = read_json(&folder.join("chunks/manifest.json"));
    assert_eq!(manifest["pages"], 2);
    assert!(folder.join("chunks/0001.md").exists());

    let output = world.output(&mut run_command(
        &world,
        &validator(),
        &["--config", "validator"],
    ));
    assert_eq!(output.code, 0, "{}", output.stderr);
    let answers = answers_of(&world, &world.session());
    let listed: Vec<Value> =
        serde_json::from_str(text_of(&answers, "list_requirements")[0]).unwrap();
    assert_eq!(listed.len(), 3);
    for requirement in &listed {
        let citation = &requirement["citations"][0];
        let page = citation["page"].as_u64().unwrap() as usize;
        let quote = citation["quote"].as_str().unwrap();
        assert!(pages[page - 1].contains(&quote), "{requirement}");
    }
    let flagged = text_of(&answers, "check_for_duplicates")[0];
    let pairs: Vec<Value> = serde_json::from_str(flagged).unwrap();
    assert_eq!(pairs.len(), 1, "{flagged}");
    assert!(flagged.contains(STATEMENTS[0].1) && flagged.contains(STATEMENTS[2].1));
    assert_eq!(text_of(&answers, "generate_requirement_id"), ["R-0001"]);
    let related = text_of(&answers, "get_entity_relationships")[0];
    assert!(
        related.contains("DUPLICATES") && related.contains("FULFILLED_BY"),
        "{related}"
    );
    assert_eq!(
        text_of(&answers, "validate_schema_compliance"),
        ["everything complies"]
    );
    let duplicates: Vec<Value> = serde_json::from_str(text_of(&answers, "query_graph")[0]).unwrap();
    assert_eq!(duplicates[0]["id"], "R-0003");
    let all: String = answers.iter().map(|(_, text, _)| text.as_str()).collect();
    assert!(
        !all.contains(folder.to_str().unwrap()),
        "it sees nothing of the creator's folder"
    );
}

/// A DOCX as a word processor packs it, with a page break where it saw one.
fn docx(pages: &[&str]) -> Vec<u8> {
    let mut text = String::new();
    for (n, page) in pages.iter().enumerate() {
        let broken = if n == 0 {
            ""
        } else {
            "<w:lastRenderedPageBreak/>"
        };
        text.push_str(&format!("<w:p><w:r>{broken}<w:t>{page}</w:t></w:r></w:p>"));
    }
    let types = "<Types xmlns=\"http://schemas.openxmlformats.org/package/2006/content-types\"/>";
    let body = format!("<w:document><w:body>{text}</w:body></w:document>");
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, text) in [("[Content_Types].xml", types), ("word/document.xml", &body)] {
        let options = zip::write::SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Deflated);
        writer.start_file(name, options).unwrap();
        std::io::Write::write_all(&mut writer, text.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

#[test]
fn word_html_markdown_and_plain_text_are_read_and_cited_by_page() {
    let world = world(
        json!({ "tools": { "domain": ["extract_document_text", "chunk_document", "cite_document"] } }),
    );
    let quote = STATEMENTS[1].1;
    let inputs = [
        ("policy.docx", docx(&["Invoices are kept.", quote])),
        (
            "policy.html",
            format!("<h1>Policy</h1><p>{quote}</p>").into_bytes(),
        ),
        ("policy.md", format!("# Policy\n\n{quote}\n").into_bytes()),
        ("policy.txt", format!("{quote}\n").into_bytes()),
    ];
    let mut arguments = vec!["--config".to_owned(), "mine".to_owned()];
    let (mut extracts, mut cites) = (Vec::new(), Vec::new());
    let chunk = |name: &str| json!({ "chunk_document": { "path": format!("documents/{name}"), "size": 200, "overlap": 0 } });
    let chunks = ["policy.docx", "policy.md", "policy.docx"].map(chunk);
    for (name, bytes) in &inputs {
        std::fs::write(world.work().join(name), bytes).unwrap();
        arguments.extend(["--document".to_owned(), (*name).to_owned()]);
        let path = format!("documents/{name}");
        extracts.push(json!({ "extract_document_text": { "path": path } }));
        cites.push(json!({ "cite_document": { "path": path, "quote": quote } }));
    }
    let mut agents = two_phases();
    let written = [write_file("output/count.md", "four\n")];
    agents["tactical/task-002"] = json!([
        turn(&extracts),
        turn(&cites),
        turn(&chunks),
        turn(&written),
        turn(&completing(5))
    ]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let output = world.output(&mut run_command(&world, &agents, &arguments));
    assert_eq!(output.code, 0, "{}", output.stderr);
    let answers = answers(&events(&world));
    let extracted = text_of(&answers, "extract_document_text");
    assert!(
        extracted[0].contains("2 pages") && extracted[0].contains("[page 2]"),
        "{extracted:?}"
    );
    assert!(
        extracted.iter().all(|text| text.contains(quote)),
        "{extracted:?}"
    );
    let cited = text_of(&answers, "cite_document");
    let folder = folder(&world);
    for (manifest, document) in [
        ("chunks/manifest.json", "documents/policy.docx"),
        ("chunks/policy.md/manifest.json", "documents/policy.md"),
    ] {
        let manifest = read_json(&folder.join(manifest));
        assert_eq!(manifest["document"], document);
        let chunk = manifest["chunks"][0]["file"].as_str().unwrap();
        assert!(!read(&folder.join(chunk)).is_empty());
    }
    let pages: Vec<bool> = cited.iter().map(|text| text.ends_with("page 2")).collect();
    assert_eq!(pages, [true, false, false, false], "{cited:?}");
    assert!(
        cited[1..].iter().all(|text| text.ends_with("page 1")),
        "{cited:?}"
    );
}

#[test]
fn the_demo_does_both_jobs_and_lists_what_they_leave() {
    let world = World::new();
    let output = world.selvedge(&["demo", "job"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    for part in [
        "== creator: job s_",
        "== validator: job s_",
        "archive/phase_2.yaml",
        "output/completion.json",
        "| 2 | Access to the archive must be logged. |",
        "flagged: R-0004 says the same as R-0001",
    ] {
        assert!(output.stderr.contains(part), "{part}: {}", output.stderr);
    }
    assert!(
        !output.stderr.contains('✗'),
        "no tool failed: {}",
        output.stderr
    );
    let list = world.selvedge(&["job", "list", "--json"]);
    assert_eq!(
        list.stdout.matches("\"state\":\"done\"").count(),
        2,
        "{}",
        list.stdout
    );
}
