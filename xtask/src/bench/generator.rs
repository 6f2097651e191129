//! The programs that make load and the floors: where their sources are, and their build. Knows no scenario.

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::process;

/// Names the folder of the load generator when it is not at the usual place.
const FOLDER_VARIABLE: &str = "TYO_MQ_LOAD";

/// Built programs.
pub(super) struct Generator {
    /// Loads our broker and what speaks like it.
    pub(super) load: PathBuf,
    /// Servers that do the least possible.
    pub(super) floor: PathBuf,
    /// Loads brokers of others, each with its own protocol.
    pub(super) peer: PathBuf,
}

impl Generator {
    /// Builds all of it in our own target folder.
    pub(super) fn build() -> Result<Self> {
        let folder = match std::env::var_os(FOLDER_VARIABLE) {
            Some(folder) => PathBuf::from(folder),
            None => process::root().join("../shared/load"),
        };
        if !folder.join("Cargo.toml").is_file() {
            bail!(
                "the load generator is not in {}; {FOLDER_VARIABLE} may name another folder",
                folder.display()
            );
        }
        let target = process::root().join("target/load");
        for manifest in ["Cargo.toml", "peers/Cargo.toml"] {
            let mut cargo = process::cargo();
            cargo
                .args(["build", "--release", "--locked", "--manifest-path"])
                .arg(folder.join(manifest));
            process::run(cargo.arg("--target-dir").arg(&target))?;
        }
        let release = target.join("release");
        Ok(Self {
            load: release.join("load"),
            floor: release.join("floor"),
            peer: release.join("peer"),
        })
    }
}
