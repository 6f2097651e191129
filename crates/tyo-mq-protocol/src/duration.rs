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
