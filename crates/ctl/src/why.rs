//! `rolebroker explain` and `rolebroker suggest`.

use client::proto::{CallId, Control};
use store::record::{CallKey, SessionKey};

use crate::arguments;
use crate::cli::{ExplainArgs, Place, SuggestArgs};
use crate::exit::{Exit, Usage};
use crate::{recall, seen, steer};

/// Why a call was decided as it was, or how one would be decided now.
///
/// # Errors
/// When the broker cannot be asked, or remembers no such call; when the record cannot be read, or does not have it.
pub async fn explain(place: &Place, args: ExplainArgs) -> anyhow::Result<Exit> {
    let ExplainArgs {
        role,
        session,
        tool,
        from,
        rest,
    } = args;
    if let Some(store) = from.store() {
        let session = SessionKey { role, session };
        let call = call(&rest)?;
        let reply = recall::explain(store, &CallKey { session, call })?;
        return steer::show(place, &reply);
    }
    let control = match tool {
        Some(tool) => Control::ExplainRequest {
            role,
            session,
            tool,
            arguments: arguments::parse(&rest)?,
        },
        None => Control::Explain {
            role,
            session,
            call: call(&rest)?,
        },
    };
    steer::run(place, control).await
}

/// The smallest grant that would have let a call through, or those for many past calls.
///
/// # Errors
/// As [`seen::run`]; when the broker cannot be asked, or remembers no such call; when the record cannot be read, or does not have it.
pub async fn suggest(place: &Place, args: SuggestArgs) -> anyhow::Result<Exit> {
    let SuggestArgs {
        role,
        one_session,
        call,
        seen,
        from,
    } = args;
    if seen.past {
        return seen::run(place, &role, &seen, &from.store);
    }
    let (Some(session), Some(call)) = (one_session, call) else {
        return Err(Usage("name a SESSION and its CALL, or --past".to_owned()).into());
    };
    let call = CallId(call);
    if let Some(store) = from.store() {
        let session = SessionKey { role, session };
        let reply = recall::propose(store, &CallKey { session, call })?;
        return steer::show(place, &reply);
    }
    let control = Control::Suggest {
        role,
        session,
        call,
    };
    steer::run(place, control).await
}

fn call(rest: &[String]) -> Result<CallId, Usage> {
    let [number] = rest else {
        return Err(Usage(
            "name one CALL by its number, or --tool TOOL and arguments".to_owned(),
        ));
    };
    let call = number.parse().map_err(|_| {
        Usage("the CALL is no number; for one that was never made, name its --tool".to_owned())
    })?;
    Ok(CallId(call))
}
