//! Credentials that a tool uses for the first time are asked about as anything else is.

use std::sync::Arc;

use async_trait::async_trait;
use expect_test::expect;
use selvedge_agent::Approve;
use selvedge_runtime::SystemClock;
use selvedge_tool::{
    ConsentBook, Lender, NoConsent, Scopes, Secrets, Tool, ToolContext, ToolOutput, ToolSpec,
    Toolbox, World,
};
use serde_json::{Value, json};

use crate::check;
use crate::story::{Beat, Dies, LENT, Story, story};

/// Opens its credential, and says so.
struct OpenIssue;

#[async_trait]
impl Tool for OpenIssue {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "open_issue".into(),
            description: "Opens an issue.".into(),
            schema: json!({"type": "object"}),
            world: World::Runs,
        }
    }

    fn credentials(&self) -> Vec<String> {
        vec!["github".into()]
    }

    async fn run(&self, context: &ToolContext, _: &Value, _: &Value) -> ToolOutput {
        let value = context.credentials.open("github");
        ToolOutput::ok(match value {
            Some(_) => "opened",
            None => "no credential",
        })
    }
}

const ENGINEER: &str =
    "---\nname: engineer\ndescription: Works.\ntools: [open_issue]\n---\nYou work.\n";

const THREE_TIMES: &str = "
    - calls:
        - open_issue: {}
    - calls:
        - open_issue: {n: 2}
    - calls:
        - open_issue: {n: 3}
    - text: done
";

/// Agents whose tool needs a credential that nobody has agreed to yet.
fn lending() -> Story {
    story(THREE_TIMES)
        .approve(Approve::Ask)
        .crew("lent", vec![("engineer", ENGINEER)], "")
        .toolbox(|folder| {
            let book = ConsentBook::new(folder.join("consents.json"), Arc::new(NoConsent));
            let secrets = Secrets::new();
            let lender = Lender::new(
                Scopes::default(),
                Arc::new(book),
                Arc::new(|_: &str| Some(LENT.into())),
                Arc::new(SystemClock),
                secrets.clone(),
            );
            Toolbox::core()
                .with(Arc::new(OpenIssue))
                .with_secrets(secrets)
                .with_lender(Arc::new(lender))
        })
        .policy(allowing("@tool open_issue"))
}

fn allowing(pattern: &str) -> selvedge_tool::Policy {
    let rules = selvedge_tool::Rules {
        allow: vec![selvedge_tool::Pattern::new(pattern)],
        ..selvedge_tool::Rules::default()
    };
    selvedge_tool::Policy::default().with(selvedge_tool::Source::User, rules)
}

#[test]
fn a_yes_to_a_credential_is_for_one_call_and_a_session_for_all_that_follow() {
    check(
        lending()
            .then(Beat::Answer("yes"))
            .then(Beat::Answer("session")),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            JudgementFinished t0.0! ask (credentials: first use of github)
            QuestionAsked t0.0? engineer wants to use open_issue
            QuestionAnswered t0.0? yes
            ToolCallStarted t0.0 open_issue attempt=1
            ToolCallFinished t0.0 opened
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallFinished m1
            JudgementFinished t1.0! ask (credentials: first use of github)
            QuestionAsked t1.0? engineer wants to use open_issue
            QuestionAnswered t1.0? session
            ToolCallStarted t1.0 open_issue attempt=1
            ToolCallFinished t1.0 opened
            ModelCallStarted m2 attempt=1 messages=5
            ModelCallFinished m2
            JudgementFinished t2.0! allow (user: @tool open_issue)
            ToolCallStarted t2.0 open_issue attempt=1
            ToolCallFinished t2.0 opened
            ModelCallStarted m3 attempt=1 messages=7
            ModelCallFinished m3
            RunFinished done done
        "#]],
    );
}

#[test]
fn an_agreement_for_the_session_survives_a_crash() {
    check(
        lending()
            .then(Beat::Answer("session"))
            .then(Beat::Crash(Dies::AfterIts("m1"))),
        expect![[r#"
            RunStarted do it
            ModelCallStarted m0 attempt=1 messages=1
            ModelCallFinished m0
            JudgementFinished t0.0! ask (credentials: first use of github)
            QuestionAsked t0.0? engineer wants to use open_issue
            QuestionAnswered t0.0? session
            ToolCallStarted t0.0 open_issue attempt=1
            ToolCallFinished t0.0 opened
            ModelCallStarted m1 attempt=1 messages=3
            ModelCallStarted m1 attempt=2 messages=3
            ModelCallFinished m1
            JudgementFinished t1.0! allow (session: this session)
            ToolCallStarted t1.0 open_issue attempt=1
            ToolCallFinished t1.0 opened
            ModelCallStarted m2 attempt=1 messages=5
            ModelCallFinished m2
            JudgementFinished t2.0! allow (session: this session)
            ToolCallStarted t2.0 open_issue attempt=1
            ToolCallFinished t2.0 opened
            ModelCallStarted m3 attempt=1 messages=7
            ModelCallFinished m3
            RunFinished done done
        "#]],
    );
}

#[test]
fn without_a_yes_no_credential_is_lent_and_nobody_is_asked_where_nobody_can_be() {
    let transcript = lending().approve(Approve::Auto).play();
    assert!(!transcript.contains("QuestionAsked"), "{transcript}");
    assert!(!transcript.contains(" opened"), "{transcript}");
    assert!(
        transcript.contains("needs the user's consent"),
        "{transcript}"
    );
    let refused = lending()
        .then(Beat::Answer("no"))
        .then(Beat::Answer("no"))
        .then(Beat::Answer("no"))
        .play();
    assert!(!refused.contains(" opened"), "{refused}");
}
