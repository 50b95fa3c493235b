//! What stands beside the store: the head that was told last, which a start must find in the record again, and the
//! word that a copy was put back.

use std::io;
use std::path::{Path, PathBuf};

use engine::PutBack;
use store::beside::{self, COPY, HEAD, MARKER};
use store::{FILE, Head, Store};
use tokio::sync::watch;
use tokio::task::{JoinHandle, spawn_blocking, spawn_local};

use crate::exit::Fault;

/// What a start finds there.
#[derive(Debug)]
pub struct Beside {
    folder: PathBuf,
    /// Told last by the broker that ran before.
    told: Option<Head>,
    /// Kept elsewhere, and named on the command line.
    required: Option<Head>,
    put_back: Option<PutBack>,
}

impl Beside {
    /// Reads it, before the store is touched.
    ///
    /// # Errors
    /// A file cannot be read whole, or a copy was about to be put back and was not.
    pub fn read(folder: &Path, required: Option<Head>) -> Result<Self, Fault> {
        let unread = |name: &str, error: &io::Error| {
            Fault::Store(format!(
                "{}: {error}: it cannot say whether {FILE} beside it is the one that ran last; {}",
                folder.join(name).display(),
                way_on(name),
            ))
        };
        let put_back = beside::read_marker(folder).map_err(|error| unread(MARKER, &error))?;
        if put_back.is_some() && folder.join(COPY).exists() {
            return Err(Fault::Store(format!(
                "{}: `rolebroker restore` was interrupted before this copy had its place: run it again, with this \
                 FILE or another",
                folder.join(COPY).display()
            )));
        }
        let told = match put_back {
            // The copy is not what ran last: that is what the marker says.
            Some(_) => None,
            None => beside::read_head(folder).map_err(|error| unread(HEAD, &error))?,
        };
        Ok(Self {
            folder: folder.to_owned(),
            told,
            required,
            put_back,
        })
    }

    /// Who put a copy back of which no record tells yet.
    pub fn put_back(&self) -> Option<&PutBack> {
        self.put_back.as_ref()
    }

    /// Where it stands.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether the store, which was read, is the one that ran last, and has what it must.
    ///
    /// # Errors
    /// It is not, or does not.
    pub fn check(&self, store: &Store) -> Result<(), Fault> {
        let file = self.folder.join(HEAD);
        let wanted = [
            (&self.told, file.display().to_string()),
            (&self.required, "--require-head".to_owned()),
        ];
        for (head, whose) in &wanted {
            let Some(head) = head else { continue };
            if !store.had(head).map_err(|error| Fault::of_store(&error))? {
                return Err(self.other(store.head(), head, whose));
            }
        }
        Ok(())
    }

    fn other(&self, found: &Head, told: &Head, whose: &str) -> Fault {
        Fault::Store(format!(
            "{whose} says that record {} has the hash {}, and {} has {} records, the last with the hash {}: its end was \
             cut off, or an older copy was put back; {}",
            told.count,
            told.hash,
            self.folder.join(FILE).display(),
            found.count,
            found.hash,
            way_on(HEAD),
        ))
    }

    /// The first records are durable, up to `head`: it is told, and a copy that was put back is one no more. What cannot
    /// be written is a warning: the next start then does with the copy what this one did.
    pub fn begun(self, head: &Head) {
        if kept(beside::write_head(&self.folder, head)) && self.put_back.is_some() {
            kept(beside::remove_marker(&self.folder));
        }
    }
}

/// What whoever reads it can do.
fn way_on(name: &str) -> String {
    format!(
        "`rolebroker restore FILE --reason WHY` puts a backup back, or goes on with what is left if FILE is that {FILE}, \
         with every label at secret and untrusted; or move {FILE}* and {name} away, and every session begins anew at \
         public and trusted"
    )
}

/// Keeps the file with the head, off the reactor's way.
#[derive(Debug)]
pub struct Keeper {
    tell: watch::Sender<Head>,
    done: JoinHandle<()>,
}

impl Keeper {
    /// One for the store in this folder.
    pub fn start(folder: PathBuf) -> Self {
        // Only the latest one counts.
        let (tell, mut told) = watch::channel(Head::empty());
        let done = spawn_local(async move {
            while told.changed().await.is_ok() {
                let head = told.borrow_and_update().clone();
                let folder = folder.clone();
                let written = spawn_blocking(move || beside::write_head(&folder, &head)).await;
                kept(written.unwrap_or_else(|error| Err(io::Error::other(error))));
            }
        });
        Self { tell, done }
    }

    /// Writes it, soon. The records up to it are durable.
    pub fn keep(&self, head: &Head) {
        self.tell.send_replace(head.clone());
    }

    /// Waits until the last one is written.
    pub async fn end(self) {
        drop(self.tell);
        // It ends by itself, whatever becomes of the file.
        let _ = self.done.await;
    }
}

fn kept(done: io::Result<()>) -> bool {
    if let Err(error) = &done {
        tracing::warn!(event = "head_not_kept", detail = %error);
    }
    done.is_ok()
}
