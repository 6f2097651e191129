//! What the user sees: tables that fit the terminal, or the broker's answer as JSON. Nothing that a stranger named can drive the terminal.

use std::io::{self, IsTerminal, Write};

use comfy_table::{ContentArrangement, Table, presets};
use rustix::termios::tcgetwinsize;
use tyo_mq_auth::json::{Object, Value};
use tyo_mq_protocol::write_iso8601;

use crate::exit::Failure;

/// Where results go and in which form.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    /// As JSON: one document on standard output, also for a failure.
    pub(crate) json: bool,
}

impl Output {
    /// Shows an answer: as JSON, or as `view` says.
    pub(crate) fn answer(self, answer: &Object, view: impl FnOnce(&Object) -> String) {
        if self.json {
            print(&Value::from(answer.clone()).to_pretty_json());
        } else {
            print(&view(answer));
        }
    }

    /// Shows a failure.
    pub(crate) fn failure(self, failure: &Failure) {
        if self.json {
            print(&Value::from(failure.to_object()).to_pretty_json());
        } else {
            note(&format!(
                "tyo-mq-manager: {}",
                printable(&failure.to_string())
            ));
        }
    }
}

/// Writes to standard output.
pub(crate) fn print(text: &str) {
    let mut out = io::stdout().lock();
    let text = text.trim_end();
    // A reader that went away, such as `head`, wants no more.
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// Says something beside the result.
pub(crate) fn note(text: &str) {
    // Where nobody reads it, nobody misses it.
    let _ = writeln!(io::stderr(), "{text}");
}

/// A table; `nothing` says what it means when there are no rows.
pub(crate) fn table(headers: &[&str], rows: Vec<Vec<String>>, nothing: &str) -> String {
    if rows.is_empty() {
        return nothing.to_owned();
    }
    table_in(terminal_columns(), headers, rows)
}

/// A table of so many columns; where they are too few, each row's fields below each other, so that ids stay in one piece.
fn table_in(columns: Option<u16>, headers: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = plain(columns);
    table.set_header(headers.iter().map(|header| header.to_uppercase()));
    table.add_rows(&rows);
    let widths = table.column_max_content_widths();
    let needed: u32 = widths.iter().map(|width| u32::from(*width) + 2).sum();
    if columns.is_none_or(|columns| needed <= u32::from(columns)) {
        return lines(&table);
    }
    let records: Vec<String> = rows
        .into_iter()
        .map(|row| {
            let named: Vec<_> = headers.iter().copied().zip(row).collect();
            fields_in(columns, &named)
        })
        .collect();
    records.join("\n\n")
}

/// Names and values, one a line.
pub(crate) fn fields(fields: &[(&str, String)]) -> String {
    fields_in(terminal_columns(), fields)
}

fn fields_in(columns: Option<u16>, fields: &[(&str, String)]) -> String {
    let mut table = plain(columns);
    for (name, value) in fields {
        table.add_row([*name, value.as_str()]);
    }
    lines(&table)
}

fn plain(columns: Option<u16>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    match columns {
        Some(columns) => {
            table.set_content_arrangement(ContentArrangement::Dynamic);
            table.set_width(columns);
        }
        None => {
            table.set_content_arrangement(ContentArrangement::Disabled);
        }
    }
    table
}

/// The columns of the terminal; none where there is no terminal, or one that does not tell.
fn terminal_columns() -> Option<u16> {
    let out = io::stdout();
    let size = out.is_terminal().then(|| tcgetwinsize(&out).ok())??;
    (size.ws_col > 0).then_some(size.ws_col.max(MIN_COLUMNS))
}

/// The table's lines, without the blanks at their ends and the one before each.
fn lines(table: &Table) -> String {
    let lines: Vec<String> = table
        .lines()
        .map(|line| {
            line.strip_prefix(' ')
                .unwrap_or(&line)
                .trim_end()
                .to_owned()
        })
        .collect();
    lines.join("\n")
}

/// A value for people: text as it is, yes and no, `-` for what is not there, anything else as JSON.
pub(crate) fn show(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "-".to_owned(),
        Some(Value::Bool(true)) => "yes".to_owned(),
        Some(Value::Bool(false)) => "no".to_owned(),
        Some(Value::Text(text)) => printable(&text.to_lossy()),
        Some(other) => printable(&other.to_json()),
    }
}

/// A field for people. A number that is a point in time, as its name says, is shown as one.
pub(crate) fn field(object: &Object, name: &str) -> String {
    let value = object.get(name);
    let at_ms = value
        .filter(|_| name.ends_with("_at"))
        .and_then(Value::as_number)
        .filter(|at_ms| (0.0..MAX_TIME_MS).contains(at_ms));
    let Some(at_ms) = at_ms else {
        return show(value);
    };
    let mut shown = Vec::new();
    write_iso8601(&mut shown, at_ms as u64);
    String::from_utf8_lossy(&shown).into_owned()
}

/// Names and values of all fields, one a line.
pub(crate) fn all_fields(object: &Object) -> String {
    let shown: Vec<(String, String)> = object
        .iter()
        .map(|(name, _)| {
            let name = name.to_lossy();
            let value = field(object, &name);
            (printable(&name), value)
        })
        .collect();
    let shown: Vec<(&str, String)> = shown
        .iter()
        .map(|(name, value)| (name.as_str(), value.clone()))
        .collect();
    fields(&shown)
}

/// The objects of a list in an answer.
pub(crate) fn objects<'a>(answer: &'a Object, name: &str) -> Vec<&'a Object> {
    let list = answer.get(name).and_then(Value::as_list).unwrap_or(&[]);
    list.iter().filter_map(Value::as_object).collect()
}

/// Text with escapes for what a terminal would take for orders, or what would turn the reading direction.
pub(crate) fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || TURNERS.contains(&c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

/// Characters that turn the direction of what follows, or are not seen.
const TURNERS: [char; 13] = [
    '\u{200b}', '\u{200e}', '\u{200f}', '\u{2028}', '\u{2029}', '\u{202a}', '\u{202b}', '\u{202c}',
    '\u{202d}', '\u{202e}', '\u{2066}', '\u{2067}', '\u{feff}',
];

/// The end of the year 9999, in milliseconds since 1970.
const MAX_TIME_MS: f64 = 253_402_300_800_000.0;

/// The narrowest terminal that tables are made for.
const MIN_COLUMNS: u16 = 40;

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, expected: &str) {
        assert_eq!(show(Some(&Value::parse(json).unwrap())), expected);
    }

    #[test]
    fn values() {
        check("null", "-");
        check("true", "yes");
        check("0.10", "0.10");
        check(r#""é 🚀""#, "é 🚀");
        check(r#""\u001b[2J\u202ex\n""#, r"\u{1b}[2J\u{202e}x\u{a}");
        check(r#"{"a":[1]}"#, r#"{"a":[1]}"#);
        assert_eq!(show(None), "-");
    }

    #[test]
    fn times() {
        let entry = Object::new()
            .with("expires_at", 1_760_000_000_123_u64)
            .with("created_at", "yesterday")
            .with("n", 1_760_000_000_123_u64);
        assert_eq!(field(&entry, "expires_at"), "2025-10-09T08:53:20.123Z");
        assert_eq!(field(&entry, "created_at"), "yesterday");
        assert_eq!(field(&entry, "n"), "1760000000123");
        assert_eq!(field(&entry, "gone_at"), "-");
    }

    #[test]
    fn tables() {
        let rows = vec![
            vec!["a".to_owned(), "1".to_owned()],
            vec!["long name".to_owned(), "-".to_owned()],
        ];
        let shown = table(&["name", "n"], rows, "none");
        assert_eq!(shown, "NAME       N\na          1\nlong name  -");
        assert_eq!(table(&["name"], Vec::new(), "none"), "none");
    }

    #[track_caller]
    fn check_in(columns: u16, expected: &str) {
        let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        let rows = vec![
            row(["authreq-mx245luw", "shop", "both", "till-1"]),
            row([
                "authreq-mx245lux",
                "lab",
                "consumer",
                "an-id-of-some-length",
            ]),
        ];
        let shown = table_in(Some(columns), &["id", "realm", "role", "client"], rows);
        assert_eq!(shown, expected);
        let width = shown.lines().map(str::len).max();
        assert!(width.unwrap() <= usize::from(columns), "{shown}");
    }

    #[test]
    fn narrow_tables() {
        check_in(
            80,
            "ID                REALM  ROLE      CLIENT\n\
             authreq-mx245luw  shop   both      till-1\n\
             authreq-mx245lux  lab    consumer  an-id-of-some-length",
        );
        check_in(
            56,
            "id      authreq-mx245luw\n\
             realm   shop\n\
             role    both\n\
             client  till-1\n\n\
             id      authreq-mx245lux\n\
             realm   lab\n\
             role    consumer\n\
             client  an-id-of-some-length",
        );
    }
}
