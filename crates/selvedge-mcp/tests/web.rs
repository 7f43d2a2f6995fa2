//! Servers at an address that do what no server should.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use selvedge_mcp::{
    Browser, ConnectError, Entry, Listed, Look, Options, Scope, Server, SignInError, Surroundings,
    Tokens, sign_in,
};
use selvedge_testkit::Watch;
use selvedge_tool::{Sandbox, Secrets, Workspace};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A web server of a few lines: what it was asked, and what it answers.
struct Web {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

/// What it answers: headers and a body, or a body without an end.
enum Reply {
    Text(String),
    Endless(String),
}

impl Web {
    /// `answer` gets the address of the server, and what it is asked.
    async fn start(answer: impl Fn(&str, &str) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (base, log, answer) = (url.clone(), asked.clone(), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (base, log, answer) = (base.clone(), log.clone(), answer.clone());
                tokio::spawn(async move {
                    let _ = serve(stream, &base, &log, &*answer).await;
                });
            }
        });
        Self { url, asked }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

async fn serve(
    mut stream: TcpStream,
    base: &str,
    log: &Mutex<Vec<String>>,
    answer: &(dyn Fn(&str, &str) -> Reply + Send + Sync),
) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    let request = loop {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.to_lowercase();
        let length = length.split("content-length: ").nth(1);
        let length = length.and_then(|rest| rest.lines().next()?.trim().parse().ok());
        if body.len() >= length.unwrap_or(0) {
            break text;
        }
    };
    log.lock().unwrap().push(request.clone());
    match answer(base, &request) {
        Reply::Text(text) => stream.write_all(text.as_bytes()).await,
        Reply::Endless(head) => {
            stream.write_all(head.as_bytes()).await?;
            loop {
                stream.write_all(&[b'x'; 64 * 1024]).await?;
            }
        }
    }
}

fn reply(status: &str, headers: &str, body: &str) -> Reply {
    let length = body.len();
    Reply::Text(format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    ))
}

fn json_reply(body: Value) -> Reply {
    reply(
        "200 OK",
        "content-type: application/json\r\n",
        &body.to_string(),
    )
}

/// A good answer to what begins a conversation.
fn good(request: &str) -> Reply {
    let body = request.split("\r\n\r\n").nth(1).unwrap_or_default();
    let message: Value = serde_json::from_str(body).unwrap_or_default();
    let id = &message["id"];
    match message["method"].as_str() {
        Some("initialize") => json_reply(json!({"jsonrpc": "2.0", "id": id, "result": {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "web", "version": "1"},
        }})),
        Some("tools/list") => {
            json_reply(json!({"jsonrpc": "2.0", "id": id, "result": {"tools": []}}))
        }
        Some(_) => reply("202 Accepted", "", ""),
        None => reply("405 Method Not Allowed", "", ""),
    }
}

fn listed(url: &str) -> Listed {
    Listed {
        name: "web".into(),
        scope: Scope::User,
        entry: Entry {
            url: Some(url.into()),
            startup_seconds: Some(20),
            ..Entry::default()
        },
    }
}

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

/// The only secret that these servers are sent.
const TOKEN: &str = "tok-77aa88bb99cc";

fn options(tokens: Option<Arc<Pocket>>) -> Options {
    Options {
        secrets: Secrets::new(),
        clerk: None,
        variable: Arc::new(|name| (name == "MY_TOKEN").then(|| TOKEN.into())),
        tokens: tokens.map(|tokens| tokens as Arc<dyn Tokens>),
        browser: None,
        version: None,
    }
}

async fn look(listed: &Listed, options: &Options) -> Result<Look, ConnectError> {
    let scratch = tempfile::tempdir().unwrap();
    let _watch = Watch::over(scratch.path()).and(TOKEN);
    let around = Surroundings {
        workspace: Arc::new(Workspace::open(scratch.path()).unwrap()),
        sandbox: Arc::new(Sandbox::off()),
    };
    Server::look(listed, options, &around).await
}

fn refused(looked: Result<Look, ConnectError>) -> ConnectError {
    match looked {
        Ok(_) => panic!("it was not refused"),
        Err(error) => error,
    }
}

/// Counts visits and comes back with what the page asks for.
#[derive(Default)]
struct Visits(AtomicUsize);

#[async_trait]
impl Browser for Visits {
    fn way_back(&self) -> String {
        "http://127.0.0.1:9/callback".into()
    }

    async fn visit(&self, server: &str, page: &str) -> Result<String, String> {
        assert_eq!(server, "web");
        self.0.fetch_add(1, Ordering::SeqCst);
        let state = page
            .split("state=")
            .nth(1)
            .and_then(|rest| rest.split('&').next());
        let state = state.ok_or("the page has no state")?;
        Ok(format!("{}?code=c0de&state={state}", self.way_back()))
    }
}

#[tokio::test]
async fn a_header_is_sent_and_its_secret_is_known_from_then_on() {
    let web = Web::start(|_, request| good(request)).await;
    let mut listed = listed(&format!("{}/mcp", web.url));
    let header = ("Authorization".to_owned(), "Bearer ${MY_TOKEN}".to_owned());
    listed.entry.headers = [header].into();
    let options = options(None);
    look(&listed, &options)
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    let asked = web.asked();
    let is_known = |request: &String| request.contains("authorization: Bearer tok-77aa88bb99cc");
    assert!(asked.iter().all(is_known), "{asked:?}");
    let has_version = |request: &&String| request.contains("mcp-protocol-version: 2025-11-25");
    assert!(
        asked.iter().skip(1).any(|request| has_version(&request)),
        "{asked:?}"
    );
    assert!(
        !options
            .secrets
            .redact("it is tok-77aa88bb99cc")
            .contains("77aa")
    );
}

#[tokio::test]
async fn an_answer_without_an_end_is_not_read_to_its_end() {
    for kind in ["application/json", "text/event-stream"] {
        let web = Web::start(move |_, request| match request.contains("initialize\"") {
            true => Reply::Endless(format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n\r\n")),
            false => reply("405 Method Not Allowed", "", ""),
        })
        .await;
        let (listed, options) = (listed(&web.url), options(None));
        let looked = look(&listed, &options);
        let looked = tokio::time::timeout(Duration::from_secs(60), looked).await;
        refused(looked.unwrap_or_else(|_| panic!("{kind} holds it up")));
    }
}

#[tokio::test]
async fn a_page_that_leads_to_another_server_is_not_followed() {
    let other = Web::start(|_, request| good(request)).await;
    let target = other.url.clone();
    let web = Web::start(move |_, _| {
        reply(
            "307 Temporary Redirect",
            &format!("location: {target}/mcp\r\n"),
            "",
        )
    })
    .await;
    let error = refused(look(&listed(&web.url), &options(None)).await);
    assert!(error.to_string().contains("redirect"), "{error}");
    assert!(other.asked().is_empty(), "it was asked");
}

/// A server that wants to know who the user is, and says where that is found out.
async fn guarded(metadata: impl Fn(&str) -> Value + Send + Sync + 'static) -> Web {
    Web::start(move |base, request| {
        let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
        match path.as_str() {
            path if path.contains("oauth-protected-resource") => {
                let base = base.to_owned();
                json_reply(
                    json!({"resource": format!("{base}/mcp"), "authorization_servers": [base]}),
                )
            }
            path if path.contains("oauth-authorization-server") => json_reply(metadata(base)),
            "/register" => json_reply(
                json!({"client_id": "c1", "redirect_uris": ["http://127.0.0.1:9/callback"]}),
            ),
            "/token" => json_reply(json!({
                "access_token": "at-0011223344556677", "token_type": "Bearer", "expires_in": 3600,
            })),
            _ if request.contains("authorization: Bearer at-0011223344556677") => good(request),
            _ => {
                let place = format!("{base}/.well-known/oauth-protected-resource");
                let header = format!("www-authenticate: Bearer resource_metadata=\"{place}\"\r\n");
                reply("401 Unauthorized", &header, "")
            }
        }
    })
    .await
}

fn metadata(base: &str, page: &str) -> Value {
    json!({
        "issuer": base,
        "authorization_endpoint": page,
        "token_endpoint": format!("{base}/token"),
        "registration_endpoint": format!("{base}/register"),
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
    })
}

#[tokio::test]
async fn a_user_signs_in_once_and_is_known_there_and_nowhere_else() {
    let web = guarded(|base| metadata(base, &format!("{base}/authorize"))).await;
    let (pocket, visits) = (Arc::new(Pocket::default()), Visits::default());
    let (listed, options) = (
        listed(&format!("{}/mcp", web.url)),
        options(Some(pocket.clone())),
    );
    let ConnectError::SignIn(challenge) = refused(look(&listed, &options).await) else {
        panic!("it wants to know who the user is");
    };
    let signed = sign_in(&listed, &options, &visits, Some(&challenge), &[]).await;
    signed.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(visits.0.load(Ordering::SeqCst), 1);
    look(&listed, &options)
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    assert!(
        !options
            .secrets
            .redact("at-0011223344556677")
            .contains("0011")
    );
    let token = web
        .asked()
        .into_iter()
        .find(|request| request.starts_with("POST /token"));
    let token = token.expect("the code was turned in");
    assert!(
        token.contains("code_verifier=") && token.contains("resource="),
        "{token}"
    );
    // Another server, which knows the same name, is not told.
    let other = Web::start(|_, request| good(request)).await;
    let elsewhere = self::listed(&format!("{}/mcp", other.url));
    look(&elsewhere, &options)
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    assert!(
        other
            .asked()
            .iter()
            .all(|request| !request.contains("at-0011"))
    );
}

#[tokio::test]
async fn nobody_is_sent_to_a_page_that_is_none() {
    for page in [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "http://auth.example/authorize",
        "https://user:password@auth.example/authorize",
    ] {
        let web = guarded(move |base| metadata(base, page)).await;
        let (options, visits) = (options(Some(Arc::default())), Visits::default());
        let listed = listed(&format!("{}/mcp", web.url));
        let signed = sign_in(&listed, &options, &visits, None, &[]).await;
        let error = signed.expect_err(page);
        let is_refused = matches!(error, SignInError::Page(_) | SignInError::Refused(_));
        assert!(is_refused, "{page}: {error}");
        assert_eq!(visits.0.load(Ordering::SeqCst), 0, "{page}");
    }
}

#[tokio::test]
async fn what_a_server_names_is_not_looked_for_at_addresses_of_a_single_wire_or_of_others() {
    for place in [
        "http://169.254.169.254/latest/meta-data",
        "http://[fe80::1]/x",
        "http://10.255.255.1/x",
    ] {
        let challenge = format!("Bearer resource_metadata=\"{place}\"");
        let web = Web::start(|_, _| reply("404 Not Found", "", "")).await;
        let (options, visits) = (options(Some(Arc::default())), Visits::default());
        let listed = listed(&format!("{}/mcp", web.url));
        let signed = sign_in(&listed, &options, &visits, Some(&challenge), &[]);
        // Where somebody would answer from there, nobody does here: it would take long.
        let signed = tokio::time::timeout(Duration::from_secs(10), signed).await;
        signed.expect("it was looked for there").expect_err(place);
        assert_eq!(visits.0.load(Ordering::SeqCst), 0, "{place}");
    }
}
