use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use async_trait::async_trait;

use super::*;
use crate::process::{self, Limits, Patience, Process};
use crate::testing::World as Workshop;
use crate::tool::{Caller, Tool, ToolContext, ToolSpec, World};
use crate::toolbox::Toolbox;

const VALUE: &str = "t0ken-of-the-user/17";

/// A clock that goes when it is told to.
#[derive(Default)]
struct Still(AtomicI64);

#[async_trait]
impl Clock for Still {
    fn now(&self) -> Time {
        Time(self.0.load(Ordering::SeqCst))
    }

    async fn sleep(&self, _: Duration) {
        std::future::pending().await
    }
}

/// Answers as told, and counts how often it was asked.
struct Asked(Granted, AtomicUsize);

#[async_trait]
impl Consent for Asked {
    async fn ask(&self, _: &Wanted) -> Granted {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0
    }
}

/// Prints its credential, as badly written programs do.
struct CreatePullRequest;

#[async_trait]
impl Tool for CreatePullRequest {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "create_pull_request".into(),
            description: String::new(),
            schema: json!({"type": "object"}),
            world: World::Runs,
        }
    }

    fn credentials(&self) -> Vec<String> {
        vec!["github".into()]
    }

    async fn run(&self, context: &ToolContext, _: &Value, _: &Value) -> ToolOutput {
        let mut environment: Vec<_> = process::environment();
        let lent = context.credentials.environment();
        environment.extend(
            lent.iter()
                .map(|(name, value)| (name.into(), value.expose_secret().into())),
        );
        let workspace = &context.workspace;
        let process = Process {
            program: process::find("sh", workspace.root()).unwrap(),
            arguments: [
                "-c",
                "echo got ${#GITHUB_TOKEN}; echo $GITHUB_TOKEN; printf %s $GITHUB_TOKEN | base64",
            ]
            .map(Into::into)
            .into(),
            directory: workspace.open_dir("".as_ref()).unwrap(),
            directory_path: workspace.root().to_owned(),
            environment,
            limits: Limits::new(Patience::exactly(context.timeout)),
            enclosure: None,
        };
        let finished = process.run(&context.cancel, &context.output).await.unwrap();
        assert!(
            context.credentials.open("github").is_none(),
            "it opens once"
        );
        ToolOutput::ok(finished.text.clone()).with_facts(json!({ "printed": finished.text }))
    }
}

struct Stage {
    workshop: Workshop,
    asked: Arc<Asked>,
    streamed: Arc<Mutex<String>>,
}

fn stage(agent: &str, granted: Granted, value: Option<&'static str>) -> Stage {
    let mut workshop = Workshop::new(&[]);
    let asked = Arc::new(Asked(granted, AtomicUsize::new(0)));
    let book = ConsentBook::new(workshop.outside().join("consents.json"), asked.clone());
    let secrets = Secrets::new();
    let lender = Lender::new(
        Scopes::default(),
        Arc::new(book),
        Arc::new(move |_: &str| value.map(SecretString::from)),
        Arc::new(Still::default()),
        secrets.clone(),
    );
    workshop.toolbox = Toolbox::new()
        .with(Arc::new(CreatePullRequest))
        .with_secrets(secrets)
        .with_lender(Arc::new(lender));
    workshop.context.caller = Caller {
        agent: agent.into(),
        session: "s_1".into(),
    };
    let streamed = Arc::new(Mutex::new(String::new()));
    let sink = streamed.clone();
    workshop.context.output = Arc::new(move |text| sink.lock().unwrap().push_str(text));
    Stage {
        workshop,
        asked,
        streamed,
    }
}

#[tokio::test]
async fn a_credential_reaches_the_program_and_nothing_that_it_prints() {
    let stage = stage("engineer", Granted::Once, Some(VALUE));
    let output = stage.workshop.call("create_pull_request", json!({})).await;
    let expected = format!("got {}\n[REDACTED]\n[REDACTED]\n", VALUE.len());
    assert_eq!(output.text, expected);
    assert_eq!(output.facts["printed"], expected);
    assert_eq!(*stage.streamed.lock().unwrap(), expected);
    let audit = json!([{ "provider": "github", "action": "resolved" }]);
    assert_eq!(output.facts["credentials"], audit);
    assert!(!format!("{output:?}").contains(VALUE));
}

#[tokio::test]
async fn outside_of_its_scope_an_agents_tool_does_not_run() {
    for agent in ["inspector", "orchestrator", "stranger"] {
        let stage = stage(agent, Granted::Always, Some(VALUE));
        let output = stage.workshop.call("create_pull_request", json!({})).await;
        assert!(output.is_error, "{}", output.text);
        let why =
            json!([{ "provider": "github", "action": "denied", "reason": "scope_violation" }]);
        assert_eq!(output.facts["credentials"], why);
        assert_eq!(*stage.streamed.lock().unwrap(), "", "it never ran");
        assert_eq!(
            stage.asked.1.load(Ordering::SeqCst),
            0,
            "nobody was bothered"
        );
    }
}

#[tokio::test]
async fn consent_is_asked_for_as_often_as_it_was_given() {
    for (granted, asked, again) in [
        (Granted::Once, 3, true),
        (Granted::Session, 1, true),
        (Granted::Always, 1, false),
        (Granted::No, 3, true),
    ] {
        let stage = stage("engineer", granted, Some(VALUE));
        for _ in 0..3 {
            let output = stage.workshop.call("create_pull_request", json!({})).await;
            assert_eq!(output.is_error, granted == Granted::No);
        }
        assert_eq!(stage.asked.1.load(Ordering::SeqCst), asked, "{granted:?}");
        // After a restart only what was allowed always is remembered.
        let asker = Arc::new(Asked(Granted::No, AtomicUsize::new(0)));
        let book = ConsentBook::new(
            stage.workshop.outside().join("consents.json"),
            asker.clone(),
        );
        let wanted = Wanted {
            agent: "engineer".into(),
            session: "s_1".into(),
            tool: "create_pull_request".into(),
            provider: "github".into(),
        };
        book.ask(&wanted).await;
        assert_eq!(asker.1.load(Ordering::SeqCst) == 1, again, "{granted:?}");
    }
}

#[tokio::test]
async fn without_a_person_or_a_value_the_model_is_told_what_is_missing() {
    let nobody = stage("engineer", Granted::NobodyToAsk, Some(VALUE));
    let output = nobody.workshop.call("create_pull_request", json!({})).await;
    assert!(
        output.text.contains("selvedge secrets allow github"),
        "{}",
        output.text
    );
    let nothing = stage("engineer", Granted::Once, None);
    let output = nothing
        .workshop
        .call("create_pull_request", json!({}))
        .await;
    assert!(output.text.contains("GITHUB_TOKEN"), "{}", output.text);
    assert_eq!(
        output.facts["credentials"][0]["reason"],
        "credential_not_found"
    );
}

#[test]
fn a_handle_opens_once_and_within_its_time() {
    let clock = Arc::new(Still::default());
    let lent = || Credential {
        provider: "github".into(),
        state: Mutex::new(State::Ready(VALUE.into())),
        lent: clock.now(),
        clock: clock.clone(),
    };
    let (early, late, unused) = (lent(), lent(), lent());
    clock.0.fetch_add(30_000, Ordering::SeqCst);
    assert!(
        early
            .open()
            .is_some_and(|value| value.expose_secret() == VALUE)
    );
    assert!(early.open().is_none(), "a second time");
    clock.0.fetch_add(1, Ordering::SeqCst);
    assert!(late.open().is_none(), "too late");
    let fates: Vec<_> = Lent::new(vec![early, late, unused])
        .end()
        .iter()
        .map(|fate| fate["action"].clone())
        .collect();
    assert_eq!(fates, ["resolved", "expired", "revoked"]);
}
