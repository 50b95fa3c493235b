//! The RFC 8259 grammar, walked once, without recursion and without allocating: shared by the scan
//! of a frame and by the strict parser.

/// What a walk may cost. Both are inclusive.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Arrays and objects inside each other; at most 64.
    pub(crate) depth: usize,
    /// Values of any type, containers too; keys are not counted.
    pub(crate) values: usize,
}

/// Why a walk ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Not the grammar; the offset of the byte that does not belong.
    Grammar(usize),
    /// Deeper than [`Limits::depth`].
    Depth,
    /// More than [`Limits::values`].
    Values,
}

/// Listens to a walk. `depth` counts the containers around what is reported.
pub(crate) trait Listener<'a> {
    /// An object's key, as written, without its quotes.
    fn key(&mut self, depth: usize, raw: &'a [u8]);
    /// A string, number or literal, as written, with its quotes.
    fn scalar(&mut self, depth: usize, raw: &'a [u8]);
}

/// Walks one JSON text; stops at the first limit or error.
pub(crate) fn walk<'a>(
    text: &'a str,
    limits: Limits,
    listener: &mut impl Listener<'a>,
) -> Result<(), Stop> {
    debug_assert!(limits.depth <= 64, "the stack is a word of 64 bits");
    let bytes = text.as_bytes();
    Walk {
        bytes,
        at: 0,
        depth: 0,
        objects: 0,
        values: 0,
        limits,
    }
    .run(listener)
}

struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: usize,
    /// The stack: the lowest bit says whether the innermost container is an object.
    objects: u64,
    values: usize,
    limits: Limits,
}

/// What may stand next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    CommaOrEnd,
}

impl<'a> Walk<'a> {
    fn run(mut self, listener: &mut impl Listener<'a>) -> Result<(), Stop> {
        let mut next = Next::Value;
        loop {
            self.skip_space();
            next = match next {
                Next::Key | Next::KeyOrEnd => {
                    if next == Next::KeyOrEnd && self.peek() == Some(b'}') {
                        self.close()
                    } else {
                        self.key(listener)?
                    }
                }
                Next::ValueOrEnd if self.peek() == Some(b']') => self.close(),
                Next::Value | Next::ValueOrEnd => self.value(listener)?,
                Next::CommaOrEnd if self.depth == 0 => {
                    return if self.at == self.bytes.len() {
                        Ok(())
                    } else {
                        self.wrong()
                    };
                }
                Next::CommaOrEnd => match (self.peek(), self.objects & 1) {
                    (Some(b','), in_object) => {
                        self.at += 1;
                        if in_object == 1 {
                            Next::Key
                        } else {
                            Next::Value
                        }
                    }
                    (Some(b'}'), 1) | (Some(b']'), 0) => self.close(),
                    _ => return self.wrong(),
                },
            };
        }
    }

    fn key(&mut self, listener: &mut impl Listener<'a>) -> Result<Next, Stop> {
        let start = self.at;
        self.string()?;
        listener.key(self.depth, &self.bytes[start + 1..self.at - 1]);
        self.skip_space();
        self.expect(b':')?;
        Ok(Next::Value)
    }

    fn value(&mut self, listener: &mut impl Listener<'a>) -> Result<Next, Stop> {
        let start = self.at;
        let Some(first) = self.peek() else {
            return self.wrong();
        };
        if self.values == self.limits.values {
            return Err(Stop::Values);
        }
        self.values += 1;
        match first {
            b'{' => return self.open(1, Next::KeyOrEnd),
            b'[' => return self.open(0, Next::ValueOrEnd),
            b'"' => self.string()?,
            b't' => self.literal(b"true")?,
            b'f' => self.literal(b"false")?,
            b'n' => self.literal(b"null")?,
            _ => self.number()?,
        }
        listener.scalar(self.depth, &self.bytes[start..self.at]);
        Ok(Next::CommaOrEnd)
    }

    fn open(&mut self, object: u64, next: Next) -> Result<Next, Stop> {
        if self.depth == self.limits.depth {
            return Err(Stop::Depth);
        }
        self.at += 1;
        self.depth += 1;
        self.objects = self.objects << 1 | object;
        Ok(next)
    }

    fn close(&mut self) -> Next {
        self.at += 1;
        self.depth -= 1;
        self.objects >>= 1;
        Next::CommaOrEnd
    }

    fn string(&mut self) -> Result<(), Stop> {
        self.expect(b'"')?;
        loop {
            self.at += plain_run(&self.bytes[self.at..]);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.escape()?,
                _ => return self.wrong(),
            }
        }
    }

    fn escape(&mut self) -> Result<(), Stop> {
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.peek().is_some_and(|b| b.is_ascii_hexdigit()) {
                        return self.wrong();
                    }
                    self.at += 1;
                }
            }
            _ => return self.wrong(),
        }
        Ok(())
    }

    fn literal(&mut self, word: &[u8]) -> Result<(), Stop> {
        word.iter().try_for_each(|byte| self.expect(*byte))
    }

    fn number(&mut self) -> Result<(), Stop> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    /// One digit or more.
    fn digits(&mut self) -> Result<(), Stop> {
        let count = self.bytes[self.at..]
            .iter()
            .take_while(|b| b.is_ascii_digit())
            .count();
        self.at += count;
        if count == 0 { self.wrong() } else { Ok(()) }
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn expect(&mut self, byte: u8) -> Result<(), Stop> {
        if self.peek() == Some(byte) {
            self.at += 1;
            Ok(())
        } else {
            self.wrong()
        }
    }

    fn wrong<T>(&self) -> Result<T, Stop> {
        Err(Stop::Grammar(self.at))
    }
}

/// How many bytes stand before the first quote, backslash or control character: eight at a time,
/// because contents are long and most of a frame.
fn plain_run(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = ONES << 7;
    // The high bit of each byte that is below `n`; right up to the first one, which is all we ask.
    let below = |word: u64, n: u64| word.wrapping_sub(ONES * n) & !word & HIGH;
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let quote = below(word ^ (ONES * u64::from(b'"')), 1);
        let backslash = below(word ^ (ONES * u64::from(b'\\')), 1);
        let hits = quote | backslash | below(word, 0x20);
        if hits != 0 {
            return index * 8 + hits.trailing_zeros() as usize / 8;
        }
    }
    let plain = |b: &&u8| **b >= 0x20 && **b != b'"' && **b != b'\\';
    words.len() * 8 + rest.iter().take_while(plain).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Deaf;

    impl<'a> Listener<'a> for Deaf {
        fn key(&mut self, _: usize, _: &'a [u8]) {}
        fn scalar(&mut self, _: usize, _: &'a [u8]) {}
    }

    fn check(text: &str) -> Result<(), Stop> {
        walk(
            text,
            Limits {
                depth: 4,
                values: 8,
            },
            &mut Deaf,
        )
    }

    #[test]
    fn every_byte_that_ends_a_plain_run_is_found_at_every_place() {
        for place in 0..40 {
            for byte in 0..=u8::MAX {
                let mut bytes = vec![0xc3_u8; 40];
                bytes[place] = byte;
                let ends = byte < 0x20 || byte == b'"' || byte == b'\\';
                let expected = if ends { place } else { 40 };
                assert_eq!(plain_run(&bytes), expected, "byte {byte} at {place}");
            }
        }
    }

    #[test]
    fn json_is_taken_and_nothing_else() {
        for good in [
            "1",
            " [ ] ",
            "{}",
            "[{},[]]",
            "-0.5e+10",
            "\"\\u00e9\\n\"",
            "{\"a\":[1,2],\"b\":null}",
            "[true,false]",
            "0E0",
            "\"\u{7f}\u{2028}\"",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            " ",
            "[",
            "]",
            "{",
            "}",
            "[1,]",
            "[,1]",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{1:2}",
            "01",
            "-",
            "1.",
            ".5",
            "1e",
            "+1",
            "tru",
            "truex",
            "nul",
            "\"",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\t\"",
            "1 2",
            "[1}",
            "{\"a\":1]",
            "\u{feff}1",
            "1\0",
            "NaN",
            "'a'",
            "[1 2]",
            "//\n1",
        ] {
            assert!(matches!(check(bad), Err(Stop::Grammar(_))), "{bad:?}");
        }
    }

    #[test]
    fn limits_are_inclusive_and_stop_at_once() {
        assert_eq!(check("[[[[]]]]"), Ok(()));
        assert_eq!(check("[[[[[ no JSON"), Err(Stop::Depth));
        assert_eq!(check("[1,2,3,4,5,6,7]"), Ok(()));
        assert_eq!(check("[1,2,3,4,5,6,7,8 no JSON"), Err(Stop::Values));
    }
}
