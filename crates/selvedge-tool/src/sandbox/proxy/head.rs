//! Reads the head of a request to the proxy, strictly.
//!
//! Two programs that read the same head differently are how a host that was refused is
//! reached. So what is unusual is refused, and what is sent on is written anew: the
//! host that was judged, and one request to a connection.

use super::super::hosts::Target;

/// What a client asks for.
#[derive(Debug, PartialEq)]
pub(super) struct Head<'a> {
    /// Where it wants to go.
    pub(super) target: Target,
    /// What is sent there first, if it does not just want a connection.
    pub(super) forwarded: Option<Vec<u8>>,
    /// What came after the head.
    pub(super) rest: &'a [u8],
}

/// How long a head may be.
pub(super) const HEAD_BYTES_MAX: usize = 32 * 1024;

// Those of one connection, which this is the end of.
const DROPPED: [&str; 6] = [
    "host",
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authorization",
    "upgrade",
];

impl<'a> Head<'a> {
    pub(super) fn parse(read: &'a [u8]) -> Result<Self, String> {
        let end = read
            .windows(4)
            .position(|bytes| bytes == b"\r\n\r\n")
            .ok_or("the request is incomplete or too long")?;
        let text = std::str::from_utf8(&read[..end]).map_err(|_| "the request is not text")?;
        let rest = &read[end + 4..];
        let mut lines = text.split("\r\n");
        let first = lines.next().unwrap_or_default();
        let is_plain = |line: &str| line.chars().all(|c| c == '\t' || !c.is_control());
        if !text.split("\r\n").all(is_plain) {
            return Err("the request has control characters".into());
        }
        let words: Vec<&str> = first.split(' ').collect();
        let [method, url, "HTTP/1.1" | "HTTP/1.0"] = words[..] else {
            return Err("the request is not one of HTTP/1".into());
        };
        if method == "CONNECT" {
            return Ok(Self {
                target: Target::parse(url, None)?,
                forwarded: None,
                rest,
            });
        }
        let url = url
            .strip_prefix("http://")
            .ok_or("this is a proxy: ask it for `http://…`, or to CONNECT")?;
        let at = url.find(['/', '?', '#']).unwrap_or(url.len());
        let (authority, path) = url.split_at(at);
        let target = Target::parse(authority, Some(80))?;
        let path = match path.starts_with('/') {
            true => path.to_owned(),
            false => format!("/{path}"),
        };
        let mut forwarded = format!("{method} {path} HTTP/1.1\r\nHost: {authority}\r\n");
        for line in lines {
            let (name, _) = line.split_once(':').ok_or("a header has no name")?;
            if name.is_empty() || name.contains(char::is_whitespace) {
                return Err("a header has an unusual name".into());
            }
            if !DROPPED.contains(&name.to_ascii_lowercase().as_str()) {
                forwarded.push_str(line);
                forwarded.push_str("\r\n");
            }
        }
        forwarded.push_str("Connection: close\r\n\r\n");
        Ok(Self {
            target,
            forwarded: Some(forwarded.into_bytes()),
            rest,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(text: &str) -> Result<(String, Option<String>), String> {
        let head = Head::parse(text.as_bytes())?;
        let forwarded = head
            .forwarded
            .map(|bytes| String::from_utf8(bytes).unwrap());
        Ok((head.target.to_string(), forwarded))
    }

    #[test]
    fn a_connection_is_asked_for() {
        let head = Head::parse(b"CONNECT example.org:443 HTTP/1.1\r\nHost: evil.org\r\n\r\nhello")
            .unwrap();
        assert_eq!(head.target.to_string(), "example.org:443");
        assert_eq!((head.forwarded, head.rest), (None, &b"hello"[..]));
    }

    #[test]
    fn what_is_sent_on_names_the_host_that_was_judged() {
        let (target, forwarded) = parsed(
            "GET http://example.org/a?b HTTP/1.1\r\nHost: evil.org\r\nproxy-authorization: x\r\n\
             Connection: keep-alive\r\nAccept: *\r\n\r\n",
        )
        .unwrap();
        assert_eq!(target, "example.org:80");
        assert_eq!(
            forwarded.unwrap(),
            "GET /a?b HTTP/1.1\r\nHost: example.org\r\nAccept: *\r\nConnection: close\r\n\r\n"
        );
    }

    #[test]
    fn the_unusual_is_refused() {
        for head in [
            "GET / HTTP/1.1\r\n\r\n",
            "GET https://example.org/ HTTP/1.1\r\n\r\n",
            "CONNECT example.org HTTP/1.1\r\n\r\n",
            "CONNECT example.org:443\r\n\r\n",
            "CONNECT user@example.org:443 HTTP/1.1\r\n\r\n",
            "CONNECT evil.org\0.example.org:443 HTTP/1.1\r\n\r\n",
            "CONNECT example.org:443 HTTP/1.1\r\nA: b\nC: d\r\n\r\n",
            "GET http://evil.org@example.org/ HTTP/1.1\r\n\r\n",
            "GET http://example.org\\@evil.org/ HTTP/1.1\r\n\r\n",
            "GET http://example.org /x HTTP/1.1\r\n\r\n",
            "GET http://example.org/ HTTP/1.1\r\nA: b\r\n folded: c\r\n\r\n",
            "GET http://example.org/ HTTP/1.1\r\nHost : evil.org\r\n\r\n",
            "GET http://example.org/ HTTP/1.1",
            "\r\n\r\n",
        ] {
            assert!(parsed(head).is_err(), "{head:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parser_fail(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Head::parse(&bytes);
        }
    }
}
