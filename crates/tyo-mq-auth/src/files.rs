//! Files that hold secrets: readable by their owner only, replaced whole or not at all.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Makes an empty file that only its owner can read, or takes the rights of others from one that is there.
///
/// # Errors
/// When the file cannot be made or changed.
pub fn create_private(path: &Path) -> io::Result<()> {
    let file = private_options().create(true).truncate(false).open(path)?;
    restrict(&file)
}

/// Replaces a file with this content: after a crash there is the old content or the new.
///
/// # Errors
/// When it cannot be written.
pub fn replace_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let temporary = temporary_beside(path);
    let written = write_whole(&temporary, content).and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        // The error counts, not what is left of the attempt.
        let _ = std::fs::remove_file(&temporary);
        return written;
    }
    sync_directory(path)
}

/// Opens a file that only its owner can read, for writing at its end.
pub(crate) fn append_private(path: &Path) -> io::Result<File> {
    let file = private_options().create(true).append(true).open(path)?;
    restrict(&file)?;
    Ok(file)
}

fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = private_options().create(true).truncate(true).open(path)?;
    restrict(&file)?;
    file.write_all(content)?;
    file.sync_all()
}

fn temporary_beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".tmp");
    path.with_file_name(name)
}

#[cfg(unix)]
fn private_options() -> OpenOptions {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    options
}

#[cfg(not(unix))]
fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    options
}

#[cfg(unix)]
fn restrict(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let mut permissions = file.metadata()?.permissions();
    if permissions.mode() & 0o077 == 0 {
        return Ok(());
    }
    permissions.set_mode(permissions.mode() & 0o700);
    file.set_permissions(permissions)
}

#[cfg(not(unix))]
fn restrict(_: &File) -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn sync_directory(path: &Path) -> io::Result<()> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(directory)?.sync_all()
}

#[cfg(not(unix))]
fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    fn mode(path: &Path) -> u32 {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[cfg(unix)]
    #[test]
    fn others_cannot_read() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("settings.json");
        create_private(&path).unwrap();
        assert_eq!(mode(&path), 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        create_private(&path).unwrap();
        assert_eq!(mode(&path), 0o600);
        replace_private(&path, b"{}").unwrap();
        assert_eq!(mode(&path), 0o600);
    }

    #[test]
    fn replacing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("settings.json");
        replace_private(&path, b"a long first content").unwrap();
        replace_private(&path, b"second").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"second");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        assert!(replace_private(&dir.path().join("no/such/folder"), b"").is_err());
    }
}
