//! Another revision of ours, in a work tree and a target folder of its own.

use std::path::PathBuf;

use anyhow::Result;

use crate::process;

/// A revision that is checked out.
pub(crate) struct Revision {
    /// Where its files are.
    pub(crate) tree: PathBuf,
}

impl Revision {
    /// Puts its files in place of those of the revision before.
    pub(crate) fn check_out(name: &str) -> Result<Self> {
        let tree = process::root().join("target/compare/tree");
        if tree.exists() {
            process::run(git().args(["remove", "--force"]).arg(&tree))?;
        }
        process::run(git().args(["add", "--detach"]).arg(&tree).arg(name))?;
        Ok(Self { tree })
    }

    /// Makes a release build of what `args` name and returns the program.
    pub(crate) fn build(&self, args: &[&str], program: &str) -> Result<PathBuf> {
        let target = process::root().join("target/compare/build");
        let mut cargo = process::cargo();
        cargo.current_dir(&self.tree);
        cargo.args(["build", "--release", "--locked"]).args(args);
        process::run(cargo.arg("--target-dir").arg(&target))?;
        Ok(target.join("release").join(program))
    }
}

fn git() -> std::process::Command {
    let mut git = process::command("git");
    git.arg("worktree");
    git
}
