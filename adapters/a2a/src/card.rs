//! Where an agent is asked, as its card says. No I/O.

use url::Url;

use crate::{
    binding::Binding,
    protocol::{Card, Interface},
};

/// An interface of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) binding: Binding,
    pub(crate) url: Url,
    pub(crate) tenant: Option<String>,
    pub(crate) streams: bool,
    /// Whether the agent takes pictures.
    pub(crate) takes_pictures: bool,
}

impl Endpoint {
    /// The interface that the gateway uses of those in the card, whose first one the agent prefers. It must be where the configured
    /// `url` is, because secrets and messages are sent to it.
    ///
    /// # Errors
    /// Says for the operator what to change.
    pub(crate) fn of(card: &Card, url: &Url) -> Result<Self, String> {
        let interfaces = card.supported_interfaces.as_deref().unwrap_or_default();
        if interfaces.is_empty() {
            return Err(match &card.protocol_version {
                Some(version) => format!("it speaks version {} of A2A, and the gateway version 1", short(version)),
                None => {
                    "its card names no interface (`supportedInterfaces`): is `url` that of an A2A agent?".to_owned()
                }
            });
        }
        let binding_of = |one: &Interface| {
            let is_version_1 = one.protocol_version == "1" || one.protocol_version.starts_with("1.");
            Binding::named(&one.protocol_binding).filter(|_| is_version_1)
        };
        let mut usable = interfaces.iter().filter_map(|one| Some((one, binding_of(one)?))).peekable();
        let Some((first, _)) = usable.peek().copied() else {
            let has = interfaces.iter().take(5).map(|one| {
                format!("{} {} at {}", short(&one.protocol_binding), short(&one.protocol_version), short(&one.url))
            });
            return Err(format!(
                "its card names no interface with JSON-RPC or HTTP+JSON of version 1, which the gateway speaks; it has {}",
                has.collect::<Vec<_>>().join(", ")
            ));
        };
        let here = usable.find_map(|(one, binding)| {
            let at = Url::parse(&one.url).ok().filter(|at| at.origin() == url.origin())?;
            Some((one, binding, at))
        });
        let Some((interface, binding, at)) = here else {
            return Err(format!(
                "its card names the interface {}, which is at another address than `url`: no token and no message is sent there. Set `url` \
                 to that address, or correct the card",
                short(&first.url)
            ));
        };
        let modes = card.default_input_modes.as_deref().unwrap_or_default();
        Ok(Self {
            binding,
            url: at,
            tenant: interface.tenant.clone().filter(|tenant| !tenant.is_empty()),
            streams: card.capabilities.streaming == Some(true),
            takes_pictures: modes.iter().any(|mode| mode.starts_with("image/") || mode == "*/*"),
        })
    }
}

/// A text of the card, as it is printed.
pub(crate) fn short(text: &str) -> String {
    text.chars().filter(|one| !one.is_control()).take(200).collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn chosen(card: Value) -> Result<Endpoint, String> {
        let card: Card = serde_json::from_value(card).expect("a card");
        Endpoint::of(&card, &"https://x.example/agent".parse().expect("a URL"))
    }

    fn interface(url: &str, binding: &str, version: &str) -> Value {
        json!({ "url": url, "protocolBinding": binding, "protocolVersion": version })
    }

    #[rstest]
    #[case("HTTP+JSON", Binding::HttpJson)]
    #[case("jsonrpc", Binding::JsonRpc)]
    fn the_first_interface_that_can_be_used_counts(#[case] first: &str, #[case] binding: Binding) {
        let card = json!({
            "capabilities": { "streaming": true }, "defaultInputModes": ["text/plain", "image/png"],
            "supportedInterfaces": [
                interface("https://x.example/grpc", "GRPC", "1.0"),
                interface("https://x.example/old", first, "0.3"),
                interface("https://y.example/a2a", first, "1.0"),
                interface("https://x.example:443/a2a", first, "1.2"),
                interface("https://x.example/rpc", "JSONRPC", "1.0"),
                interface("https://x.example/rest", "HTTP+JSON", "1.0"),
            ],
        });
        let url = "https://x.example/a2a".parse().expect("a URL");
        let endpoint = Endpoint { binding, url, tenant: None, streams: true, takes_pictures: true };
        assert_eq!(chosen(card), Ok(endpoint));
    }

    #[rstest]
    #[case::nothing(json!({}), "names no interface")]
    #[case::old(json!({ "url": "https://x.example", "protocolVersion": "0.3.0" }), "version 0.3.0 of A2A")]
    #[case::another_binding(
        json!({ "supportedInterfaces": [interface("https://x.example/", "GRPC", "1.0")] }),
        "GRPC 1.0 at https://x.example/"
    )]
    #[case::another_host(
        json!({ "supportedInterfaces": [interface("https://evil.example/", "JSONRPC", "1.0")] }),
        "https://evil.example/, which is at another address"
    )]
    #[case::another_port(
        json!({ "supportedInterfaces": [interface("https://x.example:8443/", "JSONRPC", "1.0")] }),
        "at another address"
    )]
    #[case::without_encryption(
        json!({ "supportedInterfaces": [interface("http://x.example/", "JSONRPC", "1.0")] }),
        "at another address"
    )]
    #[case::no_url(json!({ "supportedInterfaces": [interface("/rpc", "JSONRPC", "1.0")] }), "at another address")]
    fn a_card_that_cannot_be_used_is_explained(#[case] card: Value, #[case] said: &str) {
        assert!(chosen(card).is_err_and(|why| why.contains(said)));
    }
}
