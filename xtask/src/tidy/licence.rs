//! Whether a licence expression can be met with the licences we allow. Pure text.

/// Whether some choice that `expression` offers needs allowed licences only. Anything unreadable is not allowed.
pub(super) fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut parser = Parser {
        words: &words,
        allowed,
    };
    parser.any_of() == Some(true) && parser.words.is_empty()
}

/// `WITH` binds closest, then `AND`, then `OR`.
struct Parser<'a> {
    words: &'a [&'a str],
    allowed: &'a [String],
}

impl Parser<'_> {
    fn any_of(&mut self) -> Option<bool> {
        let mut verdict = self.all_of()?;
        while self.take("OR") {
            verdict |= self.all_of()?;
        }
        Some(verdict)
    }

    fn all_of(&mut self) -> Option<bool> {
        let mut verdict = self.one()?;
        while self.take("AND") {
            verdict &= self.one()?;
        }
        Some(verdict)
    }

    fn one(&mut self) -> Option<bool> {
        if self.take("(") {
            let verdict = self.any_of()?;
            return self.take(")").then_some(verdict);
        }
        let mut name = self.next()?.to_owned();
        if self.take("WITH") {
            name = format!("{name} WITH {}", self.next()?);
        }
        Some(self.allowed.contains(&name))
    }

    fn take(&mut self, word: &str) -> bool {
        let found = self.words.first() == Some(&word);
        if found {
            self.words = &self.words[1..];
        }
        found
    }

    fn next(&mut self) -> Option<&str> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(expression: &str, expected: bool) {
        let allowed = ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned);
        assert_eq!(is_allowed(expression, &allowed), expected, "{expression}");
    }

    #[test]
    fn one_allowed_choice_is_enough() {
        check("MIT", true);
        check("GPL-3.0 OR MIT", true);
        check("MIT/Unlicense", true);
        check("GPL-3.0", false);
    }

    #[test]
    fn every_required_licence_counts() {
        check("MIT AND ISC", true);
        check("MIT AND OpenSSL", false);
        check("(MIT OR GPL-3.0) AND ISC", true);
        check("MIT OR GPL-3.0 AND OpenSSL", true);
        check("(MIT OR GPL-3.0) AND OpenSSL", false);
    }

    #[test]
    fn an_exception_is_part_of_the_licence() {
        check("Apache-2.0 WITH LLVM-exception", true);
        check("Apache-2.0", false);
        check("MIT WITH LLVM-exception", false);
    }

    #[test]
    fn what_cannot_be_read_is_not_allowed() {
        for expression in [
            "", "MIT OR", "(MIT", "MIT)", "MIT ISC", "OR MIT", "MIT WITH",
        ] {
            check(expression, false);
        }
    }
}
