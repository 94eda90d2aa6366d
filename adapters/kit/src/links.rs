//! Where the links of an answer lead.
//!
//! An agent can be talked into hiding an address behind harmless words, so a person sees the address before they follow it.

use url::Url;

/// How many characters of an address are shown.
const MAX_SHOWN: usize = 100;

/// What to show in brackets after a link's label: the host of a web address, else the address. `None` if the label says it
/// already, or `address` is no address.
#[must_use]
pub fn destination(label: &str, address: &str) -> Option<String> {
    let url = Url::parse(address).ok()?;
    let (_, without_scheme) = address.split_once(':')?;
    let without_scheme = without_scheme.trim_start_matches('/');
    let host = url.host_str().unwrap_or_default();
    // `https://good.example@evil.example/` leads to the second one. A host in letters of other alphabets can look like
    // another host, so only one in ASCII, which is as it is written, needs no repetition.
    let is_as_written = without_scheme.get(..host.len()).is_some_and(|written| written.eq_ignore_ascii_case(host));
    let is_plain = url.username().is_empty() && url.password().is_none() && is_as_written;
    let label = bare(label);
    let is_said =
        [address, url.as_str(), without_scheme, host].into_iter().any(|it| bare(it).eq_ignore_ascii_case(label));
    if is_said && is_plain && !label.is_empty() {
        return None;
    }
    let shown = if matches!(url.scheme(), "http" | "https") { host } else { without_scheme };
    (!shown.is_empty()).then(|| shown.chars().take(MAX_SHOWN).collect())
}

fn bare(address: &str) -> &str {
    address.trim().trim_end_matches('/')
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("https://example.org/a?b=c")]
    #[case("example.org/a?b=c")]
    #[case(" Example.org ")]
    #[case("EXAMPLE.ORG/a?b=c")]
    fn a_label_that_says_where_its_link_leads_is_enough(#[case] label: &str) {
        assert_eq!(destination(label, "https://example.org/a?b=c"), None);
    }

    #[rstest]
    #[case("here", "https://example.org/a", "example.org")]
    #[case("", "https://example.org", "example.org")]
    #[case("https://good.example", "https://evil.example/?q=secret", "evil.example")]
    #[case("good.example", "https://good.example.evil.example/", "good.example.evil.example")]
    #[case("https://good.example@evil.example/", "https://good.example@evil.example/", "evil.example")]
    #[case("evil.example.good.example@evil.example", "https://evil.example.good.example@evil.example", "evil.example")]
    #[case("example.org", "https://ехample.org/", "xn--ample-ywe6i.org")]
    #[case("https://ехample.org/", "https://ехample.org/", "xn--ample-ywe6i.org")]
    #[case("ехample.org", "https://ехample.org/", "xn--ample-ywe6i.org")]
    #[case("https://ехample.org/xn--ample-ywe6i.org", "https://ехample.org/xn--ample-ywe6i.org", "xn--ample-ywe6i.org")]
    #[case("write to us", "mailto:eve@example.org", "eve@example.org")]
    fn any_other_label_is_followed_by_it(#[case] label: &str, #[case] address: &str, #[case] shown: &str) {
        assert_eq!(destination(label, address).as_deref(), Some(shown));
    }

    #[test]
    fn what_leads_nowhere_shows_nothing() {
        for address in ["", "/relative", "#there", "example.org", "https://"] {
            assert_eq!(destination("here", address), None, "{address}");
        }
        let long = format!("matrix:r/{}", "a".repeat(1000));
        assert_eq!(destination("here", &long).map(|shown| shown.len()), Some(MAX_SHOWN));
    }
}
