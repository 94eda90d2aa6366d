//! Networks of IP addresses.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::text;

/// A network (`10.0.0.0/8`) or a single address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network(IpNet);

impl Network {
    /// Whether every address belongs to it, of IPv4 or IPv6.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.0.prefix_len() == 0
    }

    /// Whether `address` belongs to it. An IPv4 address that is written as IPv6 is that IPv4 address.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }
}

impl Serialize for Network {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Network {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let single = |text: &str| text.parse::<IpAddr>().ok().map(IpNet::from);
        text::parsed(deserializer, "an IP address or a network such as \"10.0.0.0/8\"", |text| {
            text.parse().ok().or_else(|| single(text)).map(Self)
        })
    }
}
