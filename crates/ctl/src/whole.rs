//! One answer of the broker, whole: a long list comes in several pieces.

use client::proto::ControlReply;

/// The pieces as one; `None` if there are none. Of what is no list, there is one piece.
pub fn whole(pieces: Vec<ControlReply>) -> Option<ControlReply> {
    pieces.into_iter().reduce(joined)
}

fn joined(mut whole: ControlReply, piece: ControlReply) -> ControlReply {
    match (&mut whole, piece) {
        (ControlReply::Sessions { sessions }, ControlReply::Sessions { sessions: more }) => {
            sessions.extend(more);
        }
        (ControlReply::Grants { grants }, ControlReply::Grants { grants: more }) => {
            grants.extend(more);
        }
        (ControlReply::Tools { tools }, ControlReply::Tools { tools: more }) => tools.extend(more),
        (ControlReply::Explained { trace, .. }, ControlReply::Explained { trace: more, .. }) => {
            trace.extend(more);
        }
        (whole, last) => *whole = last,
    }
    whole
}
