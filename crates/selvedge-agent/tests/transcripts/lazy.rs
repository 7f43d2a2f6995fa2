//! Tools that are asked for: what the model is sent, and what it saves.

use std::sync::Arc;

use async_trait::async_trait;
use expect_test::{Expect, expect};
use selvedge_agent::Lazy;
use selvedge_model::Request;
use selvedge_tool::{Tool, ToolContext, ToolOutput, ToolSpec, World};
use serde_json::{Value, json};

use crate::story::{Beat, Dies, Requests, Story, story};

const ENGINEER: &str = "---\nname: engineer\ndescription: Works.\ntools: [read_file, finish]\n\
     more_tools: [git_log, git_blame, discover_tools]\n---\nYou work.\n";

/// A story of an engineer with little at hand and three tools on offer.
fn tale(script: &str) -> Story {
    story(script)
        .crew("lazy", vec![("engineer", ENGINEER)], "")
        .lazy(Lazy::Always)
        .file("a.txt", "one\n")
}

/// The names of the tools that each request had.
fn tools(requests: &Requests) -> String {
    let lines = requests.lock().unwrap();
    let line = |request: &Request| {
        let names: Vec<&str> = request.tools.iter().map(|t| &*t.name).collect();
        format!("{}: {}\n", request.turn, names.join(" "))
    };
    lines.iter().map(line).collect()
}

fn check(story: Story, expected: Expect) -> Requests {
    let requests = story.requests();
    let transcript = story.play();
    expected.assert_eq(&format!("{transcript}{}", tools(&requests)));
    requests
}

#[test]
fn a_tool_that_was_asked_for_is_there_from_the_next_turn_on() {
    let requests = check(
        tale(
            "
            - calls:
                - request_tools: {intent: which linter does this project use}
            - calls:
                - discover_tools: {category: lsp}
            - calls:
                - request_tools: {bundle: git}
            - calls:
                - finish: {summary: looked}
            ",
        ),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            ToolCallStarted t0.0 request_tools attempt=1
            ToolCallFinished t0.0 Loaded: `discover_tools`.
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            ToolCallStarted t1.0 discover_tools attempt=1
            ToolCallFinished t1.0 There is no lsp to be found here, and none that is known for it.
            ModelCallStarted m2 attempt=1 messages=5
            ModelCallFinished m2
            ToolCallStarted t2.0 request_tools attempt=1
            ToolCallFinished t2.0 Loaded: `git_log`, `git_blame`.
            ModelCallStarted m3 attempt=1 messages=7
            ModelCallFinished m3
            RunFinished done looked
            0: read_file finish request_tools
            1: read_file finish request_tools discover_tools
            2: read_file finish request_tools discover_tools
            3: read_file finish request_tools discover_tools git_log git_blame
        "#]],
    );
    let requests = requests.lock().unwrap();
    let systems: Vec<&str> = requests.iter().map(|r| &*r.system).collect();
    assert!(systems.windows(2).all(|pair| pair[0] == pair[1]));
    assert!(
        systems[0].contains("\n- git_log: List commits"),
        "{}",
        systems[0]
    );
}

#[test]
fn a_wish_that_cannot_be_fulfilled_loads_nothing() {
    check(
        tale(
            "
            - calls:
                - request_tools: {tools: [git_log, git_push]}
                - request_tools: {bundle: mercurial}
                - request_tools: {}
            - text: no
            ",
        ),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            ToolCallStarted t0.0 request_tools attempt=1
            ToolCallStarted t0.1 request_tools attempt=1
            ToolCallStarted t0.2 request_tools attempt=1
            ToolCallFinished t0.0 error: there is no tool `git_push` on offer; there are `discover_tools`, `git_b
            ToolCallFinished t0.1 error: there is no bundle `mercurial` on offer; there are `git`; nothing was lo
            ToolCallFinished t0.2 error: give exactly one of `tools` (at least one name), `bundle` and `intent`; 
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            RunFinished done no
            0: read_file finish request_tools
            1: read_file finish request_tools
        "#]],
    );
}

#[test]
fn a_tool_on_offer_that_is_called_at_once_is_loaded_and_run() {
    check(
        tale(
            "
            - calls:
                - discover_tools: {category: linters}
            - calls:
                - discover_tools: {category: lsp}
            - text: none
            ",
        ),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            ToolCallStarted t0.0 discover_tools attempt=1
            ToolCallFinished t0.0 error: the arguments of `discover_tools` do not fit its schema; correct them an
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            ToolCallStarted t1.0 discover_tools attempt=1
            ToolCallFinished t1.0 There is no lsp to be found here, and none that is known for it.
            ModelCallStarted m2 attempt=1 messages=5
            ModelCallFinished m2
            RunFinished done none
            0: read_file finish request_tools
            1: read_file finish request_tools discover_tools
            2: read_file finish request_tools discover_tools
        "#]],
    );
}

#[test]
fn a_crash_after_tools_were_asked_for_changes_nothing_in_what_is_sent() {
    let script = "
        - calls:
            - request_tools: {tools: [git_blame]}
        - calls:
            - read_file: {path: a.txt}
        - text: read
        ";
    check(
        tale(script).then(Beat::Crash(Dies::AfterIts("t0.0"))),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            ToolCallStarted t0.0 request_tools attempt=1
            ToolCallStarted t0.0 request_tools attempt=2
            ToolCallFinished t0.0 Loaded: `git_blame`.
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            ToolCallStarted t1.0 read_file attempt=1
            ToolCallFinished t1.0 one
            ModelCallStarted m2 attempt=1 messages=5
            ModelCallFinished m2
            RunFinished done read
            0: read_file finish request_tools
            1: read_file finish request_tools git_blame
            2: read_file finish request_tools git_blame
        "#]],
    );
    check(
        tale(script).then(Beat::Crash(Dies::AfterIts("m1"))),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            ToolCallStarted t0.0 request_tools attempt=1
            ToolCallFinished t0.0 Loaded: `git_blame`.
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallStarted m1 attempt=2 messages=3
            ModelCallFinished m1
            ToolCallStarted t1.0 read_file attempt=1
            ToolCallFinished t1.0 one
            ModelCallStarted m2 attempt=1 messages=5
            ModelCallFinished m2
            RunFinished done read
            0: read_file finish request_tools
            1: read_file finish request_tools git_blame
            1: read_file finish request_tools git_blame
            2: read_file finish request_tools git_blame
        "#]],
    );
}

#[test]
fn an_agent_that_has_everything_at_hand_is_told_of_nothing_else() {
    let requests = check(
        tale("- text: hello").lazy(Lazy::Never),
        expect![[r#"
        RunStarted do it
        ModelCallStarted m0 attempt=1 messages=1
        ModelCallFinished m0
        RunFinished done hello
        0: read_file finish git_log git_blame discover_tools
    "#]],
    );
    assert_eq!(&*requests.lock().unwrap()[0].system, "You work.");
}

/// One of a server's tools, with a schema as long as such schemas are.
struct Panel(usize);

const BUNDLES: [&str; 5] = ["component", "tokens", "access", "layout", "preview"];

#[async_trait]
impl Tool for Panel {
    fn spec(&self) -> ToolSpec {
        let bundle = BUNDLES[self.0 % 5];
        let field = |what: &str| {
            json!({"type": "string", "description": format!(
                "The {what} of the {bundle}, as it is named in the design system; see its list."
            )})
        };
        ToolSpec {
            name: format!("mcp__design__{bundle}_{}", self.0),
            description: format!(
                "Works on the {bundle} of a design, in way {}. It changes nothing on disk, and \
                 answers with what the design would be like.",
                self.0
            ),
            schema: json!({"type": "object", "properties": {
                "name": field("name"), "variant": field("variant"), "state": field("state"),
            }, "required": ["name"]}),
            world: World::Reads,
        }
    }

    fn bundle(&self) -> Option<&str> {
        Some(BUNDLES[self.0 % 5])
    }

    async fn run(&self, _: &ToolContext, input: &Value, _: &Value) -> ToolOutput {
        ToolOutput::ok(format!("looks fine: {}", input["name"]))
    }
}

/// Twenty turns of a designer with thirty tools: bytes of schemas, and of what the
/// prompt says of tools, in all requests.
fn designer(lazy: Lazy) -> (u64, String) {
    let agent = "---\nname: engineer\ndescription: Designs.\ntools: [read_file, list_files, \
         finish, 'mcp__*']\n---\nYou design.\n";
    let mut script = String::from("- calls: [{request_tools: {bundle: component}}]\n");
    for turn in 1..19 {
        let n = turn % 6 * 5;
        script.push_str(&format!(
            "- calls: [{{mcp__design__component_{n}: {{name: door {turn}}}}}]\n"
        ));
    }
    script.push_str("- calls: [{finish: {summary: designed}}]\n");
    let panels = (0..30).map(|n| Arc::new(Panel(n)) as Arc<dyn Tool>);
    let story = story(&script)
        .crew("design", vec![("engineer", agent)], "")
        .tools(panels.collect())
        .lazy(lazy);
    let (requests, spending) = (story.requests(), story.spending());
    story.play();
    let requests = requests.lock().unwrap();
    assert_eq!(requests.len(), 20);
    let bytes = requests.iter().map(|request| {
        let schemas: u64 = request.tools.iter().map(|tool| tool.bytes()).sum();
        schemas + (request.system.len() - "You design.".len()) as u64
    });
    let schemas = spending.lock().unwrap().total().schemas;
    (
        bytes.sum(),
        format!("{} of {}", schemas.sent, schemas.eager),
    )
}

#[test]
fn twenty_turns_with_thirty_tools_send_less_than_half_of_all_schemas() {
    let (eager, _) = designer(Lazy::Never);
    let (lazy, recorded) = designer(Lazy::Auto);
    assert!(lazy * 2 <= eager, "{lazy} bytes, and eagerly {eager}");
    // What `usage` says is what was sent, as far as bytes can say.
    let expected = format!("{} of {}", lazy * 2 / 7, eager * 2 / 7);
    expect![[r#"
        sent 49641 of 104800, recorded 49508 of 104540
    "#]]
    .assert_eq(&format!("sent {expected}, recorded {recorded}\n"));
}
