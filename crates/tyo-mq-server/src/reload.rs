//! Watches the settings file and applies what changed: checked first, all or nothing.

use std::path::{Path, PathBuf};
use std::sync::Weak;
use std::time::{Duration, SystemTime};

use crate::access::Access;
use crate::settings::{self, Loaded};

/// Looks at the file until the server ends. Replaced by rename or rewritten in place, it is seen either way.
pub(crate) async fn watch(path: PathBuf, access: Weak<Access>) {
    let mut seen = signature(&path);
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let Some(access) = access.upgrade() else {
            return;
        };
        let now = signature(&path);
        if now.is_none() || now == seen {
            continue;
        }
        seen = now;
        apply(&path, &access);
    }
}

/// Reads the file again and applies it; the old settings stay if it is not good.
pub(crate) fn apply(path: &Path, access: &Access) -> bool {
    match reload(path, access) {
        Ok(()) => true,
        Err(error) => {
            tracing::error!(path = %path.display(), %error, "the settings file is not good; the old settings stay");
            false
        }
    }
}

/// As [`apply`], with the reason for whoever asked. No command changes anything between reading and applying.
pub(crate) fn reload(path: &Path, access: &Access) -> Result<(), String> {
    let _order = access.in_order();
    read(path)
        .and_then(|loaded| access.adopt(loaded))
        .inspect_err(|error| access.refuse_settings(error))
}

fn read(path: &Path) -> Result<Loaded, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let loaded = settings::parse(&text).map_err(|error| error.to_string())?;
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    Ok(loaded)
}

const LOOK_EVERY: Duration = Duration::from_millis(300);

/// What tells one content of a file from another without reading it.
fn signature(path: &Path) -> Option<(SystemTime, u64, u64)> {
    let metadata = std::fs::metadata(path).ok()?;
    #[cfg(unix)]
    let inode = std::os::unix::fs::MetadataExt::ino(&metadata);
    #[cfg(not(unix))]
    let inode = 0;
    Some((metadata.modified().ok()?, metadata.len(), inode))
}
