//! Reading, writing and the signed form.

use proptest::prelude::*;

use super::*;

fn check_canonical(json: &str, expected: &str) {
    let mut out = Vec::new();
    Value::parse(json)
        .unwrap()
        .write_canonical(&mut out, Style::JavaScript);
    assert_eq!(String::from_utf8(out).unwrap(), expected, "{json}");
}

fn check_html(json: &str, expected: &str) {
    let mut out = Vec::new();
    Value::parse(json)
        .unwrap()
        .write_canonical(&mut out, Style::HtmlEscaped);
    assert_eq!(String::from_utf8(out).unwrap(), expected, "{json}");
}

#[test]
fn canonical_numbers() {
    for (json, expected) in [
        ("1.0", "1"),
        ("-0", "0"),
        ("0.1", "0.1"),
        ("1e21", "1e+21"),
        ("1e20", "100000000000000000000"),
        ("123456789012345680000", "123456789012345680000"),
        ("1E-7", "1e-7"),
        ("0.000001", "0.000001"),
        ("1.50", "1.5"),
        ("12345678901234567890", "12345678901234567000"),
        ("1.5e300", "1.5e+300"),
        ("-1.25e-9", "-1.25e-9"),
        ("5e-324", "5e-324"),
        ("1e400", "null"),
        ("-1e400", "null"),
        ("123.456", "123.456"),
    ] {
        check_canonical(json, expected);
    }
}

#[test]
fn canonical_objects() {
    check_canonical(
        r#" { "b" : 2 , "a" : [ null , true ] } "#,
        r#"{"a":[null,true],"b":2}"#,
    );
    check_canonical(r#"{"10":1,"9":2}"#, r#"{"10":1,"9":2}"#);
    check_canonical(r#"{"a":1,"a":{"x":2},"a":3}"#, r#"{"a":3}"#);
    check_canonical(r#"{"__proto__":1}"#, r#"{"__proto__":1}"#);
    check_canonical("{\"\u{ffee}\":1,\"😀\":2}", "{\"😀\":2,\"\u{ffee}\":1}");
    check_canonical(r#"{"\ud83d\ude00":1}"#, "{\"😀\":1}");
    check_canonical(
        r#"["\ud800","\udc00\ud800","\ud83dx"]"#,
        r#"["\ud800","\udc00\ud800","\ud83dx"]"#,
    );
    check_canonical(
        r#""\u0001\b\t\n\f\r\u001f\"\\\u007f\/<&""#,
        "\"\\u0001\\b\\t\\n\\f\\r\\u001f\\\"\\\\\u{7f}/<&\"",
    );
    check_html(
        r#"{"b":"<>&\u2028\u2029/","a":1}"#,
        r#"{"a":1,"b":"\u003c\u003e\u0026\u2028\u2029/"}"#,
    );
    check_html("{\"\u{ffee}\":1,\"😀\":2}", "{\"\u{ffee}\":1,\"😀\":2}");
}

#[test]
fn no_json() {
    for text in [
        "",
        " ",
        "{",
        "[1,]",
        "{,}",
        "{\"a\":1,}",
        "01",
        "1.",
        ".5",
        "+1",
        "-",
        "1e",
        "tru",
        "nulll",
        "'a'",
        "\"a",
        "\"\\x\"",
        "\"\\u12g4\"",
        "\"\u{1}\"",
        "NaN",
        "Infinity",
        "1 2",
        "{\"a\" 1}",
        "{1:2}",
        "\u{feff}1",
        "\"\\u+123\"",
    ] {
        assert!(Value::parse(text).is_err(), "{text}");
    }
}

#[test]
fn depth_is_bounded() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(Value::parse(&nested(MAX_DEPTH)).is_ok());
    assert_eq!(
        Value::parse(&nested(MAX_DEPTH + 1)),
        Err(JsonError::TooDeep)
    );
    assert!(Value::parse(&"[".repeat(1_000_000)).is_err());
    assert!(Value::parse(&"{\"a\":".repeat(1_000_000)).is_err());
}

#[test]
fn text_comes_back() {
    for json in [
        r#"{"b":12345678901234567890,"a":[1e400,-0,0.10],"\ud800":"\udfff"}"#,
        r#"{"nested":{"list":[],"empty":{}}}"#,
    ] {
        assert_eq!(Value::parse(json).unwrap().to_json(), json);
        let pretty = Value::parse(json).unwrap().to_pretty_json();
        assert_eq!(Value::parse(&pretty).unwrap().to_json(), json);
    }
    assert_eq!(
        Value::parse(r#"{"a":[1,{}]}"#).unwrap().to_pretty_json(),
        "{\n  \"a\": [\n    1,\n    {}\n  ]\n}"
    );
}

#[test]
fn values_do_not_show_what_they_hold() {
    let value = Value::parse(r#"{"token":"secret-1"}"#).unwrap();
    assert!(!format!("{value:?}{:?}", value.as_object()).contains("secret"));
}

proptest! {
    #[test]
    fn any_text(text in ".*") {
        let _ = Value::parse(&text);
        let json = serde_json::to_string(&text).unwrap();
        let value = Value::parse(&json).unwrap();
        prop_assert_eq!(value.as_str(), Some(&*text));
        prop_assert_eq!(value.to_json(), json);
    }

    #[test]
    fn mostly_json(text in r#"[\[\]{}",:0-9eE+.a\\u-]{0,40}"#) {
        let ours = Value::parse(&text).is_ok();
        // What serde_json refuses besides: lone surrogates and numbers that no float can hold.
        if serde_json::from_str::<serde_json::Value>(&text).is_ok() {
            prop_assert!(ours, "{}", text);
        } else if !text.contains('u') && !text.contains(['e', 'E']) {
            prop_assert!(!ours, "{}", text);
        }
    }

    #[test]
    fn numbers_read_back(number in any::<f64>()) {
        let mut out = Vec::new();
        write_number(&mut out, number);
        let text = String::from_utf8(out).unwrap();
        if number.is_finite() {
            prop_assert_eq!(text.parse::<f64>().unwrap(), number);
        } else {
            prop_assert_eq!(text, "null");
        }
    }
}
