//! An embedder behind an address: used when it answers, done without when it does not.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::world::{Output, World};

/// A server that knows that a car is an automobile, and can be switched off.
struct Server {
    url: String,
    is_on: Arc<AtomicBool>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let is_on = Arc::new(AtomicBool::new(true));
        let on = is_on.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let asked = read(&mut BufReader::new(&stream));
                let answer = asked.and_then(|(path, body)| answer(&path, &body));
                let (status, text) = match answer {
                    Some(answer) if on.load(Ordering::Relaxed) => ("200 OK", answer.to_string()),
                    _ => ("503 Service Unavailable", "{}".to_owned()),
                };
                let length = text.len();
                let head = format!(
                    "HTTP/1.1 {status}\r\ncontent-type: application/json\r\n\
                     content-length: {length}\r\nconnection: close\r\n\r\n"
                );
                let _ = stream.write_all(format!("{head}{text}").as_bytes());
            }
        });
        Self { url, is_on }
    }
}

/// The path and the body of a request.
fn read(reader: &mut impl BufRead) -> Option<(String, Value)> {
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim().to_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let path = first.split(' ').nth(1)?.to_owned();
    Some((path, serde_json::from_slice(&body).ok()?))
}

fn answer(path: &str, body: &Value) -> Option<Value> {
    let texts = body["input"].as_array()?;
    let vector = |text: &Value| {
        let text = text.as_str().unwrap_or_default().to_lowercase();
        let has = |words: [&str; 2]| f64::from(u8::from(words.iter().any(|w| text.contains(w))));
        json!([has(["car", "automobile"]), has(["tree", "oak"]), 0.1])
    };
    let vectors: Vec<Value> = texts.iter().map(vector).collect();
    match path {
        "/v1/embeddings" => {
            let row = |(at, vector)| json!({ "index": at, "embedding": vector });
            let data: Vec<Value> = vectors.into_iter().enumerate().map(row).collect();
            Some(json!({ "data": data }))
        }
        "/api/embed" => Some(json!({ "embeddings": vectors })),
        _ => None,
    }
}

fn project() -> World {
    let world = World::new();
    world.write("work/a.rs", "pub fn park_car() {\n    brake()\n}\n");
    world.write("work/b.rs", "pub fn plant_tree() {\n    dig()\n}\n");
    world
}

fn first(output: &Output) -> String {
    assert_eq!(output.code, 0, "{}", output.stderr);
    let line: Value = serde_json::from_str(output.stdout.lines().next().unwrap()).unwrap();
    line["name"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_server_of_either_protocol_makes_the_vectors() {
    let server = Server::start();
    for (embedder, url) in [
        ("openai", format!("{}/v1", server.url)),
        ("ollama", server.url.clone()),
    ] {
        let world = project();
        world.write(
            "home/config/config.toml",
            &format!("[knowledge]\nembedder = \"{embedder}\"\nurl = \"{url}\"\nmodel = \"m\"\n"),
        );
        let indexed = world.selvedge(&["index"]);
        assert_eq!(indexed.code, 0, "{}", indexed.stderr);
        assert!(
            indexed.stderr.contains("vectors made"),
            "{}",
            indexed.stderr
        );
        let found = world.selvedge(&["search", "--json", "automobile"]);
        assert_eq!(first(&found), "park_car", "{embedder}");
        let stats = world.selvedge(&["knowledge", "stats", "--json"]);
        let stats: Value = serde_json::from_str(stats.stdout.trim()).unwrap();
        assert_eq!(stats["embedder"], json!({ "name": "m", "dimensions": 3 }));
    }
}

#[test]
fn a_server_that_fails_costs_neither_the_search_nor_the_index() {
    let server = Server::start();
    let world = project();
    world.write(
        "home/config/config.toml",
        &format!(
            "[knowledge]\nembedder = \"ollama\"\nurl = \"{}\"\n",
            server.url
        ),
    );
    world.selvedge(&["index"]);
    server.is_on.store(false, Ordering::Relaxed);
    for by in ["hybrid", "likeness"] {
        let found = world.selvedge(&["search", "--json", "--by", by, "plant"]);
        assert_eq!(first(&found), "plant_tree");
        let note = "found by words only: `nomic-embed-text` at";
        assert!(found.stderr.contains(note), "{}", found.stderr);
        assert!(found.stderr.contains("503"), "{}", found.stderr);
    }
    world.write("work/c.rs", "pub fn cut_oak() {\n    saw()\n}\n");
    let indexed = world.selvedge(&["index"]);
    assert_eq!(indexed.code, 0, "{}", indexed.stderr);
    let note = "no vectors are made, search is by words";
    assert!(indexed.stderr.contains(note), "{}", indexed.stderr);
    let found = world.selvedge(&["search", "--json", "oak"]);
    assert_eq!(first(&found), "cut_oak");
    server.is_on.store(true, Ordering::Relaxed);
    let indexed = world.selvedge(&["index"]);
    assert!(
        indexed.stderr.contains("1 vector made"),
        "{}",
        indexed.stderr
    );
    let found = world.selvedge(&["search", "--json", "automobile"]);
    assert_eq!(first(&found), "park_car", "those made before were kept");
    assert!(!found.stderr.contains("words only"), "{}", found.stderr);
}

#[test]
fn a_project_cannot_say_who_reads_the_code() {
    let server = Server::start();
    let world = project();
    world.write(
        "work/.selvedge/config.toml",
        &format!(
            "[knowledge]\nembedder = \"ollama\"\nurl = \"{}\"\n",
            server.url
        ),
    );
    let indexed = world.selvedge(&["index"]);
    assert_eq!(indexed.code, 0, "{}", indexed.stderr);
    let stats = world.selvedge(&["knowledge", "stats", "--json"]);
    let stats: Value = serde_json::from_str(stats.stdout.trim()).unwrap();
    assert_eq!(stats["embedder"]["name"], "hashed-n-grams-4");
}
