//! The network: off is off, and what is allowed is reached by one way only.

use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixListener;

use selvedge_tool::Network;

use crate::ground::Ground;

#[test]
fn without_a_network_nothing_is_reached_but_itself() {
    let ground = Ground::new();
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let datagrams = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
    datagrams.set_nonblocking(true).unwrap();
    let resolver = datagrams.local_addr().unwrap().port();
    for attack in [
        format!("echo x > /dev/tcp/127.0.0.1/{port}"),
        "echo x > /dev/tcp/1.1.1.1/443".into(),
        "echo x > /dev/udp/1.1.1.1/53".into(),
        "getent ahostsv4 example.org".into(),
    ] {
        let answer = ground.run(&attack);
        assert!(answer.is_error, "{attack}: {}", answer.text);
    }
    // A datagram is sent to nobody, which the sender does not learn.
    ground.run(&format!("echo secret > /dev/udp/127.0.0.1/{resolver}"));
    assert!(listener.accept().is_err(), "somebody came");
    assert!(datagrams.recv(&mut [0; 16]).is_err(), "somebody spoke");
    let bare = ground.run_bare(&format!("echo x > /dev/tcp/127.0.0.1/{port}"));
    assert!(
        !bare.is_error && listener.accept().is_ok(),
        "the listener listens"
    );
}

/// Asks the proxy with nothing but a shell.
fn ask(head: &str) -> String {
    format!(
        "exec 3<>/dev/tcp/127.0.0.1/3128 && printf '{head}\\r\\nHost: x\\r\\n\\r\\n' >&3 && \
         timeout 10 cat <&3"
    )
}

#[test]
fn an_allowed_host_is_reached_and_no_other() {
    let mut ground = Ground::new();
    let server = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = server.local_addr().unwrap().port();
    let other = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    other.set_nonblocking(true).unwrap();
    let other_port = other.local_addr().unwrap().port();
    let rules = [
        format!("127.0.0.1:{port}"),
        "localhost".into(),
        "*.example.com".into(),
    ];
    ground.sandbox.network = Network::Allow(rules.map(|rule| rule.parse().unwrap()).into());
    let serving = std::thread::spawn(move || {
        for _ in 0..2 {
            let (mut client, _) = server.accept().unwrap();
            let mut asked = [0; 1024];
            let count = client.read(&mut asked).unwrap();
            let asked = String::from_utf8_lossy(&asked[..count]).into_owned();
            client
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nwelcome")
                .unwrap();
            assert!(
                asked.contains("/path") || asked.starts_with("raw"),
                "{asked}"
            );
        }
    });

    let answer = ground.run(&ask(&format!("GET http://127.0.0.1:{port}/path HTTP/1.1")));
    assert!(answer.text.contains("welcome"), "{}", answer.text);
    let network = &answer.facts["network"];
    assert_eq!(network[0]["host"], format!("127.0.0.1:{port}"));
    assert_eq!(network[0].get("refused"), None);
    let tunnel = format!(
        "exec 3<>/dev/tcp/127.0.0.1/3128 && printf 'CONNECT 127.0.0.1:{port} HTTP/1.1\\r\\n\\r\\n' >&3 \
         && head -n 2 <&3 && printf raw >&3 && timeout 10 cat <&3"
    );
    let answer = ground.run(&tunnel);
    assert!(answer.text.contains("welcome"), "{}", answer.text);
    serving.join().unwrap();

    for (head, why) in [
        (
            format!("GET http://127.0.0.1:{other_port}/ HTTP/1.1"),
            "not among the hosts",
        ),
        (
            format!("CONNECT 127.0.0.1:{other_port} HTTP/1.1"),
            "not among the hosts",
        ),
        (
            "CONNECT evil.org:443 HTTP/1.1".into(),
            "not among the hosts",
        ),
        (
            "CONNECT localhost:80 HTTP/1.1".into(),
            "not a public address",
        ),
        (
            "CONNECT example.com@evil.org:443 HTTP/1.1".into(),
            "not the name of a host",
        ),
        ("GET / HTTP/1.1".into(), "this is a proxy"),
    ] {
        let answer = ground.run(&ask(&head));
        assert!(answer.text.contains(why), "{head}: {}", answer.text);
    }
    let answer = ground.run(&ask("CONNECT evil.org:443 HTTP/1.1"));
    let refused = answer.facts["network"][0]["refused"].as_str().unwrap();
    assert!(refused.contains("evil.org:443"), "{refused}");
    let answer = ground.run(&format!("echo x > /dev/tcp/127.0.0.1/{other_port}"));
    assert!(answer.is_error, "there is no way around: {}", answer.text);
    assert!(other.accept().is_err(), "somebody came");
}

#[test]
fn programs_are_told_of_the_proxy_only_where_there_is_one() {
    let mut ground = Ground::new();
    assert_eq!(ground.run("echo \"[$https_proxy]\"").text, "[]\n");
    ground.sandbox.network = Network::Allow(vec!["example.org".parse().unwrap()]);
    assert_eq!(
        ground.run("echo \"[$https_proxy]\"").text,
        "[http://127.0.0.1:3128]\n"
    );
}

#[test]
fn a_whole_network_is_a_whole_network() {
    let mut ground = Ground::new();
    ground.sandbox.network = Network::On;
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let answer = ground.run(&format!(
        "echo x > /dev/tcp/127.0.0.1/{port} && cat ../outside/secret"
    ));
    assert!(answer.is_error, "only the network is open: {}", answer.text);
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_ok());
}

/// A client with nothing but a shell that follows a redirection, as clients do.
const FOLLOW: &str = "
    ask() {
        exec 3<>/dev/tcp/127.0.0.1/3128
        printf 'GET %s HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n' \"$1\" >&3
        timeout 10 cat <&3
    }
    first=$(ask http://127.0.0.1:PORT/start | tr -d '\\r')
    next=$(echo \"$first\" | sed -n 's/^Location: //p')
    echo \"told to go to $next\"
    ask \"$next\"";

#[test]
fn a_redirection_to_a_host_that_is_not_allowed_ends_there() {
    let mut ground = Ground::new();
    let (server, other) = (listener(), listener());
    let (port, other_port) = (port(&server), port(&other));
    ground.sandbox.network = allow(&[&format!("127.0.0.1:{port}")]);
    let serving = std::thread::spawn(move || {
        for target in [format!("http://127.0.0.1:{other_port}/"), "/end".into()] {
            let (mut client, _) = server.accept().unwrap();
            assert!(client.read(&mut [0; 1024]).unwrap() > 0);
            let target = match target.starts_with('/') {
                true => format!("http://127.0.0.1:{port}{target}"),
                false => target,
            };
            let head = format!("HTTP/1.1 302 Found\r\nLocation: {target}\r\n\r\n");
            client.write_all(head.as_bytes()).unwrap();
        }
        let (mut client, _) = server.accept().unwrap();
        assert!(client.read(&mut [0; 1024]).unwrap() > 0);
        client.write_all(b"HTTP/1.1 200 OK\r\n\r\nwelcome").unwrap();
    });
    let follow = FOLLOW.replace("PORT", &port.to_string());
    let answer = ground.run(&follow);
    assert!(answer.text.contains("told to go to"), "{}", answer.text);
    assert!(
        answer.text.contains("not among the hosts"),
        "{}",
        answer.text
    );
    let network = &answer.facts["network"];
    assert_eq!(network[1]["host"], format!("127.0.0.1:{other_port}"));
    assert!(network[1]["refused"].is_string(), "{network}");
    // One that stays where it may be is followed.
    let answer = ground.run(&follow);
    assert!(answer.text.contains("welcome"), "{}", answer.text);
    serving.join().unwrap();
    other.set_nonblocking(true).unwrap();
    assert!(other.accept().is_err(), "somebody came");
}

#[test]
fn no_pattern_opens_the_way_to_somebody_else_s_model() {
    let mut ground = Ground::new();
    ground.sandbox.network = allow(&["*.anthropic.com", "*.com", "*.googleapis.com", "*.ai"]);
    for host in [
        "api.anthropic.com",
        "API.Anthropic.com.",
        "api.openai.com",
        "eu.api.openai.com",
        "mine.openai.azure.com",
        "generativelanguage.googleapis.com",
        "us-east1-aiplatform.googleapis.com",
        "bedrock-runtime.us-east-1.amazonaws.com",
        "openrouter.ai",
        "api.x.ai",
    ] {
        let answer = ground.run(&ask(&format!("CONNECT {host}:443 HTTP/1.1")));
        let refused = answer.facts["network"][0]["refused"].as_str();
        assert!(
            refused.is_some_and(|why| why.contains("not among the hosts")),
            "{host}: {} {}",
            answer.text,
            answer.facts
        );
    }
    // A neighbour is meant by the pattern; it may not be found from here.
    let answer = ground.run(&ask("CONNECT selvedge-test.invalid.com:443 HTTP/1.1"));
    assert!(
        !answer.text.contains("not among the hosts"),
        "{}",
        answer.text
    );
}

#[test]
fn a_socket_in_the_file_system_leads_to_nobody() {
    let ground = Ground::new();
    let path = ground.at("app/listening");
    let listener = UnixListener::bind(&path).unwrap();
    listener.set_nonblocking(true).unwrap();
    let knock = "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0); \
                 connect(S, sockaddr_un(\"listening\")) or die \"refused: $!\"; print \"in\"'";
    let answer = ground.run(knock);
    assert!(
        answer.is_error && answer.text.contains("refused"),
        "{}",
        answer.text
    );
    assert!(listener.accept().is_err(), "somebody came");
    let answer = ground.run_bare(knock);
    assert_eq!(answer.text.trim(), "in");
    assert!(listener.accept().is_ok(), "the listener listens");
    // One's own is one's own.
    let own = "perl -MSocket -e 'socket(L, AF_UNIX, SOCK_STREAM, 0); \
               bind(L, sockaddr_un(\"mine\")); listen(L, 1); socket(S, AF_UNIX, SOCK_STREAM, 0); \
               connect(S, sockaddr_un(\"mine\")) or die; print \"in\"'";
    assert_eq!(ground.run(own).text.trim(), "in");
}

fn listener() -> TcpListener {
    TcpListener::bind(("127.0.0.1", 0)).unwrap()
}

fn port(listener: &TcpListener) -> u16 {
    listener.local_addr().unwrap().port()
}

fn allow(hosts: &[&str]) -> Network {
    Network::Allow(hosts.iter().map(|host| host.parse().unwrap()).collect())
}
