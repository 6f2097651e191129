//! Whether a `limits` block says what it means: a number that cannot be read would be no limit at all.

use serde_json::Value;

use super::Limit;
use super::address::Network;
use super::config::as_number;

/// What is wrong with a block, with the key inside of it.
///
/// # Errors
/// The first mistake, in words.
pub(crate) fn check(block: &Value) -> Result<(), String> {
    object(block, "")?;
    flag(block, "enabled")?;
    numbers(block, &Limit::ALL, "")?;
    let realms = block.get("realms").unwrap_or(&Value::Null);
    object(realms, "realms")?;
    for (realm, own) in realms.as_object().into_iter().flatten() {
        let path = format!("realms.{realm}");
        object(own, &path)?;
        numbers(own, &Limit::OF_REALM, &path)?;
    }
    for name in ["trust_proxy", "trustProxy"] {
        flag(block, name)?;
    }
    for name in ["trusted_proxies", "trustedProxies"] {
        proxies(block.get(name).unwrap_or(&Value::Null)).map_err(|found| {
            expected(name, "networks such as \"10.0.0.0/8\", or a count", found)
        })?;
    }
    Ok(())
}

/// Names in the blocks of realms that are no limits there, as realm and name.
pub(crate) fn strangers(block: &Value) -> impl Iterator<Item = (&str, &str)> {
    let realms = block.get("realms").and_then(Value::as_object);
    realms.into_iter().flatten().flat_map(|(realm, own)| {
        let names = own.as_object().into_iter().flatten().map(|(name, _)| name);
        names
            .filter(|name| Limit::OF_REALM.iter().all(|limit| limit.0 != *name))
            .map(move |name| (realm.as_str(), name.as_str()))
    })
}

fn object(value: &Value, path: &str) -> Result<(), String> {
    if value.is_object() || value.is_null() {
        return Ok(());
    }
    Err(expected(path, "an object", value))
}

fn flag(block: &Value, name: &str) -> Result<(), String> {
    match block.get(name) {
        None | Some(Value::Null | Value::Bool(_)) => Ok(()),
        Some(found) => Err(expected(name, "true or false", found)),
    }
}

fn numbers(block: &Value, limits: &[Limit], path: &str) -> Result<(), String> {
    for limit in limits {
        match block.get(limit.0) {
            None | Some(Value::Null) => {}
            Some(found) if as_number(found).is_some() => {}
            Some(found) if path.is_empty() => return Err(expected(limit.0, "a number", found)),
            Some(found) => {
                let path = format!("{path}.{}", limit.0);
                return Err(expected(&path, "a number", found));
            }
        }
    }
    Ok(())
}

fn proxies(value: &Value) -> Result<(), &Value> {
    let is_network = |value: &Value| {
        value
            .as_str()
            .is_some_and(|text| Network::parse(text).is_some())
    };
    match value {
        Value::Null => Ok(()),
        Value::Number(count) if count.is_u64() => Ok(()),
        Value::Array(networks) => match networks.iter().find(|network| !is_network(network)) {
            None => Ok(()),
            Some(found) => Err(found),
        },
        value if is_network(value) => Ok(()),
        found => Err(found),
    }
}

fn expected(path: &str, what: &str, found: &Value) -> String {
    let found: String = found.to_string().chars().take(MAX_SHOWN_CHARS).collect();
    if path.is_empty() {
        return format!("expected {what}, found {found}");
    }
    format!("{path}: expected {what}, found {found}")
}

const MAX_SHOWN_CHARS: usize = 60;
