//! A workspace with one server in it, called through a toolbox.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use selvedge_mcp::{
    Approved, Clerk, Entry, Filled, Fleet, Form, Listed, Look, Options, Scope, Server, Surroundings,
};
use selvedge_testkit::Watch;
use selvedge_tool::{
    Caller, Decision, Lent, Policy, ResultStore, Sandbox, Secrets, ToolContext, ToolOutput,
    Toolbox, Verdict, Workspace,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

pub struct Place {
    /// Before the folder: it is looked through before it goes.
    _watch: Watch,
    pub scratch: tempfile::TempDir,
    pub toolbox: Toolbox,
    pub context: ToolContext,
    pub output: Arc<Mutex<String>>,
}

struct NoResults;

#[async_trait]
impl ResultStore for NoResults {
    async fn result(&self, _: &str) -> Option<Arc<str>> {
        None
    }
}

/// Agrees to everything.
pub struct Agreeable;

#[async_trait]
impl Clerk for Agreeable {
    async fn fill(&self, form: &Form) -> Filled {
        assert_eq!(form.server, "weaver", "the user sees who asks");
        Filled::Accept(form.defaults())
    }
}

/// How a place is made.
pub struct Plan<'a> {
    pub ways: &'a [&'a str],
    pub sandbox: Sandbox,
    pub clerk: Option<Arc<dyn Clerk>>,
    pub edit: fn(&mut Entry),
}

impl Default for Plan<'_> {
    fn default() -> Self {
        Self {
            ways: &[],
            sandbox: Sandbox::off(),
            clerk: None,
            edit: |_| {},
        }
    }
}

impl Place {
    /// A server with these ways, of which its tools were approved while it was good.
    pub async fn with(ways: &[&str]) -> Self {
        Self::new(Plan {
            ways,
            ..Plan::default()
        })
        .await
    }

    pub async fn new(plan: Plan<'_>) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let context = context(scratch.path(), plan.sandbox);
        let options = Arc::new(Options {
            clerk: plan.clerk,
            ..options()
        });
        let good = look(&surroundings(&context), &options, &[]).await.unwrap();
        let mut listed = listed(context.workspace.root(), scratch.path(), plan.ways);
        (plan.edit)(&mut listed.entry);
        Self::approved(scratch, context, listed, options, good)
    }

    /// A server that is good, looked at and approved. The workspace is `app`, below a
    /// scratch folder that `list` may use.
    pub async fn seen(sandbox: Sandbox, list: impl FnOnce(&Path) -> Listed) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let context = context(scratch.path(), sandbox);
        let (listed, options) = (list(scratch.path()), Arc::new(options()));
        let look = Server::look(&listed, &options, &surroundings(&context)).await;
        let look = look.unwrap_or_else(|error| panic!("{error}"));
        Self::approved(scratch, context, listed, options, look)
    }

    fn approved(
        scratch: tempfile::TempDir,
        mut context: ToolContext,
        listed: Listed,
        options: Arc<Options>,
        look: Look,
    ) -> Self {
        let output = Arc::new(Mutex::new(String::new()));
        let sink = output.clone();
        context.output = Arc::new(move |text| sink.lock().unwrap().push_str(text));
        let approved = Approved {
            server: listed.name.clone(),
            scope: listed.scope.clone(),
            entry: listed.entry.digest(context.workspace.root()),
            definitions: look.definitions,
            offer: look.offer,
        };
        let toolbox = Toolbox::new().with_secrets(options.secrets.clone());
        let fleet = Fleet::new([Server::new(listed, approved, options)]);
        let toolbox = fleet.tools().into_iter().fold(toolbox, Toolbox::with);
        Self {
            _watch: Watch::over(scratch.path()),
            scratch,
            toolbox,
            context,
            output,
        }
    }

    /// Calls a tool, as if it was approved.
    pub async fn call(&self, tool: &str, text: &str) -> ToolOutput {
        let name = format!("mcp__weaver__{tool}");
        self.call_with(&name, json!({ "text": text })).await
    }

    pub async fn call_with(&self, name: &str, input: Value) -> ToolOutput {
        let checked = self.toolbox.check(name, &input.to_string()).unwrap();
        let evidence = self.toolbox.prepare(&self.context, &checked).await.unwrap();
        self.toolbox.run(&self.context, &checked, &evidence).await
    }

    pub async fn judge(&self, tool: &str, input: Value, policy: Policy) -> Verdict {
        let name = format!("mcp__weaver__{tool}");
        let checked = self.toolbox.check(&name, &input.to_string()).unwrap();
        let policy = Arc::new(policy);
        self.toolbox
            .judge(&self.context.workspace, &policy, &checked)
            .await
    }

    pub async fn decision(&self, tool: &str, policy: Policy) -> Decision {
        self.judge(tool, json!({}), policy).await.decision()
    }

    pub fn root(&self) -> &Path {
        self.context.workspace.root()
    }

    pub fn surroundings(&self) -> Surroundings {
        surroundings(&self.context)
    }

    /// What the server did, from its own hand.
    pub fn notes(&self) -> Vec<String> {
        let notes = std::fs::read_to_string(self.scratch.path().join("notes"));
        let notes = notes.unwrap_or_default();
        notes.lines().map(str::to_owned).collect()
    }
}

fn surroundings(context: &ToolContext) -> Surroundings {
    Surroundings {
        workspace: context.workspace.clone(),
        sandbox: context.sandbox.clone(),
    }
}

fn context(scratch: &Path, sandbox: Sandbox) -> ToolContext {
    let root = scratch.join("app");
    std::fs::create_dir(&root).unwrap();
    ToolContext {
        workspace: Arc::new(Workspace::open(&root).unwrap()),
        policy: Arc::new(Policy::default()),
        cancel: CancellationToken::new(),
        output: Arc::new(|_| {}),
        timeout: Duration::from_secs(60),
        awaited: true,
        sandbox: Arc::new(sandbox),
        results: Arc::new(NoResults),
        caller: Caller::default(),
        desk: Default::default(),
        secrets: Secrets::new(),
        credentials: Lent::default(),
    }
}

pub fn options() -> Options {
    Options {
        secrets: Secrets::new(),
        clerk: None,
        variable: Arc::new(|name| match name {
            "MY_TOKEN" => Some("tok-4f9a8b7c6d5e".into()),
            _ => None,
        }),
        tokens: None,
        browser: None,
        version: None,
    }
}

/// A server with these ways. Its script lies in the workspace: where the sources are may be
/// hidden from it.
fn listed(workspace: &Path, scratch: &Path, ways: &[&str]) -> Listed {
    let script = workspace.join("hostile.py");
    std::fs::write(&script, include_str!("../servers/hostile.py")).unwrap();
    let mut args = vec![script.display().to_string()];
    args.extend(ways.iter().map(|way| (*way).to_owned()));
    let notes: PathBuf = scratch.join("notes");
    Listed {
        name: "weaver".into(),
        scope: Scope::User,
        entry: Entry {
            command: Some("python3".into()),
            args,
            env: [
                ("NOTES".into(), notes.display().to_string()),
                ("SERVICE_TOKEN".into(), "${MY_TOKEN}".into()),
            ]
            .into(),
            ..Entry::default()
        },
    }
}

/// Looks at a server with these ways.
pub async fn look(
    around: &Surroundings,
    options: &Options,
    ways: &[&str],
) -> Result<Look, selvedge_mcp::ConnectError> {
    let elsewhere = tempfile::tempdir().unwrap();
    let mut listed = listed(around.workspace.root(), elsewhere.path(), ways);
    listed.entry.startup_seconds = Some(20);
    Server::look(&listed, options, around).await
}
