//! Who a client is when proxies stand between: a header is believed as far as it was written by somebody trusted.

use std::net::IpAddr;

use serde_json::Value;

/// Which proxies are believed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum TrustedProxies {
    /// None: the socket's own address counts.
    #[default]
    Nobody,
    /// Whoever it is, and the leftmost address that they give: what the reference does with `trust_proxy`.
    Leftmost,
    /// So many proxies of ours stand in a row before the broker.
    Hops(usize),
    /// Proxies in these networks.
    Networks(Vec<Network>),
}

/// A network: the addresses that share its first bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Network {
    address: IpAddr,
    bits: u8,
}

impl TrustedProxies {
    pub(crate) fn from_settings(block: &Value) -> Self {
        match block
            .get("trusted_proxies")
            .or_else(|| block.get("trustedProxies"))
        {
            Some(Value::Number(hops)) => match hops.as_u64() {
                Some(hops) if hops > 0 => Self::Hops(usize::try_from(hops).unwrap_or(usize::MAX)),
                _ => Self::Nobody,
            },
            Some(Value::Array(networks)) => Self::Networks(
                networks
                    .iter()
                    .filter_map(Value::as_str)
                    .filter_map(Network::parse)
                    .collect(),
            ),
            Some(Value::String(network)) => {
                Self::Networks(Network::parse(network).into_iter().collect())
            }
            _ => {
                let trust = block.get("trust_proxy").or_else(|| block.get("trustProxy"));
                if trust.and_then(Value::as_bool).unwrap_or(false) {
                    Self::Leftmost
                } else {
                    Self::Nobody
                }
            }
        }
    }
}

impl Network {
    /// `10.0.0.0/8`, or a single address.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (address, bits) = text.split_once('/').unwrap_or((text, ""));
        let address: IpAddr = address.trim().parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = if bits.is_empty() {
            most
        } else {
            bits.trim().parse().ok()?
        };
        (bits <= most).then_some(Self { address, bits })
    }

    fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => shared(
                u128::from(u32::from(own)),
                u128::from(u32::from(other)),
                32 - u32::from(self.bits),
            ),
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                shared(own.into(), other.into(), 128 - u32::from(self.bits))
            }
            _ => false,
        }
    }
}

fn shared(left: u128, right: u128, free_bits: u32) -> bool {
    (left ^ right).checked_shr(free_bits).unwrap_or(0) == 0
}

/// The client's address: the socket's, or what trusted proxies say in `X-Forwarded-For`. An entry that is no address
/// ends the search: whoever wrote it is not believed.
pub(crate) fn client_address(
    socket: IpAddr,
    forwarded_for: &[&str],
    proxies: &TrustedProxies,
) -> IpAddr {
    let socket = socket.to_canonical();
    let entries = || {
        forwarded_for
            .iter()
            .flat_map(|line| line.split(','))
            .map(str::trim)
    };
    let parse = |entry: &str| {
        entry
            .parse::<IpAddr>()
            .ok()
            .map(|address| address.to_canonical())
    };
    match proxies {
        TrustedProxies::Nobody => socket,
        TrustedProxies::Leftmost => entries().next().and_then(parse).unwrap_or(socket),
        TrustedProxies::Hops(hops) => {
            let mut from_right: Vec<&str> = entries().collect();
            from_right.reverse();
            from_right
                .iter()
                .take(*hops)
                .map_while(|entry| parse(entry))
                .last()
                .unwrap_or(socket)
        }
        TrustedProxies::Networks(networks) => {
            let trusted =
                |address: IpAddr| networks.iter().any(|network| network.contains(address));
            let mut believed = socket;
            let mut entries: Vec<&str> = entries().collect();
            while trusted(believed) {
                match entries.pop().and_then(parse) {
                    Some(address) => believed = address,
                    None => break,
                }
            }
            believed
        }
    }
}
