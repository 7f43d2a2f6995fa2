//! What a case puts on the wire, and how it leaves.

use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

/// The start of an honest stream.
pub(super) const STREAM: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// What goes out, and what happens then.
pub(super) struct Plan {
    writes: Vec<Vec<u8>>,
    /// How long before each write.
    pause: Duration,
    end: End,
}

/// What happens when everything is out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The connection waits for the next request.
    Keep,
    /// It is closed in order.
    Close,
    /// It is reset.
    Reset,
    /// Nothing happens any more.
    Stall,
    /// The last write is repeated for ever.
    Again,
}

impl Plan {
    /// These writes, and then `end`.
    pub(super) fn new(writes: Vec<Vec<u8>>, end: End) -> Self {
        Self {
            writes,
            pause: Duration::ZERO,
            end,
        }
    }

    /// An honest stream of these pieces, each a chunk of its own.
    pub(super) fn stream(pieces: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let mut writes = vec![STREAM.as_bytes().to_vec()];
        writes.extend(pieces.into_iter().map(|piece| chunk(&piece)));
        writes.push(b"0\r\n\r\n".to_vec());
        Self::new(writes, End::Keep)
    }

    /// A stream that begins honestly and goes no further than `body`.
    pub(super) fn broken(body: &[u8], end: End) -> Self {
        let mut writes = vec![STREAM.as_bytes().to_vec()];
        if !body.is_empty() {
            writes.push(chunk(body));
        }
        Self::new(writes, end)
    }

    /// A response of known length.
    pub(super) fn response(status: u16, headers: &str, body: &[u8]) -> Self {
        let length = body.len();
        let head =
            format!("HTTP/1.1 {status} Whatever\r\n{headers}content-length: {length}\r\n\r\n");
        Self::new(vec![head.into_bytes(), body.to_vec()], End::Keep)
    }

    /// A response of JSON.
    pub(super) fn json(status: u16, headers: &str, body: &str) -> Self {
        let headers = format!("content-type: application/json\r\n{headers}");
        Self::response(status, &headers, body.as_bytes())
    }

    /// The same in fewer writes: what is split stays split, and leaves sooner.
    pub(super) fn together(self) -> Self {
        let writes = self.writes.chunks(64).map(<[_]>::concat);
        Self {
            writes: writes.collect(),
            ..self
        }
    }

    /// The same, ending otherwise. A close is announced, or the next case on the
    /// connection would pay for this one.
    pub(super) fn then(mut self, end: End) -> Self {
        if let (End::Close, Some(head)) = (end, self.writes.first_mut()) {
            let announced = "\r\nconnection: close\r\n";
            let text = String::from_utf8_lossy(head).replacen("\r\n", announced, 1);
            *head = text.into_bytes();
        }
        Self { end, ..self }
    }

    /// The same, with a pause before each write.
    pub(super) fn slowly(self, pause: Duration) -> Self {
        Self { pause, ..self }
    }

    /// Whether only the client's patience ends it.
    pub(super) fn stalls(&self) -> bool {
        self.end == End::Stall || self.end == End::Again && !self.pause.is_zero()
    }

    /// Sends it; `true` if the connection is good for another request.
    pub(super) async fn carry_out(self, socket: &mut TcpStream) -> bool {
        for bytes in &self.writes {
            if !self.send(socket, bytes).await {
                return false;
            }
        }
        match self.end {
            End::Keep => true,
            End::Close => false,
            End::Reset => {
                // Fails only on a connection that is gone already.
                let _ = socket.set_zero_linger();
                false
            }
            End::Stall => {
                // Until the client hangs up, which is all it can do.
                let _ = tokio::io::copy(socket, &mut tokio::io::sink()).await;
                false
            }
            End::Again => {
                let last = self.writes.last().expect("something was written");
                while self.send(socket, last).await {}
                false
            }
        }
    }

    async fn send(&self, socket: &mut TcpStream, bytes: &[u8]) -> bool {
        if !self.pause.is_zero() {
            tokio::time::sleep(self.pause).await;
        }
        socket.write_all(bytes).await.is_ok()
    }
}

/// A chunk of a chunked body.
pub(super) fn chunk(piece: &[u8]) -> Vec<u8> {
    let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
    chunk.extend_from_slice(piece);
    chunk.extend_from_slice(b"\r\n");
    chunk
}
