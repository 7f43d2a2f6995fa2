//! The only way out of a command's network, to the hosts that were allowed.
//!
//! The command has a network of its own with nothing in it but a loopback. A socket
//! that listens there is made inside and served out here, so there is no route that
//! could lead around. Inside there is no resolver either: names are resolved here, the
//! address that was judged is the one that is dialled, and an allowed name that leads
//! to this machine or its neighbours is refused.

mod head;

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use serde::Serialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use super::hosts::{Host, HostRule, Target, is_public};
use super::namespaces::PROXY_PORT;
use super::spec::Network;
use head::{HEAD_BYTES_MAX, Head};

/// A proxy for one command. Dropped, it serves no more.
pub(crate) struct Proxy {
    serving: JoinHandle<()>,
    visits: Visits,
}

/// A host that a command asked for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Visit {
    /// The host and port, as it was understood.
    pub(crate) host: String,
    /// Why it was refused; none if it was allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refused: Option<String>,
}

type Visits = Arc<Mutex<Vec<Visit>>>;

const CONNECTIONS_MAX: usize = 128;
// What a report names of the hosts that were asked for; more is not read by anybody.
const VISITS_MAX: usize = 50;
const HEAD_WAIT: Duration = Duration::from_secs(30);
const DIAL_WAIT: Duration = Duration::from_secs(30);

impl Proxy {
    /// Whether a network needs one.
    pub(crate) fn is_needed(network: &Network) -> bool {
        matches!(network, Network::Allow(_))
    }

    /// What tells programs that there is a proxy.
    pub(crate) fn environment() -> Vec<(&'static str, String)> {
        let proxy = format!("http://127.0.0.1:{PROXY_PORT}");
        let direct = "localhost,127.0.0.1,::1";
        let mut variables: Vec<_> = [
            "http_proxy",
            "https_proxy",
            "all_proxy",
            "HTTP_PROXY",
            "HTTPS_PROXY",
            "ALL_PROXY",
        ]
        .map(|name| (name, proxy.clone()))
        .into();
        variables.extend(["no_proxy", "NO_PROXY"].map(|name| (name, direct.to_owned())));
        variables
    }

    /// Serves the socket that was handed over through `way_out`.
    pub(crate) fn start(way_out: UnixStream, network: &Network) -> io::Result<Self> {
        let Network::Allow(rules) = network else {
            return Err(io::Error::other("this network has no proxy"));
        };
        let listener = std::net::TcpListener::from(receive(&way_out)?);
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let visits = Visits::default();
        let door = Arc::new(Door {
            rules: rules.clone(),
            visits: visits.clone(),
        });
        Ok(Self {
            serving: tokio::spawn(serve(listener, door)),
            visits,
        })
    }

    /// Ends it; returns which hosts were asked for.
    pub(crate) fn end(self) -> Vec<Visit> {
        self.serving.abort();
        std::mem::take(&mut self.visits.lock().expect("no panic under this lock"))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// The socket that listens in the command's network.
fn receive(way_out: &UnixStream) -> io::Result<OwnedFd> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    // It was sent before the command was started, so it is there.
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    recvmsg(
        way_out,
        &mut [IoSliceMut::new(&mut byte)],
        &mut control,
        flags,
    )?;
    let mut handles = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut handles) => handles.next(),
        _ => None,
    });
    handles
        .next()
        .ok_or_else(|| io::Error::other("the command's network was not handed over"))
}

async fn serve(listener: TcpListener, door: Arc<Door>) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    // Dropped with this task, and everything under way with it.
    let mut connections = JoinSet::new();
    loop {
        let Ok(slot) = slots.clone().acquire_owned().await else {
            return;
        };
        let Ok((client, _)) = listener.accept().await else {
            return;
        };
        let door = door.clone();
        connections.spawn(async move {
            // A connection that breaks is between its two ends.
            let _ = door.pass(client).await;
            drop(slot);
        });
        while connections.try_join_next().is_some() {}
    }
}

/// Decides who may pass.
struct Door {
    rules: Vec<HostRule>,
    visits: Visits,
}

impl Door {
    async fn pass(&self, mut client: TcpStream) -> io::Result<()> {
        let read = timeout(HEAD_WAIT, read_head(&mut client)).await??;
        let head = match Head::parse(&read) {
            Ok(head) => head,
            Err(why) => return refuse(&mut client, "400 Bad Request", &why).await,
        };
        let dialled = self.dial(&head.target).await;
        self.note(&head.target, dialled.as_ref().err());
        let mut server = match dialled {
            Ok(server) => server,
            Err(Refusal::Denied(why)) => return refuse(&mut client, "403 Forbidden", &why).await,
            Err(Refusal::Failed(why)) => return refuse(&mut client, "502 Bad Gateway", &why).await,
        };
        match head.forwarded {
            None => client.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").await?,
            Some(forwarded) => server.write_all(&forwarded).await?,
        }
        server.write_all(head.rest).await?;
        tokio::io::copy_bidirectional(&mut client, &mut server).await?;
        Ok(())
    }

    async fn dial(&self, target: &Target) -> Result<TcpStream, Refusal> {
        if !self.rules.iter().any(|rule| rule.allows(target)) {
            return Err(Refusal::Denied(format!(
                "`{target}` is not among the hosts that commands may reach"
            )));
        }
        let address = match &target.host {
            // Named as it is: then it is meant.
            Host::Address(address) => SocketAddr::new(*address, target.port),
            Host::Name(name) => {
                let found = tokio::net::lookup_host((name.as_str(), target.port)).await;
                let found = found.map_err(|error| Refusal::Failed(error.to_string()))?;
                let addresses: Vec<IpAddr> = found.map(|address| address.ip()).collect();
                SocketAddr::new(pin(name, &addresses)?, target.port)
            }
        };
        match timeout(DIAL_WAIT, TcpStream::connect(address)).await {
            Ok(Ok(server)) => Ok(server),
            Ok(Err(error)) => Err(Refusal::Failed(format!("`{target}`: {error}"))),
            Err(_) => Err(Refusal::Failed(format!("`{target}` did not answer"))),
        }
    }

    fn note(&self, target: &Target, refusal: Option<&Refusal>) {
        let visit = Visit {
            host: target.to_string(),
            refused: refusal.map(|refusal| match refusal {
                Refusal::Denied(why) | Refusal::Failed(why) => why.clone(),
            }),
        };
        let mut visits = self.visits.lock().expect("no panic under this lock");
        if visits.len() < VISITS_MAX && !visits.contains(&visit) {
            visits.push(visit);
        }
    }
}

/// Why a connection was not made.
#[derive(Debug, PartialEq)]
enum Refusal {
    /// It is not allowed.
    Denied(String),
    /// It is, and did not work.
    Failed(String),
}

/// The address that is dialled for a name. Who answers for a name with an address of
/// this machine, even among others, means no good.
fn pin(name: &str, addresses: &[IpAddr]) -> Result<IpAddr, Refusal> {
    if let Some(address) = addresses.iter().find(|address| !is_public(**address)) {
        return Err(Refusal::Denied(format!(
            "`{name}` leads to `{address}`, which is not a public address; who means it allows \
             the address itself"
        )));
    }
    let nothing = || Refusal::Failed(format!("`{name}` has no address"));
    addresses.first().copied().ok_or_else(nothing)
}

async fn read_head(client: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut read = Vec::with_capacity(1024);
    while !read.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
        if read.len() > HEAD_BYTES_MAX || client.read_buf(&mut read).await? == 0 {
            break;
        }
    }
    Ok(read)
}

async fn refuse(client: &mut TcpStream, status: &str, why: &str) -> io::Result<()> {
    let body = format!("selvedge: {why}\n");
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    );
    client.write_all(answer.as_bytes()).await?;
    client.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pinned(addresses: &[&str]) -> Result<IpAddr, Refusal> {
        let addresses: Vec<IpAddr> = addresses.iter().map(|a| a.parse().unwrap()).collect();
        pin("ok.com", &addresses)
    }

    #[test]
    fn a_name_that_leads_home_is_refused_even_among_others() {
        assert_eq!(pinned(&["1.1.1.1"]), Ok("1.1.1.1".parse().unwrap()));
        for address in ["127.0.0.1", "169.254.169.254", "10.0.0.1", "::1"] {
            let refused = pinned(&["1.1.1.1", address]);
            assert!(matches!(refused, Err(Refusal::Denied(_))), "{refused:?}");
        }
        assert!(matches!(pinned(&[]), Err(Refusal::Failed(_))));
    }
}
