//! The OpenAPI description of what [`router`](crate::router) serves.

use utoipa::{
    Modify, OpenApi,
    openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme},
};

/// Describes what [`router`](crate::router) serves, for merging into the gateway's description.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    Description::openapi()
}

#[derive(OpenApi)]
#[openapi(
    info(title = "Hooks", description = "A turn over HTTP."),
    paths(crate::receive::ask, crate::receive::fetch),
    tags((name = "hooks", description = "Ask the agent over HTTP, and fetch its answers")),
    modifiers(&Security),
)]
struct Description;

struct Security;

impl Modify for Security {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let header = |name: &str, description: &str| {
            SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::with_description(name, description)))
        };
        let token = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some("The hook's token")).build();
        let components = openapi.components.get_or_insert_default();
        components.add_security_scheme("hook_token", SecurityScheme::Http(token));
        components.add_security_scheme(
            "standard_webhooks",
            header("webhook-signature", "Standard Webhooks: `webhook-id`, `webhook-timestamp` and `webhook-signature`"),
        );
        components.add_security_scheme(
            "hub_signature",
            header("X-Hub-Signature-256", "`sha256=` and the body's HMAC-SHA256 in hexadecimal"),
        );
        components.add_security_scheme(
            "result_key",
            SecurityScheme::ApiKey(ApiKey::Query(ApiKeyValue::with_description(
                "key",
                "Part of the result's URL for callers who sign",
            ))),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_addresses_are_described() {
        let description = serde_json::to_value(openapi()).unwrap();

        let paths = description["paths"].as_object().unwrap();
        assert!(paths["/hooks/{name}"]["post"]["requestBody"]["content"]["application/json"].is_object());
        assert!(paths["/hooks/{name}/turns/{turn_id}"]["get"]["responses"]["202"].is_object());
        assert_eq!(description["components"]["schemas"]["HookMessage"]["required"], serde_json::json!(["message"]));
    }

    #[test]
    fn nothing_that_is_referred_to_is_missing() {
        let text = serde_json::to_string(&openapi()).unwrap();
        let description: serde_json::Value = serde_json::from_str(&text).unwrap();

        for reference in text.split("\"$ref\":\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(description.pointer(reference).is_some(), "{reference} is referred to but missing");
        }
    }
}
