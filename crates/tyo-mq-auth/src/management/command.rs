//! The table of commands: name, who may, what it may touch.

use crate::refusal::Refusal;

use super::{Context, Plan, broker, external, lifetimes, lists, realms, tokens};

/// A command.
#[derive(Debug)]
pub(super) struct Command {
    pub(super) name: &'static str,
    /// Whether a realm's manager may send it for the realm.
    is_realm: bool,
    /// Whether it changes something, and so may be tried out and is audited.
    pub(super) mutates: bool,
    /// Whether a refusal without an ack has an event of its own.
    pub(super) is_asynchronous: bool,
    plan: fn(&Context<'_>) -> Result<Plan, Refusal>,
}

impl Command {
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        COMMANDS.iter().find(|command| command.name == name)
    }

    pub(super) fn plan(&self, context: &Context<'_>) -> Result<Plan, Refusal> {
        (self.plan)(context).map(|plan| plan.for_actor(context))
    }
}

/// Whether a realm's manager may send a command for the realm, by its name.
#[must_use]
pub fn is_realm_command(name: &str) -> bool {
    Command::find(name).is_some_and(|command| command.is_realm)
}

const fn read(name: &'static str, plan: fn(&Context<'_>) -> Result<Plan, Refusal>) -> Command {
    Command {
        name,
        is_realm: false,
        mutates: false,
        is_asynchronous: false,
        plan,
    }
}

const fn change(name: &'static str, plan: fn(&Context<'_>) -> Result<Plan, Refusal>) -> Command {
    Command {
        mutates: true,
        ..read(name, plan)
    }
}

const fn realm(command: Command) -> Command {
    Command {
        is_realm: true,
        ..command
    }
}

const fn asynchronous(command: Command) -> Command {
    Command {
        is_asynchronous: true,
        ..command
    }
}

static COMMANDS: &[Command] = &[
    read("get", lists::get),
    change("reload_settings", broker::reload_settings),
    change("set_global_auth", external::set_global_auth),
    change("set_strict_auth", external::set_strict_auth),
    change("set_jwt_secret", external::set_jwt_secret),
    change("set_external_auth", external::set_external_auth),
    change("add_realm", realms::add),
    change("rename_realm", realms::rename),
    change("remove_realm", realms::remove),
    change("set_realm_auth", realms::set_auth),
    change("set_realm_manager_key", realms::set_manager_key),
    change("set_realm_anonymous", realms::set_anonymous),
    realm(change("set_realm_key", realms::set_key)),
    realm(change("set_realm_acceptance", realms::set_acceptance)),
    realm(change("set_realm_e2ee", realms::set_e2ee)),
    realm(change("set_realm_lifetime", lifetimes::set)),
    change("add_management_token", tokens::add_management),
    change("revoke_management_token", tokens::revoke_management),
    change("add_token", tokens::add),
    change("revoke_token", tokens::revoke),
    change("hash_tokens", tokens::hash_all),
    read("list_realms", lists::realms),
    read("list_tokens", lists::tokens),
    realm(read("list_requests", lists::requests)),
    read("audit", lists::audit),
    read("list_clients", broker::list_clients),
    change("disconnect_client", broker::disconnect_client),
    read("get_limits", broker::get_limits),
    change("set_limits", broker::set_limits),
    change("set_persistence", broker::set_persistence),
    change("backup_auth_store", broker::backup_auth_store),
    asynchronous(read("stats", broker::stats)),
    asynchronous(read("dlq_list", broker::dlq_list)),
    asynchronous(change("dlq_replay", broker::dlq_replay)),
    asynchronous(change("dlq_discard", broker::dlq_discard)),
];
