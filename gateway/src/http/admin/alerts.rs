//! Who is told when something is wrong.

use super::prelude::*;
use crate::{alerts::Told, problems::Problem};

/// What is wrong, as alerts see it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AlertList {
    items: Vec<Problem>,
    /// Whether anybody is told.
    configured: bool,
    /// Always null: there is only one page.
    #[schema(value_type = Option<String>)]
    next: Option<&'static str>,
}

/// How a test went, by target.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AlertTest {
    items: Vec<Told>,
}

/// Takes nothing.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

/// Lists what is wrong, as far as alerts are about it. Needs the role `admin`.
#[utoipa::path(get, path = "/alerts", operation_id = "list_alerts",
    responses((status = 200, description = "What is wrong", body = AlertList)))]
pub(super) async fn list(State(app): Shared) -> Json<AlertList> {
    let alerter = app.alerts.alerter().await;
    let items = match &alerter {
        Some(alerter) => alerter.wrong().await,
        None => Vec::new(),
    };
    Json(AlertList { items, configured: alerter.is_some(), next: None })
}

/// Sends a test alert to everybody in `[alerts]`, and says who could be reached. Needs the role `admin`.
#[utoipa::path(post, path = "/alerts/test", operation_id = "test_alerts", request_body(content = Option<Nothing>),
    responses((status = 200, description = "How it went", body = AlertTest)))]
pub(super) async fn test(State(app): Shared, _operation: Operation<Nothing>) -> Answer<AlertTest> {
    let nobody = || ApiError::Conflict("nobody is told: set `to` in [alerts]".to_owned());
    let alerter = app.alerts.alerter().await.ok_or_else(nobody)?;
    Ok(Json(AlertTest { items: alerter.test().await }))
}
