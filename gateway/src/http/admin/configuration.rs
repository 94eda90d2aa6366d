//! The configuration, read again while the gateway runs.

use axum::{Json, extract::State, http::StatusCode};

use super::{
    operation::{Operation, Reason},
    responses::Changing,
};
use crate::{
    http::{Shared, error::ApiError},
    reload::Reloaded,
};

/// Reads the configuration again, as SIGHUP does. A wrong one changes nothing. Needs the role `admin`.
#[utoipa::path(post, path = "/admin/api/configuration/reload", tag = "admin", operation_id = "reload_configuration",
    request_body(content = Option<Reason>),
    responses((status = 200, description = "What has changed", body = Reloaded), Changing),
    security(("admin_token" = [])))]
pub(in crate::http) async fn reload(
    State(app): Shared,
    operation: Operation<Reason>,
) -> Result<Json<Reloaded>, ApiError> {
    let unable = || ApiError::Conflict("this gateway was started without a way to read its configuration".to_owned());
    let reload = app.reload.as_ref().ok_or_else(unable)?;
    let reloaded =
        reload.read_again().await.map_err(|why| ApiError::Conflict(format!("nothing has changed: {why}")))?;
    let actor = operation.actor(operation.body.reason.as_deref(), StatusCode::OK, &reloaded)?;
    app.engine.operations().note("reload", reloaded.target(), &actor).await?;
    Ok(Json(reloaded))
}
