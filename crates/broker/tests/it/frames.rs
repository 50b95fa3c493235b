//! Bytes that are no frames, frames that come in pieces, peers that do not read.

use std::io::{ErrorKind, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use crate::broker::{Place, SHARED, connect, framed, receive, request};

/// The broker answers under id 0 with bad_frame, and closes without a reset.
#[track_caller]
fn assert_bad_frame(mut peer: UnixStream) {
    let said = receive(&mut peer).expect("an answer");
    assert_eq!(said["id"], 0, "{said}");
    assert_eq!(said["msg"]["kind"], "error", "{said}");
    assert_eq!(said["msg"]["body"]["code"], "bad_frame", "{said}");
    assert_eq!(receive(&mut peer), None);
}

#[test]
fn a_length_out_of_bounds_is_answered_and_closed() {
    let place = Place::with(SHARED);
    let _broker = place.start();
    for length in [0, (8 << 20) + 1, u32::MAX] {
        let mut peer = connect(&place.socket("bot"));
        peer.write_all(&length.to_be_bytes()).expect("writes");
        assert_bad_frame(peer);
    }
}

#[test]
fn the_last_answer_reaches_a_peer_that_has_written_more() {
    let place = Place::with(SHARED);
    let _broker = place.start();
    let mut peer = connect(&place.socket("bot"));
    let more = [&framed("no JSON")[..], &[b'x'; 100_000]].concat();
    // It may be cut off before all of it is written.
    let _ = peer.write_all(&more);
    assert_bad_frame(peer);
}

#[test]
fn an_end_inside_a_frame_is_answered_and_closed() {
    let place = Place::with(SHARED);
    let _broker = place.start();
    for begun in [&[0][..], &[0, 0, 0, 9], &[0, 0, 0, 9, b'{']] {
        let mut peer = connect(&place.socket("bot"));
        peer.write_all(begun).expect("writes");
        peer.shutdown(Shutdown::Write).expect("shuts down");
        assert_bad_frame(peer);
    }
}

#[test]
fn a_begun_frame_must_be_complete_in_time() {
    let place = Place::with(&format!("frame_timeout = \"200ms\"\n{SHARED}"));
    let _broker = place.start();
    for begun in [&[0][..], &[0, 0, 0, 9, b'{']] {
        let mut peer = connect(&place.socket("bot"));
        peer.write_all(begun).expect("writes");
        assert_bad_frame(peer);
    }
    // Between frames there is no such limit: this one says nothing for longer than the others took.
    let mut silent = connect(&place.socket("bot"));
    let mut slow = connect(&place.socket("bot"));
    slow.write_all(&[0]).expect("writes");
    assert_bad_frame(slow);
    silent.write_all(&request(1, "look", "{}")).expect("writes");
    assert_eq!(receive(&mut silent).expect("an answer")["id"], 1);
}

#[test]
fn a_frame_may_come_byte_by_byte() {
    let place = Place::with(SHARED);
    let _broker = place.start();
    let mut peer = connect(&place.socket("bot"));
    for byte in request(7, "look", "{}") {
        peer.write_all(&[byte]).expect("writes");
    }
    assert_eq!(receive(&mut peer).expect("an answer")["id"], 7);
}

#[test]
fn large_and_small_frames_keep_their_order() {
    let place = Place::with(SHARED);
    let _broker = place.start();
    let mut peer = connect(&place.socket("bot"));
    let mut writer = peer.try_clone().expect("a second handle");
    let large = format!("{{\"a\":\"{}\"}}", "x".repeat(1 << 20));
    let writing = std::thread::spawn(move || {
        for id in 1..=12 {
            let arguments = if id % 3 == 0 { "{}" } else { &large };
            writer
                .write_all(&request(id, "look", arguments))
                .expect("writes");
        }
    });
    for id in 1..=12 {
        assert_eq!(receive(&mut peer).expect("an answer")["id"], id);
    }
    writing.join().expect("the writer");
}

#[test]
fn a_peer_that_reads_nothing_is_closed_and_the_others_are_served() {
    let place = Place::with(&format!("write_timeout = \"300ms\"\n{SHARED}"));
    let _broker = place.start();
    let mut deaf = connect(&place.socket("bot"));
    let ended = (1..).find_map(|id| deaf.write_all(&request(id, "look", "{}")).err());
    let ended = ended.expect("it is closed at last").kind();
    assert!(
        matches!(ended, ErrorKind::BrokenPipe | ErrorKind::ConnectionReset),
        "{ended}"
    );
    let mut other = connect(&place.socket("bot"));
    other.write_all(&request(1, "look", "{}")).expect("writes");
    assert_eq!(receive(&mut other).expect("an answer")["id"], 1);
}
