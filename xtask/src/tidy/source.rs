//! What a Rust file looks like from its tokens: functions and their lengths, test code, sleeps, ignored tests.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// What was found in one file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// Functions outside of test code: name and lines of code in the body, blank and comment lines apart.
    pub(super) functions: Vec<(String, usize)>,
    /// Line of the first `#[cfg(test)]` module.
    pub(super) tests_start: Option<usize>,
    /// Lines of calls of a function named `sleep` in test code.
    pub(super) sleeps: Vec<usize>,
    /// Lines of `#[ignore]` and of documentation examples marked so.
    pub(super) ignored: Vec<usize>,
}

/// Reads a file; `is_test` says that all of it is test code. Fails on what is no Rust.
pub(super) fn scan(text: &str, is_test: bool) -> Result<Facts, String> {
    let tokens: TokenStream = text.parse().map_err(|err| format!("{err}"))?;
    let mut facts = Facts::default();
    walk(tokens, is_test, &mut facts);
    let examples = text
        .lines()
        .enumerate()
        .filter(|(_, line)| is_ignored_example(line));
    facts.ignored.extend(examples.map(|(index, _)| index + 1));
    Ok(facts)
}

fn is_ignored_example(line: &str) -> bool {
    let line = line.trim_start();
    let comment = line
        .strip_prefix("///")
        .or_else(|| line.strip_prefix("//!"));
    comment.is_some_and(|comment| comment.trim_start().starts_with("```ignore"))
}

/// Goes through one level of tokens; `in_tests` says that it is test code.
fn walk(tokens: TokenStream, in_tests: bool, facts: &mut Facts) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut marked = None; // line of an attribute that makes the next item test code
    let mut index = 0;
    while let Some(token) = tokens.get(index) {
        index += 1;
        let is_test = in_tests || marked.is_some();
        if let Some((attribute, past)) = attribute_at(&tokens, index - 1) {
            let line = attribute.span_open().start().line;
            if is_ignore(attribute) {
                facts.ignored.push(line);
            }
            if is_test_mark(attribute) {
                marked = marked.or(Some(line));
            }
            index = past;
        } else if is_word(token, "fn") && is_name(tokens.get(index)) {
            index = function(&tokens, index, is_test, facts);
            marked = None;
        } else if is_word(token, "mod") {
            facts.tests_start = facts.tests_start.or(marked);
        } else if is_test && is_word(token, "sleep") && is_call(tokens.get(index)) {
            facts.sleeps.push(token.span().start().line);
        } else if let TokenTree::Group(group) = token {
            walk(group.stream(), is_test, facts);
            if group.delimiter() == Delimiter::Brace {
                marked = None;
            }
        } else if is_end(token) {
            marked = None;
        }
    }
}

/// Notes the function whose name is at `index` and goes through its body; returns what comes after it.
fn function(tokens: &[TokenTree], index: usize, is_test: bool, facts: &mut Facts) -> usize {
    for (offset, token) in tokens[index..].iter().enumerate() {
        match token {
            TokenTree::Group(body) if body.delimiter() == Delimiter::Brace => {
                if !is_test {
                    let mut lines = BTreeSet::new();
                    code_lines(body.stream(), &mut lines);
                    facts
                        .functions
                        .push((tokens[index].to_string(), lines.len()));
                }
                walk(body.stream(), is_test, facts);
                return index + offset + 1;
            }
            TokenTree::Punct(punct) if punct.as_char() == ';' => return index + offset + 1,
            _ => {}
        }
    }
    tokens.len()
}

/// Lines that hold a token, documentation apart.
fn code_lines(tokens: TokenStream, lines: &mut BTreeSet<usize>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut index = 0;
    while let Some(token) = tokens.get(index) {
        index += 1;
        if let Some((attribute, past)) = attribute_at(&tokens, index - 1)
            && words(attribute).first().is_some_and(|word| word == "doc")
        {
            index = past;
            continue;
        }
        match token {
            TokenTree::Group(group) => {
                lines.insert(group.span_open().start().line);
                lines.insert(group.span_close().end().line);
                code_lines(group.stream(), lines);
            }
            other => lines.extend(other.span().start().line..=other.span().end().line),
        }
    }
}

/// The attribute that starts at `index`, and the index after it.
fn attribute_at(tokens: &[TokenTree], index: usize) -> Option<(&Group, usize)> {
    let is_punct = |index: usize, wanted: char| matches!(tokens.get(index), Some(TokenTree::Punct(punct)) if punct.as_char() == wanted);
    if !is_punct(index, '#') {
        return None;
    }
    let inner = if is_punct(index + 1, '!') {
        index + 2
    } else {
        index + 1
    };
    match tokens.get(inner) {
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Bracket => {
            Some((group, inner + 1))
        }
        _ => None,
    }
}

/// The identifiers of an attribute, those in parentheses included.
fn words(attribute: &Group) -> Vec<String> {
    let mut words = Vec::new();
    for token in attribute.stream() {
        match token {
            TokenTree::Ident(ident) => words.push(ident.to_string()),
            TokenTree::Group(group) => words.extend(self::words(&group)),
            _ => {}
        }
    }
    words
}

fn is_ignore(attribute: &Group) -> bool {
    let words = words(attribute);
    match words.first().map(String::as_str) {
        Some("ignore") => true,
        Some("cfg_attr") => words.iter().any(|word| word == "ignore"),
        _ => false,
    }
}

/// `#[cfg(test)]`, `#[test]`, `#[tokio::test]` and the like.
fn is_test_mark(attribute: &Group) -> bool {
    let path: Vec<TokenTree> = attribute.stream().into_iter().collect();
    let is_test_attribute = match path
        .iter()
        .rev()
        .find(|token| !matches!(token, TokenTree::Group(_)))
    {
        Some(token) => is_word(token, "test"),
        None => false,
    };
    let words = words(attribute);
    let is_cfg = words.first().is_some_and(|word| word == "cfg");
    let has = |wanted: &str| words.iter().any(|word| word == wanted);
    is_test_attribute || (is_cfg && has("test") && !has("not"))
}

fn is_word(token: &TokenTree, wanted: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == wanted)
}

fn is_name(token: Option<&TokenTree>) -> bool {
    matches!(token, Some(TokenTree::Ident(_)))
}

fn is_call(token: Option<&TokenTree>) -> bool {
    matches!(token, Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis)
}

fn is_end(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(punct) if matches!(punct.as_char(), ';' | ','))
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
