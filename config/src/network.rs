//! Networks of IP addresses.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::text;

/// A network (`10.0.0.0/8`) or a single address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network(IpNet);

impl Network {
    /// Whether every address belongs to it, of IPv4 or IPv6.
    pub fn is_everything(&self) -> bool {
        self.0.prefix_len() == 0
    }

    /// Whether `address` belongs to it. An IPv4 address that is written as IPv6 is that IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }
}

text::as_text!(Network, "an IP address or a network such as \"10.0.0.0/8\"", |text: &str| {
    text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
});
