//! The parameters of a call in any encoding: JSON, form, query or multipart
//! (<https://core.telegram.org/bots/api#making-requests>).

use std::{borrow::Cow, collections::HashMap};

use axum::{
    body::Bytes,
    extract::{Form, FromRequest as _, Multipart, Query, Request},
    http::header::CONTENT_TYPE,
};
use serde_json::{Map, Value};

use crate::error::ApiError;

/// An uploaded file.
#[derive(Debug, Clone)]
pub(crate) struct Upload {
    pub(crate) name: Option<String>,
    pub(crate) media_type: Option<String>,
    pub(crate) bytes: Bytes,
}

/// Parameters as sent; unless the body was JSON, every value is a string.
#[derive(Debug, Default)]
pub(crate) struct Params {
    values: Map<String, Value>,
    files: HashMap<String, Upload>,
}

impl Params {
    /// Reads the query and the body.
    ///
    /// # Errors
    /// 400 if the body is malformed, 413 if it is too large.
    pub(crate) async fn read(request: Request) -> Result<Self, ApiError> {
        let mut params = Self::default();
        if request.uri().query().is_some() {
            let query = Query::<Vec<(String, String)>>::try_from_uri(request.uri());
            params.take(query.map_err(|error| ApiError::bad_request(error.body_text()))?.0);
        }
        let kind = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match &*kind {
            "application/json" => params.read_json(request).await?,
            "application/x-www-form-urlencoded" if request.method() != "GET" => {
                let form = Form::<Vec<(String, String)>>::from_request(request, &()).await;
                params.take(form.map_err(|error| ApiError::bad_request(error.body_text()))?.0);
            }
            "multipart/form-data" => params.read_multipart(request).await?,
            _ => (),
        }
        Ok(params)
    }

    /// Parameters from an object.
    pub(crate) fn of(value: Value) -> Self {
        let Value::Object(values) = value else { return Self::default() };
        Self { values, files: HashMap::new() }
    }

    fn take(&mut self, pairs: Vec<(String, String)>) {
        self.values.extend(pairs.into_iter().map(|(key, value)| (key, Value::String(value))));
    }

    async fn read_json(&mut self, request: Request) -> Result<(), ApiError> {
        let body = Bytes::from_request(request, &()).await.map_err(|_| too_large())?;
        if body.is_empty() {
            return Ok(());
        }
        match serde_json::from_slice(&body) {
            Ok(Value::Object(values)) => self.values.extend(values),
            _ => return Err(ApiError::bad_request("can't parse JSON object")),
        }
        Ok(())
    }

    async fn read_multipart(&mut self, request: Request) -> Result<(), ApiError> {
        let bad = || ApiError::bad_request("can't parse multipart form data");
        // Reads the whole body first: the parser leaves the epilogue unread, and a connection with unread data cannot be
        // reused.
        let (headers, extensions) = (request.headers().clone(), request.extensions().clone());
        let mut whole = Request::new(Bytes::from_request(request, &()).await.map_err(|_| too_large())?.into());
        (*whole.headers_mut(), *whole.extensions_mut()) = (headers, extensions);
        let mut parts = Multipart::from_request(whole, &()).await.map_err(|_| bad())?;
        while let Some(part) = parts.next_field().await.map_err(|_| bad())? {
            let Some(key) = part.name().map(str::to_owned) else { continue };
            if let Some(name) = part.file_name().map(str::to_owned) {
                let media_type = part.content_type().map(str::to_owned);
                let bytes = part.bytes().await.map_err(|_| too_large())?;
                self.files.insert(key, Upload { name: Some(name), media_type, bytes });
            } else {
                let text = part.text().await.map_err(|_| bad())?;
                self.values.insert(key, Value::String(text));
            }
        }
        Ok(())
    }

    /// The parameters for the transcript, without the content of files. A file in a part without an `attach://` reference
    /// gets one.
    pub(crate) fn record(&self) -> Value {
        let mut values = self.values.clone();
        let attached = Value::Object(values.clone()).to_string();
        for key in self.files.keys() {
            let attachment = format!("attach://{key}");
            if !attached.contains(&attachment) {
                values.insert(key.clone(), Value::String(attachment));
            }
        }
        Value::Object(values)
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.values.get(key).is_some_and(|value| !value.is_null())
    }

    pub(crate) fn file(&self, key: &str) -> Option<&Upload> {
        self.files.get(key)
    }

    /// The value as a string, converted if necessary.
    pub(crate) fn text(&self, key: &str) -> Option<Cow<'_, str>> {
        match self.values.get(key)? {
            Value::String(text) => Some(Cow::Borrowed(text)),
            Value::Null => None,
            other => Some(Cow::Owned(other.to_string())),
        }
    }

    pub(crate) fn integer(&self, key: &str) -> Option<i64> {
        integer(self.values.get(key)?)
    }

    pub(crate) fn flag(&self, key: &str) -> bool {
        self.values.get(key).is_some_and(flag)
    }

    /// An object or array, also when it is sent as a string; `None` if absent or empty.
    ///
    /// # Errors
    /// 400 that names it as `what`.
    pub(crate) fn json(&self, key: &str, what: &str) -> Result<Option<Value>, ApiError> {
        match self.values.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.is_empty() => Ok(None),
            Some(Value::String(text)) => match serde_json::from_str(text) {
                Ok(value @ (Value::Object(_) | Value::Array(_))) => Ok(Some(value)),
                _ => Err(ApiError::bad_request(format!("can't parse {what} JSON object"))),
            },
            Some(value) => Ok(Some(value.clone())),
        }
    }
}

pub(crate) fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

pub(crate) fn flag(value: &Value) -> bool {
    match value {
        Value::Bool(flag) => *flag,
        Value::String(text) => matches!(&*text.to_ascii_lowercase(), "true" | "yes" | "1"),
        Value::Number(number) => number.as_i64() == Some(1),
        _ => false,
    }
}

fn too_large() -> ApiError {
    ApiError::new(413, "Request Entity Too Large")
}
