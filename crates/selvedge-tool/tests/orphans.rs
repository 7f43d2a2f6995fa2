//! No process outlives Selvedge, however Selvedge ends.
//!
//! The test starts itself a second time as a stand-in for Selvedge, kills that with
//! SIGKILL in the middle of a command, and looks at what is left.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use selvedge_tool::{Caller, Lent, ResultStore, Sandbox, Secrets, ToolContext, Toolbox, Workspace};
use tokio_util::sync::CancellationToken;

const WORKSPACE: &str = "STAND_IN_WORKSPACE";

struct NoResults;

#[async_trait]
impl ResultStore for NoResults {
    async fn result(&self, _: &str) -> Option<Arc<str>> {
        None
    }
}

/// Not a test: the stand-in. It does nothing unless told where.
#[tokio::test]
async fn stand_in() {
    let Some(workspace) = std::env::var_os(WORKSPACE) else {
        return;
    };
    let context = ToolContext {
        policy: Default::default(),
        workspace: Arc::new(Workspace::open(Path::new(&workspace)).unwrap()),
        cancel: CancellationToken::new(),
        output: Arc::new(|_| {}),
        timeout: Duration::from_secs(600),
        awaited: true,
        sandbox: Arc::new(Sandbox::off()),
        results: Arc::new(NoResults),
        caller: Caller::default(),
        desk: Default::default(),
        secrets: Secrets::new(),
        credentials: Lent::default(),
    };
    let toolbox = Toolbox::core();
    let command = "echo $$ > shell
        sleep 1000 & echo $! > plain
        setsid nohup sleep 1000 >/dev/null 2>&1 & echo $! > daemon
        (setsid bash -c 'trap \"\" INT TERM HUP; echo $$ > forked; sleep 1000 & echo $! > deep; wait' &)
        until [ -s deep ]; do :; done
        echo $PPID > supervisor
        sleep 1000";
    let arguments = serde_json::json!({ "command": command }).to_string();
    let call = toolbox.check("run_command", &arguments).unwrap();
    let evidence = toolbox.prepare(&context, &call).await.unwrap();
    let output = toolbox.run(&context, &call, &evidence).await;
    panic!("the stand-in should have been killed: {output:?}");
}

#[test]
fn nothing_outlives_a_selvedge_that_is_killed() {
    let scratch = tempfile::tempdir().unwrap();
    let mut selvedge = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "stand_in"])
        .env(WORKSPACE, scratch.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pid_in = |file: &str| -> Option<u32> {
        let text = std::fs::read_to_string(scratch.path().join(file)).ok()?;
        text.trim().parse().ok()
    };
    eventually("the command runs", || pid_in("supervisor").is_some());
    let pids = ["shell", "plain", "daemon", "forked", "deep", "supervisor"]
        .map(|name| (name, pid_in(name).expect("written before the last")));
    for (name, pid) in pids {
        assert!(is_alive(pid), "{name} runs");
    }
    selvedge.kill().unwrap();
    selvedge.wait().unwrap();
    for (name, pid) in pids {
        eventually(&format!("{name} is gone"), || !is_alive(pid));
    }
}

/// A zombie is not alive: who adopted it may be slow to bury it.
fn is_alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        !stat
            .rsplit(')')
            .next()
            .is_some_and(|rest| rest.starts_with(" Z"))
    })
}

fn eventually(what: &str, mut is_true: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !is_true() {
        assert!(Instant::now() < until, "it did not come true: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
