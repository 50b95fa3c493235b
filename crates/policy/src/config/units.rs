//! Durations, sizes and dates as people write them.

use std::time::UNIX_EPOCH;

use proto::Timestamp;

/// Milliseconds of `30s`, `15m`, `1h`, `7d`, `1h 30m`.
pub(crate) fn duration(text: &str) -> Result<u64, &'static str> {
    const RULE: &str = "a duration is written as \"500ms\", \"30s\", \"15m\", \"1h\" or \"7d\"";
    let duration = humantime::parse_duration(text).map_err(|_| RULE)?;
    if duration.subsec_nanos() % 1_000_000 != 0 {
        return Err("the shortest unit of a duration is the millisecond, \"1ms\"");
    }
    u64::try_from(duration.as_millis()).map_err(|_| RULE)
}

/// Milliseconds as [`duration`] reads them, in the largest unit that is exact.
pub(crate) fn duration_text(millis: u64) -> String {
    for (unit, length) in [
        ("d", 86_400_000),
        ("h", 3_600_000),
        ("m", 60_000),
        ("s", 1000),
    ] {
        if millis >= length && millis.is_multiple_of(length) {
            return format!("{}{unit}", millis / length);
        }
    }
    format!("{millis}ms")
}

const UNITS: [(&str, u32); 4] = [("GiB", 30), ("MiB", 20), ("KiB", 10), ("B", 0)];

/// Bytes of `512B`, `64KiB`, `8MiB`, `1GiB`.
pub(crate) fn size(text: &str) -> Option<u64> {
    let (number, shift) = UNITS
        .iter()
        .find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, *shift)))?;
    let number = number.strip_suffix(' ').unwrap_or(number);
    if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// Bytes as [`size`] reads them, in the largest unit that is exact.
pub(crate) fn size_text(bytes: u64) -> String {
    for (unit, shift) in UNITS {
        if bytes >= 1 << shift && bytes.trailing_zeros() >= shift {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    format!("{bytes}B")
}

/// A moment of RFC 3339, in UTC.
pub(crate) fn date(text: &str) -> Result<Timestamp, &'static str> {
    const RULE: &str = "a date is written in UTC as \"2027-06-30T00:00:00Z\"";
    let time = humantime::parse_rfc3339(text).map_err(|_| RULE)?;
    let since = time.duration_since(UNIX_EPOCH).map_err(|_| RULE)?;
    let millis = u64::try_from(since.as_millis()).map_err(|_| RULE)?;
    Timestamp::from_millis(millis).map_err(|_| RULE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_milliseconds() {
        for (text, millis) in [
            ("30s", 30_000),
            ("15m", 900_000),
            ("1h", 3_600_000),
            ("7d", 604_800_000),
            ("1ms", 1),
            ("1h 30m", 5_400_000),
            ("0s", 0),
        ] {
            assert_eq!(duration(text), Ok(millis), "{text}");
        }
        for bad in ["", "30", "s", "-1s", "1us", "9999999999999999y"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn durations_come_back() {
        for text in ["3650d", "36h", "90m", "61s", "1001ms", "0ms"] {
            assert_eq!(duration_text(duration(text).unwrap()), text);
        }
    }

    #[test]
    fn sizes_are_bytes_and_come_back() {
        for (text, bytes) in [
            ("0B", 0),
            ("512B", 512),
            ("64KiB", 65_536),
            ("8MiB", 8 << 20),
            ("1GiB", 1 << 30),
        ] {
            assert_eq!(size(text), Some(bytes), "{text}");
            assert_eq!(size_text(bytes), text);
        }
        assert_eq!(size("8 MiB"), Some(8 << 20));
        for bad in [
            "",
            "8",
            "MiB",
            "8MB",
            "8mib",
            "-8MiB",
            "1.5MiB",
            "+8MiB",
            "99999999999GiB",
        ] {
            assert_eq!(size(bad), None, "{bad}");
        }
    }

    #[test]
    fn dates_are_utc() {
        assert_eq!(
            date("1970-01-01T00:00:01Z").map(Timestamp::millis),
            Ok(1000)
        );
        for bad in [
            "",
            "2027-06-30",
            "2027-06-30T00:00:00",
            "2027-06-30T00:00:00+02:00",
            "1969-12-31T00:00:00Z",
        ] {
            assert!(date(bad).is_err(), "{bad}");
        }
    }
}
