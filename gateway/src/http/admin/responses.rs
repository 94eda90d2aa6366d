//! Responses that many operations of the admin API have in common, for its description.

use std::collections::BTreeMap;

use utoipa::{
    IntoResponses, ToSchema,
    openapi::{
        Content, HeaderBuilder, RefOr, Response, ResponseBuilder, ResponsesBuilder,
        schema::{ObjectBuilder, Ref, SchemaType, Type},
    },
};

use crate::http::error::ProblemDocument;

fn problem(description: &str) -> ResponseBuilder {
    let schema = Ref::from_schema_name(ProblemDocument::name());
    ResponseBuilder::new().description(description).content("application/problem+json", Content::new(Some(schema)))
}

fn retry_after() -> utoipa::openapi::Header {
    let seconds = ObjectBuilder::new().schema_type(SchemaType::Type(Type::Integer)).minimum(Some(0));
    HeaderBuilder::new().schema(Some(seconds)).description(Some("Seconds")).build()
}

fn responses(known: impl IntoIterator<Item = (&'static str, ResponseBuilder)>) -> BTreeMap<String, RefOr<Response>> {
    let known = known.into_iter().map(|(status, response)| (status, response.build()));
    ResponsesBuilder::new().responses_from_iter(known).build().into()
}

/// Of every request.
pub(crate) struct Reading;

impl IntoResponses for Reading {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        responses([
            ("400", problem("A parameter or the body is invalid")),
            ("401", problem("The token is missing or wrong")),
            ("403", problem("The token's role does not allow this")),
            ("429", problem("Too many wrong tokens came from this address").header("Retry-After", retry_after())),
            ("503", problem("The store cannot be read or written now").header("Retry-After", retry_after())),
        ])
    }
}

/// Of a request about one thing.
pub(crate) struct ReadingOne;

impl IntoResponses for ReadingOne {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let mut all = Reading::responses();
        all.extend(responses([("404", problem("There is no such thing, or the token may not see it"))]));
        all
    }
}

/// Of a request that changes something.
pub(crate) struct Changing;

/// The same, of a request with a code that somebody was given.
pub(crate) struct ChangingByCode;

impl IntoResponses for Changing {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let mut all = ReadingOne::responses();
        all.extend(responses([(
            "409",
            problem("Its state does not allow this, or the Idempotency-Key is in use or was used for another request"),
        )]));
        all
    }
}

impl IntoResponses for ChangingByCode {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let mut all = Changing::responses();
        let too_many = "Too many codes that do not exist were tried, or too many wrong tokens came from this address";
        all.extend(responses([("429", problem(too_many).header("Retry-After", retry_after()))]));
        all
    }
}
