//! Landlock: which files a process may touch, and whom it may signal.

use std::path::PathBuf;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreatedAttr, Scope, make_bitflags,
};

use super::{ConfineError, Missing};

/// What is handled; a later kernel's further rights stay as they are.
const USED: ABI = ABI::V6;

/// What nearly every program reads: itself, its libraries, names and times. No secrets are there.
pub const SYSTEM: [&str; 14] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/nix/store",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/passwd",
];
/// What names of the network are looked up with.
const NAMES: [&str; 6] = [
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/gai.conf",
    "/etc/services",
    "/etc/ssl/certs",
];
/// Devices that are no way out.
const DEVICES: [&str; 5] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];

const LOOK: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | ReadDir});
const RUN: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | ReadDir | Execute});
const CHANGE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{
    ReadFile | ReadDir | WriteFile | Truncate | MakeReg | RemoveFile
});
const RUN_AND_CHANGE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{
    ReadFile | ReadDir | Execute | WriteFile | Truncate | MakeReg | RemoveFile | MakeDir | RemoveDir
        | MakeSym | MakeFifo | Refer
});
const FILE: BitFlags<AccessFs> =
    make_bitflags!(AccessFs::{ReadFile | Execute | WriteFile | Truncate});
const DEVICE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | WriteFile});

/// Paths, each with what may be done there and below.
#[derive(Default)]
pub(super) struct Rules {
    pub(super) look: Vec<PathBuf>,
    pub(super) run: Vec<PathBuf>,
    pub(super) change: Vec<PathBuf>,
    pub(super) run_and_change: Vec<PathBuf>,
    pub(super) device: Vec<PathBuf>,
    pub(super) network: bool,
    /// Also away from the abstract sockets of others.
    pub(super) isolated: bool,
}

impl Rules {
    pub(super) fn system(&mut self) {
        self.run.extend(SYSTEM.iter().map(PathBuf::from));
        if self.network {
            self.run.extend(NAMES.iter().map(PathBuf::from));
        }
    }

    pub(super) fn devices(&mut self) {
        self.device.extend(DEVICES.iter().map(PathBuf::from));
    }
}

/// What the kernel lacks.
pub(super) fn missing() -> Vec<Missing> {
    let hard = || Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let files = |access: BitFlags<AccessFs>| hard().handle_access(access).is_ok();
    let tried = [
        ("landlock", "files", files(AccessFs::from_all(ABI::V1))),
        (
            "landlock-refer",
            "renames between folders fail instead",
            files(AccessFs::Refer.into()),
        ),
        (
            "landlock-truncate",
            "the lengths of files outside",
            files(AccessFs::Truncate.into()),
        ),
        (
            "landlock-network",
            "nothing where there is seccomp, which forbids all sockets",
            hard().handle_access(AccessNet::from_all(ABI::V4)).is_ok(),
        ),
        (
            "landlock-ioctl",
            "ioctl on devices that are open to everybody",
            files(AccessFs::IoctlDev.into()),
        ),
        (
            "landlock-scope",
            "signals to other processes of the same user, and their abstract sockets",
            hard().scope(Scope::from_all(USED)).is_ok(),
        ),
    ];
    tried
        .into_iter()
        .filter(|(_, _, there)| !there)
        .map(|(feature, leaves, _)| Missing { feature, leaves })
        .collect()
}

/// Restricts the calling thread, and what it starts, for good. What the kernel lacks is left out.
pub(super) fn restrict(rules: &Rules) -> Result<(), ConfineError> {
    let failed = |error: &dyn std::fmt::Display| ConfineError::Landlock(error.to_string());
    let mut ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(USED))
        .map_err(|error| failed(&error))?;
    if !rules.network {
        let all = AccessNet::from_all(USED);
        ruleset = ruleset.handle_access(all).map_err(|error| failed(&error))?;
    }
    let scopes = if rules.isolated {
        Scope::from_all(USED)
    } else {
        // systemd's own socket may be an abstract one.
        Scope::Signal.into()
    };
    let mut created = ruleset
        .scope(scopes)
        .and_then(Ruleset::create)
        .map_err(|error| failed(&error))?;
    for (paths, access) in [
        (&rules.look, LOOK),
        (&rules.run, RUN),
        (&rules.change, CHANGE),
        (&rules.run_and_change, RUN_AND_CHANGE),
        (&rules.device, DEVICE),
    ] {
        for path in paths {
            // What is not there cannot be reached.
            let (Ok(meta), Ok(handle)) = (path.metadata(), PathFd::new(path)) else {
                continue;
            };
            let access = if meta.is_dir() { access } else { access & FILE };
            created = created
                .add_rule(PathBeneath::new(handle, access))
                .map_err(|error| failed(&error))?;
        }
    }
    created.restrict_self().map_err(|error| failed(&error))?;
    Ok(())
}
