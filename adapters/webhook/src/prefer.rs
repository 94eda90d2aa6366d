//! `Prefer: wait=N` (RFC 7240): how long a caller is willing to wait.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use rejoinder_kit::quoted::{split_unquoted, unquoted};

const PREFER: HeaderName = HeaderName::from_static("prefer");

/// How long to wait for a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    /// Zero means not at all.
    pub(crate) duration: Duration,
    /// Whether the caller asked for it; the response then confirms it with `Preference-Applied`.
    pub(crate) was_preferred: bool,
}

impl Wait {
    /// The wait that `headers` ask for, at most `longest`; `otherwise` if they ask for none.
    pub(crate) fn read(headers: &HeaderMap, longest: Duration, otherwise: Duration) -> Self {
        let preferred = headers
            .get_all(PREFER)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| split_unquoted(value, ','))
            .find_map(seconds);
        preferred.map_or(Self { duration: otherwise, was_preferred: false }, |seconds| Self {
            duration: Duration::from_secs(seconds).min(longest),
            was_preferred: true,
        })
    }

    pub(crate) fn applied(self) -> Option<HeaderValue> {
        self.was_preferred.then(|| {
            HeaderValue::try_from(format!("wait={}", self.duration.as_secs())).expect("digits are valid in a header")
        })
    }
}

/// The number of a `wait=N` preference; `None` if the preference is another one or malformed.
fn seconds(preference: &str) -> Option<u64> {
    let without_parameters = split_unquoted(preference, ';').next()?;
    let (name, value) = without_parameters.split_once('=')?;
    if !name.trim().eq_ignore_ascii_case("wait") {
        return None;
    }
    let value = unquoted(value);
    if value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // A number that does not fit is valid too, and longer than any wait.
    Some(value.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*, sample::select};
    use rejoinder_core::conformance::growth::assert_linear;
    use rstest::rstest;

    use super::*;

    const LONGEST: Duration = Duration::from_secs(25);

    fn read(values: &[&str]) -> Wait {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(PREFER, value.parse().unwrap());
        }
        Wait::read(&headers, LONGEST, LONGEST)
    }

    /// M5.
    #[rstest]
    #[case(&["wait=10"], 10)]
    #[case(&["wait=0"], 0)]
    #[case(&["Wait = 10"], 10)]
    #[case(&["wait=\"10\""], 10)]
    #[case(&["respond-async, wait=3"], 3)]
    #[case(&["respond-async", "wait=3"], 3)]
    #[case(&["wait=3; strict"], 3)]
    #[case(&["wait=3, wait=9"], 3)]
    #[case(&["note=\"a, wait=9\", wait=4"], 4)]
    #[case(&["note=\"\\\", wait=9\", wait=4"], 4)]
    #[case(&["wait=soon, wait=4"], 4)]
    fn a_caller_says_how_long_it_waits(#[case] values: &[&str], #[case] seconds: u64) {
        let wait = read(values);

        assert_eq!(wait, Wait { duration: Duration::from_secs(seconds), was_preferred: true });
        assert_eq!(wait.applied().unwrap(), format!("wait={seconds}"));
    }

    /// M2: the hook's own wait is the upper limit.
    #[rstest]
    #[case("wait=26")]
    #[case("wait=3600")]
    #[case("wait=99999999999999999999999999")]
    fn a_wait_is_never_longer_than_the_hooks(#[case] value: &str) {
        let wait = read(&[value]);

        assert_eq!(wait.duration, LONGEST);
        assert_eq!(wait.applied().unwrap(), "wait=25");
    }

    proptest! {
        #[test]
        fn any_preference_is_a_wait_within_the_hooks(
            pieces in vec(select(vec!["wait", "=", "\"", "\\", ",", ";", " ", "1", "99999999999999999999", "-", "a"]), 0..20),
        ) {
            let value = HeaderValue::from_str(&pieces.concat()).expect("printable");
            let headers = HeaderMap::from_iter([(PREFER, value)]);
            prop_assert!(Wait::read(&headers, LONGEST, LONGEST).duration <= LONGEST);
        }
    }

    #[test]
    fn a_long_preference_costs_what_its_length_asks_for() {
        assert_linear(&["wait=,", "\"", "\\", ";", ",", "\"\\\"", "a=\"\","], |value| {
            let _ = read(&[value]);
        });
    }

    #[rstest]
    #[case(&[])]
    #[case(&["respond-async"])]
    #[case(&["wait"])]
    #[case(&["wait="])]
    #[case(&["wait=-1"])]
    #[case(&["wait=1.5"])]
    #[case(&["waiting=3"])]
    fn a_caller_that_does_not_say_gets_the_hooks_wait(#[case] values: &[&str]) {
        let wait = read(values);

        assert_eq!(wait, Wait { duration: LONGEST, was_preferred: false });
        assert_eq!(wait.applied(), None);
    }
}
