//! A runner's bad answers, and an agent's ids in use: only the call that they are about is hurt.

use serde_json::json;

use crate::bad_input::{Bystander, assert_kept, assert_told};
use crate::harness::{Place, result};

#[test]
fn a_runners_reply_that_nobody_waits_for_is_dropped_and_the_runner_goes_on() {
    let daemon = Place::new().start();
    let mut runner = daemon.connect("files");
    let mut agent = daemon.connect("bot");
    runner.result(7, "for nobody");
    daemon.wait_for("reply_dropped");
    let id = agent.call("s", 1, "read", "{}");
    let (request, _) = runner.request();
    runner.result(request, "read");
    runner.result(request, "read twice");
    assert_eq!(agent.ends(id)["content"], "read");
    daemon.wait_for("reply_dropped");
    assert_kept(&mut runner);
    agent.is_silent();
}

#[test]
fn a_runners_reply_that_does_not_decode_ends_its_call_and_the_runner_goes_on() {
    let daemon = Place::new().start();
    let mut runner = daemon.connect("files");
    let mut agent = daemon.connect("bot");
    let good = result("x");
    let mut unknown = good.clone();
    unknown["extra"] = json!(1);
    let mut missing = good.clone();
    missing.as_object_mut().expect("an object").remove("class");
    for (call, body) in [
        (1, unknown),
        (2, missing),
        (3, json!([])),
        (4, json!({"status": "sold"})),
    ] {
        let id = agent.call("s", call, "order", "{}");
        let (request, _) = runner.request();
        runner.say(request, true, "tool_response", &body);
        assert_told(&mut runner, "a bad reply", "bad_message", 0);
        let answer = agent.ends(id);
        let message = answer["message"].as_str().expect("a message");
        assert!(message.starts_with("runner_failed: "), "{answer}");
    }
    let id = agent.call("s", 5, "order", "{}");
    let (request, _) = runner.request();
    runner.result(request, "ordered");
    assert_eq!(agent.ends(id)["content"], "ordered");
}

#[test]
fn a_runner_that_breaks_its_frames_loses_its_calls_and_no_others() {
    let daemon = Place::new().start();
    let mut bystander = Bystander::of(&daemon);
    let mut agent = daemon.connect("bot");
    let mut runner = daemon.connect("files");
    let id = agent.call("s", 1, "order", "{}");
    runner.request();
    runner.frame(b"not JSON");
    assert_told(&mut runner, "no JSON", "bad_frame", 0);
    let answer = agent.ends(id);
    let message = answer["message"].as_str().expect("a message");
    assert!(message.starts_with("unknown_outcome: "), "{answer}");
    bystander.is_served();
}

#[test]
fn a_second_request_under_an_open_id_is_refused_and_the_first_goes_on() {
    let daemon = Place::new().start();
    let mut runner = daemon.connect("files");
    let mut agent = daemon.connect("bot");
    let call = |number| json!({"session": "s", "call": number, "tool": "read", "arguments": "{}"});
    agent.say(7, true, "tool_request", &call(1));
    agent.say(7, true, "tool_request", &call(2));
    assert_told(&mut agent, "an open id", "bad_message", 0);
    let (request, body) = runner.request();
    assert_eq!(body["call"], 1);
    runner.result(request, "read");
    assert_eq!(agent.ends(7)["content"], "read");
    runner.is_silent();
}
