//! What people and the agent write, and how it is recognised.
//!
//! A message of a person is a behaviour and a token: `slow tg000042`. The agent repeats the token in every paragraph of its
//! answer: `tg000042 part 1 of 1 ... done`.

/// Stands above a copy that may be one too many; the configuration of the gateway sets it.
pub(crate) const LABEL: &str = "[copy]";

/// What stands before a message that later ones have overtaken, after the label of a copy.
pub(crate) const OVERTAKEN: &str = "[late]";

/// What the gateway says once the hard deadline of a message is over.
pub(crate) const TOO_LATE: &str = "Sorry, that took too long. Please try again.";

/// The last word of a paragraph of an answer: without it, the paragraph is unfinished.
pub(crate) const END: &str = "done";

/// How the agent behaves. The message of the person asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behaviour {
    /// Answers at once.
    Answer,
    /// Answers in three paragraphs, each too long to share a message with another.
    Long,
    /// Answers word by word.
    Stream,
    /// Answers after the soft deadline.
    Slow,
    /// Never answers.
    Stall,
    /// Responds with the status 500.
    Fail,
    /// Responds with the status 503.
    Refuse,
    /// Begins an answer, and then closes the connection.
    Cut,
    /// Defers the answer for three seconds.
    Defer,
    /// Says by its tool that it stays silent.
    Silent,
    /// Answers with an empty text.
    Empty,
    /// Reacts with an emoji.
    React,
}

impl Behaviour {
    /// All behaviours, each with its share of the messages in percent.
    pub(crate) const SHARES: [(Self, u32); 12] = [
        (Self::Answer, 40),
        (Self::Long, 6),
        (Self::Stream, 16),
        (Self::Slow, 9),
        (Self::Stall, 3),
        (Self::Fail, 4),
        (Self::Refuse, 2),
        (Self::Cut, 4),
        (Self::Defer, 5),
        (Self::Silent, 4),
        (Self::Empty, 3),
        (Self::React, 4),
    ];

    /// The word that asks for it.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::Long => "long",
            Self::Stream => "stream",
            Self::Slow => "slow",
            Self::Stall => "stall",
            Self::Fail => "fail",
            Self::Refuse => "refuse",
            Self::Cut => "cut",
            Self::Defer => "defer",
            Self::Silent => "silent",
            Self::Empty => "empty",
            Self::React => "react",
        }
    }

    fn of(word: &str) -> Option<Self> {
        Self::SHARES.into_iter().map(|(behaviour, _)| behaviour).find(|behaviour| behaviour.word() == word)
    }
}

/// The token of the message `number` on a platform whose tokens begin with `prefix`, two letters.
pub(crate) fn token(prefix: &str, number: usize) -> String {
    format!("{prefix}{number:06}")
}

/// The first token in `text`.
pub(crate) fn token_in(text: &str) -> Option<&str> {
    text.split(|c: char| !c.is_ascii_alphanumeric()).find(|word| is_token(word))
}

/// The last request in what the agent gets: the behaviour and the token. A turn's text may follow older ones.
pub(crate) fn request_in(text: &str) -> Option<(Behaviour, &str)> {
    let words: Vec<&str> = text.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    words.windows(2).rev().find(|pair| is_token(pair[1])).and_then(|pair| Some((Behaviour::of(pair[0])?, pair[1])))
}

fn is_token(word: &str) -> bool {
    word.len() == 8
        && word[..2].bytes().all(|c| c.is_ascii_lowercase())
        && word[2..].bytes().all(|c| c.is_ascii_digit())
}

/// An answer of one paragraph.
pub(crate) fn answer(token: &str) -> String {
    paragraph(token, 1, 1, 60)
}

/// An answer of `parts` paragraphs of `length` characters.
pub(crate) fn long_answer(token: &str, parts: usize, length: usize) -> String {
    (1..=parts).map(|part| paragraph(token, part, parts, length)).collect::<Vec<_>>().join("\n\n")
}

fn paragraph(token: &str, part: usize, parts: usize, length: usize) -> String {
    let start = format!("{token} part {part} of {parts}");
    let filler = " word".repeat(length.saturating_sub(start.len() + END.len() + 1) / 5);
    format!("{start}{filler} {END}")
}

/// A paragraph of an answer that a person sees.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SeenPart<'a> {
    pub(crate) token: &'a str,
    /// Its number, and of how many; `None` if it is cut off before that.
    pub(crate) number: Option<(usize, usize)>,
    pub(crate) is_whole: bool,
}

/// The paragraphs of `text` that answer a message.
pub(crate) fn parts_in(text: &str) -> Vec<SeenPart<'_>> {
    text.split("\n\n")
        .filter_map(|paragraph| {
            let token = token_in(paragraph)?;
            let after = paragraph.split_once(token)?.1;
            let words: Vec<&str> = after.split_whitespace().collect();
            let number = match words[..] {
                ["part", part, "of", parts, ..] => part.parse().ok().zip(parts.parse().ok()),
                _ => None,
            };
            Some(SeenPart { token, number, is_whole: number.is_some() && words.last() == Some(&END) })
        })
        .collect()
}

/// A text without the label of a copy, and whether it had it.
pub(crate) fn without_label(text: &str) -> (&str, bool) {
    let (text, is_copy) = text.trim().strip_prefix(LABEL).map_or((text.trim(), false), |rest| (rest.trim(), true));
    (text.strip_prefix(OVERTAKEN).unwrap_or(text).trim(), is_copy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_request_counts() {
        assert_eq!(request_in("stream tg000001\n\nAda: @bot slow tg000002"), Some((Behaviour::Slow, "tg000002")));
        assert_eq!(request_in("defer tg000002\n\n[The time has come.]"), Some((Behaviour::Defer, "tg000002")));
        assert_eq!(request_in("/stop"), None);
    }

    #[test]
    fn parts_are_recognised_in_one_message_and_in_several() {
        let text = long_answer("wh000007", 2, 100);
        let part = |number| SeenPart { token: "wh000007", number: Some((number, 2)), is_whole: true };

        assert_eq!(parts_in(&text), [part(1), part(2)]);
        assert_eq!(parts_in(text.split("\n\n").nth(1).unwrap()), [part(2)]);
        assert!(!parts_in(&text[..60])[0].is_whole);
        assert_eq!(parts_in("Still working on this."), []);
    }

    #[test]
    fn a_label_is_taken_off() {
        assert_eq!(without_label("[copy]\n\nSorry."), ("Sorry.", true));
        assert_eq!(without_label("[copy]\n[late]\n\nSorry."), ("Sorry.", true));
        assert_eq!(without_label("[late]\n\nSorry."), ("Sorry.", false));
        assert_eq!(without_label("Sorry."), ("Sorry.", false));
    }
}
