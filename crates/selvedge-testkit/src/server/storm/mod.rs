//! Faulty answers by the thousand, each wholly determined by its number.
//!
//! A storm is a bare socket that speaks HTTP as badly as a case wants it to,
//! which no HTTP library would. The client is told which case to ask for by the
//! name of the model, so one storm serves any number of cases at once.

mod case;
mod connection;
mod delivery;
mod plan;
mod protocol;
mod status;

use std::net::SocketAddr;

use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

pub use case::{Case, STORM_KEY};

/// A server that answers every request as its case has it. It stops when dropped.
pub struct Storm {
    address: SocketAddr,
    stop: CancellationToken,
}

impl Storm {
    /// A storm on a free port.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("the local machine has a free port");
        let address = listener
            .local_addr()
            .expect("a bound socket has an address");
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        tokio::spawn(async move {
            loop {
                let accepted = tokio::select! {
                    () = stopped.cancelled() => return,
                    accepted = listener.accept() => accepted,
                };
                // A client that is gone already is part of the weather.
                if let Ok((socket, _)) = accepted {
                    let stopped = stopped.clone();
                    tokio::spawn(async move {
                        tokio::select! {
                            () = stopped.cancelled() => {}
                            () = serve(socket) => {}
                        }
                    });
                }
            }
        });
        Self { address, stop }
    }

    /// Where it is, for every protocol: `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Storm {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Answers the requests of a connection until one of them ends it.
async fn serve(mut socket: TcpStream) {
    // Fails only on a connection that is gone.
    let _ = socket.set_nodelay(true);
    let mut received = Vec::new();
    while let Some(seed) = next_case(&mut socket, &mut received).await {
        let plan = Case::new(seed).plan();
        if !plan.carry_out(&mut socket).await {
            return;
        }
    }
}

/// Reads one request; returns the case it asks for.
async fn next_case(socket: &mut TcpStream, received: &mut Vec<u8>) -> Option<u64> {
    loop {
        if let Some(length) = first_request(received) {
            let request: Vec<u8> = received.drain(..length).collect();
            return seed_in(&request);
        }
        let mut more = [0; 16 * 1024];
        let count = socket
            .read(&mut more)
            .await
            .ok()
            .filter(|count| *count > 0)?;
        received.extend_from_slice(&more[..count]);
    }
}

/// The length of the first request, once it is there as a whole.
fn first_request(received: &[u8]) -> Option<usize> {
    let end = received.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&received[..end]).to_lowercase();
    let length = head.split("content-length:").nth(1)?;
    let length: usize = length.lines().next()?.trim().parse().ok()?;
    Some(end + length).filter(|whole| *whole <= received.len())
}

fn seed_in(request: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(request);
    let digits = text.split("case-").nth(1)?;
    let end = digits.find(|c: char| !c.is_ascii_digit());
    digits[..end.unwrap_or(digits.len())].parse().ok()
}
