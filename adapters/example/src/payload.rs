//! The lines of the protocol as data. Pure.
//!
//! ```text
//! gateway                server
//! hello TOKEN        ─►
//!                    ◄─  welcome NAME | denied WHY
//! listen             ─►
//!                    ◄─  message ID CHAT PERSON TEXT     (on each connection that listens, until it is acknowledged)
//!                    ◄─  VERB ID CHAT PERSON …           (other events, of later versions)
//! ack ID             ─►
//! say KEY CHAT TEXT  ─►
//!                    ◄─  sent MESSAGE | failed wait SECONDS | failed busy | failed refused WHY
//! ping               ─►
//!                    ◄─  pong
//! ```
//!
//! A chat is named after a person, or is a room, whose name starts with `#`. In TEXT and WHY a line break is `\n` and a
//! backslash `\\`; a TEXT has at most 1,000 characters. NAME is one word of letters, digits, `-` and `_`. An ID is never
//! used again. A repeated KEY has no effect: the server repeats its first answer.

use std::time::Duration;

/// A line from the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// With our name.
    Welcome(String),
    /// With the reason.
    Denied(String),
    Message(Message),
    /// With the message's id.
    Sent(String),
    Failed(Failure),
    Pong,
    /// Not a line of the protocol.
    Unknown,
}

/// A message of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) id: String,
    pub(crate) chat: String,
    pub(crate) person: String,
    /// `None` for an event that is not a message.
    pub(crate) text: Option<String>,
}

/// Why the server did not show a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// We send too fast in this chat.
    Wait(Duration),
    /// A temporary failure.
    Busy,
    /// A permanent failure.
    Refused(String),
}

impl Line {
    pub(crate) fn parse(line: &str) -> Self {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        match verb {
            "welcome" if !rest.is_empty() => Self::Welcome(rest.to_owned()),
            "denied" => Self::Denied(unescaped(rest)),
            "message" => words(rest).map_or(Self::Unknown, |[id, chat, person, text]| {
                Self::Message(Message { id, chat, person, text: Some(unescaped(&text)) })
            }),
            "sent" if !rest.is_empty() => Self::Sent(rest.to_owned()),
            "failed" if !rest.is_empty() => Self::Failed(failure(rest)),
            "pong" => Self::Pong,
            _ => words(rest)
                .map_or(Self::Unknown, |[id, chat, person, _]| Self::Message(Message { id, chat, person, text: None })),
        }
    }
}

fn failure(why: &str) -> Failure {
    let (kind, detail) = why.split_once(' ').unwrap_or((why, ""));
    let seconds = || detail.split(' ').next().and_then(|seconds| seconds.parse::<u32>().ok());
    match kind {
        "refused" => Failure::Refused(unescaped(detail)),
        "wait" => seconds().map_or(Failure::Busy, |seconds| Failure::Wait(Duration::from_secs(seconds.into()))),
        // Nothing was shown, so it can be sent again.
        _ => Failure::Busy,
    }
}

/// The first `N - 1` words of a line, and the rest of it.
fn words<const N: usize>(line: &str) -> Option<[String; N]> {
    let words: Vec<_> = line.splitn(N, ' ').map(str::to_owned).collect();
    let words: [String; N] = words.try_into().ok()?;
    words.iter().take(N - 1).all(|word| !word.is_empty()).then_some(words)
}

/// A text in one line.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace("\r\n", "\n").replace(['\n', '\r'], "\\n")
}

pub(crate) fn unescaped(line: &str) -> String {
    let (mut text, mut characters) = (String::with_capacity(line.len()), line.chars());
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some('n') => text.push('\n'),
                Some(other) => text.push(other),
                None => text.push('\\'),
            },
            other => text.push(other),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_several_lines_is_one_line_on_the_wire() {
        for text in ["one\ntwo", "a \\n that was written", "", "\\", "🎉\n\n\\\\"] {
            let line = escaped(text);

            assert!(!line.contains('\n'), "{line:?}");
            assert_eq!(unescaped(&line), text);
        }
    }

    #[test]
    fn lines_that_make_no_sense_are_unknown() {
        for line in [
            "",
            "message",
            "message 1 ada ada",
            "message  ada ada hello",
            "welcome",
            "sent",
            "failed",
            "of another year",
        ] {
            assert_eq!(Line::parse(line), Line::Unknown, "{line:?}");
        }
    }

    #[test]
    fn a_failure_says_what_to_do() {
        let failed = |why: &str| match Line::parse(&format!("failed {why}")) {
            Line::Failed(failure) => failure,
            other => panic!("{other:?}"),
        };

        assert_eq!(failed("wait 3"), Failure::Wait(Duration::from_secs(3)));
        assert_eq!(failed("busy"), Failure::Busy);
        assert_eq!(failed("refused no such chat"), Failure::Refused("no such chat".to_owned()));
        assert_eq!(failed("wait 3 please"), Failure::Wait(Duration::from_secs(3)));
        assert_eq!(failed("wait for it"), Failure::Busy);
        assert_eq!(failed("later"), Failure::Busy);
    }
}
