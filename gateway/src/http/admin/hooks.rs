//! The hooks, for an operator who connects a device or a program: where they are called, with which token, and what arrived last.

use qrcode::{QrCode, render::svg};
use rejoinder_core::{Actor, data_url, store::Subject};
use rejoinder_webhook::{Call, CallEnd};
use secrecy::ExposeSecret;

use super::prelude::*;
use crate::platforms::Hook;

const UNKNOWN: &str = "there is no hook with this name";

item! {
    /// A hook.
    pub(crate) HookItem of (hook: &Hook) {
        let takes = if hook.takes_events { "events" } else { "questions" };
    } with {
        /// For example `webhook.siri`.
        channel: String = hook.channel.to_string(),
        /// Where it is called: a URL if `server.public_url` is set, else a path.
        url: String = hook.url.clone(),
        /// `questions`, which are answered, or `events`, whose callers get no answer.
        takes: &'static str = takes,
        /// Whether callers may send a token. Otherwise they must sign.
        has_token: bool = hook.token.is_some(),
        /// How many milliseconds a caller waits at most.
        #[schema(minimum = 0)]
        wait_ms: u64 = u64::try_from(hook.wait.as_millis()).unwrap_or(u64::MAX),
        /// The last calls that arrived at this node since it started, at most ten, newest first.
        calls: Vec<HookCallItem> = (hook.calls)().into_iter().map(HookCallItem::of).collect(),
    }
}

item! {
    /// A call of a hook, as it arrived.
    pub(crate) HookCallItem of (call: Call) {
        let (turn, refusal) = match call.end {
            CallEnd::Turn(turn) => (Some(turn.to_string()), None),
            CallEnd::Answered => (None, None),
            CallEnd::Refused { status, detail } => (None, Some((status, detail))),
        };
        let (status, detail) = refusal.unzip();
    } with {
        #[schema(format = DateTime)] at: String = rfc3339(call.at),
        /// Its `Content-Type`.
        content_type: Option<String> = call.content_type,
        /// Its `Accept`.
        accept: Option<String> = call.accept,
        /// Its `User-Agent`.
        user_agent: Option<String> = call.user_agent,
        /// The turn that it opened; null if it was refused, repeated another call, or told of an event.
        #[schema(format = "uuid")] turn_id: Option<String> = turn,
        /// The HTTP status with which it was refused.
        refused: Option<u16> = status,
        /// Why it was refused.
        problem: Option<String> = detail,
    }
}

item! {
    /// The token of a hook.
    pub(crate) HookTokenItem of (token: &str, qr: String) {
        let authorization = format!("Bearer {token}");
    } with {
        token: String = token.to_owned(),
        /// The value of the header `Authorization`.
        authorization: String = authorization,
        /// The same as a QR code: the `data:` URL of an SVG picture.
        qr: String = qr,
    }
}

/// Shows a hook: where it is called, and what arrived last.
#[utoipa::path(get, path = "/hooks/{name}", operation_id = "show_hook",
    params(("name" = String, Path, description = "The hook")),
    responses((status = 200, description = "The hook", body = HookItem)))]
pub(super) async fn show(State(app): Shared, caller: Caller, name: Segment) -> Answer<HookItem> {
    Ok(Json(HookItem::of(named(&app, &caller, name)?)))
}

/// Shows the token of a hook, for what is to call it. The audit says who has seen it. Needs the role `admin`.
#[utoipa::path(post, path = "/hooks/{name}/token", operation_id = "show_hook_token",
    params(("name" = String, Path, description = "The hook")),
    request_body(content = Option<Reason>),
    responses((status = 200, description = "The token", body = HookTokenItem)))]
pub(super) async fn token(State(app): Shared, name: Segment, operation: Operation<Reason>) -> Answer<HookTokenItem> {
    let hook = named(&app, operation.caller(), name)?;
    let none = || ApiError::Conflict("this hook has no token: its callers sign".to_owned());
    let token = hook.token.as_ref().ok_or_else(none)?.expose_secret();
    // The secret must not be kept, so the answer is not either.
    let actor = Actor { answer: None, ..operation.actor(operation.body.reason.as_deref(), StatusCode::OK, &())? };
    let subject = Subject::channel(&hook.channel);
    app.engine.operations().record(&actor, "show_token", &hook.channel, subject).await?;
    let qr = qr_of(&format!("Bearer {token}")).ok_or(ApiError::Internal)?;
    Ok(Json(HookTokenItem::of(token, qr)))
}

fn named<'a>(app: &'a App, caller: &Caller, name: Segment) -> Result<&'a Hook, ApiError> {
    let name: String = parsed(name, UNKNOWN)?;
    let hook = app.hooks.iter().find(|hook| hook.channel.name() == name);
    hook.filter(|hook| caller.may_see(&hook.channel)).ok_or(ApiError::NotFound(UNKNOWN))
}

/// A QR code as the `data:` URL of a picture; `None` if the text is too long.
fn qr_of(text: &str) -> Option<String> {
    let code = QrCode::new(text).ok()?;
    Some(data_url("image/svg+xml", code.render::<svg::Color<'_>>().build().as_bytes()))
}
