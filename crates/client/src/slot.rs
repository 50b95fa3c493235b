//! What waits for one call: bounded without a queue, since a part that was not taken yet grows by the next
//! one, and of progress only the newest counts. So a call that nobody reads never holds up another.

use std::sync::{Mutex, MutexGuard, PoisonError};

use proto::{
    ApprovalId, DenyReason, ErrorCode, FailureCode, Label, Progress, Timestamp, ToolResponse,
};
use tokio::sync::Notify;

/// A step of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Update {
    /// A person is asked.
    Pending {
        /// Names the question.
        approval: ApprovalId,
        /// When it lapses.
        expires: Timestamp,
    },
    /// How far the call is. Only the newest is kept for a reader that is late.
    Progress {
        /// Units done.
        done: u64,
        /// Units in all; 0: unknown.
        total: u64,
        /// A word for a person, by the runner.
        note: String,
    },
    /// A piece of the answer; more follow, the last one with [`Update::Final`].
    Part {
        /// The next piece of the content.
        content: String,
        /// The label of this piece.
        label: Label,
    },
    /// The end. After parts, a result's content here is the last piece.
    Final(Outcome),
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The tool's answer.
    Result {
        /// What the tool gave.
        content: String,
        /// How confidential it is, and whether a stranger could have written it.
        label: Label,
        /// Whether it was cut to fit a frame.
        truncated: bool,
    },
    /// It did not run, or did not end well.
    Failed {
        /// What kind of failure.
        code: FailureCode,
        /// More about it.
        text: String,
    },
    /// It may not run.
    Denied(DenyReason),
}

/// Why a call ended without an outcome.
#[derive(Debug, Clone)]
pub(crate) enum Broken {
    Lost(String),
    Rejected(ErrorCode, String),
    Misbehaved(&'static str),
}

#[derive(Default)]
pub(crate) struct Slot {
    waiting: Mutex<Waiting>,
    ready: Notify,
}

#[derive(Default)]
struct Waiting {
    pending: Option<Update>,
    progress: Option<Update>,
    part: Option<(String, Label)>,
    end: Option<Result<Outcome, Broken>>,
    /// Bytes of content so far, taken or not.
    bytes: usize,
    taken: bool,
}

impl Slot {
    /// Takes in what the broker said under the call's id. True if that was the last of it.
    pub(crate) fn respond(&self, response: ToolResponse, is_final: bool, max_bytes: usize) -> bool {
        let mut waiting = self.lock();
        let end = match (response, is_final) {
            (ToolResponse::PendingApproval { approval, expires }, false) => {
                match ApprovalId::new(approval) {
                    Ok(approval) => {
                        waiting.pending = Some(Update::Pending { approval, expires });
                        None
                    }
                    Err(_) => Some(Err(Broken::Misbehaved("a badly named approval"))),
                }
            }
            (
                ToolResponse::Result {
                    content,
                    class,
                    untrusted,
                    truncated,
                },
                _,
            ) => {
                let label = Label { class, untrusted };
                waiting.bytes = waiting.bytes.saturating_add(content.len());
                if waiting.bytes > max_bytes {
                    Some(Err(Broken::Misbehaved("an answer over the frame limit")))
                } else if is_final {
                    Some(Ok(Outcome::Result {
                        content,
                        label,
                        truncated,
                    }))
                } else {
                    let (text, joined) = waiting.part.get_or_insert_with(Default::default);
                    text.push_str(&content);
                    *joined = joined.join(label);
                    None
                }
            }
            (ToolResponse::Failed { message }, true) => Some(Ok(failed(message))),
            (ToolResponse::Denied { reason }, true) => Some(Ok(Outcome::Denied(reason))),
            (ToolResponse::PendingApproval { .. }, true)
            | (ToolResponse::Failed { .. } | ToolResponse::Denied { .. }, false) => {
                Some(Err(Broken::Misbehaved("a response with the wrong `final`")))
            }
        };
        let ended = end.is_some();
        if ended {
            waiting.end = end;
        }
        drop(waiting);
        self.ready.notify_one();
        ended
    }

    pub(crate) fn progress(&self, progress: Progress) {
        self.lock().progress = Some(Update::Progress {
            done: progress.done,
            total: progress.total,
            note: progress.note,
        });
        self.ready.notify_one();
    }

    pub(crate) fn fail(&self, broken: Broken) {
        self.lock().end.get_or_insert(Err(broken));
        self.ready.notify_one();
    }

    /// The next step; `None` after the end.
    pub(crate) async fn next(&self) -> Result<Option<Update>, Broken> {
        loop {
            if let Some(update) = self.take() {
                return update;
            }
            self.ready.notified().await;
        }
    }

    fn take(&self) -> Option<Result<Option<Update>, Broken>> {
        let mut waiting = self.lock();
        if waiting.taken {
            return Some(Ok(None));
        }
        if let Some(update) = waiting.pending.take().or_else(|| waiting.progress.take()) {
            return Some(Ok(Some(update)));
        }
        if let Some((content, label)) = waiting.part.take() {
            return Some(Ok(Some(Update::Part { content, label })));
        }
        let end = waiting.end.take()?;
        waiting.taken = true;
        Some(end.map(|outcome| Some(Update::Final(outcome))))
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Nothing here leaves it half changed.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn failed(message: String) -> Outcome {
    match (FailureCode::of_message(&message), message.split_once(": ")) {
        (Some(code), Some((_, text))) => Outcome::Failed {
            code,
            text: text.to_owned(),
        },
        // Not of the list: then it is not the broker's own word.
        (_, _) => Outcome::Failed {
            code: FailureCode::RunnerFailed,
            text: message,
        },
    }
}
