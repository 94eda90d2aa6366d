//! Who an account is, as its homeserver says.

use std::time::Duration;

use rejoinder_matrix::{AccountProfile, Login};
use reqwest::Client;
use url::Url;

use crate::{console::output::printable, platforms::platform::CheckError};

const CHECK_TIMEOUT: Duration = Duration::from_secs(30);

/// Asks a homeserver whether it accepts an account. Leaves no device behind.
pub(super) async fn fetch_profile(
    http: &Client,
    homeserver: &Url,
    user: &str,
    login: &Login,
) -> Result<AccountProfile, CheckError> {
    with_timeout(Box::pin(rejoinder_matrix::check(http, homeserver, user, login))).await
}

/// Its display name and user id.
pub(crate) fn introduction(account: &AccountProfile) -> String {
    let user = printable(&account.user);
    match &account.display_name {
        Some(name) => format!("{} ({user})", printable(name)),
        None => user,
    }
}

pub(super) async fn with_timeout<T>(
    request: impl Future<Output = Result<T, rejoinder_matrix::CheckError>>,
) -> Result<T, CheckError> {
    use rejoinder_matrix::CheckError as Refusal;
    let Ok(checked) = tokio::time::timeout(CHECK_TIMEOUT, request).await else {
        return Err(CheckError::Unchecked("the homeserver cannot be reached: it does not answer".to_owned()));
    };
    checked.map_err(|error| match error {
        Refusal::Unreachable(_) => CheckError::Unchecked(error.to_string()),
        Refusal::Refused(_) | Refusal::Lost(_) => CheckError::Rejected(error.to_string()),
    })
}
