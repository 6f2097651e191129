//! The menu's entries: what each asks for, and the command that comes of it.

use tyo_mq_auth::json::{Object, Value};

use crate::app::App;
use crate::call::Request;
use crate::cli::{
    Acceptance, Access, AuthCommand, Command, DlqCommand, Lifetime, Page, RealmAdd, RealmCommand,
    RealmSetKey, RequestCommand, SecretArgs, SettingsCommand, TokenCommand, TokenRevoke,
};
use crate::commands::{list_dead_letters, show_next_request};
use crate::exit::Failure;
use crate::output::field;

/// What the menu can do.
#[derive(Debug, Clone, Copy)]
pub(super) enum Entry {
    Settings,
    EnableAuth,
    DisableAuth,
    AddRealm,
    RenameRealm,
    RequireAuth,
    WaiveAuth,
    Verify,
    NextRequest,
    ApproveNext,
    RejectNext,
    Approve,
    Reject,
    RevokeToken,
    ManagerKey,
    ConsumerKey,
    Acceptance,
    Stats,
    ListDlq,
    ReplayDlq,
    DiscardDlq,
    RemoveRealm,
    ListRealms,
    ListRequests,
    ListTokens,
    ListClients,
    Lifetime,
    Reload,
    Audit,
}

/// The entries by their numbers. Those up to 22 have the numbers that the reference's menu has.
pub(super) const ENTRIES: [(u32, &str, Entry); 29] = [
    (1, "show settings", Entry::Settings),
    (2, "enable authentication", Entry::EnableAuth),
    (3, "disable authentication", Entry::DisableAuth),
    (4, "add a realm", Entry::AddRealm),
    (5, "rename a realm", Entry::RenameRealm),
    (6, "require authentication in a realm", Entry::RequireAuth),
    (7, "open a realm", Entry::WaiveAuth),
    (8, "verify the admin's token", Entry::Verify),
    (9, "show the next request for admission", Entry::NextRequest),
    (10, "approve the next request", Entry::ApproveNext),
    (11, "reject the next request", Entry::RejectNext),
    (12, "approve a request by its id", Entry::Approve),
    (13, "reject a request by its id", Entry::Reject),
    (14, "revoke a client's token", Entry::RevokeToken),
    (15, "set or clear a realm's manager key", Entry::ManagerKey),
    (
        16,
        "set or clear a realm's consumer key",
        Entry::ConsumerKey,
    ),
    (17, "acceptance of a realm's producers", Entry::Acceptance),
    (18, "statistics", Entry::Stats),
    (19, "list dead letters", Entry::ListDlq),
    (20, "replay a dead letter", Entry::ReplayDlq),
    (21, "discard a dead letter", Entry::DiscardDlq),
    (22, "remove a realm", Entry::RemoveRealm),
    (23, "list realms", Entry::ListRealms),
    (24, "list requests for admission", Entry::ListRequests),
    (25, "list clients' tokens", Entry::ListTokens),
    (26, "list connected clients", Entry::ListClients),
    (27, "set a realm's lifetime", Entry::Lifetime),
    (28, "read the settings file again", Entry::Reload),
    (29, "show the audit trail", Entry::Audit),
];

impl Entry {
    /// Asks for what is needed; none when there is nothing to do.
    pub(super) async fn prepare(self, app: &App) -> Result<Option<Command>, Failure> {
        let command = match self {
            Self::Settings => Command::Settings(SettingsCommand::Get),
            Self::Reload => Command::Settings(SettingsCommand::Reload),
            Self::EnableAuth => Command::Auth(AuthCommand::Enable),
            Self::DisableAuth => Command::Auth(AuthCommand::Disable),
            // The scripts' menu signs a `get`, which works also while authentication is off.
            Self::Verify => return verify(app).await.map(|()| None),
            Self::Stats => Command::Stats,
            Self::NextRequest => {
                show_next_request(app, realm_filter(app)?.as_deref()).await?;
                return Ok(None);
            }
            Self::ListRequests => Command::Request(RequestCommand::List(PAGE)),
            Self::ListTokens => Command::Token(TokenCommand::List(PAGE)),
            Self::ListClients => Command::Client(crate::cli::ClientCommand::List(PAGE)),
            Self::Audit => Command::Audit(PAGE),
            Self::ListDlq => {
                list_dead_letters(app, realm_filter(app)?.as_deref()).await?;
                return Ok(None);
            }
            Self::ApproveNext | Self::RejectNext => return self.decide_next(app).await,
            Self::Approve | Self::Reject => {
                let id = required(app, "id of the request")?;
                self.decision(app, id, "")?
            }
            Self::RevokeToken => return revoke_token(app).await,
            Self::ReplayDlq => {
                let ids = vec![required(app, "id of the dead letter")?];
                Command::Dlq(DlqCommand::Replay { ids })
            }
            Self::DiscardDlq => {
                let ids = vec![required(app, "id of the dead letter")?];
                Command::Dlq(DlqCommand::Discard { ids })
            }
            _ => Command::Realm(self.realm_command(app)?),
        };
        Ok(Some(command))
    }

    fn realm_command(self, app: &App) -> Result<RealmCommand, Failure> {
        if matches!(self, Self::ListRealms) {
            return Ok(RealmCommand::List {
                prefix: None,
                page: PAGE,
            });
        }
        let name = required(app, "name of the realm")?;
        Ok(match self {
            Self::AddRealm => add_realm(app, name)?,
            Self::RenameRealm => RealmCommand::Rename {
                from: name,
                to: required(app, "its new name")?,
            },
            Self::RequireAuth => RealmCommand::SetAuth {
                name,
                access: Access::Required,
            },
            Self::WaiveAuth => RealmCommand::SetAuth {
                name,
                access: Access::Open,
            },
            Self::ManagerKey => RealmCommand::SetManagerKey {
                name,
                secret: new_key(app)?,
            },
            Self::ConsumerKey => RealmCommand::SetKey(RealmSetKey {
                name,
                secret: new_key(app)?,
                require_key: None,
            }),
            Self::Acceptance => RealmCommand::SetAcceptance {
                name,
                acceptance: match app.prompt.confirm("must producers be accepted", true)? {
                    true => Acceptance::Required,
                    false => Acceptance::Waived,
                },
            },
            Self::Lifetime => set_lifetime(app, name)?,
            _ => RealmCommand::Remove { name },
        })
    }

    /// Shows the next request and has it decided, if the user agrees.
    async fn decide_next(self, app: &App) -> Result<Option<Command>, Failure> {
        let answer = show_next_request(app, realm_filter(app)?.as_deref()).await?;
        let Some(request) = answer.get("request").and_then(Value::as_object) else {
            return Ok(None);
        };
        let verb = match self {
            Self::ApproveNext => "approve",
            _ => "reject",
        };
        if !app.prompt.confirm(&format!("{verb} it"), false)? {
            return Ok(None);
        }
        let (id, role) = (field(request, "request_id"), field(request, "role"));
        self.decision(app, id, &role).map(Some)
    }

    fn decision(self, app: &App, id: String, asked_for: &str) -> Result<Command, Failure> {
        let command = match self {
            Self::Approve | Self::ApproveNext => {
                let question = "role (empty for what was asked for)";
                let role = app.prompt.text(question, asked_for)?;
                RequestCommand::Approve {
                    id,
                    role: Some(role).filter(|role| !role.is_empty()),
                }
            }
            _ => RequestCommand::Reject {
                id,
                reason: optional(app, "reason (empty for none)")?,
            },
        };
        Ok(Command::Request(command))
    }
}

async fn verify(app: &App) -> Result<(), Failure> {
    let answer = app.ask(&Request::command("get")).await?;
    let answer = Object::new().with("ok", answer.get("ok").cloned());
    app.output
        .answer(&answer, |_| "the token is good".to_owned());
    Ok(())
}

fn add_realm(app: &App, name: String) -> Result<RealmCommand, Failure> {
    let open = !app.prompt.confirm("require authentication", true)?;
    let ephemeral = app.prompt.confirm("does it end by itself", false)?;
    let ttl = match ephemeral {
        true => optional(app, "after which time (empty for the broker's default)")?,
        false => None,
    };
    Ok(RealmCommand::Add(RealmAdd {
        name,
        open,
        ephemeral,
        ttl,
        acceptance: None,
        e2ee: None,
        generate_manager_key: false,
        generate_key: false,
    }))
}

fn set_lifetime(app: &App, name: String) -> Result<RealmCommand, Failure> {
    let lifetime = match app.prompt.confirm("does it end by itself", false)? {
        true => Lifetime::Ephemeral,
        false => Lifetime::Permanent,
    };
    let ttl = match lifetime {
        Lifetime::Ephemeral => optional(app, "after which time (empty for the broker's default)")?,
        Lifetime::Permanent => None,
    };
    Ok(RealmCommand::SetLifetime {
        name,
        lifetime,
        ttl,
    })
}

/// By its hash, or all of a client in a realm that need not be the menu's.
async fn revoke_token(app: &App) -> Result<Option<Command>, Failure> {
    let hash = optional(app, "hash of the token (empty: by realm and client)")?;
    if hash.is_some() {
        let revoke = TokenRevoke {
            hash,
            client_id: None,
            allow_admin: false,
        };
        return Ok(Some(Command::Token(TokenCommand::Revoke(revoke))));
    }
    let realm = required(app, "realm of the client")?;
    let client = required(app, "id of the client")?;
    app.confirm(&format!(
        "Revoke all tokens of {client:?} in realm {realm:?}?"
    ))?;
    let request = Request::command("revoke_token")
        .with("realm", realm)
        .with("client_id", client);
    app.change(request, |_| "revoked".to_owned()).await?;
    Ok(None)
}

fn new_key(app: &App) -> Result<SecretArgs, Failure> {
    let how = app
        .prompt
        .text("generate a new key, type one, or clear it (g/t/c)", "g")?;
    let is = |letter: &str| how.to_lowercase().starts_with(letter);
    Ok(SecretArgs {
        generate: is("g"),
        clear: is("c"),
        from_env: None,
        from_file: None,
    })
}

/// Which realm's; the menu's own is proposed, if it has one.
fn realm_filter(app: &App) -> Result<Option<String>, Failure> {
    let realm = app
        .prompt
        .text("realm (empty for any)", app.realm().unwrap_or_default())?;
    Ok(Some(realm).filter(|realm| !realm.is_empty()))
}

fn optional(app: &App, question: &str) -> Result<Option<String>, Failure> {
    let text = app.prompt.text(question, "")?;
    Ok(Some(text).filter(|text| !text.is_empty()))
}

fn required(app: &App, question: &str) -> Result<String, Failure> {
    optional(app, question)?.ok_or_else(|| Failure::Usage(format!("{question}: is needed")))
}

const PAGE: Page = Page {
    limit: 100,
    offset: 0,
};
