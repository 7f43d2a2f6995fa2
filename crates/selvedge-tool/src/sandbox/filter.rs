//! The system calls that are taken away from a command.
//!
//! A list of what is denied, not of what is allowed: builds use a wide and moving set
//! of calls, and a call that is missing shows as a riddle. What is denied is what
//! reaches into other processes, changes the system, or opens a way around the other
//! layers.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

/// What a command may do with sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) enum Sockets {
    /// Local ones and those of the internet; what they reach is somebody else's
    /// decision.
    All,
    /// Those of the internet only: where local ones would reach other programs.
    Internet,
}

/// The filters, in the order in which they are put on.
pub(super) fn filters(sockets: Sockets) -> Result<Vec<BpfProgram>, String> {
    let denied = program(denied(sockets)?, libc::EPERM)?;
    // Its arguments are in memory, where a filter cannot look. Who is told that there
    // is no such call uses the older one, whose arguments can be judged.
    let absent = program(
        BTreeMap::from([(libc::SYS_clone3, Vec::new())]),
        libc::ENOSYS,
    )?;
    Ok(vec![absent, denied])
}

// Other processes.
const PROCESSES: [c_long; 6] = [
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
];

// Ways around: what is done on a ring is seen by no filter, and a view of files that
// can be changed is none.
const WAYS_AROUND: [c_long; 17] = [
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
];

// The keys of the session, and the machine itself.
const SYSTEM: [c_long; 25] = [
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
];

#[cfg(target_arch = "x86_64")]
const PORTS: &[c_long] = &[libc::SYS_iopl, libc::SYS_ioperm];
#[cfg(not(target_arch = "x86_64"))]
const PORTS: &[c_long] = &[];

const NAMESPACES: [i32; 8] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
    // For time; `libc` does not name it. As a flag of `clone` it would be part of a
    // signal's number, which no program sets.
    0x80,
];

// Puts characters into a terminal's input, as if somebody had typed them.
const TYPING: [u64; 2] = [libc::TIOCSTI, libc::TIOCLINUX];

type Rules = BTreeMap<c_long, Vec<SeccompRule>>;

fn denied(sockets: Sockets) -> Result<Rules, String> {
    let whole = PROCESSES
        .iter()
        .chain(&WAYS_AROUND)
        .chain(&SYSTEM)
        .chain(PORTS);
    let mut rules: Rules = whole.map(|call| (*call, Vec::new())).collect();
    let mut namespaces = Vec::new();
    for flag in NAMESPACES {
        let bit = flag as u64;
        namespaces.push(rule(&[(0, SeccompCmpOp::MaskedEq(bit), bit)])?);
    }
    rules.insert(libc::SYS_unshare, namespaces.clone());
    namespaces.pop();
    rules.insert(libc::SYS_clone, namespaces);
    let typing: Result<Vec<_>, String> = TYPING
        .iter()
        .map(|request| rule(&[(1, SeccompCmpOp::Eq, *request)]))
        .collect();
    rules.insert(libc::SYS_ioctl, typing?);
    // Every family but these: a link to the kernel, to a hypervisor or to raw packets
    // is not what a build talks to.
    let mut families = vec![libc::AF_INET, libc::AF_INET6];
    if sockets == Sockets::All {
        families.push(libc::AF_UNIX);
    }
    let others: Vec<_> = families
        .iter()
        .map(|family| (0, SeccompCmpOp::Ne, *family as u64))
        .collect();
    rules.insert(libc::SYS_socket, vec![rule(&others)?]);
    // A pair talks to itself; but one that sends datagrams can address others.
    let is_local = (0, SeccompCmpOp::Ne, libc::AF_UNIX as u64);
    let mut pairs = vec![rule(&[is_local])?];
    if sockets == Sockets::Internet {
        let datagrams = libc::SOCK_DGRAM as u64;
        pairs.push(rule(&[(1, SeccompCmpOp::MaskedEq(0xf), datagrams)])?);
    }
    rules.insert(libc::SYS_socketpair, pairs);
    Ok(rules)
}

/// A rule on arguments: their position, how they are compared, and with what. All must
/// hold.
fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, String> {
    let conditions: Result<Vec<_>, _> = conditions
        .iter()
        .map(|(position, compare, value)| {
            // The kernel itself looks at 32 bits of each of these.
            SeccompCondition::new(*position, SeccompCmpArgLen::Dword, compare.clone(), *value)
        })
        .collect();
    let rule = conditions.and_then(SeccompRule::new);
    rule.map_err(|error| error.to_string())
}

fn program(rules: Rules, error: i32) -> Result<BpfProgram, String> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH)
        .map_err(|_| format!("there is no filter for {}", std::env::consts::ARCH))?;
    let action = SeccompAction::Errno(error as u32);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, architecture);
    let program: Result<BpfProgram, _> = filter.and_then(TryInto::try_into);
    let program = program.map_err(|error| error.to_string())?;
    Ok([&other_numbers()[..], &program].concat())
}

/// On some machines each call has a second number, which no rule would match. Who uses
/// one is told that there is no such call.
fn other_numbers() -> [sock_filter; 3] {
    const FIRST: u32 = 0x4000_0000;
    let instruction = |code: u32, jump_false: u8, value: u32| sock_filter {
        code: code as u16,
        jt: 0,
        jf: jump_false,
        k: value,
    };
    [
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        instruction(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 1, FIRST),
        instruction(
            libc::BPF_RET | libc::BPF_K,
            0,
            libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_filter_can_be_made_and_fits() {
        for sockets in [Sockets::All, Sockets::Internet] {
            let filters = filters(sockets).unwrap();
            assert_eq!(filters.len(), 2);
            for filter in filters {
                assert!((4..4_096).contains(&filter.len()), "{}", filter.len());
            }
        }
    }
}
