//! A world of its own for a command: users, files, processes, network.
//!
//! The first process in it does not become the command: it watches, and when it ends
//! the kernel ends everything else in there.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use libc::{c_int, c_void, pid_t};

use super::prepared::{Refused, Stage, done};
use super::spec::Network;

/// What a command's world is made of.
pub(super) struct Namespaces {
    flags: c_int,
    user_map: CString,
    group_map: CString,
    /// Where the listening end of the only way out is handed over.
    way_out: Option<OwnedFd>,
}

/// The port, on the loopback in there, at which the proxy listens.
pub(super) const PROXY_PORT: u16 = 3128;

const WORLD: c_int = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;

impl Namespaces {
    pub(super) fn new(network: &Network, way_out: Option<OwnedFd>) -> io::Result<Self> {
        let itself = |id: u32| CString::new(format!("{id} {id} 1\n"));
        Ok(Self {
            flags: match network {
                Network::On => WORLD,
                Network::Off | Network::Allow(_) => WORLD | libc::CLONE_NEWNET,
            },
            user_map: itself(rustix::process::geteuid().as_raw())?,
            group_map: itself(rustix::process::getegid().as_raw())?,
            way_out,
        })
    }

    /// Forks into a new world. Returns 0 there, and the new process's id here.
    pub(super) fn split(&self) -> Result<pid_t, Refused> {
        // SAFETY: a fork, in a process with a single thread. Who may not be looked at
        // may not say who it is in there either, so it may be for a moment.
        unsafe {
            libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0);
            let flags = self.flags | libc::SIGCHLD;
            let pid = libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0);
            done(pid).map_err(Stage::Namespaces.refused())?;
            if pid != 0 {
                libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
            }
            Ok(pid as pid_t)
        }
    }

    /// Is somebody in there, and has a loopback.
    pub(super) fn settle(&self) -> Result<(), Refused> {
        // SAFETY: a call without memory.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) };
        // Absent on old kernels, where it is not needed either.
        let _ = write(c"/proc/self/setgroups", c"deny");
        write(c"/proc/self/uid_map", &self.user_map).map_err(Stage::Identity.refused())?;
        write(c"/proc/self/gid_map", &self.group_map).map_err(Stage::Identity.refused())?;
        first_to_go();
        // SAFETY: as above.
        unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
        if self.flags & libc::CLONE_NEWNET != 0 {
            raise_loopback().map_err(Stage::Loopback.refused())?;
        }
        if let Some(way_out) = &self.way_out {
            listen_for(way_out.as_raw_fd())?;
        }
        Ok(())
    }
}

/// When memory runs out, this process is what has to go. Not every kernel lets it say so.
pub(crate) fn first_to_go() {
    let _ = write(c"/proc/self/oom_score_adj", c"900");
}

/// For the first process of a world that somebody else has made: it ends with that, and
/// nobody looks into it.
pub(crate) fn keep_to_itself() {
    // SAFETY: calls without memory.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
    }
}

/// Listens in here for the only way out, and hands that over through `way_out`.
pub(crate) fn listen_for(way_out: RawFd) -> Result<(), Refused> {
    hand_over_listener(way_out).map_err(Stage::Loopback.refused())
}

fn write(path: &CStr, text: &CStr) -> io::Result<()> {
    let bytes = text.to_bytes();
    // SAFETY: a valid path and buffer; the handle is closed here.
    unsafe {
        let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        done(file.into())?;
        let written = done(libc::write(file, bytes.as_ptr().cast::<c_void>(), bytes.len()) as _);
        libc::close(file);
        written
    }
}

/// Switches the loopback on; a new network has it, switched off.
fn raise_loopback() -> io::Result<()> {
    // SAFETY: a structure of this frame for which zeroes are valid.
    unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        done(socket.into())?;
        let mut request: libc::ifreq = zeroed();
        request.ifr_name[0] = b'l' as libc::c_char;
        request.ifr_name[1] = b'o' as libc::c_char;
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        let raised = done(libc::ioctl(socket, libc::SIOCSIFFLAGS, &raw const request).into());
        libc::close(socket);
        raised
    }
}

/// Listens on the loopback in here, and gives the listening end to somebody outside.
fn hand_over_listener(to: RawFd) -> io::Result<()> {
    // SAFETY: structures of this frame for which zeroes are valid, with their sizes.
    unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
        done(socket.into())?;
        let mut address: libc::sockaddr_in = zeroed();
        address.sin_family = libc::AF_INET as libc::sa_family_t;
        address.sin_port = PROXY_PORT.to_be();
        address.sin_addr.s_addr = libc::INADDR_LOOPBACK.to_be();
        let length = size_of::<libc::sockaddr_in>() as libc::socklen_t;
        done(libc::bind(socket, (&raw const address).cast(), length).into())?;
        done(libc::listen(socket, 128).into())?;
        let sent = send_handle(to, socket);
        libc::close(socket);
        sent
    }
}

fn send_handle(to: RawFd, handle: RawFd) -> io::Result<()> {
    const ROOM: usize = 64;
    // Eight bytes to an element, for the kernel's sake.
    let mut control = [0_u64; ROOM / 8];
    let mut byte = 0_u8;
    // SAFETY: structures of this frame, with their sizes; there is room for one handle.
    unsafe {
        let mut piece = libc::iovec {
            iov_base: (&raw mut byte).cast(),
            iov_len: 1,
        };
        let mut message: libc::msghdr = zeroed();
        message.msg_iov = &raw mut piece;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(size_of::<RawFd>() as u32) as _;
        let header = libc::CMSG_FIRSTHDR(&message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as _;
        libc::CMSG_DATA(header)
            .cast::<RawFd>()
            .write_unaligned(handle);
        done(libc::sendmsg(to, &message, libc::MSG_NOSIGNAL) as _)
    }
}
