//! Who may drive a stream.
//!
//! A lease carries an epoch that grows with every change of holder. An append
//! that shows an old epoch is refused, so a worker that slept through the end
//! of its lease cannot write any more, whatever its clock says.

use serde::{Deserialize, Serialize};

use crate::event::Time;
use crate::stream::{LedgerError, StreamId};

/// A process that drives streams.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Unique to the process, over restarts and machines.
    pub id: String,
    /// Its process id, for a holder on this machine.
    pub pid: u32,
    /// Where the process id is known: the machine's boot and its process
    /// namespace, so that an id is not mistaken after a restart or in a container.
    pub boot: String,
    /// When the process started, in the kernel's ticks since the boot: a process
    /// id that was given out again belongs to a later start.
    pub started: u64,
}

impl Holder {
    /// This process. `nonce` tells several holders of one process apart.
    pub fn current(nonce: &str) -> Self {
        let pid = std::process::id();
        let boot = boot_id();
        let started = start_ticks(pid).unwrap_or_default();
        Self {
            id: format!("{boot:.8}-{pid}-{started}-{nonce}"),
            pid,
            boot,
            started,
        }
    }

    /// Whether the holder is certainly gone: same place, no such process.
    ///
    /// After `kill -9` this frees the lease at once; a holder on another machine
    /// or boot is given its full time.
    pub fn is_gone(&self) -> bool {
        !self.boot.is_empty()
            && self.boot == boot_id()
            && start_ticks(self.pid) != Some(self.started)
    }
}

/// Empty where the system does not tell; then nobody is certainly gone.
fn boot_id() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    let namespace = std::fs::read_link("/proc/self/ns/pid");
    match (boot, namespace) {
        (Ok(boot), Ok(namespace)) => format!("{} {}", boot.trim(), namespace.display()),
        _ => String::new(),
    }
}

/// Field 22 of `/proc/PID/stat`, counted after the command name in parentheses.
fn start_ticks(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let after_name = &stat[stat.rfind(')')? + 1..];
    let mut fields = after_name.split_whitespace();
    // A zombie has ended, although its entry is still there.
    if fields.next()? == "Z" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// The right to drive a stream, until another takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// What is leased.
    pub stream: StreamId,
    /// To whom.
    pub holder: String,
    /// Grows with every change of holder.
    pub epoch: u64,
}

impl Lease {
    /// What an append shows.
    pub fn fence(&self) -> Fence {
        Fence {
            stream: self.stream.clone(),
            epoch: self.epoch,
        }
    }
}

/// Proof of a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    /// The leased stream (a session's lease covers its children).
    pub stream: StreamId,
    /// The epoch of the lease.
    pub epoch: u64,
}

/// Why a lease was refused.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// Somebody else is driving.
    #[error("`{stream}` is being driven by process {} until {}", holder.pid, expires.0)]
    Held {
        /// The stream.
        stream: StreamId,
        /// Who.
        holder: Holder,
        /// Until when, unless renewed.
        expires: Time,
    },
    /// The ledger refused.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_not_gone_and_a_finished_one_is() {
        assert!(!Holder::current("a").is_gone());
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        let started = start_ticks(pid).unwrap_or(1);
        child.wait().unwrap();
        let gone = Holder {
            id: "x".into(),
            pid,
            boot: boot_id(),
            started,
        };
        assert!(gone.is_gone());
    }

    #[test]
    fn a_holder_of_another_boot_is_given_its_time() {
        let holder = Holder {
            id: "x".into(),
            pid: 1,
            boot: "another".into(),
            started: 0,
        };
        assert!(!holder.is_gone());
    }
}
