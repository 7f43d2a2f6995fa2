//! Real processes, and a look at what is left of them.

use super::*;
use crate::workspace::Workspace;
use std::os::unix::process::ExitStatusExt;
use std::sync::Mutex;

struct Shell {
    scratch: tempfile::TempDir,
    limits: Limits,
    sandbox: Option<Sandbox>,
    cancel: CancellationToken,
    seen: Arc<Mutex<String>>,
}

impl Shell {
    fn new() -> Self {
        Self {
            scratch: tempfile::tempdir().unwrap(),
            limits: Limits {
                interrupt_grace: Duration::from_millis(200),
                terminate_grace: Duration::from_millis(200),
                ..Limits::new(Patience::exactly(Duration::from_secs(60)))
            },
            sandbox: None,
            cancel: CancellationToken::new(),
            seen: Arc::default(),
        }
    }

    fn process(&self, command: &str) -> Process {
        let workspace = Workspace::open(self.scratch.path()).unwrap();
        Process {
            program: find("bash", workspace.root()).unwrap(),
            arguments: ["-c", "--", command].map(Into::into).into(),
            directory: workspace.open_dir(std::path::Path::new("")).unwrap(),
            directory_path: workspace.root().into(),
            environment: environment(),
            limits: self.limits,
            enclosure: self.sandbox.clone().map(|sandbox| Enclosure {
                sandbox: Arc::new(sandbox),
                workspace: workspace.root().into(),
            }),
        }
    }

    async fn run(&self, command: &str) -> Finished {
        let seen = Arc::clone(&self.seen);
        let sink: Arc<dyn Fn(&str) + Send + Sync> =
            Arc::new(move |text| seen.lock().unwrap().push_str(text));
        self.process(command)
            .run(&self.cancel, &sink)
            .await
            .unwrap()
    }

    /// Whether a process whose id the command wrote to a file is gone.
    fn is_gone(&self, file: &str) -> bool {
        let pid = std::fs::read_to_string(self.scratch.path().join(file)).unwrap();
        // A zombie is gone: who adopted it may be slow to bury it.
        std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()))
            .map_or(true, |stat| stat.contains(") Z "))
    }
}

/// Waits for something to become true, and says what if it does not.
async fn eventually(what: &str, mut is_true: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !is_true() {
        assert!(Instant::now() < until, "it did not come true: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn both_channels_come_in_order_and_as_they_appear() {
    let shell = Shell::new();
    let finished = shell
        .run("echo one; echo two >&2; echo three; exit 3")
        .await;
    assert_eq!(finished.text, "one\ntwo\nthree\n");
    assert_eq!(*shell.seen.lock().unwrap(), finished.text);
    assert_eq!(finished.status.unwrap().code(), Some(3));
    assert_eq!((finished.bytes, finished.stopped), (14, None));
}

#[tokio::test]
async fn a_command_has_no_input_no_terminal_and_a_session_of_its_own() {
    let shell = Shell::new();
    let finished = shell
        .run("read x; echo \"read $?\"; (: </dev/tty) 2>/dev/null; echo \"tty $?\"; ps -o sid= -p $$ | tr -d ' '; echo $$; pwd")
        .await;
    let lines: Vec<_> = finished.text.lines().collect();
    assert_eq!(&lines[..2], ["read 1", "tty 1"], "{}", finished.text);
    assert_eq!(lines[2], lines[3], "the shell leads its session");
    assert_eq!(
        lines[4],
        shell
            .scratch
            .path()
            .canonicalize()
            .unwrap()
            .to_str()
            .unwrap()
    );
}

#[tokio::test]
async fn nothing_of_selvedge_is_open_in_a_command() {
    let shell = Shell::new();
    let finished = shell.run("ls /proc/self/fd | tr '\\n' ' '").await;
    // Three channels, and the directory that `ls` itself reads.
    assert_eq!(finished.text, "0 1 2 3 ");
}

#[tokio::test]
async fn background_processes_and_daemons_die_with_their_command() {
    let shell = Shell::new();
    let finished = shell
        .run(
            "sleep 1000 & echo $! > plain
             setsid nohup sleep 1000 >/dev/null 2>&1 & echo $! > daemon
             (setsid bash -c 'echo $$ > forked; trap \"\" INT TERM HUP; sleep 1000 & echo $! > deep; wait' &)
             until [ -s deep ]; do :; done
             echo done",
        )
        .await;
    assert_eq!(finished.text, "done\n");
    assert_eq!(finished.status.unwrap().code(), Some(0));
    for file in ["plain", "daemon", "forked", "deep"] {
        assert!(shell.is_gone(file), "{file} is still there");
    }
}

#[tokio::test]
async fn a_command_out_of_time_is_interrupted_first() {
    let mut shell = Shell::new();
    shell.limits.patience = Patience::exactly(Duration::from_millis(300));
    shell.limits.interrupt_grace = Duration::from_secs(60);
    let finished = shell
        .run("trap 'echo cleaned up; exit 5' INT; echo begun; while :; do sleep 0.02; done")
        .await;
    assert_eq!(finished.stopped, Some(Stopped::TimedOut));
    assert_eq!(finished.text, "begun\ncleaned up\n");
    assert_eq!(finished.status.unwrap().code(), Some(5));
}

#[tokio::test]
async fn a_command_that_ignores_signals_is_killed_in_the_end() {
    let mut shell = Shell::new();
    shell.limits.patience = Patience::exactly(Duration::from_millis(300));
    let finished = shell
        .run("trap 'echo int' INT; trap 'echo term' TERM; echo $$ > pid; while :; do sleep 0.02; done")
        .await;
    let said = |word: &str| finished.text.lines().position(|line| line == word);
    assert!(
        said("int") < said("term") && said("int").is_some(),
        "{finished:?}"
    );
    assert_eq!(finished.status.unwrap().signal(), Some(9));
    assert!(shell.is_gone("pid"));
}

#[tokio::test]
async fn a_cancelled_command_keeps_what_it_printed() {
    let shell = Shell::new();
    let (cancel, seen) = (shell.cancel.clone(), Arc::clone(&shell.seen));
    let cancelling = tokio::spawn(async move {
        eventually("it began", || seen.lock().unwrap().contains("begun")).await;
        cancel.cancel();
    });
    let finished = shell.run("echo begun; exec sleep 1000").await;
    cancelling.await.unwrap();
    assert_eq!(finished.text, "begun\n");
    assert_eq!(finished.stopped, Some(Stopped::Cancelled));
    assert_eq!(finished.status.unwrap().signal(), Some(2));
}

#[tokio::test]
async fn an_abandoned_command_is_killed() {
    let shell = Shell::new();
    let pid = shell.scratch.path().join("pid");
    let began = || std::fs::read_to_string(&pid).is_ok_and(|text| !text.is_empty());
    tokio::select! {
        _ = shell.run("setsid sleep 1000 & echo $! > pid; wait") => panic!("it ended"),
        () = eventually("it began", began) => {}
    }
    eventually("the daemon is gone", || shell.is_gone("pid")).await;
}

#[tokio::test]
async fn a_flood_of_output_is_bounded() {
    let mut shell = Shell::new();
    shell.limits.output_bytes_max = 64 * 1024;
    let finished = shell
        .run("head -c 20000000 /dev/zero | tr '\\0' 'x'; echo; echo end")
        .await;
    assert_eq!(finished.bytes, 20_000_005);
    assert!(finished.text.len() < 65 * 1024, "{}", finished.text.len());
    assert!(finished.text.contains("bytes were not kept here"));
    assert!(finished.text.ends_with("\nend\n"));
}

#[tokio::test]
async fn a_command_that_prints_without_end_is_stopped() {
    let mut shell = Shell::new();
    shell.limits.flood_bytes_max = 8 << 20;
    let finished = shell.run("yes flood").await;
    assert_eq!(finished.stopped, Some(Stopped::Flooded));
    assert_eq!(finished.kill_signal, Some("SIGINT"));
    assert!(finished.bytes > 8 << 20 && finished.text.starts_with("flood\n"));
}

#[tokio::test]
async fn a_command_that_goes_on_speaking_is_heard_out() {
    let mut shell = Shell::new();
    shell.limits.patience = Patience {
        base: Duration::from_millis(300),
        extension: Duration::from_secs(20),
        most: Duration::from_secs(60),
    };
    let finished = shell.run("echo at work; sleep 1; echo done").await;
    assert_eq!(
        (finished.stopped, finished.text.as_str()),
        (None, "at work\ndone\n")
    );
    let finished = shell.run("echo ...; sleep 1000").await;
    assert_eq!(
        (finished.stopped, finished.text.as_str()),
        (Some(Stopped::TimedOut), "...\n")
    );
}

#[tokio::test]
async fn a_fenced_command_is_ended_in_the_same_way() {
    let mut shell = Shell::new();
    shell.sandbox = Some(Sandbox::default());
    shell.limits.patience = Patience::exactly(Duration::from_millis(300));
    let ignores = "trap 'echo int' INT; trap 'echo term' TERM; while :; do sleep 0.02; done";
    let finished = shell.run(ignores).await;
    assert_eq!(finished.status.unwrap().signal(), Some(9), "{finished:?}");
    assert_eq!(finished.kill_signal, Some("SIGKILL"));
    let finished = shell.run("exec sleep 1000").await;
    assert_eq!(finished.status.unwrap().signal(), Some(2), "{finished:?}");
    assert_eq!(finished.kill_signal, Some("SIGINT"));
    let attack = "ls /proc/self/fd | tr '\\n' ' '; kill -9 $PPID 2>/dev/null; exit 3";
    let finished = shell.run(attack).await;
    assert_eq!(finished.text, "0 1 2 3 ");
    assert_eq!(
        finished.status.unwrap().code(),
        Some(3),
        "its supervisor cannot be killed"
    );
}

#[tokio::test]
async fn a_fence_that_cannot_be_put_up_is_a_refusal_with_a_way_out() {
    let mut shell = Shell::new();
    let sandbox = Sandbox {
        writable: vec!["/nonexistent/folder".into()],
        ..Sandbox::default()
    };
    shell.sandbox = Some(sandbox);
    let sink: Arc<dyn Fn(&str) + Send + Sync> = Arc::new(|_| {});
    let process = shell.process("echo ran > ran");
    let error = process.run(&shell.cancel, &sink).await.unwrap_err();
    let text = error.to_string();
    for words in [
        "nothing was run",
        "showing the files",
        "No such file",
        "`--sandbox off`",
    ] {
        assert!(text.contains(words), "{words} in {text}");
    }
    assert!(!shell.scratch.path().join("ran").exists());
}

#[tokio::test]
async fn a_command_that_kills_its_supervisor_dies_too() {
    let shell = Shell::new();
    let finished = shell
        .run("sleep 1000 & echo $! > child; echo $$ > shell; kill -9 $PPID; sleep 1000")
        .await;
    assert!(finished.status.is_none(), "{finished:?}");
    eventually("the shell is gone", || shell.is_gone("shell")).await;
    eventually("its child is gone", || shell.is_gone("child")).await;
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_an_error() {
    let shell = Shell::new();
    let mut process = shell.process("");
    process.program = "/nonexistent/program".into();
    let sink: Arc<dyn Fn(&str) + Send + Sync> = Arc::new(|_| {});
    let error = process.run(&shell.cancel, &sink).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}
