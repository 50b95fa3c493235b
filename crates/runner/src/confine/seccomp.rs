//! seccomp: system calls that no tool needs, and sockets.
//!
//! A list of what is forbidden, not of what is allowed: commands are programs that nobody here knows. Where a call
//! is forbidden it fails with EPERM; clone3 with ENOSYS, so that the C library takes clone, whose flags can be seen.

use std::collections::BTreeMap;

use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};

use super::ConfineError;

/// Which sockets may be opened. Pairs of connected ones always may.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sockets {
    /// None.
    None,
    /// Those of the internet, and what asks the kernel for routes.
    Internet,
    /// Those of this machine.
    Local,
    /// Both.
    LocalAndInternet,
}

/// Ways to other processes, to the kernel itself, around the file system and around this filter.
const FORBIDDEN: &[libc::c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    libc::SYS_quotactl,
    libc::SYS_acct,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    libc::SYS_personality,
];
/// Those of one architecture only.
#[cfg(target_arch = "x86_64")]
const FORBIDDEN_HERE: &[libc::c_long] = &[
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_kexec_file_load,
    // Numbers of their own that x32 has for ptrace, process_vm_readv, process_vm_writev and kexec_load.
    521,
    539,
    540,
    528,
];
#[cfg(not(target_arch = "x86_64"))]
const FORBIDDEN_HERE: &[libc::c_long] = &[];

/// The same calls with this bit are x32's, which some kernels take from any process.
#[cfg(target_arch = "x86_64")]
const OTHER_NUMBERS: &[libc::c_long] = &[0, 0x4000_0000];
#[cfg(not(target_arch = "x86_64"))]
const OTHER_NUMBERS: &[libc::c_long] = &[0];

/// Flags of clone that make namespaces, in which a process has rights that it had not before.
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// Whether the kernel has it, and this architecture is known here.
pub(super) fn available() -> bool {
    let known = TargetArch::try_from(std::env::consts::ARCH).is_ok();
    // What is said of each process is there also where a service sees nothing else of /proc.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    known
        && status
            .lines()
            .any(|line| line.starts_with("Seccomp_filters:"))
}

/// Restricts the calling thread, and what it starts, for good. Does nothing where there is no seccomp, which
/// [`available`] tells: it is not asked here, since what it reads may be out of reach by now.
pub(super) fn restrict(sockets: Sockets) -> Result<(), ConfineError> {
    if TargetArch::try_from(std::env::consts::ARCH).is_err() {
        return Ok(());
    }
    let failed = |error: &dyn std::fmt::Display| ConfineError::Seccomp(error.to_string());
    let clone3 = program(&[(libc::SYS_clone3, Vec::new())], libc::ENOSYS);
    let forbidden = rules(sockets).and_then(|rules| program(&rules, libc::EPERM));
    for program in [clone3, forbidden] {
        let program = program.map_err(|error| failed(&error))?;
        match apply_filter(&program) {
            Ok(()) => {}
            Err(seccompiler::Error::Seccomp(error)) if lacking(&error) => return Ok(()),
            Err(error) => return Err(failed(&error)),
        }
    }
    Ok(())
}

/// Whether the kernel says that it has no filters.
fn lacking(error: &std::io::Error) -> bool {
    let number = error.raw_os_error();
    number == Some(libc::ENOSYS) || number == Some(libc::EINVAL)
}

type Rules = Vec<(libc::c_long, Vec<SeccompRule>)>;

fn program(
    rules: &[(libc::c_long, Vec<SeccompRule>)],
    errno: i32,
) -> Result<BpfProgram, seccompiler::BackendError> {
    let mut map: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for bit in OTHER_NUMBERS {
        map.extend(
            rules
                .iter()
                .map(|(call, rules)| (call | bit, rules.clone())),
        );
    }
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let errno = SeccompAction::Errno(errno.unsigned_abs());
    SeccompFilter::new(map, SeccompAction::Allow, errno, arch)?.try_into()
}

fn rules(sockets: Sockets) -> Result<Rules, seccompiler::BackendError> {
    let mut rules: Rules = FORBIDDEN
        .iter()
        .chain(FORBIDDEN_HERE)
        .map(|call| (*call, Vec::new()))
        .collect();
    let clone = NAMESPACES.iter().map(|flag| {
        let flag = u64::from(flag.unsigned_abs());
        SeccompRule::new(vec![is(0, SeccompCmpOp::MaskedEq(flag), flag)?])
    });
    rules.push((libc::SYS_clone, clone.collect::<Result<_, _>>()?));
    // Typing for others, on a terminal that is shared.
    let typing = [libc::TIOCSTI, libc::TIOCLINUX]
        .map(|request| SeccompRule::new(vec![is(1, SeccompCmpOp::Eq, request)?]));
    rules.push((
        libc::SYS_ioctl,
        typing.into_iter().collect::<Result<_, _>>()?,
    ));
    rules.push((libc::SYS_socket, sockets.rules()?));
    Ok(rules)
}

impl Sockets {
    /// The rules by which a socket is refused.
    fn rules(self) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
        let families: &[libc::c_int] = match self {
            Sockets::None => return Ok(Vec::new()),
            Sockets::Internet => &[libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
            Sockets::Local => &[libc::AF_UNIX],
            Sockets::LocalAndInternet => &[
                libc::AF_UNIX,
                libc::AF_INET,
                libc::AF_INET6,
                libc::AF_NETLINK,
            ],
        };
        let others = families
            .iter()
            .map(|family| is(0, SeccompCmpOp::Ne, u64::from(family.unsigned_abs())));
        let netlink = u64::from(libc::AF_NETLINK.unsigned_abs());
        Ok(vec![
            SeccompRule::new(others.collect::<Result<_, _>>()?)?,
            // Of the kernel's own, nothing but routes and addresses.
            SeccompRule::new(vec![
                is(0, SeccompCmpOp::Eq, netlink)?,
                is(
                    2,
                    SeccompCmpOp::Ne,
                    u64::from(libc::NETLINK_ROUTE.unsigned_abs()),
                )?,
            ])?,
        ])
    }
}

fn is(
    argument: u8,
    operator: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
}
