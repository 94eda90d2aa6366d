//! The configuration, read again while the gateway runs.

use rejoinder_core::store::Subject;

use super::prelude::*;
use crate::reload::Reloaded;

/// Reads the configuration again, as SIGHUP does. A wrong one changes nothing. Needs the role `admin`.
#[utoipa::path(post, path = "/configuration/reload", operation_id = "reload_configuration",
    request_body(content = Option<Reason>),
    responses((status = 200, description = "What has changed", body = Reloaded)))]
pub(super) async fn reload(State(app): Shared, operation: Operation<Reason>) -> Answer<Reloaded> {
    let unable = || ApiError::Conflict("this gateway was started without a way to read its configuration".to_owned());
    let reload = app.reload.as_ref().ok_or_else(unable)?;
    let reloaded =
        reload.read_again().await.map_err(|why| ApiError::Conflict(format!("nothing has changed: {why}")))?;
    let actor = operation.actor(operation.body.reason.as_deref(), StatusCode::OK, &reloaded)?;
    app.engine.operations().record(&actor, "reload", reloaded.target(), Subject::default()).await?;
    Ok(Json(reloaded))
}
