//! Which broker, and what to sign with: flags before the environment, the environment before the saved context.

use std::cell::OnceCell;
use std::io::Read;
use std::path::{Path, PathBuf};

use tyo_mq_auth::secret::Secret;
use tyo_mq_client::{Address, Trust};

use crate::cli::{Global, SignAs};
use crate::context_file::{Context, ContextFile, Reference};
use crate::env::Env;
use crate::exit::Failure;
use crate::prompt::Prompt;

/// The variable of the admin's token, where nothing names another.
const TOKEN_VARIABLE: &str = "TYO_MQ_ADMIN_TOKEN";

/// The variable of a realm manager's key, where nothing names another.
const MANAGER_KEY_VARIABLE: &str = "TYO_MQ_REALM_MANAGER_KEY";

/// A broker and the secrets for it.
#[derive(Debug)]
pub(crate) struct Target {
    /// Its URL.
    pub(crate) url: String,
    /// Whose certificates are good there.
    pub(crate) trust: Trust,
    /// The context that names it, if one does.
    pub(crate) context: Option<String>,
    /// The realm that commands are for when they name none.
    pub(crate) realm: Option<String>,
    token: Source,
    manager_key: Source,
    sign_as: Option<SignAs>,
    prompt: Prompt,
}

/// Where a secret comes from.
#[derive(Debug)]
struct Source {
    what: &'static str,
    place: Place,
    env_file: PathBuf,
    found: OnceCell<Secret>,
}

#[derive(Debug)]
enum Place {
    File(PathBuf),
    Stored(Secret),
    Variable { name: String, value: Option<Secret> },
}

impl Target {
    /// Finds out what flags, environment and contexts say.
    pub(crate) fn resolve(global: &Global, env: &Env, prompt: Prompt) -> Result<Self, Failure> {
        let contexts = ContextFile::load()?;
        let (name, url, context) = locate(global, env, &contexts)?;
        let trust = trust(global, env, &url, context)?;
        let token = Source::resolve(
            "an admin's token",
            (global.token_file.as_deref(), global.token_env.as_deref()),
            context.map(|context| &context.token),
            ("TYO_MQ_ADMIN_TOKEN_ENV", TOKEN_VARIABLE),
            env,
        );
        let manager_key = Source::resolve(
            "a realm manager's key",
            (
                global.manager_key_file.as_deref(),
                global.manager_key_env.as_deref(),
            ),
            context.map(|context| &context.manager_key),
            ("TYO_MQ_REALM_MANAGER_KEY_ENV", MANAGER_KEY_VARIABLE),
            env,
        );
        let realm = global.realm.clone();
        Ok(Self {
            url,
            trust,
            context: name,
            realm: realm.or_else(|| context.and_then(|context| context.realm.clone())),
            token,
            manager_key,
            sign_as: global.sign_as,
            prompt,
        })
    }

    /// The admin's token; asked for when nobody tells it.
    pub(crate) fn admin_token(&self) -> Result<Secret, Failure> {
        self.token.find(self.prompt)
    }

    /// The admin's token if it can be had without asking.
    pub(crate) fn admin_token_if_known(&self) -> Result<Option<Secret>, Failure> {
        self.token.look()
    }

    /// The realm manager's key; asked for when nobody tells it.
    pub(crate) fn manager_key(&self) -> Result<Secret, Failure> {
        self.manager_key.find(self.prompt)
    }

    /// What signs a request that a realm's manager may sign as well as the admin.
    pub(crate) fn realm_signer(&self) -> Result<Secret, Failure> {
        match self.sign_as {
            Some(SignAs::Admin) => self.admin_token(),
            Some(SignAs::Realm) => self.manager_key(),
            None => match self.manager_key.look()? {
                Some(key) => Ok(key),
                None => self.admin_token(),
            },
        }
    }

    /// Where the admin's token is looked for, in words.
    pub(crate) fn token_place(&self) -> String {
        self.token.place.describe()
    }
}

/// The context's name, the URL, and the context whose secrets go with it.
fn locate<'a>(
    global: &Global,
    env: &Env,
    contexts: &'a ContextFile,
) -> Result<(Option<String>, String, Option<&'a Context>), Failure> {
    let named = global.context.clone().or_else(|| env.var("TYO_MQ_CONTEXT"));
    let named = match named {
        Some(name) => {
            let context = contexts.context(&name)?;
            Some((name, context))
        }
        None => None,
    };
    if let Some(url) = url_of_flags(global, env) {
        // Secrets of a named context go where the flags say; those of the current one stay with its server.
        let (name, context) = named.unzip();
        return Ok((name, url, context));
    }
    if let Some((name, context)) = named {
        return Ok((Some(name), context.url.clone(), Some(context)));
    }
    if let Some(url) = url_of_variables(env) {
        return Ok((None, url, None));
    }
    if let Some(name) = &contexts.current {
        let context = contexts.context(name)?;
        return Ok((Some(name.clone()), context.url.clone(), Some(context)));
    }
    Ok((None, url("http", "localhost", DEFAULT_PORT), None))
}

/// Whose certificates are good: as a flag says, or the context, or the environment.
fn trust(
    global: &Global,
    env: &Env,
    url: &str,
    context: Option<&Context>,
) -> Result<Trust, Failure> {
    let is_plain = url
        .parse()
        .is_ok_and(|address: Address| !address.is_secure());
    if is_plain && global.ca_file.is_some() {
        let message = format!("{url} is reached without TLS; --ca-file is for https");
        return Err(Failure::Usage(message));
    }
    let of_context = || context.and_then(|context| context.ca_file.clone());
    let of_variable = || env.var("TYO_MQ_CA_FILE").map(PathBuf::from);
    let file = global
        .ca_file
        .clone()
        .or_else(of_context)
        .or_else(of_variable);
    Ok(file.map_or(Trust::System, Trust::File))
}

/// The URL that flags say, with what they leave open from the environment.
fn url_of_flags(global: &Global, env: &Env) -> Option<String> {
    if let Some(url) = &global.url {
        return Some(url.clone());
    }
    let Global {
        host,
        port,
        protocol,
        ..
    } = global;
    if host.is_none() && port.is_none() && protocol.is_none() {
        return None;
    }
    Some(composed(
        protocol.clone(),
        host.clone(),
        port.map(|port| port.to_string()),
        env,
    ))
}

fn url_of_variables(env: &Env) -> Option<String> {
    if let Some(url) = env.var("TYO_MQ_URL") {
        return Some(url);
    }
    let names = ["TYO_MQ_HOST", "TYO_MQ_PORT", "TYO_MQ_PROTOCOL"];
    names
        .iter()
        .any(|name| env.var(name).is_some())
        .then(|| composed(None, None, None, env))
}

fn composed(
    protocol: Option<String>,
    host: Option<String>,
    port: Option<String>,
    env: &Env,
) -> String {
    let or_variable = |given: Option<String>, name: &str, default: &str| {
        given
            .or_else(|| env.var(name))
            .unwrap_or_else(|| default.to_owned())
    };
    let protocol = or_variable(protocol, "TYO_MQ_PROTOCOL", "http");
    let host = or_variable(host, "TYO_MQ_HOST", "localhost");
    let port = or_variable(port, "TYO_MQ_PORT", DEFAULT_PORT);
    url(&protocol, &host, &port)
}

fn url(protocol: &str, host: &str, port: &str) -> String {
    format!("{protocol}://{host}:{port}")
}

const DEFAULT_PORT: &str = "17352";

impl Place {
    fn of_flags(file: Option<&Path>, variable: Option<&str>, env: &Env) -> Option<Self> {
        match (file, variable) {
            (Some(file), _) => Some(Self::File(file.to_path_buf())),
            (None, Some(name)) => Some(Self::variable(name.to_owned(), env)),
            (None, None) => None,
        }
    }

    fn of_reference(reference: &Reference, env: &Env) -> Option<Self> {
        let Reference {
            env: variable,
            file,
            stored,
        } = reference;
        Self::of_flags(file.as_deref(), variable.as_deref(), env)
            .or_else(|| Some(Self::Stored(Secret::new(stored.as_deref()?))))
    }

    /// A variable whose name another variable may tell.
    fn default_variable(naming: &str, default: &str, env: &Env) -> Self {
        let name = env.var(naming).unwrap_or_else(|| default.to_owned());
        Self::variable(name, env)
    }

    fn variable(name: String, env: &Env) -> Self {
        let value = env.var(&name).as_deref().map(Secret::new);
        Self::Variable { name, value }
    }

    fn describe(&self) -> String {
        match self {
            Self::File(file) => format!("file {}", file.display()),
            Self::Stored(_) => "the saved context".to_owned(),
            Self::Variable { name, .. } => format!("variable {name}"),
        }
    }
}

impl Source {
    /// Where flags say, or the context, or a variable whose name another one may tell.
    fn resolve(
        what: &'static str,
        (file, variable): (Option<&Path>, Option<&str>),
        kept: Option<&Reference>,
        (naming, default): (&str, &str),
        env: &Env,
    ) -> Self {
        let place = Place::of_flags(file, variable, env)
            .or_else(|| Place::of_reference(kept?, env))
            .unwrap_or_else(|| Place::default_variable(naming, default, env));
        Self {
            what,
            place,
            env_file: env.file().to_path_buf(),
            found: OnceCell::new(),
        }
    }

    /// The secret, if it can be had without asking.
    fn look(&self) -> Result<Option<Secret>, Failure> {
        if let Some(found) = self.found.get() {
            return Ok(Some(found.clone()));
        }
        let looked = match &self.place {
            Place::File(file) => Some(read_secret(file)?),
            Place::Stored(secret) => Some(secret.clone()),
            Place::Variable { value, .. } => value.clone(),
        };
        if let Some(secret) = &looked {
            self.remember(secret);
        }
        Ok(looked)
    }

    /// Standard input, for one, can be read only once.
    fn remember(&self, secret: &Secret) {
        self.found.get_or_init(|| secret.clone());
    }

    fn find(&self, prompt: Prompt) -> Result<Secret, Failure> {
        if let Some(secret) = self.look()? {
            return Ok(secret);
        }
        if prompt.is_terminal() {
            let typed = prompt.secret(&format!("{} (not shown)", self.what))?;
            if !typed.is_empty() {
                let secret = Secret::new(&typed);
                self.remember(&secret);
                return Ok(secret);
            }
        }
        Err(Failure::NoSecret(format!(
            "{} is needed, and {}, in the environment or in {}, has none",
            self.what,
            self.place.describe(),
            self.env_file.display()
        )))
    }
}

/// Reads a secret from a file, or from standard input when the file is `-`. Space around it does not count.
pub(crate) fn read_secret(file: &Path) -> Result<Secret, Failure> {
    let wrong = |what: String| Failure::Local(format!("{}: {what}", file.display()));
    let mut text = String::new();
    let limit = Secret::MAX_BYTES as u64 + 1;
    let read = if file == Path::new("-") {
        std::io::stdin().take(limit).read_to_string(&mut text)
    } else {
        std::fs::File::open(file).and_then(|file| file.take(limit).read_to_string(&mut text))
    };
    read.map_err(|error| wrong(error.to_string()))?;
    let secret = text.trim();
    if secret.is_empty() {
        return Err(wrong("there is no secret in it".to_owned()));
    }
    if text.len() > Secret::MAX_BYTES {
        return Err(wrong(format!("longer than {} bytes", Secret::MAX_BYTES)));
    }
    Ok(Secret::new(secret))
}
