//! Points in time as rows have them: `2026-01-31T23:59:59.999Z`, back to milliseconds since 1970.

/// Reads an ISO 8601 time in UTC with a `Z`; seconds may have a fraction, the year more than four digits.
#[must_use]
pub fn parse_iso8601(text: &str) -> Option<u64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let mut date = date.rsplitn(3, '-');
    let (day, month, year) = (
        number(date.next()?)?,
        number(date.next()?)?,
        number(date.next()?.trim_start_matches('+'))?,
    );
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let mut time = time.splitn(3, ':');
    let (hour, minute, second) = (
        number(time.next()?)?,
        number(time.next()?)?,
        number(time.next()?)?,
    );
    let in_range = (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second < 61;
    if !in_range || !(1970..=MAX_YEAR).contains(&year) {
        return None;
    }
    let days = days_since_1970(year, month, day)?;
    Some(((days * 24 + hour) * 60 + minute) * 60_000 + second * 1000 + milliseconds(fraction)?)
}

/// Far behind what JavaScript can date, and far from any overflow.
const MAX_YEAR: u64 = 500_000_000;

fn number(digits: &str) -> Option<u64> {
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().ok())?
}

fn milliseconds(fraction: &str) -> Option<u64> {
    number(fraction)?;
    let digits: Vec<u64> = fraction
        .bytes()
        .take(3)
        .map(|digit| u64::from(digit - b'0'))
        .collect();
    Some(
        digits
            .iter()
            .zip([100, 10, 1])
            .map(|(digit, scale)| digit * scale)
            .sum(),
    )
}

/// Days of the civil calendar. Years begin in March here, so that the leap day is the last.
fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let (era, of_era) = (year / 400, year % 400);
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let day_of_era = of_era * 365 + of_era / 4 - of_era / 100 + day_of_year;
    (era * 146_097 + day_of_era).checked_sub(719_468)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tyo_mq_protocol::write_iso8601;

    use super::*;

    fn check(text: &str, expected: Option<u64>) {
        assert_eq!(parse_iso8601(text), expected, "{text}");
    }

    #[test]
    fn times() {
        check("1970-01-01T00:00:00.000Z", Some(0));
        check("2000-02-29T00:00:00.000Z", Some(951_782_400_000));
        check("2026-11-29T18:06:09.147Z", Some(1_795_975_569_147));
        check("2026-11-29T18:06:09Z", Some(1_795_975_569_000));
        check("2026-11-29T18:06:09.1479Z", Some(1_795_975_569_147));
        check("+010000-01-01T00:00:00.000Z", Some(253_402_300_800_000));
        for text in [
            "",
            "Z",
            "T",
            "2026-11-29",
            "2026-13-29T18:06:09.147Z",
            "2026-11-29T18:06:09.147",
            "-1-1-1T0:0:0Z",
            "1969-12-31T23:59:59.999Z",
            "2026-11-29T18:06:09.Z",
            "999999999999-01-01T00:00:00Z",
        ] {
            check(text, None);
        }
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(epoch_ms in 0u64..1_000_000_000_000_000) {
            let mut out = Vec::new();
            write_iso8601(&mut out, epoch_ms);
            prop_assert_eq!(parse_iso8601(std::str::from_utf8(&out).unwrap()), Some(epoch_ms));
        }

        #[test]
        fn no_text_is_too_odd(text in "\\PC{0,40}") {
            let _ = parse_iso8601(&text);
        }
    }
}
