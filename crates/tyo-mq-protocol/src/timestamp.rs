//! Points in time as JavaScript prints them.

/// Writes milliseconds since 1970 as `2026-01-31T23:59:59.999Z`.
pub fn write_iso8601(out: &mut Vec<u8>, epoch_ms: u64) {
    let (days, ms) = (epoch_ms / DAY_MS, epoch_ms % DAY_MS);
    let (year, month, day) = civil(days);
    push(out, year, 4);
    out.push(b'-');
    push(out, month, 2);
    out.push(b'-');
    push(out, day, 2);
    out.push(b'T');
    push(out, ms / 3_600_000, 2);
    out.push(b':');
    push(out, ms / 60_000 % 60, 2);
    out.push(b':');
    push(out, ms / 1000 % 60, 2);
    out.push(b'.');
    push(out, ms % 1000, 3);
    out.push(b'Z');
}

/// Year, month and day of a number of days since 1970. Years begin in March here, so that the leap day is the last.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + DAYS_TO_1970;
    let (era, day_of_era) = (days / ERA, days % ERA);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, late) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    (era * 400 + year_of_era + late, month, day)
}

fn push(out: &mut Vec<u8>, number: u64, width: u32) {
    let mut scale = 10u64.pow(width - 1);
    while number / scale > 9 {
        scale *= 10;
    }
    while scale > 0 {
        out.push(b'0' + (number / scale % 10) as u8);
        scale /= 10;
    }
}

const DAY_MS: u64 = 86_400_000;
/// Days of four centuries.
const ERA: u64 = 146_097;
/// Days from March of year 0 to 1970.
const DAYS_TO_1970: u64 = 719_468;

#[cfg(test)]
mod tests {
    use super::*;

    fn check(epoch_ms: u64, expected: &str) {
        let mut out = Vec::new();
        write_iso8601(&mut out, epoch_ms);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn points_in_time() {
        check(0, "1970-01-01T00:00:00.000Z");
        check(951_782_400_000, "2000-02-29T00:00:00.000Z");
        check(951_868_799_999, "2000-02-29T23:59:59.999Z");
        check(1_795_975_569_147, "2026-11-29T18:06:09.147Z");
        check(4_107_542_400_000, "2100-03-01T00:00:00.000Z");
        check(253_402_300_800_000, "10000-01-01T00:00:00.000Z");
    }

    #[test]
    fn the_end_of_time() {
        let mut out = Vec::new();
        write_iso8601(&mut out, u64::MAX);
        assert!(out.ends_with(b"Z"));
    }
}
