//! `audit`: the record, read from the store itself, so that it can be audited while no daemon runs.

mod list;

use std::path::PathBuf;

use nix::unistd::geteuid;
use store::{Entry, FILE, Head, Store};

use crate::cli::{AuditArgs, AuditCommand, Place, StoreArgs, VerifyArgs};
use crate::exit::{self, Exit, NotDone};
use crate::out;

const SYSTEM: &str = "/var/lib/rolebroker";

/// Lists, verifies or exports the record.
///
/// # Errors
/// The store cannot be read, or is not what was written.
pub async fn run(place: &Place, args: &AuditArgs) -> anyhow::Result<Exit> {
    match &args.what {
        None => list::list(place, args).await,
        Some(AuditCommand::Verify(verify)) => self::verify(place, verify),
        Some(AuditCommand::Export(store)) => export(store),
    }
}

/// As the chain has them: a shell computes the head from these lines.
fn export(store: &StoreArgs) -> anyhow::Result<Exit> {
    each(store, |entry| {
        out::try_text(&format!("{}\n", entry.text)).is_ok()
    })?;
    Ok(exit::DONE)
}

fn verify(place: &Place, args: &VerifyArgs) -> anyhow::Result<Exit> {
    let failed = |error: store::StoreError| NotDone(error.to_string());
    let mut store = open(&args.store)?;
    let mut known: Option<u64> = None;
    let mut look = |head: &Head| {
        if args.head.as_ref() == Some(&head.hash) {
            known = Some(head.count);
        }
    };
    store
        .read(|entries| entries.for_each(|entry| look(&entry.head)))
        .map_err(failed)?;
    // Where the record begins is in the chain too.
    let before = store.begins();
    look(&before);
    // What a start would read beside it.
    store.check().map_err(failed)?;
    let head = store.head();
    if let Some(missing) = args.head.as_ref().filter(|_| known.is_none()) {
        let given_up = match before.count {
            0 => String::new(),
            count => format!(
                "; or it is of a record before {count}: those were given up (audit_ttl, audit_bytes)"
            ),
        };
        return Err(NotDone(format!(
            "the chain does not have the head {missing}: records were cut off or the chain was written anew; it has {} \
             records and ends with {}{given_up}",
            head.count, head.hash
        ))
        .into());
    }
    if place.json {
        let status = known.map_or("consistent", |_| "complete");
        let said = serde_json::json!({
            "status": status, "records": head.count, "head": head.hash.as_str(), "known": known,
            "begins": before.count + 1, "before": before.hash.as_str(),
        });
        out::json(&said.to_string());
        return Ok(exit::DONE);
    }
    let mut text = match known {
        Some(known) => format!("complete: the head that was told at record {known} is in it\n"),
        None => "consistent: whether its end was cut off, only a head that was kept elsewhere tells (--head)\n"
            .to_owned(),
    };
    text += &format!("records  {}\nhead     {}\n", head.count, head.hash);
    if before.count > 0 {
        text += &format!(
            "begins   {}; those before it were given up\nbefore   {}\n",
            before.count + 1,
            before.hash
        );
    }
    out::text(&text);
    Ok(exit::DONE)
}

/// Goes over the records until `take` has enough; the head of them all, which were all checked.
fn each(args: &StoreArgs, mut take: impl FnMut(&Entry) -> bool) -> anyhow::Result<Head> {
    let mut store = open(args)?;
    store
        .read(|entries| {
            for entry in entries {
                if !take(&entry) {
                    // The rest is checked all the same.
                    break;
                }
            }
        })
        .map_err(|error| NotDone(error.to_string()))?;
    Ok(store.head().clone())
}

/// The store that is meant, for reading.
///
/// # Errors
/// There is none, or this user may not read it.
pub(crate) fn open(args: &StoreArgs) -> anyhow::Result<Store> {
    let file = folder(args).join(FILE);
    if let Err(error) = std::fs::File::open(&file) {
        let what = format!(
            "{}: {error}; name the daemon's state_dir with --state-dir, as a user who may read it",
            file.display()
        );
        return Err(NotDone(what).into());
    }
    Ok(Store::open_read_only(&file).map_err(|error| NotDone(error.to_string()))?)
}

/// Where the store that is meant is.
pub(crate) fn folder(args: &StoreArgs) -> PathBuf {
    args.state_dir.clone().unwrap_or_else(usual)
}

/// Where the daemon has it: the machine's, or an ordinary user's own.
fn usual() -> PathBuf {
    let system = PathBuf::from(SYSTEM);
    if geteuid().is_root() {
        return system;
    }
    let stated = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let own = stated("XDG_STATE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(stated("HOME")?).join(".local/state")));
    own.map(|state| state.join("rolebroker"))
        .filter(|own| own.join(FILE).exists())
        .unwrap_or(system)
}
