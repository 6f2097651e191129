//! Commands that ask no broker: tokens, proofs, completion.

use std::io::Read;

use clap::CommandFactory;
use tyo_mq_auth::SignedEvent;
use tyo_mq_auth::json::{Object, Value};
use tyo_mq_auth::jwt::mint;
use tyo_mq_auth::names::{RealmName, Role};
use tyo_mq_auth::proof::{MAX_PAYLOAD_BYTES, sign};

use crate::app::App;
use crate::call::{now_ms, random_hex};
use crate::cli::{Cli, CompletionArgs, JwtCommand, JwtMint, ProofCommand, ProofSign};
use crate::exit::Failure;
use crate::output::{field, print};
use crate::time::duration;

/// Writes the shell's completion script.
pub(super) fn completion(args: &CompletionArgs) {
    let mut command = Cli::command();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "tyo-mq-manager", &mut script);
    let script = String::from_utf8_lossy(&script);
    // For bash, a program whose name has dashes is named in two ways, and its subcommands are not found.
    print(&script.replace("tyo__subcmd__mq__subcmd__manager", "tyo__mq__manager"));
}

/// `jwt`.
pub(super) fn jwt(app: &App, command: JwtCommand) -> Result<(), Failure> {
    let JwtCommand::Mint(args) = command;
    let realm = app.required_realm()?;
    if RealmName::new(realm).is_none() {
        return Err(Failure::Usage(format!("{realm:?} is no name of a realm")));
    }
    let role = Role::known(&args.role);
    let role = role.ok_or_else(|| Failure::Usage(format!("there is no role {:?}", args.role)))?;
    let secret = app.secret_from(args.secret_env.as_deref(), args.secret_file.as_deref())?;
    let secret = match secret {
        Some(secret) => secret,
        None => app.target.manager_key()?,
    };
    let claims = claims(&args, realm, &role)?;
    let token = mint(&secret, &claims);
    let answer = Object::new()
        .with("ok", true)
        .with("token", token)
        .with("claims", claims);
    app.output.answer(&answer, |answer| field(answer, "token"));
    Ok(())
}

fn claims(args: &JwtMint, realm: &str, role: &Role) -> Result<Object, Failure> {
    let now_s = now_ms() / 1000;
    let mut claims = Object::new()
        .with("realm", realm)
        .with("role", role.as_str())
        .with("iat", now_s);
    if args.expires != "never" {
        let lifetime = duration(&args.expires).map_err(Failure::Usage)?;
        claims.set("exp", now_s.saturating_add(lifetime.as_secs().max(1)));
    }
    if let Some(subject) = &args.subject {
        claims.set("sub", subject.as_str());
    }
    Ok(claims)
}

/// `proof`.
pub(super) fn proof(app: &App, command: ProofCommand) -> Result<(), Failure> {
    let ProofCommand::Sign(ProofSign {
        action,
        body,
        timestamp,
        nonce,
    }) = command;
    if SignedEvent::from_name(&action).is_none() {
        return Err(Failure::Usage(format!("no event {action:?} is signed")));
    }
    let body = match body.as_str() {
        "-" => read_stdin()?,
        _ => body,
    };
    let Ok(Value::Object(body)) = Value::parse(&body) else {
        return Err(Failure::Usage("the body must be a JSON object".to_owned()));
    };
    let secret = app.target.realm_signer()?;
    let nonce = nonce.unwrap_or_else(|| random_hex(16));
    let payload = sign(
        &secret,
        &action,
        timestamp.unwrap_or_else(now_ms),
        &nonce,
        &body,
    );
    print(&Value::from(payload).to_json());
    Ok(())
}

fn read_stdin() -> Result<String, Failure> {
    let mut text = String::new();
    let limit = MAX_PAYLOAD_BYTES as u64;
    let read = std::io::stdin().take(limit).read_to_string(&mut text);
    read.map_err(|error| Failure::Local(format!("standard input: {error}")))?;
    Ok(text)
}
