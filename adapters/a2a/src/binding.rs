//! The two bindings of the protocol: how an operation becomes an HTTP request, and how its result or its error is read. No I/O.
//!
//! Sources: <https://a2a-protocol.org/latest/specification/>, sections 5.4 (error codes), 9 (JSON-RPC) and 11 (HTTP+JSON).

use reqwest::{Method as Verb, StatusCode};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use url::Url;

use crate::{
    call_error::CallError,
    protocol::{INVALID_PARAMS, Method, Response, RpcError, TASK_NOT_FOUND, UNSUPPORTED_OPERATION},
};

/// The media types of results, for `Accept`.
pub(crate) const JSON_TYPES: &str = "application/json, application/a2a+json";

/// A binding that the gateway speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binding {
    JsonRpc,
    HttpJson,
}

/// A request of a binding.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) verb: Verb,
    pub(crate) url: Url,
    pub(crate) body: Option<Value>,
}

impl Binding {
    /// The binding that a card calls `name`. `None`: the gateway does not speak it.
    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::JsonRpc, Self::HttpJson].into_iter().find(|binding| binding.name().eq_ignore_ascii_case(name))
    }

    /// Its name in a card.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::JsonRpc => "JSONRPC",
            Self::HttpJson => "HTTP+JSON",
        }
    }

    /// The request for `method`, with these fields of its message. `tenant` is that of the interface at `url`.
    ///
    /// # Errors
    /// If an id of the agent cannot be part of a URL.
    pub(crate) fn request(
        self,
        url: &Url,
        tenant: Option<&str>,
        method: Method,
        mut params: Value,
    ) -> Result<Request, CallError> {
        if self == Self::HttpJson {
            return http_json(url, tenant, method, params);
        }
        if let Some(tenant) = tenant {
            params["tenant"] = tenant.into();
        }
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method.as_str(), "params": params });
        Ok(Request { verb: Verb::POST, url: url.clone(), body: Some(body) })
    }

    /// Reads a result, or an event of a stream.
    ///
    /// # Errors
    /// The error that the agent tells in place of it. With the words of the server, which are not masked yet.
    pub(crate) fn read<T: DeserializeOwned>(self, json: &[u8]) -> Result<T, CallError> {
        let unreadable = |error: serde_json::Error| CallError::Broken(format!("a message cannot be read: {error}"));
        match self {
            Self::JsonRpc => match serde_json::from_slice(json).map_err(unreadable)? {
                Response { error: Some(error), .. } => Err(CallError::Rpc(error)),
                Response { result: Some(result), .. } => Ok(result),
                Response { .. } => {
                    Err(CallError::Broken("a response has neither a `result` nor an `error`".to_owned()))
                }
            },
            Self::HttpJson => match HttpError::read(json) {
                Some(error) => Err(error.into_call_error(None)),
                None => serde_json::from_slice(json).map_err(unreadable),
            },
        }
    }

    /// The error of a response with this status, if its body is one of the protocol. It is not masked yet.
    pub(crate) fn error(self, status: StatusCode, body: &[u8]) -> Option<CallError> {
        match self {
            // Some servers send the protocol's own errors with a status.
            Self::JsonRpc => match serde_json::from_slice::<Response<serde::de::IgnoredAny>>(body) {
                Ok(Response { error: Some(error), .. }) if error.code != 0 => Some(CallError::Rpc(error)),
                _ => None,
            },
            Self::HttpJson => HttpError::read(body).map(|error| error.into_call_error(Some(status))),
        }
    }
}

fn http_json(url: &Url, tenant: Option<&str>, method: Method, mut params: Value) -> Result<Request, CallError> {
    let id = params.as_object_mut().and_then(|params| params.remove("id"));
    let id = id.as_ref().and_then(Value::as_str).unwrap_or_default();
    let (verb, path) = match method {
        Method::SendMessage => (Verb::POST, vec!["message:send".to_owned()]),
        Method::SendStreamingMessage => (Verb::POST, vec!["message:stream".to_owned()]),
        Method::GetTask => (Verb::GET, vec!["tasks".to_owned(), id.to_owned()]),
        Method::CancelTask => (Verb::POST, vec!["tasks".to_owned(), format!("{id}:cancel")]),
        // The specification says POST and its `a2a.proto` GET. Servers take POST, or both.
        Method::SubscribeToTask => (Verb::POST, vec!["tasks".to_owned(), format!("{id}:subscribe")]),
    };
    let mut url = url.clone();
    let segments: Vec<_> = tenant.into_iter().chain(path.iter().map(String::as_str)).collect();
    // A URL has no such segments: it would be another one. What comes after a colon is what is done with a task.
    let is_ambiguous = |part: &str| matches!(part, "" | "." | "..") || part.chars().any(char::is_control);
    if segments.iter().any(|segment| is_ambiguous(segment)) || id.contains(':') {
        return Err(CallError::Broken("an id of its task or tenant cannot be part of a URL".to_owned()));
    }
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(segments);
    }
    if verb == Verb::GET {
        let params = params.as_object().into_iter().flatten();
        url.query_pairs_mut().extend_pairs(params.map(|(name, value)| (name, value.to_string())));
        return Ok(Request { verb, url, body: None });
    }
    if let Some(tenant) = tenant {
        params["tenant"] = tenant.into();
    }
    Ok(Request { verb, url, body: Some(params) })
}

/// The body of an error: a `google.rpc.Status`.
#[derive(Debug, Deserialize)]
struct HttpErrorBody {
    error: HttpError,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct HttpError {
    /// A number, of most servers.
    code: Value,
    status: Option<String>,
    message: Option<String>,
    details: Option<Vec<Value>>,
}

impl HttpError {
    fn read(body: &[u8]) -> Option<Self> {
        serde_json::from_slice::<HttpErrorBody>(body).ok().map(|body| body.error)
    }

    /// `status` is that of the response. An event has none.
    fn into_call_error(self, status: Option<StatusCode>) -> CallError {
        let code = status.map(|status| u64::from(status.as_u16())).or_else(|| self.code.as_u64());
        let message = self.message.unwrap_or_default();
        let reason = self.details.iter().flatten().find_map(|detail| detail["reason"].as_str());
        let known = match (reason, code) {
            (Some(reason), _) => code_of(reason),
            // Of another error of that status a proxy may be the author.
            (None, Some(404)) if self.status.as_deref() == Some("NOT_FOUND") => Some(TASK_NOT_FOUND),
            (None, Some(400)) if self.status.as_deref() == Some("INVALID_ARGUMENT") => Some(INVALID_PARAMS),
            (None, _) => None,
        };
        if let Some(code) = known {
            return CallError::Rpc(RpcError { code, message });
        }
        // Operators see it: words that people wrote are no name.
        let is_name = |name: &&str| {
            name.len() <= 64
                && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
        };
        let name = reason.or(self.status.as_deref()).filter(is_name).unwrap_or_default();
        let code = code.map(|code| code.to_string()).unwrap_or_default();
        CallError::Refused { status: format!("{code} {name}").trim().to_owned(), message }
    }
}

/// The JSON-RPC code of an error, whose `reason` is its name in `google.rpc.ErrorInfo`.
fn code_of(reason: &str) -> Option<i64> {
    Some(match reason {
        "TASK_NOT_FOUND" => TASK_NOT_FOUND,
        "TASK_NOT_CANCELABLE" => -32_002,
        "PUSH_NOTIFICATION_NOT_SUPPORTED" => -32_003,
        "UNSUPPORTED_OPERATION" => UNSUPPORTED_OPERATION,
        "CONTENT_TYPE_NOT_SUPPORTED" => -32_005,
        "INVALID_AGENT_RESPONSE" => -32_006,
        "EXTENDED_AGENT_CARD_NOT_CONFIGURED" => -32_007,
        "EXTENSION_SUPPORT_REQUIRED" => -32_008,
        "VERSION_NOT_SUPPORTED" => -32_009,
        "INVALID_REQUEST" => -32_600,
        "INVALID_PARAMS" => INVALID_PARAMS,
        "INTERNAL_ERROR" => -32_603,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde::de::IgnoredAny;

    use super::*;

    fn request(binding: Binding, tenant: Option<&str>, method: Method, params: Value) -> Result<Request, CallError> {
        binding.request(&"https://x.example/a2a/?key=1".parse().expect("a URL"), tenant, method, params)
    }

    fn is_at(request: &Request, verb: &Verb, path: &str) -> bool {
        request.verb == *verb && request.url.as_str() == format!("https://x.example/a2a/{path}")
    }

    #[test]
    fn json_rpc_has_one_url_and_an_envelope() {
        let request = request(Binding::JsonRpc, Some("acme"), Method::CancelTask, json!({ "id": "t1" }));

        let request = request.expect("a request");
        assert!(is_at(&request, &Verb::POST, "?key=1"), "{request:?}");
        let body = json!({
            "jsonrpc": "2.0", "id": 1, "method": "CancelTask", "params": { "id": "t1", "tenant": "acme" },
        });
        assert_eq!(request.body, Some(body));
    }

    #[rstest]
    #[case(Method::SendMessage, json!({ "message": {} }), Verb::POST, "message:send?key=1", Some(json!({ "message": {} })))]
    #[case(Method::SendStreamingMessage, json!({}), Verb::POST, "message:stream?key=1", Some(json!({})))]
    #[case(
        Method::GetTask, json!({ "id": "a/b?c", "historyLength": 0 }), Verb::GET,
        "tasks/a%2Fb%3Fc?key=1&historyLength=0", None
    )]
    #[case(Method::CancelTask, json!({ "id": "t1" }), Verb::POST, "tasks/t1:cancel?key=1", Some(json!({})))]
    #[case(Method::SubscribeToTask, json!({ "id": "t1" }), Verb::POST, "tasks/t1:subscribe?key=1", Some(json!({})))]
    fn http_json_has_a_url_for_each_operation(
        #[case] method: Method,
        #[case] params: Value,
        #[case] verb: Verb,
        #[case] path: &str,
        #[case] body: Option<Value>,
    ) {
        let request = request(Binding::HttpJson, None, method, params).expect("a request");

        assert!(is_at(&request, &verb, path), "{request:?}");
        assert_eq!(request.body, body);
    }

    #[test]
    fn a_tenant_is_in_the_path_and_in_the_body() {
        let get = request(Binding::HttpJson, Some("a b"), Method::GetTask, json!({ "id": "t1" })).expect("a request");
        let cancel = request(Binding::HttpJson, Some("a b"), Method::CancelTask, json!({ "id": "t1" }));

        assert!(is_at(&get, &Verb::GET, "a%20b/tasks/t1?key=1"), "{get:?}");
        let cancel = cancel.expect("a request");
        assert!(is_at(&cancel, &Verb::POST, "a%20b/tasks/t1:cancel?key=1"), "{cancel:?}");
        assert_eq!(cancel.body, Some(json!({ "tenant": "a b" })));
    }

    #[rstest]
    #[case::a_task(None, "..")]
    #[case::no_id(None, "")]
    #[case::a_tenant(Some(".."), "t1")]
    fn an_id_that_would_change_the_url_is_not_sent(#[case] tenant: Option<&str>, #[case] id: &str) {
        let request = request(Binding::HttpJson, tenant, Method::GetTask, json!({ "id": id }));
        assert!(matches!(request, Err(CallError::Broken(_))), "{request:?}");
    }

    fn info(reason: &str) -> Value {
        json!({ "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": "a2a-protocol.org" })
    }

    #[rstest]
    #[case::by_its_reason(400, json!({ "details": [{ "fieldViolations": [] }, info("UNSUPPORTED_OPERATION")] }), UNSUPPORTED_OPERATION)]
    #[case::of_parameters(400, json!({ "details": [info("INVALID_PARAMS")] }), INVALID_PARAMS)]
    #[case::not_found(404, json!({ "code": 404, "status": "NOT_FOUND", "details": null }), TASK_NOT_FOUND)]
    #[case::without_a_reason(400, json!({ "status": "INVALID_ARGUMENT" }), INVALID_PARAMS)]
    fn an_error_has_the_code_of_json_rpc(#[case] status: u16, #[case] mut error: Value, #[case] code: i64) {
        error["message"] = "why".into();
        let body = json!({ "error": error }).to_string();

        let status = StatusCode::from_u16(status).expect("a status");
        let error = Binding::HttpJson.error(status, body.as_bytes());
        assert_eq!(error, Some(CallError::Rpc(RpcError { code, message: "why".to_owned() })));
    }

    #[rstest]
    #[case::of_the_server(json!({ "code": 503, "status": "UNAVAILABLE", "message": "busy" }), "503 UNAVAILABLE")]
    #[case::of_another_domain(json!({ "code": 400, "message": "busy", "details": [info("QUOTA")] }), "400 QUOTA")]
    fn another_error_has_its_status(#[case] error: Value, #[case] said: &str) {
        let read = Binding::HttpJson.read::<IgnoredAny>(json!({ "error": error }).to_string().as_bytes());
        assert!(
            matches!(&read, Err(CallError::Refused { status, message }) if status == said && message == "busy"),
            "{read:?}"
        );
    }

    #[rstest]
    #[case(Binding::HttpJson, "<html>")]
    #[case(Binding::HttpJson, "{\"error\":\"no\"}")]
    #[case(Binding::JsonRpc, "{\"error\":{\"status\":\"NOT_FOUND\"}}")]
    fn a_body_of_another_kind_is_no_error_of_the_protocol(#[case] binding: Binding, #[case] body: &str) {
        assert_eq!(binding.error(StatusCode::NOT_FOUND, body.as_bytes()), None);
    }
}
