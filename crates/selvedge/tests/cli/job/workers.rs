//! Workers: every job once, whoever is killed.

use std::process::{Child, Stdio};

use rustix::process::Signal;
use serde_json::json;

use super::*;
use crate::world::{Background, until};

const JOBS: usize = 100;

fn worker(world: &World, arguments: &[&str]) -> Child {
    let mut command = world.command(&["worker"]);
    command
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().unwrap()
}

fn states(world: &World) -> Vec<Value> {
    let list = world.selvedge(&["job", "list", "--json"]);
    list.stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// A job that is over after one strategic phase.
fn short() -> Value {
    json!({ "strategic": [
        turn(&[json!({ "append_file": { "path": "output/count.md", "content": "once\n" } })]),
        turn(&[json!({ "job_complete": { "summary": "Done." } })]),
    ]})
}

#[test]
fn two_workers_do_a_hundred_jobs_each_once_and_one_that_is_killed_is_replaced() {
    let world = world(json!({}));
    let script = script(&world, &short());
    for _ in 0..JOBS {
        let mut submit = world.command(&["job", "submit", "--config", "mine", "--script"]);
        let output = world.output(submit.arg(&script));
        assert_eq!(output.code, 0, "{}", output.stderr);
    }
    assert!(states(&world).iter().all(|job| job["state"] == "queued"));
    let mut first = worker(&world, &["--jobs", "4"]);
    let mut second = worker(&world, &["--jobs", "4", "--drain"]);
    until("some jobs are done", || {
        states(&world)
            .iter()
            .filter(|job| job["state"] == "done")
            .count()
            >= 5
    });
    // Whatever it is at is taken over by the other.
    let pid = rustix::process::Pid::from_child(&first);
    rustix::process::kill_process(pid, Signal::KILL).unwrap();
    first.wait().unwrap();
    let status = second.wait().unwrap();
    assert!(status.success());
    let states = states(&world);
    assert_eq!(states.len(), JOBS);
    for job in states {
        assert_eq!(job["state"], "done", "{job}");
        let folder = PathBuf::from(job["folder"].as_str().unwrap());
        assert_eq!(read(&folder.join("output/count.md")), "once\n", "{job}");
        assert!(folder.join("output/completion.json").exists());
    }
}

#[test]
fn a_worker_that_is_told_to_stop_leaves_its_job_to_the_next() {
    let world = world(json!({}));
    let mut agents = short();
    agents["strategic"][1]["delay"] = json!("20s");
    let slow = script(&world, &agents);
    let mut submit = world.command(&["job", "submit", "--config", "mine", "--script"]);
    let id = world.output(submit.arg(&slow)).stdout.trim().to_owned();
    let first = Background::start(&world, world.command(&["worker"]));
    let written = folder(&world).join("output/count.md");
    until("the first turn is done", || written.exists());
    first.signal(Signal::INT);
    assert_eq!(first.end(), 130);
    // The next one has a quicker model: the script that is kept with the job.
    let kept = world
        .home()
        .join("data/sessions")
        .join(&id)
        .join("script.yaml");
    let quick = read(&kept).replace("20s", "0s");
    std::fs::write(&kept, quick).unwrap();
    let drained = world.selvedge(&["worker", "--drain"]);
    assert_eq!(drained.code, 0, "{}", drained.stderr);
    assert_eq!(states(&world)[0]["state"], "done", "{}", drained.stderr);
    assert_eq!(read(&written), "once\n");
}

#[test]
fn a_job_that_is_cancelled_in_the_queue_is_done_by_nobody() {
    let world = world(json!({}));
    let script = script(&world, &short());
    let mut submit = world.command(&["job", "submit", "--config", "mine", "--script"]);
    let output = world.output(submit.arg(&script));
    let id = output.stdout.trim();
    let cancelled = world.selvedge(&["job", "cancel", id]);
    assert_eq!(cancelled.code, 0, "{}", cancelled.stderr);
    let drained = world.selvedge(&["worker", "--drain"]);
    assert_eq!(drained.code, 0, "{}", drained.stderr);
    assert_eq!(states(&world)[0]["state"], "cancelled");
    assert!(!folder(&world).join("output/count.md").exists());
}

#[test]
fn a_submitted_job_wakes_a_worker_that_looks_seldom() {
    let world = world(json!({ "polling": { "interval_seconds": 3600 } }));
    let script = script(&world, &short());
    let worker = Background::start(&world, world.command(&["worker", "--config", "mine"]));
    worker.wait_for("looks every 3600 seconds");
    // One that is not for this worker comes first, and stays where it is.
    for config in ["defaults", "mine"] {
        let mut submit = world.command(&["job", "submit", "--config", config, "--script"]);
        let output = world.output(submit.arg(&script));
        assert_eq!(output.code, 0, "{}", output.stderr);
    }
    let state = |config: &str| {
        let states = states(&world);
        let job = states.iter().find(|job| job["config"] == config);
        job.unwrap()["state"].as_str().unwrap().to_owned()
    };
    until("the job is done", || state("mine") == "done");
    assert_eq!(state("defaults"), "queued");
    worker.signal(Signal::INT);
    assert_eq!(worker.end(), 130);
}

#[test]
fn a_config_that_is_not_for_workers_is_refused_by_submit_and_by_workers() {
    let world = world(json!({ "polling": { "enabled": false } }));
    for arguments in [
        &["job", "submit", "--config", "mine"][..],
        &["worker", "--config", "mine"],
    ] {
        let output = world.selvedge(arguments);
        assert_eq!(output.code, 2, "{}", output.stderr);
        assert!(
            output.stderr.contains("`polling.enabled` is false"),
            "{}",
            output.stderr
        );
    }
}
