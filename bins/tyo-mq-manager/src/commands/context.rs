//! `context`: saved servers.

use std::path::{Path, PathBuf};

use tyo_mq_auth::json::{Object, Value};
use tyo_mq_client::Address;

use crate::cli::{ContextAdd, ContextCommand, Global};
use crate::context_file::{Context, ContextFile, Reference};
use crate::env::Env;
use crate::exit::Failure;
use crate::output::{Output, field, fields, objects, printable, table};
use crate::prompt::Prompt;
use crate::target::Target;

/// `context`.
pub(super) fn run(global: &Global, command: ContextCommand) -> Result<(), Failure> {
    let output = Output { json: global.json };
    let mut file = ContextFile::load()?;
    match command {
        ContextCommand::List => list(output, &file),
        ContextCommand::Show { name } => return show(output, &file, name),
        ContextCommand::Add(args) => return add(global, &mut file, &args),
        ContextCommand::Use { name } => {
            file.context(&name)?;
            let said = format!("context {name:?} is the current one");
            file.current = Some(name);
            save(global, &file, &said)?;
        }
        ContextCommand::Remove { name } => {
            file.context(&name)?;
            file.contexts.remove(&name);
            if file.current.as_deref() == Some(&name) {
                file.current = None;
            }
            save(global, &file, &format!("context {name:?} is forgotten"))?;
        }
    }
    Ok(())
}

fn list(output: Output, file: &ContextFile) {
    let contexts: Vec<Value> = file
        .contexts
        .iter()
        .map(|(name, context)| {
            let is_current = file.current.as_deref() == Some(name);
            described(name, context, is_current).into()
        })
        .collect();
    let answer = Object::new().with("ok", true).with("contexts", contexts);
    output.answer(&answer, |answer| {
        let rows = objects(answer, "contexts")
            .into_iter()
            .map(|context| COLUMNS.map(|name| field(context, name)).into());
        let headers = COLUMNS.map(|name| name.trim_start_matches("is_"));
        table(
            &headers,
            rows.collect(),
            "no contexts; `context add` saves one",
        )
    });
}

const COLUMNS: [&str; 7] = [
    "name",
    "current",
    "url",
    "ca_file",
    "realm",
    "token",
    "manager_key",
];

fn described(name: &str, context: &Context, is_current: bool) -> Object {
    Object::new()
        .with("name", name)
        .with("current", is_current)
        .with("url", context.url.as_str())
        .with("ca_file", context.ca_file.as_deref().map(shown_path))
        .with("realm", context.realm.as_deref())
        .with("token", context.token.describe())
        .with("manager_key", context.manager_key.describe())
}

fn show(output: Output, file: &ContextFile, name: Option<String>) -> Result<(), Failure> {
    let name = name.or_else(|| file.current.clone()).ok_or_else(|| {
        Failure::NotFound("there is no current context; `context use` chooses one".to_owned())
    })?;
    let context = file.context(&name)?;
    let is_current = file.current.as_deref() == Some(&name);
    let answer = described(&name, context, is_current).with("ok", true);
    output.answer(&answer, |answer| {
        let shown: Vec<_> = COLUMNS
            .iter()
            .map(|name| (*name, field(answer, name)))
            .collect();
        fields(&shown)
    });
    Ok(())
}

fn add(global: &Global, file: &mut ContextFile, args: &ContextAdd) -> Result<(), Failure> {
    let name = &args.name;
    if name.is_empty() || name.chars().any(char::is_control) {
        return Err(Failure::Usage("that is no name for a context".to_owned()));
    }
    if file.contexts.contains_key(name) && !global.yes {
        let message = format!("there is a context {name:?}; --yes replaces it");
        return Err(Failure::Exists(message));
    }
    // The name may be that of the context in use: what is saved must come from the flags.
    let env = Env::load(global.env_file.as_deref())?;
    let target = Target::resolve(global, &env, Prompt::of_stdin())?;
    let address: Address = target
        .url
        .parse()
        .map_err(|error: tyo_mq_client::AddressError| Failure::Usage(error.to_string()))?;
    let token = if args.store_token {
        Reference {
            stored: Some(target.admin_token()?.expose().to_owned()),
            ..Reference::default()
        }
    } else {
        reference(global.token_env.as_deref(), global.token_file.as_deref())
    };
    let manager_key = reference(
        global.manager_key_env.as_deref(),
        global.manager_key_file.as_deref(),
    );
    let context = Context {
        url: address.to_string(),
        ca_file: global.ca_file.as_deref().map(full_path),
        realm: global.realm.clone(),
        token,
        manager_key,
    };
    file.contexts.insert(name.clone(), context);
    if args.make_current || file.current.is_none() {
        file.current = Some(name.clone());
    }
    save(global, file, &format!("context {name:?} is saved"))
}

/// Where a secret is. Files are kept by their full path, so that the context works from everywhere.
fn reference(variable: Option<&str>, file: Option<&Path>) -> Reference {
    Reference {
        env: variable.map(str::to_owned),
        file: file.map(full_path),
        stored: None,
    }
}

fn full_path(file: &Path) -> PathBuf {
    std::path::absolute(file).unwrap_or_else(|_| file.to_path_buf())
}

fn shown_path(file: &Path) -> String {
    file.display().to_string()
}

fn save(global: &Global, file: &ContextFile, said: &str) -> Result<(), Failure> {
    let output = Output { json: global.json };
    if global.dry_run {
        let answer = Object::new().with("ok", true).with("dry_run", true);
        output.answer(&answer, |_| format!("would be so: {}", printable(said)));
        return Ok(());
    }
    file.save()?;
    let answer = Object::new().with("ok", true);
    output.answer(&answer, |_| printable(said));
    Ok(())
}
