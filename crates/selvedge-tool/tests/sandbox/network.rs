//! The network: off is off, and what is allowed is reached by one way only.

use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};

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
        "getent ahostsv4 crates.io".into(),
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
    ground.sandbox.network = Network::Allow(vec!["crates.io".parse().unwrap()]);
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
