use std::sync::Arc;

use rejoinder_core::{FileLimits, Language, SystemClock};
use rstest::rstest;
use standardwebhooks::Webhook;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{HookTexts, WebhookSection};

const SIGNING_SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
const HUB_SECRET: &str = "It's a Secret to Everybody";
const NOW: i64 = 1_649_367_553;
const BODY: &[u8] = br#"{"email":"test@example.com","username":"test_user"}"#;
const ID: &str = "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk";

fn settings(token: Option<&str>, signing_secret: Option<&str>, hub_secret: Option<&str>) -> WebhookSettings {
    WebhookSettings {
        name: "siri".to_owned(),
        token: token.map(Into::into),
        section: WebhookSection {
            signing_secret: signing_secret.map(Into::into),
            hub_secret: hub_secret.map(Into::into),
            ..WebhookSection::default()
        },
        result_keys: ResultKeys::new(&"kept by the gateway".into()),
        guesses: Arc::default(),
        bodies: Arc::default(),
        body_limit: 1 << 20,
        files: FileLimits::default(),
        body_timeout: Duration::from_secs(30),
        public_url: None,
        texts: HookTexts {
            accepted: String::new(),
            cancelled: String::new(),
            undeliverable: String::new(),
            unspoken: String::new(),
            language: Language::ENGLISH,
        },
        clock: Arc::new(SystemClock),
        http: reqwest::Client::builder().build().unwrap(),
        stop_waiting: CancellationToken::new(),
    }
}

fn every_kind() -> Auth {
    Auth::new(&settings(Some("right"), Some(SIGNING_SECRET), Some(HUB_SECRET))).unwrap()
}

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    pairs.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect()
}

/// Headers signed with the specification's own library.
fn signed(secret: &str, id: &str, timestamp: i64, body: &[u8]) -> HeaderMap {
    let signature = Webhook::new(secret).unwrap().sign(id, timestamp, body).unwrap();
    headers(&[("webhook-id", id), ("webhook-timestamp", &timestamp.to_string()), ("webhook-signature", &signature)])
}

fn now() -> Timestamp {
    Timestamp::from_millis(NOW * 1000)
}

/// Authenticates a whole request.
fn caller<'a>(auth: &Auth, headers: &'a HeaderMap, body: &[u8]) -> Result<Caller<'a>, AuthError> {
    match auth.proof(headers, now())? {
        Proof::Token => Ok(Caller::Token),
        Proof::Signatures(mut signatures) => {
            for part in body.chunks(7) {
                signatures.update(part);
            }
            signatures.caller()
        }
    }
}

fn refusal(result: Result<Caller<'_>, AuthError>) -> String {
    let problem = Problem::from(result.unwrap_err());
    assert_eq!(problem.status(), StatusCode::UNAUTHORIZED);
    problem.detail().to_owned()
}

/// Why a request is refused before its body is read.
fn refusal_of_headers(auth: &Auth, headers: &HeaderMap) -> AuthError {
    auth.proof(headers, now()).err().expect("the headers prove nothing")
}

const STANDARD: Caller<'_> = Caller::Signature(Key::WebhookId(ID));

#[rstest]
#[case("Bearer right")]
#[case("bearer right")]
#[case("Bearer   right ")]
fn a_caller_with_the_token_is_let_in_before_its_body_is_read(#[case] authorization: &str) {
    let headers = headers(&[("authorization", authorization)]);

    assert!(matches!(every_kind().proof(&headers, now()), Ok(Proof::Token)));
}

#[rstest]
#[case(&[])]
#[case(&[("authorization", "Bearer wrong")])]
#[case(&[("authorization", "Bearer ")])]
#[case(&[("authorization", "Bearer righ")])]
#[case(&[("authorization", "Bearer rights")])]
#[case(&[("authorization", "Basic right")])]
#[case(&[("authorization", "Bearerright")])]
#[case(&[("authorization", "right")])]
#[case(&[("webhook-id", "msg_1")])]
fn a_caller_with_nothing_that_could_hold_is_refused_before_its_body_is_read(#[case] pairs: &[(&'static str, &str)]) {
    let problem = Problem::from(refusal_of_headers(&every_kind(), &headers(pairs)));

    assert_eq!(problem.status(), StatusCode::UNAUTHORIZED);
    let response = axum::response::IntoResponse::into_response(problem);
    assert_eq!(response.headers()["www-authenticate"], "Bearer");
}

#[test]
fn a_signature_is_no_use_at_a_hook_that_knows_no_such_key() {
    let auth = Auth::new(&settings(Some("right"), None, None)).unwrap();

    assert!(auth.proof(&signed(SIGNING_SECRET, ID, NOW, BODY), now()).is_err());
    assert!(auth.proof(&headers(&[("x-hub-signature-256", HUB_SIGNATURE_OF_HELLO)]), now()).is_err());
}

#[test]
fn a_wrong_token_beside_a_right_signature_is_let_in() {
    let auth = every_kind();
    let mut headers = signed(SIGNING_SECRET, ID, NOW, BODY);
    headers.insert(header::AUTHORIZATION, "Bearer of-the-proxy".parse().unwrap());

    assert_eq!(caller(&auth, &headers, BODY), Ok(STANDARD));
}

#[test]
fn a_wrong_token_is_a_guess_whatever_stands_beside_it() {
    let pairs = [("authorization", "Bearer a-guess"), ("x-hub-signature-256", "x")];

    assert!(matches!(refusal_of_headers(&every_kind(), &headers(&pairs)), AuthError::Wrong(_)));
}

/// The example from the reference libraries' tests.
#[test]
fn the_specifications_example_is_let_in() {
    let headers = headers(&[
        ("webhook-id", ID),
        ("webhook-timestamp", "1649367553"),
        ("webhook-signature", "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw="),
    ]);

    assert_eq!(caller(&every_kind(), &headers, BODY), Ok(STANDARD));
}

/// M6.
#[test]
fn a_signature_over_another_body_is_refused() {
    let headers = signed(SIGNING_SECRET, ID, NOW, br#"{"message":"another"}"#);

    assert_eq!(refusal(caller(&every_kind(), &headers, BODY)), "webhook-signature does not match the body");
}

/// M6.
#[rstest]
#[case(-300, true)]
#[case(-301, false)]
#[case(300, true)]
#[case(301, false)]
#[case(-3600, false)]
fn a_signature_holds_for_five_minutes(#[case] seconds: i64, #[case] is_let_in: bool) {
    let headers = signed(SIGNING_SECRET, ID, NOW + seconds, BODY);

    assert_eq!(every_kind().proof(&headers, now()).is_ok(), is_let_in);
}

/// M6: each of the three parts is signed.
#[rstest]
#[case("webhook-id", "msg_2")]
#[case("webhook-timestamp", "1649367554")]
#[case("webhook-signature", "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkx=")]
#[case("webhook-signature", "v1,")]
#[case("webhook-signature", "v2,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=")]
#[case("webhook-signature", "tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=")]
#[case("webhook-timestamp", "yesterday")]
#[case("webhook-timestamp", "9223372036854775807")]
#[case("webhook-timestamp", "-9223372036854775808")]
#[case("webhook-id", "")]
fn a_request_with_one_part_changed_is_refused(#[case] name: &'static str, #[case] value: &str) {
    let mut headers = signed(SIGNING_SECRET, ID, NOW, BODY);
    headers.insert(name, value.parse().unwrap());

    refusal(caller(&every_kind(), &headers, BODY));
}

#[rstest]
#[case("webhook-id")]
#[case("webhook-timestamp")]
fn a_request_with_one_part_missing_is_refused(#[case] name: &'static str) {
    let mut headers = signed(SIGNING_SECRET, ID, NOW, BODY);
    headers.remove(name);

    assert_eq!(refusal(caller(&every_kind(), &headers, BODY)), format!("{name} is missing"));
}

/// M6: `{id}.{timestamp}.{body}` cannot be split at another place.
#[test]
fn a_signed_request_cannot_be_cut_anew() {
    let recorded = signed(SIGNING_SECRET, "msg_1", NOW - 3600, format!("{NOW}.hello").as_bytes());
    let mut headers = recorded.clone();
    headers.insert("webhook-id", format!("msg_1.{}", NOW - 3600).parse().unwrap());
    headers.insert("webhook-timestamp", NOW.to_string().parse().unwrap());

    refusal(caller(&every_kind(), &headers, b"hello"));
}

#[test]
fn a_sender_that_changes_its_key_signs_with_both() {
    let mut headers = signed(SIGNING_SECRET, ID, NOW, BODY);
    let signature = headers["webhook-signature"].to_str().unwrap().to_owned();
    headers.insert("webhook-signature", format!("v1,{} v1a,BBBB {signature}", "A".repeat(43) + "=").parse().unwrap());

    assert!(caller(&every_kind(), &headers, BODY).is_ok());
}

/// The example from GitHub's page "Validating webhook deliveries".
const HUB_SIGNATURE_OF_HELLO: &str = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

#[test]
fn githubs_example_is_let_in() {
    let headers = headers(&[("x-hub-signature-256", HUB_SIGNATURE_OF_HELLO)]);

    let signed_by = caller(&every_kind(), &headers, b"Hello, World!");
    assert_eq!(signed_by, Ok(Caller::Hub));
}

/// Its body is not read.
#[rstest]
#[case(&[("webhook-id", ID), ("webhook-signature", "x")])]
#[case(&[("webhook-id", ID), ("webhook-timestamp", "1649367553"), ("webhook-signature", "v1,x")])]
#[case(&[("webhook-signature", "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=")])]
#[case(&[("x-hub-signature-256", "sha256=757107ea")])]
fn a_signature_that_cannot_hold_is_refused_by_its_headers_and_is_no_guess(#[case] pairs: &[(&'static str, &str)]) {
    assert!(matches!(refusal_of_headers(&every_kind(), &headers(pairs)), AuthError::Missing(_)));
}

/// M6.
#[rstest]
#[case(HUB_SIGNATURE_OF_HELLO, b"Hello, World?")]
#[case("sha256=757107ea", b"Hello, World!")]
#[case("757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17", b"Hello, World!")]
#[case("sha1=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17", b"Hello, World!")]
#[case("sha256=zz", b"Hello, World!")]
#[case("", b"Hello, World!")]
fn a_hub_signature_that_is_not_this_bodys_is_refused(#[case] signature: &str, #[case] body: &[u8]) {
    let headers = headers(&[("x-hub-signature-256", signature)]);

    refusal(caller(&every_kind(), &headers, body));
}

#[test]
fn a_results_address_opens_that_result_alone() {
    let auth = every_kind();
    let (turn, other) = (TurnId::new(now()), TurnId::new(now()));
    let key = auth.result_key(turn);

    assert_eq!(auth.may_fetch(&HeaderMap::new(), Some(&key), turn).unwrap(), Caller::ResultKey);
    refusal(auth.may_fetch(&HeaderMap::new(), Some(&key), other));
    refusal(auth.may_fetch(&HeaderMap::new(), Some(&key[..30]), turn));
    refusal(auth.may_fetch(&HeaderMap::new(), Some("not hexadecimal"), turn));
    refusal(auth.may_fetch(&HeaderMap::new(), None, turn));
}

#[test]
fn the_token_opens_every_result() {
    let headers = headers(&[("authorization", "Bearer right")]);

    assert_eq!(every_kind().may_fetch(&headers, None, TurnId::new(now())).unwrap(), Caller::Token);
}

#[test]
fn a_hook_is_never_open() {
    assert_eq!(Auth::new(&settings(None, None, None)).err(), Some(SettingsError::NoSecret));
    assert_eq!(Auth::new(&settings(None, None, Some(""))).err(), Some(SettingsError::Empty("hub_secret")));
}

#[rstest]
#[case("whsec_")]
#[case("whsec_not base64")]
#[case("whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY=")]
fn a_key_that_cannot_sign_is_refused_at_the_start(#[case] secret: &str) {
    let error = Auth::new(&settings(None, Some(secret), None)).err();

    assert_eq!(error, Some(SettingsError::NotASigningKey("signing_secret")));
}
