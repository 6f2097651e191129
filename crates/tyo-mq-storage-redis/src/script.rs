//! The scripts, and the names by which the server knows them once it has seen them.

use std::fmt::Write as _;
use std::sync::LazyLock;

use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

/// A Lua text and its SHA-1.
pub(crate) struct Script {
    pub(crate) text: &'static str,
    pub(crate) sha: String,
}

macro_rules! script {
    ($name:ident, $file:literal) => {
        pub(crate) static $name: LazyLock<Script> = LazyLock::new(|| {
            Script::new(concat!(include_str!("lua/common.lua"), include_str!($file)))
        });
    };
}

script!(BATCH, "lua/batch.lua");
script!(PAGE, "lua/page.lua");
script!(LETTERS, "lua/letters.lua");
script!(EXPIRED, "lua/expired.lua");
script!(ADOPT, "lua/adopt.lua");
script!(COUNTS, "lua/counts.lua");
script!(PURGE, "lua/purge.lua");
script!(RENAME, "lua/rename.lua");

impl Script {
    fn new(text: &'static str) -> Self {
        let mut sha = String::with_capacity(40);
        for byte in digest(&SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes()).as_ref() {
            write!(sha, "{byte:02x}").expect("a text takes all");
        }
        Self { text, sha }
    }
}
