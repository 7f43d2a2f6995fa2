//! Servers at an address, and where they would send a user: to a page that is a command,
//! home, or to somebody else.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use super::servers::list;
use super::{Sink, says};
use crate::world::{World, until};

/// A server that wants to know who the user is, until the test is over.
fn guarded(metadata: impl Fn(&str) -> Value + Send + 'static) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let url = format!("{base}/mcp");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = serve(stream, &base, &metadata);
        }
    });
    url
}

fn serve(
    mut stream: TcpStream,
    base: &str,
    metadata: &dyn Fn(&str) -> Value,
) -> std::io::Result<()> {
    let mut bytes = [0; 16_384];
    let count = stream.read(&mut bytes)?;
    let request = String::from_utf8_lossy(&bytes[..count]).into_owned();
    let path = request.split(' ').nth(1).unwrap_or_default();
    let (status, header, body) = if path.contains("oauth-protected-resource") {
        let found = json!({"resource": format!("{base}/mcp"), "authorization_servers": [base]});
        ("200 OK", String::new(), found.to_string())
    } else if path.contains("oauth-authorization-server") {
        ("200 OK", String::new(), metadata(base).to_string())
    } else if path == "/token" {
        let token = json!({"access_token": TOKEN, "token_type": "Bearer", "expires_in": 3600});
        ("200 OK", String::new(), token.to_string())
    } else if path == "/register" {
        let client = json!({"client_id": "c1", "redirect_uris": ["http://127.0.0.1:9/callback"]});
        ("200 OK", String::new(), client.to_string())
    } else {
        let place = format!("{base}/.well-known/oauth-protected-resource");
        let header = format!("www-authenticate: Bearer resource_metadata=\"{place}\"\r\n");
        ("401 Unauthorized", header, String::new())
    };
    let head = format!(
        "HTTP/1.1 {status}\r\n{header}content-type: application/json\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes())
}

const TOKEN: &str = "at-5d41402abc4b2a76";

fn metadata(base: &str, page: &str, token: &str) -> Value {
    json!({
        "issuer": base,
        "authorization_endpoint": page,
        "token_endpoint": token,
        "registration_endpoint": format!("{base}/register"),
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
    })
}

/// Signs in at a server, and comes back from the page as if somebody had agreed there:
/// whether a page was shown, and what was said.
fn signs_in(world: &World, url: &str) -> (bool, String) {
    list(world, json!({"guard": {"url": url}}));
    assert_eq!(world.selvedge(&["trust"]).code, 0);
    let said = world.root().join("said");
    let mut command = world.command(&["mcp", "login", "guard"]);
    // Whatever opens pages here says so.
    let openers = world.root().join("openers");
    command.env("PATH", format!("{}:/usr/bin:/bin", openers.display()));
    command
        .stdout(Stdio::null())
        .stderr(File::create(&said).unwrap());
    let mut child = command.spawn().unwrap();
    let (mut is_shown, mut text) = (false, String::new());
    until("a page is shown or refused", || {
        let is_over = child.try_wait().unwrap().is_some();
        text = std::fs::read_to_string(&said).unwrap();
        is_shown = text.contains("open this page");
        is_over || is_shown
    });
    if is_shown {
        come_back(&text);
        until("the sign-in is over", || {
            child.try_wait().unwrap().is_some()
        });
        text = std::fs::read_to_string(&said).unwrap();
    }
    (is_shown, text)
}

#[test]
fn nobody_is_sent_to_a_page_that_is_a_command_and_no_shell_opens_one() {
    let world = World::of_a_stranger();
    for opener in ["xdg-open", "open", "sensible-browser", "sh", "bash"] {
        let text = format!(
            "#!/bin/sh\necho \"$0 $@\" >> {}/opened\n",
            world.work().display()
        );
        let path = world.write(&format!("openers/{opener}"), &text);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(path, mode).unwrap();
    }
    let canary = world.work().join("canary").display().to_string();
    let pages = [
        "javascript:alert(1)".to_owned(),
        "file:///etc/passwd".into(),
        "data:text/html,x".into(),
        "http://auth.example/authorize".into(),
        "https://user:password@auth.example/authorize".into(),
        format!("https://auth.example/`touch {canary}`"),
        format!("https://auth.example/x;touch {canary}"),
        format!("https://auth.example/$(touch {canary})|sh"),
    ];
    for page in pages {
        let named = page.clone();
        let url = guarded(move |base| metadata(base, &named, &format!("{base}/token")));
        let (is_shown, text) = signs_in(&world, &url);
        // A blank or a backtick that is spelt out is an address like any other.
        let is_harmless = text.contains("https://auth.example/") && !text.contains("touch /");
        assert!(!is_shown || is_harmless, "{page}: {text}");
        assert!(!Path::new(&canary).exists(), "{page}");
    }
    let url =
        guarded(|base| metadata(base, &format!("{base}/authorize"), &format!("{base}/token")));
    let (is_shown, text) = signs_in(&world, &url);
    assert!(is_shown && text.contains("/authorize?"), "{text}");
    assert!(
        !world.work().join("opened").exists(),
        "nothing is started to open a page"
    );
}

#[test]
fn what_a_server_names_leads_neither_home_nor_to_a_single_wire() {
    let sink = Sink::new();
    let world = World::of_a_stranger();
    let other = sink.url();
    // One in another network, one of a single wire, one behind a name, and one that is named
    // by a page that leads on.
    let places = [
        "http://169.254.169.254/latest/meta-data".to_owned(),
        "http://[fe80::1]/x".into(),
        "http://10.255.255.1/x".into(),
        "http://[::ffff:169.254.169.254]/x".into(),
        "http://0xa9fea9fe/x".into(),
        "file:///etc/passwd".into(),
    ];
    for place in places {
        for is_token in [false, true] {
            let named = place.clone();
            let url = guarded(move |base| match is_token {
                true => metadata(base, &format!("{base}/authorize"), &named),
                false => json!({"issuer": named, "authorization_endpoint": named,
                    "token_endpoint": named, "response_types_supported": ["code"]}),
            });
            let begun = std::time::Instant::now();
            let (is_shown, text) = signs_in(&world, &url);
            // Metadata that is no use is replaced by what is usual, at the server itself.
            let page = format!("{}/authorize", url.trim_end_matches("/mcp"));
            assert!(!is_shown || text.contains(&page), "{place}: {text}");
            if is_token {
                says_why(&text);
            }
            // Where nobody answers, somebody who asks waits long.
            assert!(begun.elapsed().as_secs() < 10, "{place} was asked");
        }
    }
    // A server that leads on to another is not followed.
    let url = leads_on(&other);
    let (is_shown, text) = signs_in(&world, &url);
    assert!(!is_shown && text.contains("redirect"), "{text}");
    assert!(!sink.was_visited());
    for url in [
        "http://169.254.169.254/mcp",
        "http://[fe80::1]/mcp",
        "http://0.0.0.0/mcp",
    ] {
        let output = world.selvedge(&["mcp", "add", "home", "--url", url]);
        assert_eq!(output.code, 2, "{url}");
        says(&output.stderr, "is not reached");
    }
    let url =
        guarded(|base| metadata(base, &format!("{base}/authorize"), &format!("{base}/token")));
    says(&signs_in(&world, &url).1, "you are signed in to `guard`");
    let leaks = selvedge_testkit::leaks(&world.home(), &[TOKEN]);
    assert!(leaks.is_empty(), "{leaks:?}");
}

fn says_why(text: &str) {
    assert!(text.contains("you are not signed in to `guard`"), "{text}");
    assert!(text.contains("cause: "), "{text}");
}

/// Does what a browser does after the page that was shown.
fn come_back(text: &str) {
    let value = |name: &str| {
        let rest = text
            .split(&format!("{name}="))
            .nth(1)
            .expect("the page names it");
        let value = rest.split(['&', '\n', ' ']).next().unwrap_or_default();
        value.replace("%3A", ":").replace("%2F", "/")
    };
    let (back, state) = (value("redirect_uri"), value("state"));
    let address = back
        .trim_start_matches("http://")
        .split('/')
        .next()
        .unwrap_or_default();
    let mut browser = TcpStream::connect(address).unwrap();
    let request = format!("GET /callback?code=c0de&state={state} HTTP/1.1\r\nhost: x\r\n\r\n");
    browser.write_all(request.as_bytes()).unwrap();
    let _ = browser.read_to_string(&mut String::new());
}

/// A server that sends everybody elsewhere.
fn leads_on(target: &str) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let head = format!(
        "HTTP/1.1 307 Temporary Redirect\r\nlocation: {target}/mcp\r\ncontent-length: 0\r\n\
         connection: close\r\n\r\n"
    );
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 16_384]);
            let _ = stream.write_all(head.as_bytes());
        }
    });
    url
}
