//! Requests to URLs that strangers choose: they reach no address of this machine or of its networks.

use std::{
    error::Error,
    io,
    net::{IpAddr, SocketAddr},
};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::net::lookup_host;
use url::{Host, Url};

/// The longest URL that a stranger may choose, in bytes.
const LONGEST: usize = 1024;

/// `url`, if a stranger may choose it: `https`, with a name that is no name of this machine, and nothing that would be sent to it as a
/// password. What the name leads to is judged by [`PublicAddresses`].
#[must_use]
pub fn public_url(url: &str) -> Option<Url> {
    if url.len() > LONGEST {
        return None;
    }
    let url = Url::parse(url).ok()?;
    // An address would not be looked up, and a name without a dot is one of this network.
    let has_name = matches!(url.host(), Some(Host::Domain(name)) if name.trim_end_matches('.').contains('.'));
    let has_password = !url.username().is_empty() || url.password().is_some();
    (url.scheme() == "https" && has_name && !has_password).then_some(url)
}

/// Looks names up, and gives the addresses that are public. A client with this resolver must use no proxy, as that would look the names
/// up, and must follow no redirects, which may lead to an address.
#[derive(Clone, Copy, Debug)]
pub struct PublicAddresses;

impl Resolve for PublicAddresses {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found: Vec<SocketAddr> = lookup_host((name.as_str(), 0)).await?.collect();
            let public: Vec<SocketAddr> = found.into_iter().filter(|address| is_public(address.ip())).collect();
            if public.is_empty() {
                return Err(io::Error::other("the name leads to no public address").into());
            }
            Ok::<Addrs, Box<dyn Error + Send + Sync>>(Box::new(public.into_iter()))
        })
    }
}

/// Whether an address is reached over the internet: none of this machine, a network of its own, or one for special purposes
/// (<https://www.iana.org/assignments/iana-ipv4-special-registry>, <https://www.iana.org/assignments/iana-ipv6-special-registry>).
fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => !matches!(
            address.octets(),
            [0 | 10 | 127 | 224..=255, ..]
                | [100, 64..=127, ..]
                | [169, 254, ..]
                | [172, 16..=31, ..]
                | [192, 0, 0 | 2, _]
                | [192, 88, 99, _]
                | [192, 168, ..]
                | [198, 18 | 19, ..]
                | [198, 51, 100, _]
                | [203, 0, 113, _]
        ),
        // 6to4 (2002) and Teredo (2001:0) contain other addresses.
        IpAddr::V6(address) => !matches!(
            address.segments(),
            [0..=0x1fff | 0x2002 | 0x4000..=0xffff, ..]
                | [0x2001, 0..=0x01ff | 0x0db8, ..]
                | [0x3fff, 0..=0x0fff, ..]
        ),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("https://push.example.org/a?b=c", true)]
    #[case("https://push.example.org:8443/a", true)]
    #[case("http://push.example.org/a", false)]
    #[case("https://localhost/a", false)]
    #[case("https://push/a", false)]
    #[case("https://push./a", false)]
    #[case("https://192.0.78.1/a", false)]
    #[case("https://0x7f.1/a", false)]
    #[case("https://[2606:4700::1]/a", false)]
    #[case("https://user@push.example.org/a", false)]
    #[case("file:///etc/passwd", false)]
    #[case("", false)]
    fn a_stranger_chooses_names_over_tls(#[case] url: &str, #[case] is_allowed: bool) {
        assert_eq!(public_url(url).is_some(), is_allowed);
    }

    #[test]
    fn a_long_url_is_not_allowed() {
        assert_eq!(public_url(&format!("https://push.example.org/{}", "a".repeat(LONGEST))), None);
    }

    #[rstest]
    #[case("8.8.8.8", true)]
    #[case("172.32.0.1", true)]
    #[case("100.128.0.1", true)]
    #[case("2606:4700::1", true)]
    #[case("2001:4860:4860::8888", true)]
    #[case("0.0.0.0", false)]
    #[case("10.0.0.1", false)]
    #[case("100.64.0.1", false)]
    #[case("127.0.0.1", false)]
    #[case("169.254.169.254", false)]
    #[case("172.31.255.255", false)]
    #[case("192.168.1.1", false)]
    #[case("198.18.0.1", false)]
    #[case("224.0.0.1", false)]
    #[case("255.255.255.255", false)]
    #[case("::", false)]
    #[case("::1", false)]
    #[case("::ffff:10.0.0.1", false)]
    #[case("64:ff9b::a00:1", false)]
    #[case("2001::1", false)]
    #[case("2001:db8::1", false)]
    #[case("2002:a00:1::1", false)]
    #[case("fc00::1", false)]
    #[case("fe80::1", false)]
    #[case("ff02::1", false)]
    fn addresses_of_own_networks_are_not_public(#[case] address: IpAddr, #[case] is_one: bool) {
        assert_eq!(is_public(address), is_one);
    }

    #[tokio::test]
    async fn a_name_of_this_machine_leads_nowhere() {
        let found = PublicAddresses.resolve("localhost".parse().expect("a name")).await;

        assert!(found.is_err_and(|error| error.to_string().contains("no public address")));
    }
}
