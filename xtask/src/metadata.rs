//! What `cargo metadata` says about the workspace. Reads, judges nothing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::process;

/// The workspace and everything it depends on.
#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    pub(crate) workspace_members: Vec<String>,
    pub(crate) target_directory: PathBuf,
}

/// One package of the graph.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) license: Option<String>,
    pub(crate) manifest_path: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) targets: Vec<Target>,
    #[serde(default)]
    metadata: Option<serde_json::Value>,
}

/// A dependency as its package states it.
#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    kind: Option<String>,
}

/// A library, program, example or test of a package.
#[derive(Debug, Deserialize)]
pub(crate) struct Target {
    pub(crate) kind: Vec<String>,
    pub(crate) src_path: PathBuf,
}

impl Metadata {
    /// Asks cargo.
    pub(crate) fn load() -> Result<Self> {
        let text = process::capture(process::cargo().args(["metadata", "--format-version", "1"]))?;
        serde_json::from_str(&text).context("cargo metadata is not as expected")
    }

    /// Our own packages.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Package> {
        let members: BTreeSet<&str> = self.workspace_members.iter().map(String::as_str).collect();
        self.packages
            .iter()
            .filter(move |package| members.contains(package.id.as_str()))
    }
}

impl Package {
    /// The tier that the package states for itself.
    pub(crate) fn tier(&self) -> Option<u64> {
        self.metadata.as_ref()?.get("tyo-mq")?.get("tier")?.as_u64()
    }

    /// Files in which our crate attributes must stand.
    pub(crate) fn crate_roots(&self) -> impl Iterator<Item = &Path> {
        let is_root = |kind: &String| matches!(kind.as_str(), "lib" | "bin" | "proc-macro");
        self.targets
            .iter()
            .filter(move |target| target.kind.iter().any(is_root))
            .map(|target| target.src_path.as_path())
    }
}

impl Dependency {
    /// Whether it is only for tests, examples and benches.
    pub(crate) fn is_dev(&self) -> bool {
        self.kind.as_deref() == Some("dev")
    }
}
