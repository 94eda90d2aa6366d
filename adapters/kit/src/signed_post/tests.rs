use reqwest::header::HeaderValue;
use rstest::rstest;

use super::*;

/// Wed, 21 Oct 2015 07:28:00 GMT.
const NOW: Timestamp = Timestamp::from_millis(1_445_412_480_000);

fn judged(status: u16, retry_after: Option<&'static str>) -> Result<(), DeliveryError> {
    let headers = retry_after.map(|value| (RETRY_AFTER, HeaderValue::from_static(value))).into_iter().collect();
    classify(StatusCode::from_u16(status).unwrap(), &headers, NOW)
}

fn limited(seconds: u64) -> impl Fn(&DeliveryError) -> bool {
    move |error| matches!(error, DeliveryError::Limited { retry_after, scope: Scope::Account, .. } if *retry_after == Duration::from_secs(seconds))
}

fn not_sent(seconds: Option<u64>) -> impl Fn(&DeliveryError) -> bool {
    move |error| matches!(error, DeliveryError::NotSent { retry_after, .. } if *retry_after == seconds.map(Duration::from_secs))
}

#[rstest]
#[case(200)]
#[case(202)]
#[case(204)]
fn any_2xx_is_a_receipt(#[case] status: u16) {
    assert_eq!(judged(status, None), Ok(()));
}

/// H4.
#[rstest]
#[case(429, None, limited(30))]
#[case(429, Some("7"), limited(7))]
#[case(503, Some("7"), limited(7))]
#[case(429, Some("Wed, 21 Oct 2015 07:28:40 GMT"), limited(40))]
#[case(429, Some("Wed, 21 Oct 2015 07:27:00 GMT"), limited(0))]
#[case(429, Some("99999999"), limited(3600))]
#[case(429, Some("soon"), limited(30))]
fn a_receiver_that_limits_us_is_left_alone(
    #[case] status: u16,
    #[case] retry_after: Option<&'static str>,
    #[case] is_expected: impl Fn(&DeliveryError) -> bool,
) {
    let error = judged(status, retry_after).unwrap_err();

    assert!(is_expected(&error), "{error:?}");
}

/// H2. During a deploy a receiver answers 404 or 403 as well as 5xx.
#[rstest]
#[case(500, None, not_sent(None))]
#[case(502, None, not_sent(None))]
#[case(503, None, not_sent(None))]
#[case(500, Some("9"), not_sent(Some(9)))]
#[case(408, None, not_sent(None))]
#[case(301, None, not_sent(None))]
#[case(400, None, not_sent(None))]
#[case(401, None, not_sent(None))]
#[case(403, None, not_sent(None))]
#[case(404, None, not_sent(None))]
#[case(404, Some("9"), not_sent(Some(9)))]
fn a_receiver_that_fails_is_tried_again(
    #[case] status: u16,
    #[case] retry_after: Option<&'static str>,
    #[case] is_expected: impl Fn(&DeliveryError) -> bool,
) {
    let error = judged(status, retry_after).unwrap_err();

    assert!(is_expected(&error), "{error:?}");
}

/// D6. The receiver says that it is gone for good.
#[test]
fn a_receiver_that_is_gone_is_not_tried_again() {
    assert!(matches!(judged(410, None), Err(DeliveryError::Refused(_))));
}
