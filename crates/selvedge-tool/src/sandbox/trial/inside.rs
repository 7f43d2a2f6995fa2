//! What is tried inside of the fence.

#![allow(unsafe_code)]

use std::fs::{File, OpenOptions, create_dir_all, read, write};
use std::io::{self, Error};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{self, UnixStream};
use std::path::Path;
use std::time::Duration;

use libc::{c_int, c_long};

use super::{Attempt, Bait, LAID_OUT};

/// Tries to break out of the sandbox that this process is in, and to do what is
/// allowed. Meant for a helper of `attempt_to_break_out`.
pub fn break_out() -> Vec<Attempt> {
    let laid_out = std::env::var(LAID_OUT).unwrap_or_default();
    let Ok(bait) = serde_json::from_str::<Bait>(&laid_out) else {
        return Vec::new();
    };
    let mut attempts = Vec::new();
    let mut forbidden = |name: &str, result: io::Result<()>| {
        attempts.push(Attempt {
            name: name.into(),
            is_as_it_should: result.is_err(),
            detail: result.map_or_else(|error| error.to_string(), |()| "it worked".into()),
        });
    };
    files(&bait, &mut forbidden);
    sockets(&bait, &mut forbidden);
    processes(&bait, &mut forbidden);
    kernel(&mut forbidden);
    let mut allowed = |name: &str, result: io::Result<()>| {
        attempts.push(Attempt {
            name: name.into(),
            is_as_it_should: result.is_ok(),
            detail: result.map_or_else(|error| error.to_string(), |()| "it works".into()),
        });
    };
    benign(&mut allowed);
    attempts
}

type Try<'a> = dyn FnMut(&str, io::Result<()>) + 'a;

fn files(bait: &Bait, attempt: &mut Try<'_>) {
    let secret = &bait.secret;
    attempt("read a file outside", read(secret).map(drop));
    attempt(
        "write a file outside",
        OpenOptions::new().write(true).open(secret).map(drop),
    );
    attempt(
        "make a file in the system",
        File::create("/usr/selvedge-was-here").map(drop),
    );
    attempt(
        "make a file in the system's settings",
        File::create("/etc/selvedge-was-here").map(drop),
    );
    attempt("leave a hook for git", write(".git/hooks/pre-commit", ""));
    attempt(
        "leave settings for Selvedge",
        create_dir_all(".selvedge/local"),
    );
    // Only Landlock stands in the way of this one.
    attempt(
        "write to the kernel's view of processes",
        OpenOptions::new()
            .write(true)
            .open("/proc/self/comm")
            .map(drop),
    );
    attempt(
        "read through another process's view",
        read(Path::new("/proc/1/root").join(secret.strip_prefix("/").unwrap_or(secret))).map(drop),
    );
}

fn sockets(bait: &Bait, attempt: &mut Try<'_>) {
    attempt(
        "connect to a socket of this machine",
        UnixStream::connect(&bait.socket).map(drop),
    );
    let named = net::SocketAddr::from_abstract_name(&bait.abstract_name);
    attempt(
        "connect to an abstract socket",
        named
            .and_then(|name| UnixStream::connect_addr(&name))
            .map(drop),
    );
    let local = SocketAddr::from(([127, 0, 0, 1], bait.port));
    attempt("connect to a port of this machine", connect(local));
    let remote = SocketAddr::from(([1, 1, 1, 1], 443));
    attempt("connect to the internet", connect(remote));
    for (name, family) in [
        ("speak to the kernel by netlink", libc::AF_NETLINK),
        ("speak to the hypervisor", libc::AF_VSOCK),
        ("send raw packets", libc::AF_PACKET),
    ] {
        attempt(name, call(libc::SYS_socket, [family, libc::SOCK_RAW, 0]));
    }
}

fn connect(to: SocketAddr) -> io::Result<()> {
    TcpStream::connect_timeout(&to, Duration::from_millis(500)).map(drop)
}

fn processes(bait: &Bait, attempt: &mut Try<'_>) {
    let pid = c_int::try_from(bait.pid).unwrap_or(c_int::MAX);
    attempt("signal Selvedge", call(libc::SYS_kill, [pid, 0, 0]));
    attempt(
        "read Selvedge's variables",
        read(format!("/proc/{pid}/environ")).map(drop),
    );
    attempt(
        "trace the process above",
        call(libc::SYS_ptrace, [libc::PTRACE_ATTACH as c_int, 1, 0]),
    );
    attempt(
        "read the memory of the process above",
        read("/proc/1/mem").map(drop),
    );
    attempt(
        "read the variables of the process above",
        read("/proc/1/environ").map(drop),
    );
}

fn kernel(attempt: &mut Try<'_>) {
    let new_user = libc::CLONE_NEWUSER;
    attempt(
        "make a namespace",
        call(libc::SYS_unshare, [new_user, 0, 0]),
    );
    attempt("mount something", mount());
    attempt(
        "use a ring of calls",
        call(libc::SYS_io_uring_setup, [1, 0, 0]),
    );
    attempt("read the keyring", call(libc::SYS_keyctl, [0, -3, 0]));
    attempt(
        "load a program into the kernel",
        call(libc::SYS_bpf, [0, 0, 0]),
    );
    attempt("change the root", std::os::unix::fs::chroot("/tmp"));
    attempt(
        "type into a terminal",
        call(libc::SYS_ioctl, [0, libc::TIOCSTI as c_int, 0]),
    );
}

fn mount() -> io::Result<()> {
    let nothing = std::ptr::null();
    // SAFETY: valid texts or none.
    let result = unsafe {
        libc::mount(
            c"none".as_ptr(),
            c"/tmp".as_ptr(),
            c"tmpfs".as_ptr(),
            0,
            nothing,
        )
    };
    worked(result.into())
}

fn benign(attempt: &mut Try<'_>) {
    attempt("(allowed) write to the workspace", write("made", "x"));
    attempt("(allowed) write to /tmp", write("/tmp/made", "x"));
    attempt("(allowed) read the system", read("/etc/passwd").map(drop));
    let own = TcpListener::bind(("127.0.0.1", 0));
    let own = own.and_then(|listener| TcpStream::connect(listener.local_addr()?).map(drop));
    attempt("(allowed) speak to itself over the loopback", own);
    let program = std::process::Command::new("/bin/true").status().map(drop);
    attempt("(allowed) start a program", program);
}

/// A system call with numbers only. Where it wants memory there is none, which it says
/// if it gets that far.
fn call(number: c_long, arguments: [c_int; 3]) -> io::Result<()> {
    let [one, two, three] = arguments;
    // SAFETY: none of the calls made here touches memory with these arguments.
    worked(unsafe { libc::syscall(number, one, two, three) })
}

fn worked(result: c_long) -> io::Result<()> {
    match (result, Error::last_os_error()) {
        // It was let through, and failed for want of memory.
        (-1, error) if error.raw_os_error() == Some(libc::EFAULT) => Ok(()),
        (-1, error) => Err(error),
        _ => Ok(()),
    }
}
