//! Names of hosts, and which of them an allow-list means.
//!
//! The name that is judged is the name that is dialled. So there is one reading of a
//! name, the strictest: letters, digits, hyphens and dots, or a literal address;
//! everything else (user names, escapes, NULs, spaces) is not a host.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A host and a port, as asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// The host.
    pub(crate) host: Host,
    /// The port.
    pub(crate) port: u16,
}

/// A host: a name in lower case, or an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    /// To be resolved.
    Name(String),
    /// Meant as it stands.
    Address(IpAddr),
}

/// An entry of an allow-list: `example.org`, `*.example.com`, `10.0.0.7:8080`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostRule {
    host: Pattern,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Pattern {
    /// This host.
    Exactly(Host),
    /// Every host below this name, and not the name itself.
    Below(String),
}

// Without a port, an entry means the two that the web is on.
const WEB_PORTS: [u16; 2] = [80, 443];

// Through an API with somebody else's key, everything that was read could be sent
// away. A pattern never means these; who needs one names it.
const MODEL_HOSTS: [&str; 20] = [
    "api.anthropic.com",
    "api.openai.com",
    "generativelanguage.googleapis.com",
    "aiplatform.googleapis.com",
    "openai.azure.com",
    "services.ai.azure.com",
    "cognitiveservices.azure.com",
    "openrouter.ai",
    "api.mistral.ai",
    "api.groq.com",
    "api.deepseek.com",
    "api.x.ai",
    "api.cohere.com",
    "api.cohere.ai",
    "api.together.xyz",
    "api.fireworks.ai",
    "api.perplexity.ai",
    "api.cerebras.ai",
    "api-inference.huggingface.co",
    "router.huggingface.co",
];

/// Whether a name is one behind which models answer, in any region.
fn is_model_host(name: &str) -> bool {
    let is_it = |host: &&str| name == *host || is_below(name, host);
    let is_region = name.ends_with("-aiplatform.googleapis.com")
        || (name.starts_with("bedrock") && name.contains(".amazonaws."));
    is_region || MODEL_HOSTS.iter().any(is_it)
}

impl HostRule {
    /// Whether the entry means this host and port.
    pub(crate) fn allows(&self, target: &Target) -> bool {
        let is_port = match self.port {
            Some(port) => port == target.port,
            None => WEB_PORTS.contains(&target.port),
        };
        is_port
            && match (&self.host, &target.host) {
                (Pattern::Exactly(host), asked) => host == asked,
                (Pattern::Below(parent), Host::Name(name)) => {
                    is_below(name, parent) && !is_model_host(name)
                }
                (Pattern::Below(_), Host::Address(_)) => false,
            }
    }

    /// Whether everything that `other` means is meant by this one too.
    pub(super) fn covers(&self, other: &Self) -> bool {
        let port = self.port == other.port
            || self.port.is_none() && other.port.is_some_and(|port| WEB_PORTS.contains(&port));
        port && match (&self.host, &other.host) {
            (own, other) if own == other => true,
            (Pattern::Below(parent), Pattern::Below(name))
            | (Pattern::Below(parent), Pattern::Exactly(Host::Name(name))) => {
                is_below(name, parent) && !is_model_host(name)
            }
            _ => false,
        }
    }
}

impl Target {
    /// Reads `host:port`; without a port it is `default`.
    pub(crate) fn parse(text: &str, default: Option<u16>) -> Result<Self, String> {
        let (host, port) = split_port(text)?;
        let port = port
            .or(default)
            .ok_or_else(|| format!("`{}` names no port", text.escape_debug()))?;
        Ok(Self {
            host: Host::parse(host)?,
            port,
        })
    }
}

impl Host {
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{}` is not the name of a host", text.escape_debug());
        if let Some(inner) = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
            let address: Ipv6Addr = inner.parse().map_err(|_| wrong())?;
            return Ok(Self::Address(address.to_canonical()));
        }
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Ok(Self::Address(address.into()));
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        let is_label = |label: &str| {
            (1..=63).contains(&label.len())
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
        };
        // `0x7f.1` and `2130706433` are addresses to some resolvers and names to others.
        let last = name.rsplit('.').next().unwrap_or_default();
        let is_numeric = last.starts_with(|c: char| c.is_ascii_digit());
        match name.len() <= 253 && name.split('.').all(is_label) && !is_numeric {
            true => Ok(Self::Name(name)),
            false => Err(wrong()),
        }
    }
}

/// Whether an address is one of the public network: not of this machine, its
/// neighbours or its cloud.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let [a, b, c, _] = address.octets();
            let is_special = address.is_loopback()
                || address.is_private()
                || address.is_link_local()
                || address.is_unspecified()
                || address.is_broadcast()
                || address.is_multicast()
                || address.is_documentation()
                || a == 0
                || a >= 240
                || (a, b & 0xc0) == (100, 64)
                || (a, b, c) == (192, 0, 0)
                || (a, b & 0xfe) == (198, 18);
            !is_special
        }
        IpAddr::V6(address) => {
            let [first, second, ..] = address.segments();
            // Global unicast only; and not the ways to carry the other kind of address.
            (first & 0xe000) == 0x2000
                && first != 0x2002
                && (first, second) != (0x2001, 0)
                && (first, second) != (0x2001, 0xdb8)
        }
    }
}

fn is_below(name: &str, parent: &str) -> bool {
    let prefix = name.strip_suffix(parent);
    prefix.is_some_and(|prefix| prefix.len() > 1 && prefix.ends_with('.'))
}

fn split_port(text: &str) -> Result<(&str, Option<u16>), String> {
    let (host, port) = match text.rsplit_once(':') {
        // An address of six groups has colons of its own.
        Some((host, _)) if host.starts_with('[') && !host.ends_with(']') => (text, None),
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    };
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
    match port {
        None => Ok((host, None)),
        Some(port) if is_port(port) => match port.parse() {
            Ok(0) | Err(_) => Err(format!("`{port}` is not a port")),
            Ok(port) => Ok((host, Some(port))),
        },
        Some(port) => Err(format!("`{}` is not a port", port.escape_debug())),
    }
}

impl FromStr for HostRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (host, port) = split_port(text)?;
        let host = match host.strip_prefix("*.") {
            Some(parent) => match Host::parse(parent)? {
                Host::Name(parent) => Pattern::Below(parent),
                Host::Address(_) => {
                    return Err(format!("`{text}`: an address has nothing below it"));
                }
            },
            None => Pattern::Exactly(Host::parse(host)?),
        };
        Ok(Self { host, port })
    }
}

impl TryFrom<String> for HostRule {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<HostRule> for String {
    fn from(rule: HostRule) -> Self {
        rule.to_string()
    }
}

impl fmt::Display for HostRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Pattern::Exactly(host) => write!(f, "{host}")?,
            Pattern::Below(parent) => write!(f, "*.{parent}")?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn allows(rule: &str, target: &str) -> bool {
        let rule: HostRule = rule.parse().unwrap();
        Target::parse(target, None).is_ok_and(|target| rule.allows(&target))
    }

    #[test]
    fn an_entry_means_its_host_and_nothing_that_looks_like_it() {
        for (rule, target) in [
            ("example.org", "example.org:443"),
            ("example.org", "EXAMPLE.org.:80"),
            ("*.example.com", "registry.example.com:443"),
            ("*.example.com", "a.b.example.com:443"),
            ("10.0.0.7:8080", "10.0.0.7:8080"),
            ("[::1]:8080", "[::1]:8080"),
            ("api.openai.com", "api.openai.com:443"),
        ] {
            assert!(allows(rule, target), "{rule} means {target}");
        }
        for (rule, target) in [
            ("example.org", "example.org:22"),
            ("example.org", "example.org.evil.org:443"),
            ("example.org", "evil-example.org:443"),
            ("example.org", "user@example.org:443"),
            ("example.org", "evil.org\0.example.org:443"),
            ("example.org", "evil.org#example.org:443"),
            ("*.example.com", "example.com:443"),
            ("*.example.com", "evilexample.com:443"),
            ("*.example.com", ".example.com:443"),
            ("*.openai.com", "api.openai.com:443"),
            ("10.0.0.7:8080", "10.0.0.7:80"),
            ("127.0.0.1", "0x7f.1:80"),
            ("127.0.0.1", "2130706433:80"),
            ("127.0.0.1", "127.1:80"),
        ] {
            assert!(!allows(rule, target), "{rule} does not mean {target}");
        }
    }

    #[test]
    fn what_is_no_host_is_no_entry() {
        for text in [
            "",
            "*",
            "*.",
            "a b",
            "http://a.b",
            "a.b/c",
            "*.1.2.3.4",
            "a:0",
            "a:99999",
            "a:+1",
            "a@b",
            "-a.b",
            "[::1",
        ] {
            assert!(text.parse::<HostRule>().is_err(), "{text}");
        }
    }

    #[test]
    fn addresses_of_the_machine_its_neighbours_and_its_cloud_are_not_public() {
        for address in [
            "127.0.0.1",
            "0.0.0.0",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "fe80::1",
            "fc00::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "ff02::1",
            "2001:db8::1",
            "2001::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        for address in ["1.1.1.1", "140.82.121.4", "2606:4700::1111"] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }

    proptest! {
        #[test]
        fn a_rule_is_read_back_as_it_is_written(text in r"(\*\.)?[a-z]{1,9}(\.[a-z]{2,5}){1,2}(:[1-9][0-9]{0,3})?") {
            let rule: HostRule = text.parse().unwrap();
            prop_assert_eq!(rule.to_string(), text);
        }

        #[test]
        fn no_text_makes_the_parser_fail(text in "\\PC{0,40}") {
            let _ = Target::parse(&text, Some(80));
        }
    }
}
