//! The OpenAPI description of what workers use.

use utoipa::{
    Modify, OpenApi,
    openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
};

/// Describes the routes of the agents of this kind, for merging into the gateway's description.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    Description::openapi()
}

#[derive(OpenApi)]
#[openapi(
    info(title = "Workers", description = "What the workers of an agent of the kind `pull` use."),
    paths(
        super::routes::next,
        super::routes::answer,
        super::routes::renew,
        super::routes::report,
        super::sessions::next,
        super::sessions::done,
    ),
    tags((name = "workers", description = "What the workers of an agent of the kind `pull` use")),
    modifiers(&Security),
)]
struct Description;

struct Security;

impl Modify for Security {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let description = "The agent's token, or that of one of its workers";
        let token = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(description)).build();
        openapi.components.get_or_insert_default().add_security_scheme("worker_token", SecurityScheme::Http(token));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_referred_to_is_missing() {
        let text = serde_json::to_string(&openapi()).unwrap();
        let description: serde_json::Value = serde_json::from_str(&text).unwrap();

        for path in [
            "next",
            "turns/{turn_id}",
            "turns/{turn_id}/renew",
            "turns/{turn_id}/events",
            "sessions/next",
            "sessions/{id}",
        ] {
            assert!(description["paths"][format!("/agents/{{name}}/{path}")].is_object(), "{path}");
        }
        for reference in text.split("\"$ref\":\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(description.pointer(reference).is_some(), "{reference} is referred to but missing");
        }
    }
}
