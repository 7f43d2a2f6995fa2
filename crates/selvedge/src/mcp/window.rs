//! The user's way to a page to sign in at, and back.
//!
//! The address is shown, and nothing is started to open it: what a stranger's server
//! names goes into no command. The way back is a port of this machine that is open for
//! one answer.

use std::time::Duration;

use async_trait::async_trait;
use selvedge_mcp::Browser;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::error::{Error, Result};
use crate::out;
use crate::text::escape;

/// How long the user has.
const PATIENCE: Duration = Duration::from_secs(600);
/// A request to come back is shorter than this.
const REQUEST_BYTES_MAX: usize = 16 * 1024;
const READ: Duration = Duration::from_secs(5);
const PAGE: &str = "<!doctype html><title>Selvedge</title><p>You can close this page and go back \
                    to the terminal.";

/// A port of this machine that waits for the user to come back.
pub struct Window {
    listener: TcpListener,
    port: u16,
}

impl Window {
    /// Opens one.
    pub async fn open() -> Result<Self> {
        let opened = async {
            let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
            let port = listener.local_addr()?.port();
            Ok(Self { listener, port })
        };
        opened.await.map_err(|error: std::io::Error| {
            Error::failed("no port of this machine can be opened to come back to").cause(error)
        })
    }

    async fn answer(&self) -> std::io::Result<String> {
        loop {
            let (mut stream, _) = self.listener.accept().await?;
            let line = tokio::time::timeout(READ, request_line(&mut stream)).await;
            let target = line.ok().and_then(|line| target(&line.ok()?));
            let (status, body) = match &target {
                Some(_) => ("200 OK", PAGE),
                None => ("404 Not Found", ""),
            };
            let reply = format!(
                "HTTP/1.1 {status}\r\ncontent-type: text/html\r\ncontent-length: {}\r\n\
                 connection: close\r\n\r\n{body}",
                body.len()
            );
            let _ = stream.write_all(reply.as_bytes()).await;
            let _ = stream.shutdown().await;
            if let Some(target) = target {
                return Ok(target);
            }
        }
    }
}

#[async_trait]
impl Browser for Window {
    fn way_back(&self) -> String {
        format!("http://127.0.0.1:{}/callback", self.port)
    }

    async fn visit(&self, server: &str, page: &str) -> std::result::Result<String, String> {
        out::say(&format!(
            "the MCP server `{}` wants to know who you are; open this page, and come back:\n  {}",
            escape(server),
            escape(page)
        ));
        match tokio::time::timeout(PATIENCE, self.answer()).await {
            Ok(Ok(target)) => Ok(format!("http://127.0.0.1:{}{target}", self.port)),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("{} minutes are over", PATIENCE.as_secs() / 60)),
        }
    }
}

/// The first line of a request. All of it is read: what is left unread when the way is
/// closed would take the answer along.
async fn request_line(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut text = Vec::new();
    let is_whole = |text: &[u8]| text.windows(4).any(|end| end == b"\r\n\r\n");
    while !is_whole(&text) && text.len() < REQUEST_BYTES_MAX {
        if stream.read_buf(&mut text).await? == 0 {
            break;
        }
    }
    let text = String::from_utf8_lossy(&text);
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

/// The page that a request asks for, if it is the one that is waited for.
fn target(line: &str) -> Option<String> {
    let mut words = line.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    let is_it = method == "GET" && target.starts_with("/callback?");
    is_it.then(|| target.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_page_that_is_waited_for_is_an_answer() {
        let found = target("GET /callback?code=a&state=b HTTP/1.1");
        assert_eq!(found.as_deref(), Some("/callback?code=a&state=b"));
        for line in [
            "GET /favicon.ico HTTP/1.1",
            "POST /callback?code=a HTTP/1.1",
            "GET /callbackx?code=a HTTP/1.1",
            "",
        ] {
            assert_eq!(target(line), None, "{line}");
        }
    }
}
