//! Times on the command line.

use std::time::Duration;

use tyo_mq_auth::json::Value;
use tyo_mq_auth::lifetime::parse_ttl_ms;

/// Reads `500ms`, `5s`, `1m`, `2h`, `7d`, or a number of seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    parse_ttl_ms(&Value::from(text))
        .map(Duration::from_millis)
        .ok_or_else(|| "expected a time above zero, such as 500ms, 5s, 1m or 2h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected_ms: Option<u64>) {
        assert_eq!(duration(text).ok(), expected_ms.map(Duration::from_millis));
    }

    #[test]
    fn times() {
        check("500ms", Some(500));
        check("5", Some(5_000));
        check("1.5s", Some(1_500));
        check("2h", Some(7_200_000));
        for text in ["", "0", "-1", "5 m", "1w", "soon"] {
            check(text, None);
        }
    }
}
