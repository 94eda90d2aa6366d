//! What requests name in their path and query, and the pages of lists.

use std::str::FromStr;

use axum::{
    extract::{self, FromRequestParts, Path, rejection::PathRejection},
    http::request::Parts,
};
use serde::de::DeserializeOwned;

use super::error::ApiError;

/// The number of items of a page if the caller gives none.
const DEFAULT: u32 = 50;

/// The largest number of items of a page.
pub(crate) const MAX: u32 = 200;

/// The parameters of a request. Wrong ones are told in plain words.
pub(super) struct Query<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        if parts.uri.query().is_some_and(|query| query.contains("%00")) {
            return Err(ApiError::BadRequest("a parameter must not contain the character U+0000".to_owned()));
        }
        let extract::Query(parameters) = extract::Query::from_request_parts(parts, state).await?;
        Ok(Self(parameters))
    }
}

/// What the path names.
pub(super) type Segment = Result<Path<String>, PathRejection>;

/// The name in a path.
///
/// # Errors
/// `unknown`, if it cannot be read.
pub(super) fn parsed<T: FromStr>(segment: Segment, unknown: &'static str) -> Result<T, ApiError> {
    let text = segment.ok().map(|Path(text)| text).filter(|text| !text.contains('\0'));
    text.and_then(|text| text.parse().ok()).ok_or(ApiError::NotFound(unknown))
}

/// The number of items to list: `limit` as the caller gave it, or the default.
pub(super) fn limit(limit: Option<u32>) -> Result<u32, ApiError> {
    let limit = limit.unwrap_or(DEFAULT);
    if (1..=MAX).contains(&limit) {
        return Ok(limit);
    }
    Err(ApiError::BadRequest(format!("`limit` must be from 1 to {MAX}")))
}

/// The id that the parameter `name` gives, which must be `expected`.
pub(super) fn id<T: FromStr>(name: &str, expected: &str, text: Option<String>) -> Result<Option<T>, ApiError> {
    text.map(|id| id.parse().map_err(|_| bad(name, expected))).transpose()
}

pub(super) fn bad(name: &str, expected: &str) -> ApiError {
    ApiError::BadRequest(format!("`{name}` must be {expected}"))
}

/// Cuts `found` to `limit` items; returns the id after which the next page begins. One more than `limit` was asked for:
/// it shows whether there is a next page.
pub(super) fn cut<T>(found: &mut Vec<T>, limit: u32, id: impl Fn(&T) -> String) -> Option<String> {
    let has_more = found.len() > limit as usize;
    found.truncate(limit as usize);
    found.last().filter(|_| has_more).map(id)
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    #[tokio::test]
    async fn what_a_request_names_has_no_nul() {
        let query = async |uri: &str| {
            let (mut parts, ()) = Request::builder().uri(uri).body(()).unwrap().into_parts();
            let query = Query::<Vec<(String, String)>>::from_request_parts(&mut parts, &()).await;
            query.map(|Query(parameters)| parameters[0].1.clone())
        };

        assert_eq!(query("/turns?channel=a%2500").await.unwrap(), "a%00");
        assert!(matches!(query("/turns?channel=a%00").await, Err(ApiError::BadRequest(_))));
        let named = |name: &str| parsed::<String>(Ok(Path(name.to_owned())), "unknown");
        assert_eq!(named("a").unwrap(), "a");
        assert!(matches!(named("a\0"), Err(ApiError::NotFound("unknown"))));
    }
}
