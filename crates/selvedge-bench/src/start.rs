//! What it costs to start the binary: its version, its first request, its memory.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use selvedge_testkit::{ModelServer, Reply};

use crate::figures::{Figures, median};
use crate::rig;

/// Measures the release binary beside this one; says so if there is none.
pub fn measure(figures: &mut Figures) -> anyhow::Result<()> {
    let binary = std::env::current_exe()?.with_file_name("selvedge");
    if !binary.exists() {
        eprintln!("skipped: build the binary first, `cargo build --release -p selvedge`");
        return Ok(());
    }
    version(figures, &binary)?;
    first_request(figures, &binary)
}

fn version(figures: &mut Figures, binary: &Path) -> anyhow::Result<()> {
    let mut times = Vec::new();
    for _ in 0..20 {
        let begun = Instant::now();
        let output = Command::new(binary).arg("--version").output()?;
        anyhow::ensure!(output.status.success(), "--version failed");
        times.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    figures.add("--version", median(&mut times), "ms", Some(10.0));
    Ok(())
}

fn first_request(figures: &mut Figures, binary: &Path) -> anyhow::Result<()> {
    let runtime = selvedge_runtime::executor().worker_threads(1).build()?;
    let server = runtime.block_on(ModelServer::start());
    let folder = rig::scratch()?;
    let mut times = Vec::new();
    let mut memory = Vec::new();
    for n in 0..9 {
        let home: PathBuf = folder.path().join(format!("home-{n}"));
        std::fs::create_dir(&home)?;
        server.push(Reply::text("hello").latency(Duration::from_millis(300)));
        let asked = server.requests().len();
        let begun = Instant::now();
        let mut child = Command::new(binary)
            .args(["run", "--model", "openai/bench", "-C"])
            .arg(&home)
            .arg("hello")
            .env("SELVEDGE_HOME", &home)
            .env("OPENAI_API_KEY", "bench")
            .env("OPENAI_BASE_URL", server.openai_url())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        while server.requests().len() == asked {
            anyhow::ensure!(begun.elapsed() < Duration::from_secs(10), "no request came");
            std::thread::sleep(Duration::from_micros(200));
        }
        times.push(begun.elapsed().as_secs_f64() * 1e3);
        memory.push(resident_mb(child.id()));
        anyhow::ensure!(child.wait()?.success(), "the run failed");
    }
    figures.add(
        "command to first model request",
        median(&mut times),
        "ms",
        Some(50.0),
    );
    figures.add(
        "memory while waiting for a model",
        median(&mut memory),
        "MB",
        Some(40.0),
    );
    Ok(())
}

fn resident_mb(pid: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status
        .lines()
        .find(|l| l.starts_with("VmRSS:"))
        .unwrap_or_default();
    let kb: f64 = line
        .split_whitespace()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .unwrap_or(f64::NAN);
    kb / 1024.0
}
