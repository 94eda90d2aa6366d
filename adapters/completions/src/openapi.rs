//! The OpenAPI description of what [`router`](crate::router) serves.

use utoipa::{
    Modify, OpenApi,
    openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
};

/// Describes what [`router`](crate::router) serves for the channel `main`, for merging into the gateway's description.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    Description::openapi()
}

#[derive(OpenApi)]
#[openapi(
    info(title = "Completions", description = "The agents as models of an OpenAI-compatible API."),
    paths(
        crate::receive::create,
        crate::receive::retrieve,
        crate::receive::list_models,
        crate::receive::show_model,
    ),
    tags((name = "completions", description = "The agents as models of an OpenAI-compatible API")),
    modifiers(&Security),
)]
struct Description;

struct Security;

impl Modify for Security {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let description = "The channel's token, or an operators' token that may run agents";
        let token = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(description)).build();
        openapi.components.get_or_insert_default().add_security_scheme("api_token", SecurityScheme::Http(token));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_referred_to_is_missing() {
        let text = serde_json::to_string(&openapi()).unwrap();
        let description: serde_json::Value = serde_json::from_str(&text).unwrap();

        assert!(description["paths"]["/v1/chat/completions"]["post"]["requestBody"].is_object());
        for reference in text.split("\"$ref\":\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(description.pointer(reference).is_some(), "{reference} is referred to but missing");
        }
    }
}
