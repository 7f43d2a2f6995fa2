//! A tool that fails for a reason that may pass, and a job that stops until somebody helps.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use super::*;

/// A search endpoint that is away so many times.
fn endpoint(failures: usize) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/search", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = [0; 4096];
            let _ = stream.read(&mut head);
            let n = count.fetch_add(1, Ordering::SeqCst);
            let (status, body) = match n < failures {
                true => ("503 Service Unavailable", "{}".to_owned()),
                false => {
                    let found = json!({ "results": [{ "title": "Found", "url": "http://x", "content": "it" }] });
                    ("200 OK", found.to_string())
                }
            };
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    (url, asked)
}

fn searching() -> Value {
    let mut agents = two_phases();
    let tactical = agents["tactical/task-002"].as_array_mut().unwrap();
    tactical.insert(1, turn(&[json!({ "web_search": { "query": "words" } })]));
    agents
}

fn config(url: &str, tries: u32) -> Value {
    json!({
        "tools": { "domain": ["web_search"] },
        "connections": { "web_search": { "url": url } },
        "limits": { "tool_retry_count": tries },
    })
}

#[test]
fn a_tool_that_fails_three_times_and_then_works_passes_with_four_tries() {
    let (url, asked) = endpoint(3);
    let world = world(config(&url, 4));
    let output = run(&world, &searching());
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(asked.load(Ordering::SeqCst), 4);
    let answers = answers(&events(&world));
    assert!(
        answers
            .iter()
            .any(|(tool, text, _)| tool == "web_search" && text.contains("Found"))
    );
}

#[test]
fn with_three_tries_the_job_stops_and_goes_on_from_there_when_it_is_resumed() {
    let (url, asked) = endpoint(3);
    let world = world(config(&url, 3));
    let output = run(&world, &searching());
    assert_eq!(output.code, 1, "{}", output.stderr);
    assert_eq!(asked.load(Ordering::SeqCst), 3);
    let place = folder(&world).join("output/error.json");
    let error = read_json(&place);
    assert_eq!(error["status"], "failed");
    assert!(
        error["what"]
            .as_str()
            .unwrap()
            .contains("`web_search` failed 3 times"),
        "{error}"
    );
    assert_eq!(error["where"]["tool"], "web_search");
    assert_eq!(error["where"]["phase"], 2);
    let session = world.session();
    let resume = format!("selvedge job run --resume {session}");
    assert_eq!(error["resume"], resume);
    // What is said meanwhile is heard by the phase that stands still.
    let steered = world.selvedge(&["sessions", "steer", &session, "mind the gap"]);
    assert_eq!(steered.code, 0, "{}", steered.stderr);
    let status = world.selvedge(&["job", "status", &session]);
    assert!(status.stdout.contains(": failed"), "{}", status.stdout);
    let resumed = world.selvedge(&["job", "run", "--resume", &session]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    assert_eq!(
        asked.load(Ordering::SeqCst),
        4,
        "the one call was made again, and no other"
    );
    assert_eq!(
        read(&folder(&world).join("output/count.md")),
        "forty-two\nwords\n"
    );
    assert!(!place.exists(), "it has not failed any more");
    let heard = sent(&world, "tactical", 2);
    assert!(
        heard
            .iter()
            .any(|request| request["messages"].to_string().contains("mind the gap"))
    );
}

#[test]
fn a_job_that_has_failed_goes_on_from_the_beginning_of_its_last_phase() {
    let world = world(json!({}));
    let mut agents = two_phases();
    agents["strategic/task-003"] = json!([
        turn(&completing(4)),
        turn(&completing(1)),
        turn(&completing(1)),
    ]);
    let output = run(&world, &agents);
    assert_eq!(output.code, 1, "{}", output.stderr);
    let failed = world.session();
    let place = folder(&world).join("output/error.json");
    let error = read_json(&place);
    assert_eq!(error["where"]["phase"], 3);
    assert_eq!(
        error["resume"],
        format!("selvedge job run --resume {failed}")
    );
    let archive = read(&folder(&world).join("archive/phase_2.yaml"));

    let better = script(&world, &two_phases());
    let mut resume = world.command(&["job", "run", "--resume", &failed, "--script"]);
    let output = world.output(resume.arg(better));
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(output.stdout.contains("Counted."), "{}", output.stdout);
    assert!(
        output.stderr.contains("from the beginning of phase 3"),
        "{}",
        output.stderr
    );
    assert!(!place.exists(), "it has not failed any more");
    let count = read(&folder(&world).join("output/count.md"));
    assert_eq!(
        count, "forty-two\nwords\n",
        "the phases before were not done again"
    );
    assert_eq!(read(&folder(&world).join("archive/phase_2.yaml")), archive);
    let list = world.selvedge(&["job", "list"]);
    assert!(
        list.stdout.contains("12 todos in 3 phases"),
        "{}",
        list.stdout
    );
    assert!(list.stdout.contains("failed"), "{}", list.stdout);
}

#[test]
fn without_a_search_endpoint_the_search_says_so_and_the_job_goes_on() {
    let world = world(json!({ "tools": { "domain": ["web_search"] } }));
    let output = run(&world, &searching());
    assert_eq!(output.code, 0, "{}", output.stderr);
    let answers = answers(&events(&world));
    let (_, text, is_error) = answers
        .iter()
        .find(|(tool, _, _)| tool == "web_search")
        .unwrap();
    assert!(*is_error && text.contains("none is configured"), "{text}");
}
