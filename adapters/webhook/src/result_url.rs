//! The URLs of results.

use std::borrow::Cow;

use axum::http::{HeaderMap, HeaderName, Uri, header, uri::Authority};
use rejoinder_core::TurnId;
use url::Url;

const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

pub(crate) struct ResultUrls {
    /// Without a final slash; `None` if it depends on the request.
    base: Option<String>,
    /// Such as `/hooks/siri/turns/`.
    path: String,
}

impl ResultUrls {
    pub(crate) fn new(name: &str, public_url: Option<&Url>) -> Self {
        let base = public_url.map(|url| {
            let mut url = url.clone();
            url.set_query(None);
            url.set_fragment(None);
            url.as_str().trim_end_matches('/').to_owned()
        });
        let mut escaped = Url::parse("http://localhost").expect("a valid constant");
        escaped.path_segments_mut().expect("http has a path").extend(["hooks", name, "turns", ""]);
        Self { base, path: escaped.path().to_owned() }
    }

    /// The URL of the result of `turn`, as reachable by the sender of a request to `uri` with `headers`.
    /// `key` opens it without the token.
    pub(crate) fn of(&self, turn: TurnId, key: Option<&str>, uri: &Uri, headers: &HeaderMap) -> String {
        let mut url = self.base(uri, headers).into_owned();
        url.push_str(&self.path);
        url.push_str(turn.as_uuid().hyphenated().encode_lower(&mut [0; 36]));
        if let Some(key) = key {
            url.push_str("?key=");
            url.push_str(key);
        }
        url
    }

    /// The gateway's URL, without a final slash, as the sender of a request to `uri` with `headers` reaches it. Empty if that is not known.
    pub(crate) fn base(&self, uri: &Uri, headers: &HeaderMap) -> Cow<'_, str> {
        match (&self.base, authority(uri, headers)) {
            (Some(base), _) => Cow::Borrowed(base),
            (None, Some(authority)) => Cow::Owned(format!("{}://{authority}", scheme(headers))),
            (None, None) => Cow::Borrowed(""),
        }
    }
}

/// The host that the request was sent to; `None` if it is not a plain host and port.
fn authority(uri: &Uri, headers: &HeaderMap) -> Option<Authority> {
    let host = headers.get(header::HOST).and_then(|host| Authority::try_from(host.as_bytes()).ok());
    uri.authority()
        .cloned()
        .or(host)
        .filter(|authority| !authority.host().is_empty() && !authority.as_str().contains('@'))
}

/// `https` only if a proxy says so. A caller that forges the header misleads only itself.
fn scheme(headers: &HeaderMap) -> &'static str {
    match headers.get(FORWARDED_PROTO) {
        Some(scheme) if scheme.as_bytes().eq_ignore_ascii_case(b"https") => "https",
        _ => "http",
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const TURN: &str = "0192f0c1-2d3e-7f40-8a5b-6c7d8e9fa0b1";

    fn url_of(public_url: Option<&str>, headers: &[(&'static str, &str)], key: Option<&str>) -> String {
        let public_url = public_url.map(|url| Url::parse(url).unwrap());
        let headers =
            headers.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect();
        let urls = ResultUrls::new("siri", public_url.as_ref());
        urls.of(TURN.parse().unwrap(), key, &Uri::from_static("/hooks/siri"), &headers)
    }

    #[rstest]
    #[case(None, &[("host", "127.0.0.1:7420")], "http://127.0.0.1:7420/hooks/siri/turns/TURN")]
    #[case(None, &[("host", "[::1]:7420")], "http://[::1]:7420/hooks/siri/turns/TURN")]
    #[case(None, &[("host", "a.example"), ("x-forwarded-proto", "https")], "https://a.example/hooks/siri/turns/TURN")]
    #[case(None, &[("host", "a.example"), ("x-forwarded-proto", "gopher")], "http://a.example/hooks/siri/turns/TURN")]
    #[case(None, &[("host", "me@a.example")], "/hooks/siri/turns/TURN")]
    #[case(None, &[("host", "a.example/evil?")], "/hooks/siri/turns/TURN")]
    #[case(None, &[], "/hooks/siri/turns/TURN")]
    #[case(Some("https://a.example"), &[("host", "evil.example")], "https://a.example/hooks/siri/turns/TURN")]
    #[case(Some("https://a.example/agent/"), &[], "https://a.example/agent/hooks/siri/turns/TURN")]
    fn a_result_is_where_its_reader_reaches_it(
        #[case] public_url: Option<&str>,
        #[case] headers: &[(&'static str, &str)],
        #[case] expected: &str,
    ) {
        assert_eq!(url_of(public_url, headers, None), expected.replace("TURN", TURN));
    }

    #[test]
    fn a_key_stands_in_the_query() {
        assert_eq!(url_of(None, &[], Some("00ff")), format!("/hooks/siri/turns/{TURN}?key=00ff"));
    }
}
