//! Responses that many operations of the admin API have in common, for its description.

use std::collections::BTreeMap;

use utoipa::{
    IntoResponses, ToSchema,
    openapi::{
        Content, HeaderBuilder, PathItem, RefOr, Response, ResponseBuilder, ResponsesBuilder, SecurityRequirement,
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

/// What a request may be answered with that names one thing, or changes something.
fn common(names_one: bool, changes: bool) -> BTreeMap<String, RefOr<Response>> {
    let unknown = problem("There is no such thing, or the token may not see it");
    let unfit =
        problem("Its state does not allow this, or the Idempotency-Key is in use or was used for another request");
    let mut all = vec![
        ("400", problem("A parameter or the body is invalid")),
        ("401", problem("The token is missing or wrong")),
        ("403", problem("The token's role does not allow this")),
        ("429", problem("Too many wrong tokens came from this address").header("Retry-After", retry_after())),
        ("503", problem("The store cannot be read or written now").header("Retry-After", retry_after())),
    ];
    all.extend((names_one || changes).then_some(("404", unknown)));
    all.extend(changes.then_some(("409", unfit)));
    responses(all)
}

/// Of a request about one thing that changes nothing, although its method could.
pub(crate) struct ReadingOne;

/// Of a request with a code that somebody was given.
pub(crate) struct TooManyCodes;

impl IntoResponses for ReadingOne {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        common(true, false)
    }
}

impl IntoResponses for TooManyCodes {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let too_many = "Too many codes that do not exist were tried, or too many wrong tokens came from this address";
        responses([("429", problem(too_many).header("Retry-After", retry_after()))])
    }
}

/// Adds to the operations of a path what all of the admin API have in common, and they do not say themselves.
pub(super) fn complete(path: &str, item: &mut PathItem) {
    let names_one = path.contains('{');
    for (operation, changes) in [(&mut item.get, false), (&mut item.post, true), (&mut item.delete, true)] {
        let Some(operation) = operation else { continue };
        let own = &mut operation.responses.responses;
        // An operation that lists the first of these lists all.
        let missing = if own.contains_key("400") { BTreeMap::new() } else { common(names_one, changes) };
        for (status, response) in missing {
            own.entry(status).or_insert(response);
        }
        operation.tags = Some(vec!["admin".to_owned()]);
        operation.security.get_or_insert_with(|| vec![SecurityRequirement::new::<_, [&str; 0], _>("admin_token", [])]);
    }
}
