//! The check of an account.

use rejoinder_matrix::{CheckError, Login, check};
use rejoinder_matrix_server::Homeserver;
use url::Url;

use crate::support::http;

#[tokio::test]
async fn an_account_that_works_is_described() {
    let homeserver = Homeserver::shared().await;
    let (account, token) = homeserver.account_with_token("agent").await;
    let url = Url::parse(homeserver.url()).expect("an address");

    let by_password = check(&http(), &url, &account.user, &Login::Password(account.password.as_str().into())).await;
    let by_token = check(&http(), &url, &account.user, &Login::AccessToken(token.into())).await;

    let by_password = by_password.expect("the password works");
    assert_eq!((&by_password.user, by_password.device), (&account.user, None));
    assert!(by_password.display_name.is_some_and(|name| name.starts_with("agent")));
    let by_token = by_token.expect("the token works");
    assert_eq!((&by_token.user, by_token.device.is_some()), (&account.user, true));
}

#[tokio::test]
async fn an_account_that_does_not_work_is_told_from_a_server_that_is_none() {
    let homeserver = Homeserver::shared().await;
    let account = homeserver.account("agent").await;
    let url = Url::parse(homeserver.url()).expect("an address");

    let wrong = check(&http(), &url, &account.user, &Login::Password("wrong".into())).await;
    let unknown = check(&http(), &url, &account.user, &Login::AccessToken("wrong".into())).await;
    let nowhere = Url::parse("http://127.0.0.1:1").expect("an address");
    let nobody = check(&http(), &nowhere, &account.user, &Login::AccessToken("wrong".into())).await;

    assert!(matches!(wrong, Err(CheckError::Refused(_))), "{wrong:?}");
    assert!(matches!(unknown, Err(CheckError::Refused(_))), "{unknown:?}");
    assert!(matches!(nobody, Err(CheckError::Unreachable(_))), "{nobody:?}");
}
