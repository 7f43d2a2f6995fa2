//! Which addresses are reached.
//!
//! A server may be on this machine or in the user's own network, for the user has said
//! so. Addresses that belong to a single wire are never one: behind them are routers,
//! and the machine's own identity in a cloud.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;

/// A page that leads on and on leads nowhere.
const REDIRECTS_MAX: usize = 5;

/// Whether a server may be at this address: plain HTTP, and nobody's password in it.
pub(crate) fn check_url(text: &str) -> Result<(), String> {
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    match url.scheme() {
        "http" | "https" => {}
        other => {
            return Err(format!(
                "`{other}:` is not reached, `https:` and `http:` are"
            ));
        }
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it has a user's name or password in it; put that into `headers`".into());
    }
    match literal(&url) {
        _ if url.host().is_none() => Err("it names no host".into()),
        Some(address) if !is_reached(address) => Err(format!("`{address}` is not reached")),
        _ => Ok(()),
    }
}

/// Whether a page to sign in at may be shown to the user, and opened.
pub(super) fn check_page(text: &str) -> Result<(), String> {
    check_url(text)?;
    let is_odd = |c: char| c.is_control() || c.is_whitespace() || "`'\"<>\\|".contains(c);
    if text.contains(is_odd) {
        return Err("it has characters in it that no address has".into());
    }
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    match url.scheme() == "https" || is_this_machine(&url) {
        true => Ok(()),
        false => Err("whoever listens on the way could read along: it is not `https:`".into()),
    }
}

/// Leads on only within one server: what is sent along is meant for that one.
pub(super) fn redirects() -> Policy {
    Policy::custom(|attempt| {
        let first = attempt.previous().first().map(Url::origin);
        match () {
            () if attempt.previous().len() > REDIRECTS_MAX => attempt.error("it leads on and on"),
            () if first.as_ref() != Some(&attempt.url().origin()) => {
                attempt.error("it leads to another server")
            }
            () => attempt.follow(),
        }
    })
}

/// Finds addresses, and passes over those that are not reached.
pub(super) fn resolver() -> Arc<impl Resolve> {
    struct Careful;
    impl Resolve for Careful {
        fn resolve(&self, name: Name) -> Resolving {
            let host = name.as_str().to_owned();
            Box::pin(async move {
                let found = tokio::net::lookup_host((host.as_str(), 0)).await?;
                let kept: Vec<_> = found.filter(|found| is_reached(found.ip())).collect();
                match kept.is_empty() {
                    true => Err(format!("`{host}` has no address that is reached").into()),
                    false => Ok(Box::new(kept.into_iter()) as Addrs),
                }
            })
        }
    }
    Arc::new(Careful)
}

fn is_reached(address: IpAddr) -> bool {
    let address = match address {
        IpAddr::V6(six) => six.to_ipv4_mapped().map_or(address, IpAddr::V4),
        four => four,
    };
    let is_of_one_wire = match address {
        IpAddr::V4(four) => four.is_link_local() || four.is_broadcast(),
        IpAddr::V6(six) => is_link_local(six),
    };
    !(is_of_one_wire || address.is_unspecified() || address.is_multicast())
}

fn is_link_local(address: Ipv6Addr) -> bool {
    address.segments()[0] & 0xffc0 == 0xfe80
}

fn literal(url: &Url) -> Option<IpAddr> {
    let host = url.host_str()?;
    host.trim_matches(['[', ']']).parse().ok()
}

fn is_this_machine(url: &Url) -> bool {
    let is_loopback = literal(url).is_some_and(|address| address.is_loopback());
    is_loopback || url.host_str() == Some("localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_a_single_wire_are_not_reached() {
        for (url, is_fine) in [
            ("http://127.0.0.1:8080/mcp", true),
            ("http://10.0.0.7/mcp", true),
            ("https://mcp.example/mcp", true),
            ("http://169.254.169.254/latest/meta-data", false),
            ("http://[fe80::1]/", false),
            ("http://[::ffff:169.254.169.254]/", false),
            ("http://0.0.0.0/", false),
            ("http://2852039166/", false),
        ] {
            assert_eq!(check_url(url).is_ok(), is_fine, "{url}");
        }
    }

    #[test]
    fn a_page_to_sign_in_at_is_a_page_and_nothing_else() {
        for (url, is_fine) in [
            ("https://auth.example/authorize?x=1&y=2", true),
            ("http://localhost:9000/authorize", true),
            ("http://auth.example/authorize", false),
            ("javascript:alert(1)", false),
            ("file:///etc/passwd", false),
            ("https://auth.example/`touch x`", false),
            ("https://auth.example/$(id)|sh", false),
            ("https://user@auth.example/", false),
            ("https://auth.example/\n", false),
        ] {
            assert_eq!(check_page(url).is_ok(), is_fine, "{url}");
        }
    }

    #[tokio::test]
    async fn a_name_that_stands_for_this_machine_is_found() {
        let found = resolver().resolve("localhost".parse().unwrap()).await;
        assert!(found.is_ok_and(|mut found| found.next().is_some()));
    }
}
