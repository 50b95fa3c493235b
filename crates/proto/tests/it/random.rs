//! Random envelopes, other writings of them, broken ones, and noise. Proptest prints the case and
//! its seed.

use proptest::prelude::*;
use proto::{Envelope, decode, encode, encode_message, encode_with, frame, json, scan};
use serde_json::Value;

use crate::strategies::envelope;

/// Writes `value` in another way, led by `choices`: key order, spaces and escapes.
struct Rewriter<'a> {
    choices: std::iter::Cycle<std::slice::Iter<'a, u8>>,
    out: String,
}

impl Rewriter<'_> {
    fn choice(&mut self) -> u8 {
        *self.choices.next().unwrap()
    }

    fn space(&mut self) {
        let spaces = ["", "", " ", "\t", "\r\n", "\n  "];
        let choice = usize::from(self.choice());
        self.out.push_str(spaces[choice % spaces.len()]);
    }

    fn punctuation(&mut self, sign: char) {
        self.space();
        self.out.push(sign);
        self.space();
    }

    fn string(&mut self, text: &str) {
        self.out.push('"');
        for character in text.chars() {
            let must = character < ' ' || character == '"' || character == '\\';
            match self.choice() % 4 {
                choice if must || choice == 0 => {
                    for unit in character.encode_utf16(&mut [0; 2]) {
                        self.out.push_str(&format!("\\u{unit:04X}"));
                    }
                }
                1 if character == '/' => self.out.push_str("\\/"),
                _ => self.out.push(character),
            }
        }
        self.out.push('"');
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Object(object) => {
                let mut members: Vec<_> = object.iter().collect();
                let turns = usize::from(self.choice()) % members.len().max(1);
                members.rotate_left(turns);
                self.punctuation('{');
                for (index, (key, member)) in members.into_iter().enumerate() {
                    if index > 0 {
                        self.punctuation(',');
                    }
                    self.string(key);
                    self.punctuation(':');
                    self.value(member);
                }
                self.punctuation('}');
            }
            Value::Array(array) => {
                self.punctuation('[');
                for (index, item) in array.iter().enumerate() {
                    if index > 0 {
                        self.punctuation(',');
                    }
                    self.value(item);
                }
                self.punctuation(']');
            }
            Value::String(text) => self.string(text),
            Value::Null | Value::Bool(_) | Value::Number(_) => {
                self.out.push_str(&value.to_string())
            }
        }
    }
}

fn rewritten(envelope: &Envelope, choices: &[u8]) -> String {
    let value = json::parse(std::str::from_utf8(&encode(envelope)).unwrap()).unwrap();
    let mut rewriter = Rewriter {
        choices: choices.iter().cycle(),
        out: String::new(),
    };
    rewriter.value(&value);
    rewriter.out
}

/// Whatever is accepted writes as something that is accepted as the same.
fn if_accepted_then_stable(frame: &[u8]) -> Result<(), TestCaseError> {
    if let Ok(envelope) = decode(frame) {
        let written = encode(&envelope);
        prop_assert_eq!(decode(&written), Ok(envelope));
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_envelope_round_trips(envelope in envelope()) {
        let frame = encode(&envelope);
        prop_assert_eq!(decode(&frame), Ok(envelope.clone()));
        let mut framed = bytes::BytesMut::new();
        encode_with(envelope.id, envelope.r#final, &encode_message(&envelope.msg), &mut framed);
        prop_assert_eq!(frame::split(&mut framed, frame.len()), Ok(Some(frame.into())));
        prop_assert!(framed.is_empty());
    }

    #[test]
    fn a_scan_reads_what_a_decoding_does(envelope in envelope()) {
        let frame = encode(&envelope);
        let head = scan::scan(&frame).head;
        prop_assert_eq!(head.version, scan::Version::Supported);
        prop_assert_eq!(head.id, Some(envelope.id));
        prop_assert_eq!(head.kind.as_deref(), Some(envelope.msg.kind()));
    }

    #[test]
    fn any_other_writing_of_an_envelope_is_taken_as_the_same(
        envelope in envelope(),
        choices in prop::collection::vec(any::<u8>(), 1..64),
    ) {
        let frame = rewritten(&envelope, &choices);
        let decoded = proto::decode_shared(frame.into_bytes().into()).unwrap();
        prop_assert_eq!(&decoded.msg, &encode_message(&envelope.msg));
        prop_assert_eq!(decoded.envelope, envelope);
    }

    #[test]
    fn a_broken_frame_is_refused_or_means_what_it_says(
        envelope in envelope(),
        place in any::<prop::sample::Index>(),
        cut in 0_usize..3,
        put in prop::collection::vec(any::<u8>(), 0..3),
    ) {
        let mut frame = encode(&envelope);
        let at = place.index(frame.len());
        frame.splice(at..(at + cut).min(frame.len()), put);
        if_accepted_then_stable(&frame)?;
    }

    #[test]
    fn noise_is_never_a_panic(frame in prop::collection::vec(any::<u8>(), 0..256)) {
        if_accepted_then_stable(&frame)?;
        let mut buf = bytes::BytesMut::from(frame.as_slice());
        while let Ok(Some(_)) = frame::split(&mut buf, 64) {}
    }

    #[test]
    fn noise_of_json_signs_is_judged_as_serde_json_judges_it(
        text in "[\\[\\]{}:,\"\\\\0-9eE.+\\-ntrufalse \n]{0,24}",
    ) {
        let text = text.as_str();
        // Plain serde_json lets through what the strict parser refuses, never the reverse.
        match json::parse(text) {
            Ok(value) => prop_assert_eq!(serde_json::from_str::<Value>(text).unwrap(), value),
            Err(json::JsonError::GRAMMAR) => prop_assert!(serde_json::from_str::<Value>(text).is_err()),
            Err(_) => {}
        }
        if_accepted_then_stable(text.as_bytes())?;
    }
}
