//! The OpenAPI description of all routes.

use axum::Json;
use utoipa::{
    Modify, OpenApi,
    openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
};

use super::{admin, error::ProblemDocument, files, health};
use crate::platforms::{self, Platform};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Rejoinder",
        description = "The messaging gateway that can prove it answered.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    paths(
        health::alive,
        health::ready,
        health::metrics,
        document,
        files::show,
    ),
    tags(
        (name = "health", description = "Health, readiness and metrics"),
        (name = "hooks", description = "What callers of webhooks send and read"),
        (name = "completions", description = "The agents as models of an OpenAI-compatible API"),
        (name = "services", description = "What the gateway asks an agent of the kind `http`"),
        (name = "workers", description = "What the workers of an agent of the kind `pull` use"),
        (name = "files", description = "Files of messages"),
        (name = "chat", description = "The chat page and its socket"),
        (name = "admin", description = "What operators see and do"),
    ),
    modifiers(&Security),
)]
struct Description;

struct Security;

impl Modify for Security {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let token = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some("The admin token")).build();
        openapi.components.get_or_insert_default().add_security_scheme("admin_token", SecurityScheme::Http(token));
    }
}

/// Returns this OpenAPI description.
#[utoipa::path(get, path = "/openapi.json", tag = "health", operation_id = "describe",
    responses(
        (status = 200, description = "The description", body = Object),
        (status = 401, description = "The caller is not on this machine, and the token is missing or wrong", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 429, description = "Too many wrong tokens came from this address", body = ProblemDocument, content_type = "application/problem+json",
            headers(("Retry-After" = u32, description = "Seconds"))),
    ),
    security((), ("admin_token" = [])))]
pub(in crate::http) async fn document() -> Json<utoipa::openapi::OpenApi> {
    Json(description())
}

pub(crate) fn description() -> utoipa::openapi::OpenApi {
    let of_others = platforms::all().filter_map(Platform::openapi).chain(crate::agents::openapi());
    let own = Description::openapi().nest("/admin/api", admin::description());
    of_others.fold(own, |mut all, mut other| {
        if let Some(webhooks) = other.webhooks.take() {
            all.webhooks.get_or_insert_default().merge(webhooks);
        }
        all.merge_from(other)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each takes part in slowing down who guesses.
    #[test]
    fn what_a_token_opens_tells_of_wrong_ones() {
        let description = serde_json::to_value(description()).unwrap();
        let operations = description["paths"]
            .as_object()
            .unwrap()
            .iter()
            .flat_map(|(path, item)| item.as_object().unwrap().values().map(move |operation| (path, operation)));
        let guarded: Vec<_> =
            operations.filter(|(_, operation)| operation["security"].to_string().contains("admin_token")).collect();

        assert!(guarded.len() > 8, "{guarded:?}");
        for (path, operation) in guarded {
            for status in ["401", "429"] {
                assert!(operation["responses"][status].is_object(), "{path} does not describe {status}");
            }
        }
    }

    #[test]
    fn every_part_is_described_and_nothing_that_is_referred_to_is_missing() {
        let text = serde_json::to_string(&description()).unwrap();
        let description: serde_json::Value = serde_json::from_str(&text).unwrap();

        for path in [
            "/admin/api/turns/{id}/explain",
            "/admin/api/events",
            "/hooks/{name}",
            "/chat",
            "/v1/chat/completions",
            "/readyz",
        ] {
            assert!(description["paths"][path].is_object(), "{path} is not described");
        }
        assert!(description["webhooks"]["agent-turn"]["post"].is_object(), "what a service is asked is not described");
        let filters = description["paths"]["/admin/api/turns"]["get"]["parameters"].as_array().unwrap();
        let state = filters.iter().find(|filter| filter["name"] == "state").unwrap();
        let states = serde_json::json!(["open", "settled", "undeliverable", "overdue", "absent", "asked"]);
        assert!(state.to_string().contains(&format!("\"enum\":{states}")), "{state}");
        for reference in text.split("\"$ref\":\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(description.pointer(reference).is_some(), "{reference} is referenced but missing");
        }
    }
}
