//! The `cors` block in the forms that Socket.IO servers take: a text, a list, or `true` and `false` for the origin.

use serde::{Deserialize, Serialize};

/// Which web pages may use the broker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CorsSettings {
    /// Origins.
    pub origin: OriginSetting,
    /// Methods; kept for compatibility, the broker answers GET and POST.
    pub methods: MethodSetting,
    /// Whether pages may send credentials.
    pub credentials: bool,
}

impl Default for CorsSettings {
    fn default() -> Self {
        Self {
            origin: OriginSetting::One("*".to_owned()),
            methods: MethodSetting::List(vec!["GET".to_owned(), "POST".to_owned()]),
            credentials: true,
        }
    }
}

/// Origins that may use the broker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OriginSetting {
    /// `true` is any, `false` none.
    Any(bool),
    /// `*` is any.
    One(String),
    /// These.
    List(Vec<String>),
}

/// HTTP methods, as a list or in one text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum MethodSetting {
    /// Separated by commas.
    Text(String),
    /// One by one.
    List(Vec<String>),
}

impl OriginSetting {
    /// As the transport takes it.
    pub fn origins(&self) -> tyo_mq_transport::Origins {
        use tyo_mq_transport::Origins;
        match self {
            Self::Any(true) => Origins::Any,
            Self::Any(false) => Origins::Nobody,
            Self::One(origin) if origin == "*" => Origins::Any,
            Self::One(origin) => Origins::List(vec![origin.clone()]),
            Self::List(origins) if origins.iter().any(|origin| origin == "*") => Origins::Any,
            Self::List(origins) => Origins::List(origins.clone()),
        }
    }
}
