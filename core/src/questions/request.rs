//! Requests for approvals, as they are stored.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use rejoinder_guard::ApprovalRequest;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::base::words::excerpt;

/// How many characters are kept of the action, the details and the kind of a request for an approval.
const MOST_ACTION: usize = 300;
const MOST_DETAILS: usize = 2000;
const MOST_KIND: usize = 64;

/// How many characters are kept of an action before the digest of its request.
const MOST_BEFORE_DIGEST: usize = 270;

/// A request as it is stored and shown: the action on one line, and all of bounded length. Where this changes the request, the action ends
/// with a digest of the whole request, so that the stored form of two requests is the same only if the requests are.
pub fn as_stored(request: &ApprovalRequest) -> ApprovalRequest {
    let short = |text: &str, most| text.trim().chars().take(most).collect::<String>().trim_end().to_owned();
    let optional = |text: Option<&str>, most| text.map(|text| short(text, most)).filter(|text| !text.is_empty());
    let stored = ApprovalRequest {
        action: excerpt(&request.action, MOST_ACTION),
        details: optional(request.details.as_deref(), MOST_DETAILS),
        kind: optional(request.kind.as_deref(), MOST_KIND),
    };
    if stored == *request {
        return stored;
    }
    let ApprovalRequest { action, details, kind } = request;
    let whole = json!([action, details, kind]).to_string();
    let digest = BASE64_URL_SAFE_NO_PAD.encode(&Sha256::digest(whole)[..16]);
    ApprovalRequest { action: format!("{} ({digest})", excerpt(action, MOST_BEFORE_DIGEST)), ..stored }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn request(action: &str, details: Option<&str>) -> ApprovalRequest {
        ApprovalRequest { action: action.to_owned(), details: details.map(str::to_owned), kind: None }
    }

    /// What was approved for one must not be approved for the other.
    #[rstest]
    #[case::lines(request("rm a\nb", None), request("rm a b", None))]
    #[case::length(request(&"x".repeat(301), None), request(&"x".repeat(302), None))]
    #[case::details(request("rm a", Some(&"x".repeat(2001))), request("rm a", Some(&"x".repeat(2000))))]
    #[case::blanks(request("rm  a", None), request("rm a", None))]
    fn two_requests_are_stored_differently(#[case] one: ApprovalRequest, #[case] other: ApprovalRequest) {
        assert_ne!(as_stored(&one), as_stored(&other));
    }

    /// It may be stored when it was stored: a blank is the last character that is kept.
    #[rstest]
    #[case(request("pay the rent", Some("to Grace")))]
    #[case(request(&"x ".repeat(400), Some(&format!("{} y", "x".repeat(1999)))))]
    fn what_is_stored_stays_as_it_is(#[case] request: ApprovalRequest) {
        let stored = as_stored(&request);

        assert_eq!(as_stored(&stored), stored);
        assert!(stored.action.chars().count() <= MOST_ACTION);
    }

    #[test]
    fn a_short_request_is_stored_as_it_is() {
        let short = request("pay the rent", Some("to Grace"));

        assert_eq!(as_stored(&short), short);
    }
}
