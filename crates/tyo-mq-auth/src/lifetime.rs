//! How long ephemeral realms live: lifetimes as clients write them.

use crate::json::Value;

/// The lifetime of an ephemeral realm when nobody says another, in milliseconds.
pub const DEFAULT_TTL_MS: u64 = 24 * HOUR_MS;

/// The longest lifetime; longer ones are cut to it. About a hundred years.
pub const MAX_TTL_MS: u64 = 100 * 365 * DAY_MS;

const SECOND_MS: u64 = 1000;
const MINUTE_MS: u64 = 60 * SECOND_MS;
const HOUR_MS: u64 = 60 * MINUTE_MS;
const DAY_MS: u64 = 24 * HOUR_MS;

/// Reads a lifetime: a positive number of seconds, or digits with `ms`, `s` (meant when there is none), `m`, `h` or `d`.
/// In milliseconds; none when it cannot be read or is zero.
#[must_use]
pub fn parse_ttl_ms(value: &Value) -> Option<u64> {
    let (amount, unit_ms) = match value {
        Value::Number(_) => (value.as_number()?, SECOND_MS),
        Value::Text(text) => split_unit(text.as_str()?.trim())?,
        _ => return None,
    };
    if !amount.is_finite() || amount <= 0.0 {
        return None;
    }
    // The cast saturates.
    Some(((amount * unit_ms as f64).ceil() as u64).clamp(1, MAX_TTL_MS))
}

fn split_unit(text: &str) -> Option<(f64, u64)> {
    let at = text
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(at);
    let unit_ms = match unit.to_ascii_lowercase().as_str() {
        "ms" => 1,
        "s" | "" => SECOND_MS,
        "m" => MINUTE_MS,
        "h" => HOUR_MS,
        "d" => DAY_MS,
        _ => return None,
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if all_digits(whole) && all_digits(fraction) {
        Some((digits.parse().ok()?, unit_ms))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, expected: Option<u64>) {
        assert_eq!(
            parse_ttl_ms(&Value::parse(json).unwrap()),
            expected,
            "{json}"
        );
    }

    #[test]
    fn lifetimes() {
        for (json, expected) in [
            ("1", 1000),
            ("0.5", 500),
            ("1e400", 0),
            (r#""90""#, 90_000),
            (r#""250ms""#, 250),
            (r#"" 1.5H ""#, 5_400_000),
            (r#""2h""#, 7_200_000),
            (r#""7d""#, 604_800_000),
            (r#""99999999999999999999d""#, MAX_TTL_MS),
        ] {
            check(json, (expected > 0).then_some(expected));
        }
        for json in [
            "null",
            "0",
            "-1",
            "true",
            "{}",
            r#""""#,
            r#""0""#,
            r#""0.0s""#,
            r#""1w""#,
            r#""5 m""#,
            r#""-1s""#,
            r#"".5s""#,
            r#""1e3""#,
            r#""h""#,
            r#""inf""#,
        ] {
            check(json, None);
        }
    }
}
