//! Spans of time as clients write them, in milliseconds: a message's lifetime, and the shorter waits of acks and retries.

use crate::json;

/// How long a message may wait in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ttl {
    /// Given as null: the store's default, not the producer's.
    StoreDefault,
    /// Never expires.
    Never,
    /// Expires after so many milliseconds; 0 at once.
    Millis(u64),
}

/// The longest lifetime, about a hundred years; longer ones are cut to it.
pub const MAX_TTL_MS: u64 = 100 * 365 * DAY_MS;

/// The longest wait for an ack or between attempts; longer ones are cut to it.
pub const MAX_DURATION_MS: u64 = 365 * DAY_MS;

const SECOND_MS: u64 = 1000;
const MINUTE_MS: u64 = 60 * SECOND_MS;
const HOUR_MS: u64 = 60 * MINUTE_MS;
const DAY_MS: u64 = 24 * HOUR_MS;

/// Reads a lifetime from a JSON value: a number of seconds (negative: never), a string such as `"250ms"`, `"90s"`,
/// `"15m"`, `"2h"`, `"7d"`, `"1.5"` or `"never"`, `true` (one second) or null. None when it cannot be read.
#[must_use]
pub fn parse_ttl(raw: &str) -> Option<Ttl> {
    match raw {
        "null" => return Some(Ttl::StoreDefault),
        "true" => return Some(Ttl::Millis(SECOND_MS)),
        _ => {}
    }
    if let Some(seconds) = json::number(raw) {
        return Some(ttl_from_seconds(seconds));
    }
    let text = json::string(raw)?;
    let text = text.trim();
    if text.eq_ignore_ascii_case("never") {
        return Some(Ttl::Never);
    }
    if let Some(seconds) = plain_number(text.strip_prefix('-').unwrap_or(text)) {
        return Some(ttl_from_seconds(if text.starts_with('-') {
            -seconds
        } else {
            seconds
        }));
    }
    let (value, unit) = split_unit(text)?;
    let unit_ms = match unit {
        Unit::Millisecond => 1,
        Unit::Second => SECOND_MS,
        Unit::Minute => MINUTE_MS,
        Unit::Hour => HOUR_MS,
        Unit::Day => DAY_MS,
    };
    Some(Ttl::Millis(to_millis(value, unit_ms, MAX_TTL_MS)))
}

/// Reads a wait from a JSON value: a number of seconds, or a string with `ms`, `s`, `m` or no unit (seconds).
/// None when it cannot be read; the default applies then.
#[must_use]
pub fn parse_duration_ms(raw: &str) -> Option<u64> {
    if let Some(seconds) = json::number(raw) {
        return (seconds >= 0.0).then(|| to_millis(seconds, SECOND_MS, MAX_DURATION_MS));
    }
    let text = json::string(raw)?;
    let text = text.trim();
    if let Some(seconds) = decimal(text) {
        return Some(to_millis(seconds, SECOND_MS, MAX_DURATION_MS));
    }
    let (value, unit) = split_unit(text)?;
    let unit_ms = match unit {
        Unit::Millisecond => 1,
        Unit::Second => SECOND_MS,
        Unit::Minute => MINUTE_MS,
        Unit::Hour | Unit::Day => return None,
    };
    Some(to_millis(value, unit_ms, MAX_DURATION_MS))
}

enum Unit {
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
}

fn ttl_from_seconds(seconds: f64) -> Ttl {
    if seconds < 0.0 {
        Ttl::Never
    } else {
        Ttl::Millis(to_millis(seconds, SECOND_MS, MAX_TTL_MS))
    }
}

fn to_millis(value: f64, unit_ms: u64, max: u64) -> u64 {
    // The cast saturates, so that not even an infinite value can overflow.
    ((value * unit_ms as f64).round() as u64).min(max)
}

fn split_unit(text: &str) -> Option<(f64, Unit)> {
    let at = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (digits, unit) = text.split_at(at);
    let unit = match unit.to_ascii_lowercase().as_str() {
        "ms" => Unit::Millisecond,
        "s" => Unit::Second,
        "m" => Unit::Minute,
        "h" => Unit::Hour,
        "d" => Unit::Day,
        _ => return None,
    };
    Some((decimal(digits)?, unit))
}

/// `12`, `1.5`; nothing else.
fn decimal(text: &str) -> Option<f64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if digits(whole) && digits(fraction) {
        text.parse().ok()
    } else {
        None
    }
}

/// `12`, `1.5`, `1e3`: what JavaScript reads as a number, signs and other bases apart.
fn plain_number(text: &str) -> Option<f64> {
    let number = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    (number && text.starts_with(|c: char| c.is_ascii_digit()))
        .then(|| text.parse().ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check_ttl(raw: &str, expected: Option<Ttl>) {
        assert_eq!(parse_ttl(raw), expected, "{raw}");
    }

    fn check_duration(raw: &str, expected: Option<u64>) {
        assert_eq!(parse_duration_ms(raw), expected, "{raw}");
    }

    #[test]
    fn lifetimes_in_seconds() {
        let ms = |ms| Some(Ttl::Millis(ms));
        check_ttl("5", ms(5000));
        check_ttl(r#""5""#, ms(5000));
        check_ttl("1.5", ms(1500));
        check_ttl("1e3", ms(1_000_000));
        check_ttl("true", ms(1000));
        check_ttl("0", ms(0));
        check_ttl(r#""0""#, ms(0));
        check_ttl("-0", ms(0));
        check_ttl("1e400", ms(MAX_TTL_MS));
    }

    #[test]
    fn lifetimes_without_end() {
        for raw in [
            "-1",
            "-0.5",
            r#""-1""#,
            r#""never""#,
            r#"" Never ""#,
            "-1e400",
        ] {
            check_ttl(raw, Some(Ttl::Never));
        }
        check_ttl("null", Some(Ttl::StoreDefault));
    }

    #[test]
    fn lifetimes_with_units() {
        for (raw, expected) in [
            ("250ms", 250),
            ("90s", 90_000),
            ("15m", 900_000),
            ("2h", 7_200_000),
            ("7d", 604_800_000),
            (" 1.5H ", 5_400_000),
            ("99999999999999999999999d", MAX_TTL_MS),
        ] {
            check_ttl(&format!("\"{raw}\""), Some(Ttl::Millis(expected)));
        }
    }

    #[test]
    fn unreadable_lifetimes() {
        for raw in [
            "false",
            "[]",
            "{}",
            r#""""#,
            r#""abc""#,
            r#""5x""#,
            r#""5 s""#,
            r#""-5s""#,
            r#""1h30m""#,
            r#"".5s""#,
            r#""NaN""#,
            r#""inf""#,
            r#""--5""#,
            r#""\ud800""#,
            r#""５s""#,
        ] {
            check_ttl(raw, None);
        }
    }

    #[test]
    fn waits() {
        for (raw, expected) in [
            ("30", 30_000),
            ("0.2", 200),
            ("0", 0),
            (r#""200ms""#, 200),
            (r#"" 2S ""#, 2000),
            (r#""1.5m""#, 90_000),
            (r#""7""#, 7000),
            ("1e400", MAX_DURATION_MS),
        ] {
            check_duration(raw, Some(expected));
        }
        for raw in [
            "-1",
            r#""-1""#,
            r#""2h""#,
            r#""1d""#,
            "null",
            "true",
            "{}",
            r#""""#,
            r#""1e3""#,
            r#""ms""#,
            r#""1..5s""#,
        ] {
            check_duration(raw, None);
        }
    }

    proptest! {
        #[test]
        fn any_text(text in ".*") {
            let raw = serde_json::to_string(&text).unwrap();
            let _ = (parse_ttl(&raw), parse_duration_ms(&raw), parse_ttl(&text), parse_duration_ms(&text));
        }

        #[test]
        fn whole_seconds(seconds in 0u64..1_000_000) {
            prop_assert_eq!(parse_ttl(&seconds.to_string()), Some(Ttl::Millis(seconds * 1000)));
            prop_assert_eq!(parse_duration_ms(&format!("\"{seconds}s\"")), Some(seconds * 1000));
        }
    }
}
