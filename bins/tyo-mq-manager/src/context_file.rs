//! Saved servers: a file of the user's, readable by nobody else. It says where secrets are; it holds one only when that was asked for.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::exit::Failure;

/// The largest file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// The file.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct ContextFile {
    /// The context that is used when none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) current: Option<String>,
    /// Contexts by name.
    #[serde(default)]
    pub(crate) contexts: BTreeMap<String, Context>,
}

/// One saved server.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(crate) struct Context {
    /// Where it is.
    pub(crate) url: String,
    /// The authorities whose certificates are good, instead of the system's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ca_file: Option<PathBuf>,
    /// The realm that commands are for when they name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) realm: Option<String>,
    /// Where the admin's token is.
    #[serde(default, skip_serializing_if = "Reference::is_empty")]
    pub(crate) token: Reference,
    /// Where the realm manager's key is.
    #[serde(default, skip_serializing_if = "Reference::is_empty")]
    pub(crate) manager_key: Reference,
}

/// Where a secret is.
#[derive(Default, Clone, Serialize, Deserialize)]
pub(crate) struct Reference {
    /// In this variable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) env: Option<String>,
    /// In this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<PathBuf>,
    /// Here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stored: Option<String>,
}

impl Reference {
    pub(crate) fn is_empty(&self) -> bool {
        self.env.is_none() && self.file.is_none() && self.stored.is_none()
    }

    /// In words, without the secret.
    pub(crate) fn describe(&self) -> String {
        match (&self.env, &self.file, &self.stored) {
            (Some(name), _, _) => format!("variable {name}"),
            (None, Some(file), _) => format!("file {}", file.display()),
            (None, None, Some(_)) => "stored".to_owned(),
            (None, None, None) => "-".to_owned(),
        }
    }
}

impl std::fmt::Debug for Reference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.describe())
    }
}

impl ContextFile {
    /// Where the file is: `TYO_MQ_MANAGER_CONFIG`, or in the user's configuration folder.
    pub(crate) fn path() -> Option<PathBuf> {
        let var = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        if let Some(path) = var("TYO_MQ_MANAGER_CONFIG") {
            return Some(path.into());
        }
        let folder = var("XDG_CONFIG_HOME")
            .map(PathBuf::from)
            .or_else(|| Some(PathBuf::from(var("HOME")?).join(".config")))?;
        Some(folder.join("tyo-mq").join("manager.json"))
    }

    /// Reads the file; an empty one when there is none.
    pub(crate) fn load() -> Result<Self, Failure> {
        match Self::path() {
            Some(path) => Self::load_from(&path),
            None => Ok(Self::default()),
        }
    }

    fn load_from(path: &Path) -> Result<Self, Failure> {
        let wrong = |what: String| Failure::Local(format!("{}: {what}", path.display()));
        match fs::metadata(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            Err(error) => return Err(wrong(error.to_string())),
            Ok(metadata) if metadata.len() > MAX_FILE_BYTES => {
                return Err(wrong("the file is too large".to_owned()));
            }
            Ok(_) => {}
        }
        let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))
    }

    /// Writes the file: whole or not at all, for its owner only.
    pub(crate) fn save(&self) -> Result<(), Failure> {
        let path = Self::path().ok_or_else(|| {
            Failure::Local("there is no home folder to keep contexts in".to_owned())
        })?;
        self.save_to(&path)
            .map_err(|error| Failure::Local(format!("{}: {error}", path.display())))
    }

    fn save_to(&self, path: &Path) -> std::io::Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut draft = path.to_path_buf();
        draft
            .as_mut_os_string()
            .push(format!(".{}", std::process::id()));
        let written = self.write_draft(&draft);
        if let Err(error) = written.and_then(|()| fs::rename(&draft, path)) {
            // What is left of the draft is worth nothing.
            let _ = fs::remove_file(&draft);
            return Err(error);
        }
        Ok(())
    }

    fn write_draft(&self, draft: &Path) -> std::io::Result<()> {
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(OWNER_ONLY)
            .open(draft)?;
        file.set_permissions(fs::Permissions::from_mode(OWNER_ONLY))?;
        serde_json::to_writer_pretty(&mut file, self)?;
        file.write_all(b"\n")?;
        file.sync_all()
    }

    /// A context by its name.
    pub(crate) fn context(&self, name: &str) -> Result<&Context, Failure> {
        self.contexts.get(name).ok_or_else(|| {
            Failure::NotFound(format!(
                "there is no context {name:?}; `context list` shows those that there are"
            ))
        })
    }
}

/// The permissions of the file.
const OWNER_ONLY: u32 = 0o600;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_its_owners_and_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/manager.json");
        assert!(ContextFile::load_from(&path).unwrap().contexts.is_empty());
        let mut file = ContextFile::default();
        let context = Context {
            url: "http://h:1".to_owned(),
            token: Reference {
                stored: Some("s3cret".to_owned()),
                ..Reference::default()
            },
            ..Context::default()
        };
        assert!(!format!("{context:?}").contains("s3cret"));
        file.contexts.insert("prod".to_owned(), context);
        file.save_to(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        file.save_to(&path).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, OWNER_ONLY);
        let read = ContextFile::load_from(&path).unwrap();
        assert_eq!(read.contexts["prod"].url, "http://h:1");
        assert_eq!(read.contexts["prod"].token.describe(), "stored");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_not_overlooked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("manager.json");
        fs::write(&path, "{").unwrap();
        assert!(matches!(
            ContextFile::load_from(&path),
            Err(Failure::Local(_))
        ));
    }
}
