//! Realm names, roles, and which role may send which event.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use tyo_mq_protocol::events;

/// The name of a realm: 1 to 256 bytes without control characters.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RealmName(Arc<str>);

impl RealmName {
    /// The longest name, in bytes.
    pub const MAX_BYTES: usize = 256;

    /// Checks a name.
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        let fits = (1..=Self::MAX_BYTES).contains(&name.len());
        (fits && !name.chars().any(char::is_control)).then(|| Self(name.into()))
    }

    /// `default`, where whoever names no realm is.
    #[must_use]
    pub fn default_realm() -> Self {
        Self(DEFAULT.into())
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is `*`, which observes all realms.
    #[must_use]
    pub fn is_wildcard(&self) -> bool {
        &*self.0 == WILDCARD
    }

    /// Whether it is `default` or `*`, which are always there.
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        self.is_wildcard() || &*self.0 == DEFAULT
    }

    /// Whether it is under a prefix: begins with it and goes on.
    #[must_use]
    pub fn is_under(&self, prefix: &str) -> bool {
        self.0.len() > prefix.len() && self.0.starts_with(prefix)
    }
}

impl Borrow<str> for RealmName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RealmName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for RealmName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

/// What a session may do in its realm.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Role {
    /// Publishes.
    Producer,
    /// Subscribes.
    Consumer,
    /// Both.
    Both,
    /// As both; only tokens give it.
    Manager,
    /// As both; only tokens give it.
    Admin,
    /// A role that a token names and we do not know: only what every session may do.
    Other(Arc<str>),
}

impl Role {
    /// The longest name of a role, in bytes.
    pub const MAX_BYTES: usize = 64;

    /// Reads a role; names that are unknown but possible are [`Role::Other`].
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::known(name).or_else(|| {
            let possible = (1..=Self::MAX_BYTES).contains(&name.len());
            (possible && !name.chars().any(char::is_control)).then(|| Self::Other(name.into()))
        })
    }

    /// Reads a role that this broker knows.
    #[must_use]
    pub fn known(name: &str) -> Option<Self> {
        Some(match name {
            "producer" => Self::Producer,
            "consumer" => Self::Consumer,
            "both" => Self::Both,
            "manager" => Self::Manager,
            "admin" => Self::Admin,
            _ => return None,
        })
    }

    /// The role that a connection without a token gets when it declares this one.
    #[must_use]
    pub fn declared(name: Option<&str>) -> Self {
        match name {
            Some("producer") => Self::Producer,
            Some("consumer") => Self::Consumer,
            _ => Self::Both,
        }
    }

    /// The name on the wire.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Producer => "producer",
            Self::Consumer => "consumer",
            Self::Both => "both",
            Self::Manager => "manager",
            Self::Admin => "admin",
            Self::Other(name) => name,
        }
    }

    /// Whether only the global admin may give it.
    #[must_use]
    pub const fn is_elevated(&self) -> bool {
        matches!(self, Self::Manager | Self::Admin)
    }

    /// Whether it may publish.
    #[must_use]
    pub const fn produces(&self) -> bool {
        !matches!(self, Self::Consumer | Self::Other(_))
    }

    /// Whether it may subscribe.
    #[must_use]
    pub const fn consumes(&self) -> bool {
        !matches!(self, Self::Producer | Self::Other(_))
    }

    /// Whether it may send an event of this permission.
    #[must_use]
    pub const fn allows(&self, permission: Permission) -> bool {
        match permission {
            Permission::Free | Permission::Session => true,
            Permission::Produce => self.produces(),
            Permission::Consume => self.consumes(),
            Permission::Either => self.produces() || self.consumes(),
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What an event asks of its sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Permission {
    /// Nothing; the event proves itself or admits.
    Free,
    /// Any admitted session.
    Session,
    /// A role that publishes.
    Produce,
    /// A role that subscribes.
    Consume,
    /// A known role.
    Either,
}

impl Permission {
    /// The permission of an event by its name on the wire. Events that are not known ask for a session.
    #[must_use]
    pub fn of(event: &str) -> Self {
        match event {
            events::AUTHENTICATION
            | events::AUTHORIZATION_REQUEST
            | events::AUTHORIZATION_NEXT
            | events::AUTHORIZATION_DECIDE
            | events::AUTH_MANAGEMENT_COMMAND => Self::Free,
            events::PRODUCER | events::PRODUCE | events::PRODUCE_CHUNK => Self::Produce,
            events::CONSUMER | events::SUBSCRIBE | events::UNSUBSCRIBE | events::ACK => {
                Self::Consume
            }
            "KEY_PUBLISH"
            | "KEY_LOOKUP"
            | "PREKEY_PUBLISH"
            | "PREKEY_TAKE"
            | "SEALED_CERT_REQUEST"
            | "SEALED_UAK_SET"
            | "SEALED_DELIVER"
            | "SEALED_SUBSCRIBE"
            | "PUSH_REGISTER"
            | "PUSH_UNREGISTER" => Self::Either,
            _ => Self::Session,
        }
    }
}

const DEFAULT: &str = "default";
const WILDCARD: &str = "*";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn realm_names() {
        for good in [
            "a",
            "default",
            "*",
            "org:zoë",
            "__proto__",
            "toString",
            &"x".repeat(256),
        ] {
            assert!(RealmName::new(good).is_some(), "{good}");
        }
        for bad in [
            "",
            "a\nb",
            "\0",
            "\u{7f}",
            "\u{85}",
            &"x".repeat(257),
            &"é".repeat(129),
            &"x".repeat(1 << 20),
        ] {
            assert!(RealmName::new(bad).is_none());
        }
    }

    #[test]
    fn prefixes() {
        let name = RealmName::new("apps:one").unwrap();
        assert!(name.is_under("apps:") && name.is_under(""));
        assert!(!name.is_under("apps:one") && !name.is_under("app:"));
    }

    /// The role matrix of the specification.
    #[test]
    fn role_matrix() {
        let matrix = [
            (
                "PRODUCER PRODUCE PRODUCE_CHUNK",
                "producer both manager admin",
            ),
            (
                "CONSUMER SUBSCRIBE UNSUBSCRIBE ACK",
                "consumer both manager admin",
            ),
            (
                "KEY_PUBLISH KEY_LOOKUP PREKEY_PUBLISH PREKEY_TAKE SEALED_CERT_REQUEST SEALED_UAK_SET SEALED_DELIVER SEALED_SUBSCRIBE PUSH_REGISTER PUSH_UNREGISTER",
                "producer consumer both manager admin",
            ),
            (
                "PING HELLO DEBUG QUIT REMOTE_TICKET_REQUEST",
                "producer consumer both manager admin wizard",
            ),
        ];
        for (events, allowed) in matrix {
            for event in events.split(' ') {
                for role in ["producer", "consumer", "both", "manager", "admin", "wizard"] {
                    let expected = allowed.split(' ').any(|name| name == role);
                    let allows = Role::parse(role).unwrap().allows(Permission::of(event));
                    assert_eq!(allows, expected, "{role} {event}");
                }
            }
        }
    }
}
