//! Small inputs for the token scanner.

use super::*;

#[track_caller]
fn functions(text: &str, expected: &[(&str, usize)]) {
    let found = scan(text, false).unwrap().functions;
    let found: Vec<(&str, usize)> = found
        .iter()
        .map(|(name, lines)| (name.as_str(), *lines))
        .collect();
    assert_eq!(found, expected);
}

#[track_caller]
fn sleeps(text: &str, is_test: bool, expected: &[usize]) {
    assert_eq!(scan(text, is_test).unwrap().sleeps, expected);
}

#[track_caller]
fn ignored(text: &str, expected: &[usize]) {
    assert_eq!(scan(text, false).unwrap().ignored, expected);
}

#[test]
fn a_body_counts_its_lines_of_code() {
    functions("fn a() {}", &[("a", 0)]);
    functions(
        "fn a() {\n    // why\n\n    b();\n    /// doc\n    fn c() {}\n}",
        &[("a", 2), ("c", 0)],
    );
    functions(
        "fn a(\n    x: u8,\n) -> u8\nwhere\n    u8: Copy,\n{\n    x\n}",
        &[("a", 1)],
    );
    functions("fn a() { b(\"{\n{{\n\"); }", &[("a", 3)]);
}

#[test]
fn methods_count_and_declarations_do_not() {
    functions("trait T { fn a(&self); fn b(&self) { } }", &[("b", 0)]);
    functions("impl S { pub async fn a(&self) { x\n} }", &[("a", 1)]);
    functions("type F = fn(u8) -> u8; static A: F = |x| {\nx\n};", &[]);
}

#[test]
fn test_code_has_no_function_lengths() {
    functions("#[cfg(test)] mod tests { fn a() { x } }", &[]);
    functions("#[test]\nfn a() { x }\nfn b() { x }", &[("b", 1)]);
    functions("#[cfg(not(test))] fn a() { x }", &[("a", 1)]);
    functions("#[cfg(test)] use x; fn a() { x }", &[("a", 1)]);
}

#[test]
fn the_test_module_has_a_line() {
    assert_eq!(
        scan("fn a() {}\n\n#[cfg(test)]\nmod tests;\n", false)
            .unwrap()
            .tests_start,
        Some(3)
    );
    assert_eq!(
        scan("#[cfg(test)]\nuse x;\nmod a;\n", false)
            .unwrap()
            .tests_start,
        None
    );
}

#[test]
fn sleeps_are_found_in_test_code_only() {
    sleeps("fn a() { std::thread::sleep(x); }", false, &[]);
    sleeps("fn a() { std::thread::sleep(x); }", true, &[1]);
    sleeps(
        "#[cfg(test)]\nmod tests {\n fn a() { tokio::time::sleep(x).await; } }",
        false,
        &[3],
    );
    sleeps(
        "#[tokio::test]\nasync fn a() {\n select! { _ = sleep(x) => {} }\n}",
        false,
        &[3],
    );
    sleeps(
        "#[tokio::test(start_paused = true)]\nasync fn a() { sleep(x) }",
        false,
        &[2],
    );
    sleeps(
        "fn sleep(x: u8) {} // sleep(1)\nconst A: &str = \"sleep(1)\";",
        true,
        &[],
    );
}

#[test]
fn ignored_tests_and_examples_are_found() {
    ignored("#[test]\n#[ignore]\nfn a() {}", &[2]);
    ignored("#[test]\n#[ignore = \"slow\"]\nfn a() {}", &[2]);
    ignored("#[cfg_attr(windows, ignore)]\n#[test]\nfn a() {}", &[1]);
    ignored("/// ```ignore\n/// x\n/// ```\nfn a() {}", &[1]);
    ignored("#[must_use]\nfn ignore() {}", &[]);
}

#[test]
fn what_is_no_rust_is_an_error() {
    assert!(scan("fn a() {", false).is_err());
}
