//! A folder of its own for a round, removed with everything in it unless it is kept.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};

/// Removed when dropped.
#[derive(Debug)]
pub(super) struct TempFolder {
    path: PathBuf,
    is_kept: bool,
}

impl TempFolder {
    /// Makes one that was not there.
    pub(super) fn new() -> Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("tyo-mq-rounds-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self {
            path,
            is_kept: false,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves it where it is.
    pub(super) fn keep(mut self) -> PathBuf {
        self.is_kept = true;
        self.path.clone()
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        if !self.is_kept {
            // What cannot be removed is in the folder for temporary things.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_unless_it_is_kept() {
        let folder = TempFolder::new().unwrap();
        let path = folder.path().to_owned();
        assert!(path.is_dir());
        drop(folder);
        assert!(!path.exists());
        let path = TempFolder::new().unwrap().keep();
        assert!(path.is_dir());
        fs::remove_dir(path).unwrap();
    }
}
