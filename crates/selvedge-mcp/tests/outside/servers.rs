//! Servers that others have made, behind the fence, through a toolbox.

use std::path::Path;

use selvedge_mcp::{Entry, Listed, Scope};
use selvedge_tool::Sandbox;
use serde_json::json;

use crate::place::Place;
use crate::workshop;

/// A program of the workshop, which a fence would hide where it is in a home.
fn listed(name: &str, program: &Path, args: Vec<String>) -> Listed {
    Listed {
        name: name.into(),
        scope: Scope::User,
        entry: Entry {
            command: Some(program.display().to_string()),
            args,
            readable: vec![workshop::home()],
            startup_seconds: Some(60),
            ..Entry::default()
        },
    }
}

/// A server from npm.
async fn node(name: &str, package: &str, more: impl Fn(&Path) -> Vec<String>) -> Place {
    let node = workshop::node();
    let script = workshop::modules().join(package).join("dist/index.js");
    Place::seen(Sandbox::default(), |scratch| {
        let mut args = vec![script.display().to_string()];
        args.extend(more(scratch));
        listed(name, &node, args)
    })
    .await
}

#[tokio::test]
async fn server_everything_has_tools_resources_prompts_and_progress() {
    if workshop::unwanted() {
        return;
    }
    let place = node(
        "everything",
        "@modelcontextprotocol/server-everything",
        |_| Vec::new(),
    )
    .await;
    let call = async |tool: &str, input| {
        let output = place
            .call_with(&format!("mcp__everything__{tool}"), input)
            .await;
        assert!(!output.is_error, "{tool}: {}", output.text);
        output
    };
    assert_eq!(
        call("echo", json!({"message": "warp"})).await.text,
        "Echo: warp"
    );
    let sum = call("get-sum", json!({"a": 2, "b": 40})).await;
    assert!(sum.text.contains("42"), "{}", sum.text);
    let weather = call("get-structured-content", json!({"location": "New York"})).await;
    assert!(weather.facts["structure"].is_object(), "{}", weather.facts);
    let image = call("get-tiny-image", json!({})).await;
    assert!(image.text.contains("[image, image/png,"), "{}", image.text);
    call(
        "trigger-long-running-operation",
        json!({"duration": 1, "steps": 3}),
    )
    .await;
    let shown = place.output.lock().unwrap().clone();
    assert!(shown.contains("2/3"), "{shown}");
    let resources = call("list_resources", json!({})).await;
    let uri = "demo://resource/static/document/features.md";
    assert!(resources.text.contains(uri), "{}", resources.text);
    let resource = call("read_resource", json!({"uri": uri})).await;
    assert!(resource.text.len() > 200, "{}", resource.text);
    let prompts = call("list_prompts", json!({})).await;
    assert!(prompts.text.contains("simple-prompt"), "{}", prompts.text);
    let prompt = call("get_prompt", json!({"name": "simple-prompt"})).await;
    assert!(prompt.text.starts_with("user: "), "{}", prompt.text);
    let name = "mcp__everything__get-sum";
    let refused = place.toolbox.check(name, r#"{"a": "two"}"#).unwrap_err();
    assert!(
        refused.text.contains("do not fit its schema"),
        "{}",
        refused.text
    );
    let environment = call("get-env", json!({})).await.text;
    for secret in ["API_KEY", "SSH_AUTH_SOCK", "_TOKEN"] {
        assert!(!environment.contains(secret), "{secret}: {environment}");
    }
}

#[tokio::test]
async fn server_filesystem_works_in_the_workspace_and_nowhere_else() {
    if workshop::unwanted() {
        return;
    }
    let package = "@modelcontextprotocol/server-filesystem";
    let place = node("files", package, |scratch| {
        vec![scratch.join("app").display().to_string()]
    })
    .await;
    let (inside, outside) = (
        place.root().join("a.txt"),
        place.scratch.path().join("b.txt"),
    );
    let write = async |path: &Path| {
        let input = json!({"path": path, "content": "weft"});
        place.call_with("mcp__files__write_file", input).await
    };
    let output = write(&inside).await;
    assert!(!output.is_error, "{}", output.text);
    assert_eq!(std::fs::read_to_string(&inside).unwrap(), "weft");
    let output = write(&outside).await;
    assert!(output.is_error, "{}", output.text);
    assert!(!outside.exists());
    let input = json!({"path": inside});
    let output = place.call_with("mcp__files__read_text_file", input).await;
    assert!(output.text.contains("weft"), "{}", output.text);
}

#[tokio::test]
async fn mcp_server_git_reads_a_repository() {
    if workshop::unwanted() {
        return;
    }
    let program = workshop::python("mcp-server-git");
    let place = Place::seen(Sandbox::default(), |scratch| {
        let root = scratch.join("app");
        for arguments in [
            &["init", "--quiet"][..],
            &[
                "-c",
                "user.name=A",
                "-c",
                "user.email=a@b",
                "commit",
                "--quiet",
                "--allow-empty",
                "-m",
                "the first thread",
            ],
        ] {
            let mut git = std::process::Command::new("git");
            let done = git.args(arguments).current_dir(&root).status();
            assert!(done.is_ok_and(|status| status.success()));
        }
        std::fs::write(root.join("new.txt"), "x").unwrap();
        listed("git", &program, Vec::new())
    })
    .await;
    let repository = json!({"repo_path": place.root()});
    let status = place
        .call_with("mcp__git__git_status", repository.clone())
        .await;
    assert!(status.text.contains("new.txt"), "{}", status.text);
    let log = place.call_with("mcp__git__git_log", repository).await;
    assert!(log.text.contains("the first thread"), "{}", log.text);
}
