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

#[test]
fn a_job_that_used_all_its_model_calls_says_how_it_gets_more_and_counts_those_of_before() {
    let world = world(json!({ "limits": { "max_iterations": 7 } }));
    // Two, four and two.
    let output = run(&world, &two_phases());
    assert_eq!(output.code, 1, "{}", output.stderr);
    let used_up =
        "it used all 7 of its iterations (`limits.max_iterations`), 6 of them before phase 3";
    assert!(output.stderr.contains(used_up), "{}", output.stderr);
    let session = world.session();
    let error = read_json(&folder(&world).join("output/error.json"));
    let resume = format!("selvedge job run --resume {session} --max-iterations 14");
    assert_eq!(error["resume"], resume);
    let go_on = format!("go on: {resume}");
    assert!(output.stderr.contains(&go_on), "{}", output.stderr);

    let resume = |more: &[&str]| {
        let mut arguments = vec!["job", "run", "--resume", &session];
        arguments.extend(more);
        world.selvedge(&arguments)
    };
    let refused = resume(&["--max-iterations", "7"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    for part in [
        "`--max-iterations 7` raises nothing",
        "has 7 already",
        "more than 7",
    ] {
        assert!(refused.stderr.contains(part), "{}", refused.stderr);
    }
    let again = resume(&[]);
    assert_eq!(again.code, 1, "{}", again.stderr);
    assert!(again.stderr.contains(used_up), "{}", again.stderr);
    let done = resume(&["--max-iterations", "8"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stdout.contains("Counted."), "{}", done.stdout);
}

#[test]
fn a_phase_that_is_under_way_gets_its_part_of_the_model_calls_that_are_added() {
    let (url, _) = endpoint(3);
    let mut config = config(&url, 3);
    config["limits"]["max_iterations"] = json!(4);
    let world = world(config);
    // Two, five and two; the search is the second call of the second phase.
    let output = run(&world, &searching());
    assert_eq!(output.code, 1, "{}", output.stderr);
    let session = world.session();
    let resume = |most: &str| {
        let arguments = ["job", "run", "--resume", &session, "--max-iterations", most];
        world.selvedge(&arguments)
    };
    let place = folder(&world).join("output/error.json");
    let stopped = resume("6");
    assert_eq!(stopped.code, 1, "{}", stopped.stderr);
    let error = read_json(&place);
    assert_eq!(error["where"]["phase"], 2, "{error}");
    let what = error["what"].as_str().unwrap();
    assert!(what.contains("it used all 6 of its iterations"), "{what}");
    assert!(
        what.contains("2 of them before phase 2 (tactical)"),
        "{what}"
    );
    // What was raised once holds for whatever goes on.
    let again = resume("6");
    assert_eq!(again.code, 2, "{}", again.stderr);
    assert!(again.stderr.contains("has 6 already"), "{}", again.stderr);
    let plain = world.selvedge(&["job", "run", "--resume", &session]);
    assert_eq!(plain.code, 1, "{}", plain.stderr);
    assert!(
        plain.stderr.contains("it used all 6 of its iterations"),
        "{}",
        plain.stderr
    );
    let done = resume("9");
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(!place.exists(), "it has not failed any more");
}
