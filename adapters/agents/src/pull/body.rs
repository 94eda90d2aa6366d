//! The bodies of requests and answers. No I/O.

use std::{collections::BTreeMap, fmt};

use axum::{body::Bytes, http::StatusCode};
use rejoinder_core::{AgentTurn, Timestamp, json_error};
use rejoinder_kit::Problem;
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::value::RawValue;

use super::purpose::Purpose;
use crate::{
    tools::rfc3339,
    wire::{CheckedObject, Said, WireTurn, end_key},
};

/// The key of an event that sends a message.
const SEND: &str = "send";

/// How many events may be reported at once.
const MAX_EVENTS: usize = 1000;

/// A turn, with the lease under which a worker has it.
#[derive(Serialize)]
struct LeasedTurn<'a> {
    #[serde(flatten)]
    turn: WireTurn<'a>,
    lease: &'a str,
    lease_until: String,
}

/// A turn as JSON. `is_first`: no worker had its run before. To another one its approvals are used: the first may have acted on them.
pub(super) fn turn(turn: &AgentTurn, lease: &str, until: Timestamp, is_first: bool) -> Bytes {
    let mut wire = WireTurn::of(turn);
    if !is_first {
        wire.use_up_approvals();
    }
    let turn = LeasedTurn { turn: wire, lease, lease_until: rfc3339(until) };
    serde_json::to_vec(&turn).expect("texts and lists serialise to JSON").into()
}

/// A body with a lease.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Posted {
    pub(super) lease: String,
    pub(super) objects: Objects,
    /// The key of what people would see of it, before it is checked: one that ends the turn, or `send`.
    pub(super) outcome: Option<&'static str>,
}

/// What a worker says: JSON objects.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Objects {
    /// One, or none, beside the lease.
    Beside(Option<String>),
    /// Those of the list `events`.
    Listed(Vec<String>),
}

impl Objects {
    fn as_slice(&self) -> &[String] {
        match self {
            Self::Beside(object) => object.as_slice(),
            Self::Listed(objects) => objects,
        }
    }

    /// Reads all of them, up to the one that ends the turn, and says none yet.
    pub(super) fn check(&self, purpose: Purpose, said: &Said<'_>) -> Result<Vec<CheckedObject>, Problem> {
        let objects = self.as_slice();
        if purpose == Purpose::Events && !said.has_room_for(objects.len()) {
            return Err(unusable("the turn has too many events: answer it", Some("events")));
        }
        let mut checked = Vec::with_capacity(objects.len());
        for (index, object) in objects.iter().enumerate() {
            let wrong = |why: String| {
                unusable(why, matches!(self, Self::Listed(_)).then(|| format!("events[{index}]")).as_deref())
            };
            let object = said.check(object).map_err(wrong)?;
            let ends = object.ends();
            if ends && purpose == Purpose::Events {
                return Err(wrong("it ends the turn, and is no event: post it as the answer".to_owned()));
            }
            checked.push(object);
            if ends {
                return Ok(checked);
            }
        }
        match purpose {
            Purpose::Events => Ok(checked),
            Purpose::Answer => {
                let detail = "nothing in it ends the turn: it needs one of reply, react, ask, defer, silent, approval, error or end";
                Err(unusable(detail, None))
            }
        }
    }
}

impl Posted {
    /// Reads `{"lease", …}`, or `{"lease", "events": […]}`.
    pub(super) fn read(body: &[u8]) -> Result<Self, Problem> {
        let mut body: BTreeMap<String, &RawValue> =
            serde_json::from_slice(body).map_err(|error| match error.classify() {
                serde_json::error::Category::Data => unusable("the body must be an object", None),
                _ => not_json(&error),
            })?;
        let missing =
            || unusable("must be the lease of the turn, as a text: send it back as it was fetched", Some("lease"));
        let lease = body.remove("lease").ok_or_else(missing)?;
        let lease = serde_json::from_str(lease.get()).map_err(|_| missing())?;
        let Some(events) = body.remove("events") else {
            let object = || serde_json::to_string(&body).expect("JSON serialises to JSON");
            let objects = Objects::Beside((!body.is_empty()).then(object));
            let outcome = end_key(|key| body.get(key).is_some_and(|value| value.get() != "null"));
            return Ok(Self { lease, objects, outcome });
        };
        let Events(events) = serde_json::from_str(events.get())
            .map_err(|_| unusable("must be a list of objects, such as [{\"text\": \"Hello\"}]", Some("events")))?;
        if events.len() > MAX_EVENTS {
            return Err(unusable(
                format!("must be at most {MAX_EVENTS}: send them in several requests"),
                Some("events"),
            ));
        }
        let outcome = events.iter().any(|event| sends(event)).then_some(SEND);
        Ok(Self { lease, objects: Objects::Listed(events), outcome })
    }
}

/// Whether an event sends a message.
fn sends(event: &str) -> bool {
    // Most events are read no further.
    let keys = || serde_json::from_str::<BTreeMap<String, &RawValue>>(event);
    event.contains(SEND) && keys().is_ok_and(|keys| keys.contains_key(SEND))
}

/// A list of JSON values. No more than one too many are kept: a body has room for millions.
struct Events(Vec<String>);

impl<'de> Deserialize<'de> for Events {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Events;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, mut values: A) -> Result<Self::Value, A::Error> {
                let mut events = Vec::new();
                while let Some(event) = values.next_element::<&RawValue>()? {
                    if events.len() <= MAX_EVENTS {
                        events.push(event.get().to_owned());
                    }
                }
                Ok(Events(events))
            }
        }

        deserializer.deserialize_seq(Visitor)
    }
}

fn not_json(error: &serde_json::Error) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "not-json", "Bad request: the body is not JSON", json_error(error))
        .at(error.line(), error.column())
}

/// A body, or a field of it, that cannot be used.
fn unusable(detail: impl Into<std::borrow::Cow<'static, str>>, field: Option<&str>) -> Problem {
    let title = "Unprocessable entity: the body cannot be used";
    let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "unusable-body", title, detail);
    match field {
        Some(field) => problem.about(field),
        None => problem,
    }
}

#[cfg(test)]
mod tests {
    use rejoinder_core::{ApprovalRequest, ApprovalState, RunEvents, conformance::runtime};
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_turn_comes_with_its_lease() {
        let given = runtime::turn("Hi");
        let until = given.now + std::time::Duration::from_secs(30);

        let turn: Value = serde_json::from_slice(&turn(&given, "1.1.ab", until, true)).unwrap();

        assert_eq!(
            (&turn["turn_id"], &turn["text"], &turn["lease"], &turn["lease_until"]),
            (&json!(given.turn.to_string()), &json!("Hi"), &json!("1.1.ab"), &json!("2023-11-14T22:13:50Z"))
        );
    }

    /// The first worker may have acted on it.
    #[test]
    fn an_approval_is_for_the_first_worker() {
        let request = ApprovalRequest::action("pay");
        let approved = runtime::decision(&request, ApprovalState::Approved);
        let given = runtime::turn("Hi").with(|turn| turn.past.approvals = vec![approved]);
        let used = |is_first| -> Value {
            let turn: Value = serde_json::from_slice(&turn(&given, "1.1.ab", given.now, is_first)).unwrap();
            turn["approvals"][0]["used"].clone()
        };

        assert_eq!([used(true), used(false)], [Value::Null, json!(true)]);
    }

    #[rstest]
    #[case(r#"{"lease": "l"}"#, &[])]
    #[case(r#"{"reply": "Hi", "lease": "l"}"#, &[r#"{"reply":"Hi"}"#])]
    #[case(r#"{"lease": "l", "events": [{"text": "a"}, {"usage": {}}]}"#, &[r#"{"text": "a"}"#, r#"{"usage": {}}"#])]
    #[case(r#"{"lease": "l", "events": []}"#, &[])]
    fn what_is_posted_has_a_lease(#[case] body: &str, #[case] objects: &[&str]) {
        let posted = Posted::read(body.as_bytes()).unwrap();

        assert_eq!(
            (posted.lease.as_str(), posted.objects.as_slice()),
            ("l", objects.iter().map(ToString::to_string).collect::<Vec<_>>().as_slice())
        );
    }

    #[rstest]
    #[case(r#"{"lease": "l", "text": "Hi", "reply": null, "react": "👍"}"#, Some("react"))]
    #[case(r#"{"lease": "l", "reply": {"text": "silent"}}"#, Some("reply"))]
    #[case(r#"{"lease": "l", "events": [{"text": "a"}, {"send": "b"}]}"#, Some("send"))]
    #[case(r#"{"lease": "l", "events": [{"text": "send"}, 7]}"#, None)]
    #[case(r#"{"lease": "l", "words": "reply"}"#, None)]
    fn the_outcome_is_known_by_its_key(#[case] body: &str, #[case] key: Option<&str>) {
        assert_eq!(Posted::read(body.as_bytes()).unwrap().outcome, key);
    }

    #[rstest]
    #[case("", 400, None, "cut off")]
    #[case("{\"lease\": ", 400, None, "cut off")]
    #[case("\"lease\"", 422, None, "an object")]
    #[case("[]", 422, None, "an object")]
    #[case("{\"reply\": \"Hi\"}", 422, Some("lease"), "as it was fetched")]
    #[case("{\"lease\": 7}", 422, Some("lease"), "as it was fetched")]
    #[case("{\"lease\": \"l\", \"events\": {}}", 422, Some("events"), "a list of objects")]
    fn a_body_that_cannot_be_read_is_refused_with_what_to_fix(
        #[case] body: &str,
        #[case] status: u16,
        #[case] field: Option<&str>,
        #[case] said: &str,
    ) {
        let problem = Posted::read(body.as_bytes()).unwrap_err();

        assert_eq!((problem.status().as_u16(), problem.field()), (status, field));
        assert!(problem.detail().contains(said), "{}", problem.detail());
    }

    #[rstest]
    #[case(MAX_EVENTS, None)]
    #[case(MAX_EVENTS + 1, Some("events"))]
    #[case(10 * MAX_EVENTS, Some("events"))]
    fn too_many_events_at_once_are_refused(#[case] count: usize, #[case] field: Option<&str>) {
        let events = vec![json!({"text": "a"}); count];

        let read = Posted::read(json!({"lease": "l", "events": events}).to_string().as_bytes());

        assert_eq!(read.err().as_ref().and_then(Problem::field), field);
    }

    #[tokio::test]
    async fn a_turn_with_too_many_events_can_still_be_answered() {
        let (turn, (events, _reported)) = (runtime::turn("Hi"), RunEvents::channel());
        let mut said = Said::of("fleet", &turn, &events);
        while said.has_room_for(1) {
            said.object(r#"{"rewrite": ""}"#).await.unwrap();
        }
        let event = Objects::Listed(vec![r#"{"text": "a"}"#.to_owned()]);
        let answer = Objects::Beside(Some(r#"{"reply": "a"}"#.to_owned()));

        let refused = event.check(Purpose::Events, &said).err().expect("there is no room for it");

        assert_eq!(refused.field(), Some("events"));
        assert!(answer.check(Purpose::Answer, &said).is_ok());
    }
}
