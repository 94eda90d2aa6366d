//! What is known of a message that is too long. No I/O.

use serde::Deserialize;
use serde_json::Value;

use crate::outline::Outline;

/// A message without its contents.
#[derive(Debug, Deserialize, PartialEq)]
pub(crate) struct Clipped {
    pub(crate) id: Option<Value>,
    pub(crate) method: Option<String>,
    #[serde(default)]
    params: Value,
}

impl Clipped {
    /// `None`: it is no message, has too many fields, or an id that is too long to be answered.
    pub(crate) fn read(outline: &Outline) -> Option<Self> {
        serde_json::from_slice(outline.as_bytes()).ok().filter(|message: &Self| !message.is_nameless())
    }

    /// Whether its id is empty, as one is that was left out.
    fn is_nameless(&self) -> bool {
        self.id.as_ref().and_then(Value::as_str) == Some("")
    }

    /// The session of its parameters. `None` also if its id is too long to be one.
    pub(crate) fn session(&self) -> Option<&str> {
        self.params["sessionId"].as_str().filter(|id| !id.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::update(r#"{"method":"session/update","params":{"x":{"sessionId":"no"},"sessionId":"s1"}}"#, (None, true, Some("s1")))]
    #[case::session_at_the_end(r#"{"method":"session/update","params":{"update":{"a":"LONG"},"sessionId":"s1"}}"#, (None, true, Some("s1")))]
    #[case::no_session(r#"{"method":"session/update","params":["LONG"]}"#, (None, true, None))]
    #[case::answer(r#"{"jsonrpc":"2.0","id":3,"result":{"sessionId":"s1","x":"LONG"}}"#, (Some(3), false, None))]
    #[case::id_at_the_end(r#"{"jsonrpc":"2.0","result":{"x":["LONG"],"id":9},"id":3}"#, (Some(3), false, None))]
    fn it_tells_what_a_message_is(
        #[case] message: &str,
        #[case] (id, has_method, session): (Option<u64>, bool, Option<&str>),
    ) {
        let mut outline = Outline::default();
        outline.push(message.replace("LONG", &"x".repeat(1 << 20)).as_bytes());

        let clipped = Clipped::read(&outline).expect("a message");

        assert_eq!(
            (clipped.id.as_ref().and_then(Value::as_u64), clipped.method.is_some(), clipped.session()),
            (id, has_method, session)
        );
    }

    #[test]
    fn the_longest_id_of_a_session_is_known_and_a_longer_one_is_none() {
        let session = |length: usize| {
            let (id, long) = ("x".repeat(length), "y".repeat(1 << 20));
            let mut outline = Outline::default();
            outline.push(
                format!(r#"{{"method":"session/update","params":{{"update":"{long}","sessionId":"{id}"}}}}"#)
                    .as_bytes(),
            );
            Clipped::read(&outline).expect("a message").session().map(str::len)
        };

        assert_eq!([4_096, 100_000].map(session), [Some(4_096), None]);
    }

    #[test]
    fn a_long_id_of_a_request_is_whole_and_a_longer_one_makes_it_no_message() {
        let request = |length: usize| {
            let (id, long) = ("x".repeat(length), "y".repeat(1 << 20));
            let mut outline = Outline::default();
            outline.push(
                format!(r#"{{"method":"fs/read","id":"{id}","params":{{"a":"{long}","id":"{id}"}}}}"#).as_bytes(),
            );
            Clipped::read(&outline).map(|message| message.id == Some(id.into()))
        };

        assert_eq!([1, 257, 4_096, 100_000].map(request), [Some(true), Some(true), Some(true), None]);
    }

    #[rstest]
    #[case::half(r#"{"method":"session/upd"#)]
    #[case::no_object("[1, 2]")]
    fn half_a_message_is_none(#[case] message: &str) {
        let mut outline = Outline::default();
        outline.push(message.as_bytes());

        assert_eq!(Clipped::read(&outline), None);
    }
}
