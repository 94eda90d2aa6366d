//! Who has sent a request to a chat where people sign in.

use axum::http::{HeaderMap, header, request::Parts};
use rejoinder_core::StoreError;
use rejoinder_kit::{Via, token_digest};

use crate::{SocketContext, WebchatAdapter, access::Access, section::PersonHeader};

/// How many cookies of one name are looked at.
const MAX_COOKIES: usize = 4;

/// The longest id of a person that a proxy may say, in bytes.
const MAX_ACCOUNT: usize = 200;

/// Somebody who is signed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Visitor {
    /// Their id on the channel.
    pub(crate) account: String,
    /// What operators call them.
    pub(crate) name: String,
    /// Their visit, by the digest of its secret; `None`: a proxy said who they are.
    visit: Option<[u8; 32]>,
}

impl Visitor {
    #[cfg(test)]
    pub(crate) fn named(account: &str) -> Self {
        Self { account: account.to_owned(), name: account.to_owned(), visit: None }
    }

    /// Whether a proxy said who they are.
    pub(crate) const fn is_by_proxy(&self) -> bool {
        self.visit.is_none()
    }

    /// Whether they still are signed in, and known.
    pub(crate) async fn is_there(&self, context: &SocketContext) -> Result<bool, StoreError> {
        if context.intake.known_as(&self.account).is_none() {
            return Ok(false);
        }
        match &self.visit {
            Some(visit) => Ok(context.intake.visitors().visit(visit).await?.is_some()),
            None => Ok(true),
        }
    }
}

/// Who has sent a request, if they are signed in and known.
pub(crate) async fn visitor(
    chat: &WebchatAdapter,
    context: &SocketContext,
    parts: &Parts,
) -> Result<Option<Visitor>, StoreError> {
    let Access::People(sign_in) = &chat.access else { return Ok(None) };
    let known = |account: String, visit| {
        let name = context.intake.known_as(&account)?;
        Some(Visitor { account, name, visit })
    };
    if let Some(account) = sign_in.header.as_ref().and_then(|header| said_by_proxy(header, parts)) {
        return Ok(known(account, None));
    }
    for secret in secrets(&parts.headers, chat.channel.name()) {
        let hash = token_digest(secret.as_bytes());
        if let Some(visit) = context.intake.visitors().visit(&hash).await? {
            return Ok(known(visit.account, Some(hash)));
        }
    }
    Ok(None)
}

/// Who is signed in at the proxy that sent a request. Others are not believed, and nobody is who is named twice.
fn said_by_proxy(header: &PersonHeader, parts: &Parts) -> Option<String> {
    let via = parts.extensions.get::<Via>()?.0;
    if !header.from.iter().any(|network| network.contains(via)) {
        return None;
    }
    let mut sent = parts.headers.get_all(&*header.name).iter();
    let (Some(account), None) = (sent.next(), sent.next()) else { return None };
    let account = std::str::from_utf8(account.as_bytes()).ok()?.trim();
    let is_id = !account.is_empty() && account.len() <= MAX_ACCOUNT && !account.chars().any(char::is_control);
    is_id.then(|| account.to_owned())
}

/// The name of the cookie of a chat. Names of channels have no characters that cookies cannot have.
pub(crate) fn cookie_name(chat: &str) -> String {
    format!("rejoinder_visit_{chat}")
}

/// The secrets that a browser sends for a chat: one, unless another host of the same site has set another.
pub(crate) fn secrets<'a>(headers: &'a HeaderMap, chat: &str) -> impl Iterator<Item = &'a str> {
    let name = cookie_name(chat);
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|cookies| cookies.to_str().ok());
    let secret = move |cookie: &'a str| cookie.trim().strip_prefix(&*name)?.strip_prefix('=');
    cookies.flat_map(|cookies| cookies.split(';')).filter_map(secret).take(MAX_COOKIES)
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use axum::http::Request;
    use rejoinder_config::testing::Machine;
    use rstest::rstest;

    use super::*;
    use crate::WebchatSection;

    fn header() -> PersonHeader {
        let toml = "[channels.webchat.main]\naccess = \"people\"\nheader = { name = \"X-Remote-User\", from = [\"10.0.0.0/8\"] }";
        let config = Machine::with_channel::<WebchatSection>(toml).config();
        config.channels.of::<WebchatSection>().next().expect("a channel").1.header.clone().expect("a header")
    }

    fn parts(via: Option<&str>, headers: &[(&str, &str)]) -> Parts {
        let request = Request::builder().uri("/chat/ws");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let mut parts = request.body(()).expect("a request").into_parts().0;
        if let Some(via) = via {
            parts.extensions.insert(Via(via.parse::<IpAddr>().expect("an address")));
        }
        parts
    }

    #[rstest]
    #[case::of_the_proxy(Some("10.0.0.2"), &[("x-remote-user", " ada@example.org ")], Some("ada@example.org"))]
    #[case::in_ipv6(Some("::ffff:10.0.0.2"), &[("x-remote-user", "ada")], Some("ada"))]
    #[case::of_a_stranger(Some("192.0.2.7"), &[("x-remote-user", "ada")], None)]
    #[case::of_nobody_known(None, &[("x-remote-user", "ada")], None)]
    #[case::twice(Some("10.0.0.2"), &[("x-remote-user", "ada"), ("x-remote-user", "bob")], None)]
    #[case::empty(Some("10.0.0.2"), &[("x-remote-user", " ")], None)]
    #[case::missing(Some("10.0.0.2"), &[("x-remote", "ada")], None)]
    fn only_the_proxy_says_who_somebody_is(
        #[case] via: Option<&str>,
        #[case] headers: &[(&str, &str)],
        #[case] account: Option<&str>,
    ) {
        assert_eq!(said_by_proxy(&header(), &parts(via, headers)).as_deref(), account);
    }

    #[test]
    fn a_secret_is_that_of_its_chat() {
        let cookies = "theme=dark; rejoinder_visit_main2=two; rejoinder_visit_main=one;rejoinder_visit_main=three";
        let parts = parts(None, &[("cookie", cookies), ("cookie", "rejoinder_visit_main=four")]);

        assert_eq!(secrets(&parts.headers, "main").collect::<Vec<_>>(), ["one", "three", "four"]);
        let many = self::parts(None, &[("cookie", &"rejoinder_visit_main=x; ".repeat(1000))]);
        assert_eq!(secrets(&many.headers, "main").count(), MAX_COOKIES);
    }
}
