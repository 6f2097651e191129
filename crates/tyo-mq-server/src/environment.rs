//! The process environment and the `.env` file beside it; and the admin's token that may have to be made there.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tyo_mq_auth::AuthDocument;
use tyo_mq_auth::entropy::{SystemEntropy, new_token};
use tyo_mq_auth::files::create_private;
use tyo_mq_auth::secret::Secret;

/// Variables of the process, and behind them those of a `.env` file.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    file: PathBuf,
    process: HashMap<String, String>,
    from_file: HashMap<String, String>,
}

impl Environment {
    /// Reads the process environment and the file that `TYO_MQ_ENV_FILE` names, or `.env`; one that is not there is
    /// empty.
    ///
    /// # Errors
    /// When the file is there and cannot be read.
    pub fn load() -> io::Result<Self> {
        Self::from_variables(std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        }))
    }

    /// The same from variables given.
    ///
    /// # Errors
    /// When the file is there and cannot be read.
    pub fn from_variables(
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> io::Result<Self> {
        let process: HashMap<_, _> = variables.into_iter().collect();
        let file = PathBuf::from(
            process
                .get("TYO_MQ_ENV_FILE")
                .map_or(".env", String::as_str),
        );
        let mut environment = Self {
            file,
            process,
            from_file: HashMap::new(),
        };
        environment.reread()?;
        Ok(environment)
    }

    /// A variable; one that is empty is not set.
    pub fn get(&self, name: &str) -> Option<&str> {
        let set = |variables: &'_ HashMap<String, String>| {
            variables.get(name).is_some_and(|value| !value.is_empty())
        };
        let variables = if set(&self.process) {
            &self.process
        } else {
            &self.from_file
        };
        variables
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// Whether it turns authentication on where the settings do not say.
    pub fn enables_auth(&self) -> bool {
        self.get("TYO_MQ_AUTH_ENABLED") == Some("true")
    }

    /// Reads the file again; one that is not there is empty.
    pub(crate) fn reread(&mut self) -> io::Result<()> {
        if self.file.as_os_str().is_empty() {
            return Ok(());
        }
        self.from_file = match std::fs::read_to_string(&self.file) {
            Ok(text) => parse(&text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => HashMap::new(),
            Err(error) => {
                return Err(io::Error::new(
                    error.kind(),
                    format!("{}: {error}", self.file.display()),
                ));
            }
        };
        Ok(())
    }
}

/// What became of the admin's token at the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdminToken {
    /// Authentication is off, or the settings have one.
    Settled,
    /// The environment has it, under this name.
    FromEnvironment(String),
    /// It was made and appended to this file under this name.
    Created(PathBuf, String),
    /// There is none, and none was made: nobody can manage.
    Missing,
}

/// Sees to it that somebody can manage a broker that authenticates.
///
/// # Errors
/// When the file for a new token cannot be written.
pub fn ensure_admin_token(
    document: &mut AuthDocument,
    environment: &mut Environment,
) -> io::Result<AdminToken> {
    let (found, token) = admin_token(document, environment)?;
    if let Some(token) = token {
        document.set_environment_admin(&token);
    }
    Ok(found)
}

/// Where the admin's token is, and the token if it is that of the environment; one is made if there has to be.
pub(crate) fn admin_token(
    document: &AuthDocument,
    environment: &mut Environment,
) -> io::Result<(AdminToken, Option<Secret>)> {
    if !document.is_enabled() {
        return Ok((AdminToken::Settled, None));
    }
    let fields = document.to_settings(true);
    let name = fields
        .non_empty_str("admin_token_env")
        .unwrap_or(ADMIN_TOKEN_ENV)
        .to_owned();
    if let Some(file) = fields.non_empty_str("env_file") {
        environment.file = PathBuf::from(file);
        environment.reread()?;
    }
    if let Some(token) = environment.get(&name).map(Secret::new) {
        return Ok((AdminToken::FromEnvironment(name), Some(token)));
    }
    if document.admin_count() > 0 {
        return Ok((AdminToken::Settled, None));
    }
    let by_settings = fields
        .get("auto_admin_token")
        .and_then(tyo_mq_auth::json::Value::as_bool)
        .unwrap_or(true);
    if !by_settings || environment.get("TYO_MQ_AUTO_ADMIN_TOKEN") == Some("false") {
        return Ok((AdminToken::Missing, None));
    }
    let token = new_token(&mut SystemEntropy::new());
    append(&environment.file, &name, &token)?;
    environment.reread()?;
    let made = AdminToken::Created(environment.file.clone(), name);
    Ok((made, Some(token)))
}

/// The variable that has the admin's token unless the settings name another.
const ADMIN_TOKEN_ENV: &str = "TYO_MQ_ADMIN_TOKEN";

/// Appends a line; a new file only its owner can read.
fn append(file: &Path, name: &str, token: &Secret) -> io::Result<()> {
    if let Some(folder) = file
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
    {
        std::fs::create_dir_all(folder)?;
    }
    create_private(file)?;
    let before = std::fs::read_to_string(file)?;
    let gap = if before.is_empty() || before.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    let mut file = std::fs::OpenOptions::new().append(true).open(file)?;
    file.write_all(format!("{gap}{name}=\"{}\"\n", token.expose()).as_bytes())?;
    file.sync_all()
}

/// `NAME=VALUE` lines: `#` begins a comment line, one pair of quotes around a value goes.
fn parse(text: &str) -> HashMap<String, String> {
    let lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with('#'));
    let pairs = lines.filter_map(|line| line.split_once('='));
    pairs
        .map(|(name, value)| (name.trim().to_owned(), unquoted(value.trim()).to_owned()))
        .collect()
}

fn unquoted(value: &str) -> &str {
    for quote in ['"', '\''] {
        if let Some(inner) = value
            .strip_prefix(quote)
            .and_then(|rest| rest.strip_suffix(quote))
        {
            return inner;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_the_reference_reads_them() {
        let read = parse("# A=1\nB = 2 \r\nC=\"x # y\"\nD='q\"\nE\nF=a=b\nG=\"\n");
        let get = |name: &str| read.get(name).map(String::as_str);
        assert_eq!(
            [get("A"), get("B"), get("C")],
            [None, Some("2"), Some("x # y")]
        );
        assert_eq!(
            [get("D"), get("E"), get("F"), get("G")],
            [Some("'q\""), None, Some("a=b"), Some("\"")]
        );
    }

    #[test]
    fn a_broker_that_authenticates_gets_an_admin_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("deep/.env");
        let variables = || [("TYO_MQ_ENV_FILE".to_owned(), file.display().to_string())];
        let document = || AuthDocument::parse(r#"{"enabled":true}"#).unwrap().0;
        let mut environment = Environment::from_variables(variables()).unwrap();
        let made = ensure_admin_token(&mut document(), &mut environment).unwrap();
        assert_eq!(
            made,
            AdminToken::Created(file.clone(), "TYO_MQ_ADMIN_TOKEN".to_owned())
        );
        let mut again = Environment::from_variables(variables()).unwrap();
        let mut second = document();
        let found = ensure_admin_token(&mut second, &mut again).unwrap();
        assert_eq!(
            found,
            AdminToken::FromEnvironment("TYO_MQ_ADMIN_TOKEN".to_owned())
        );
        assert_eq!(second.admin_count(), 1);
        let text = std::fs::read_to_string(&file).unwrap();
        assert_eq!(text.lines().count(), 1);
        let mut off = AuthDocument::parse("{}").unwrap().0;
        assert_eq!(
            ensure_admin_token(&mut off, &mut again).unwrap(),
            AdminToken::Settled
        );
    }

    #[test]
    fn none_is_made_where_the_operator_says_so() {
        let mut environment = Environment::default();
        let mut document = AuthDocument::parse(r#"{"enabled":true,"auto_admin_token":false}"#)
            .unwrap()
            .0;
        assert_eq!(
            ensure_admin_token(&mut document, &mut environment).unwrap(),
            AdminToken::Missing
        );
    }
}
