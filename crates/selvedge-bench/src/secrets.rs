//! What looking for secrets costs: text that a tool printed, a second of it.

use std::time::Instant;

use selvedge_tool::Secrets;

use crate::figures::{Figures, median};

const REPEATS: usize = 5;
const TEXT_BYTES: usize = 8 << 20;

/// Megabytes a second, for text without and with something to find.
pub fn measure(figures: &mut Figures) -> anyhow::Result<()> {
    let source = include_str!("turns.rs");
    let log: String = (0..2_000)
        .map(|n| {
            format!(
                "2024-01-01T00:00:{:02} INFO worker {n} took the job from the queue\n",
                n % 60
            )
        })
        .collect();
    let settings = format!(
        "{source}\npassword: hunter22!\napi_key = {}\n",
        "q8Zt1VbX0pLr7KdM2nWc"
    );
    let secrets = Secrets::new();
    let known: Vec<String> = (0..50)
        .map(|n| format!("known-value-{n}-of-the-user"))
        .collect();
    secrets.know_all(known.iter().map(String::as_str));
    for (name, text) in [
        ("a log", &log),
        ("source code", &source.to_owned()),
        ("source code with secrets", &settings),
    ] {
        let text = text.repeat(TEXT_BYTES / text.len());
        let mut costs: Vec<f64> = (0..REPEATS)
            .map(|_| {
                let begun = Instant::now();
                std::hint::black_box(secrets.redact(&text));
                begun.elapsed().as_secs_f64()
            })
            .collect();
        let speed = text.len() as f64 / 1e6 / median(&mut costs);
        figures.add(format!("taking secrets out of {name}"), speed, "MB/s", None);
    }
    let begun = Instant::now();
    let fresh = Secrets::new();
    fresh.know("known-value-of-the-user");
    std::hint::black_box(fresh.redact("one line\n"));
    let millis = begun.elapsed().as_secs_f64() * 1e3;
    figures.add("a registry and its first line", millis, "ms", None);
    Ok(())
}
