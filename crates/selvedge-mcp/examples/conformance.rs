//! The client that the protocol's conformance suite drives: a server's address in, every
//! tool of it called once, on the path that an agent's call takes.
//!
//! `MCP_CONFORMANCE_SCENARIO` names what is tried, `MCP_CONFORMANCE_CONTEXT` is what the
//! scenario hands over, `MCP_VERSION` the version of the protocol to propose.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use selvedge_mcp::{
    Approved, Browser, Clerk, Entry, Filled, Fleet, Form, Listed, Options, Scope, Server, SignIn,
    Surroundings, Tokens, version,
};
use selvedge_tool::{
    Caller, Lent, Policy, ResultStore, Sandbox, Secrets, ToolContext, Toolbox, Workspace,
};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

const CLIENT: &str = "https://conformance-test.local/client-metadata.json";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).ok_or("no address was given")?;
    let scratch = tempfile::tempdir()?;
    let workspace = Arc::new(Workspace::open(scratch.path())?);
    let sandbox = Arc::new(Sandbox::off());
    let listed = Listed {
        name: "conformance".into(),
        scope: Scope::User,
        entry: Entry {
            url: Some(url),
            sign_in: Some(identity()),
            ..Entry::default()
        },
    };
    let proposed = std::env::var("MCP_VERSION").ok();
    let options = Arc::new(Options {
        secrets: Secrets::new(),
        clerk: Some(Arc::new(Agreeable)),
        variable: Arc::new(|_| None),
        tokens: Some(Arc::new(Pocket::default())),
        browser: Some(Arc::new(Straight)),
        version: proposed.as_deref().map(version).transpose()?,
    });
    let around = Surroundings {
        workspace: workspace.clone(),
        sandbox: sandbox.clone(),
    };
    let look = Server::look(&listed, &options, &around).await?;
    let approved = Approved {
        server: listed.name.clone(),
        scope: listed.scope.clone(),
        entry: listed.entry.digest(workspace.root()),
        definitions: look.definitions,
        offer: look.offer,
    };
    let fleet = Fleet::new([Server::new(listed, approved, options)]);
    let toolbox = fleet
        .tools()
        .into_iter()
        .fold(Toolbox::new(), Toolbox::with);
    let context = context(workspace, sandbox);
    let mut failures = 0;
    for spec in toolbox.specs() {
        let arguments = arguments(&spec.schema).to_string();
        let checked = toolbox.check(&spec.name, &arguments).map_err(|o| o.text)?;
        let output = toolbox.run(&context, &checked, &Value::Null).await;
        eprintln!("{}: {}", spec.name, output.text);
        failures += u32::from(output.is_error);
    }
    match failures {
        0 => Ok(()),
        _ => Err("a call failed".into()),
    }
}

/// Who the client is, where a scenario says so.
fn identity() -> SignIn {
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    let context: Value = serde_json::from_str(&context).unwrap_or_default();
    let word = |name: &str| context[name].as_str().map(str::to_owned);
    SignIn {
        client_id: word("client_id"),
        client_secret: word("client_secret"),
        client_metadata_url: Some(CLIENT.into()),
        scopes: Vec::new(),
    }
}

/// Arguments that fit: a number for each that is required.
fn arguments(schema: &Value) -> Value {
    let required = schema["required"].as_array().into_iter().flatten();
    let numbers = required.filter_map(Value::as_str).zip(2..);
    let numbers: Map<String, Value> = numbers.map(|(name, n)| (name.into(), n.into())).collect();
    numbers.into()
}

fn context(workspace: Arc<Workspace>, sandbox: Arc<Sandbox>) -> ToolContext {
    ToolContext {
        workspace,
        policy: Arc::new(Policy::default()),
        cancel: CancellationToken::new(),
        output: Arc::new(|_| {}),
        timeout: Duration::from_secs(20),
        awaited: true,
        sandbox,
        results: Arc::new(Nothing),
        caller: Caller::default(),
        desk: Default::default(),
        secrets: Secrets::new(),
        credentials: Lent::default(),
    }
}

struct Nothing;

#[async_trait]
impl ResultStore for Nothing {
    async fn result(&self, _: &str) -> Option<Arc<str>> {
        None
    }
}

/// Agrees to what is asked and says nothing.
struct Agreeable;

#[async_trait]
impl Clerk for Agreeable {
    async fn fill(&self, form: &Form) -> Filled {
        Filled::Accept(if form.fields.is_empty() {
            Map::new()
        } else {
            form.defaults()
        })
    }
}

/// Keeps things while it runs.
#[derive(Default)]
struct Pocket(Mutex<HashMap<String, String>>);

impl Tokens for Pocket {
    fn load(&self, name: &str) -> Result<Option<String>, String> {
        Ok(self.0.lock().unwrap().get(name).cloned())
    }

    fn save(&self, name: &str, text: &str) -> Result<(), String> {
        self.0.lock().unwrap().insert(name.into(), text.into());
        Ok(())
    }

    fn clear(&self, name: &str) -> Result<(), String> {
        self.0.lock().unwrap().remove(name);
        Ok(())
    }
}

/// A user who says yes before the page is even shown.
struct Straight;

#[async_trait]
impl Browser for Straight {
    fn way_back(&self) -> String {
        "http://localhost:3000/callback".into()
    }

    async fn visit(&self, _: &str, page: &str) -> Result<String, String> {
        let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
        let client = client.build().map_err(|error| error.to_string())?;
        let response = client.get(page).send().await;
        let response = response.map_err(|error| error.to_string())?;
        let back = response.headers().get(reqwest::header::LOCATION);
        let back = back.and_then(|back| back.to_str().ok());
        back.map(str::to_owned)
            .ok_or("the page leads nowhere".into())
    }
}
