//! Reads [server-sent events](https://html.spec.whatwg.org/multipage/server-sent-events.html).

use std::{mem, ops::Range};

use reqwest::Response;

use crate::response::{MAX_EVENT, chain, too_large};

/// The byte order mark of UTF-8.
const MARK: &[u8] = b"\xEF\xBB\xBF";

/// Why a stream has no next event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventsError {
    /// The connection broke.
    Cut(String),
    /// It is no stream of events, or one of them is too large.
    Broken(String),
}

/// The server-sent events of a response, each of at most [`MAX_EVENT`] bytes.
#[derive(Debug)]
pub struct Events {
    response: Response,
    parser: Parser,
}

impl Events {
    pub fn of(response: Response) -> Self {
        Self { response, parser: Parser::default() }
    }

    /// The data of the next event. `None`: the stream has ended.
    ///
    /// # Errors
    /// When the connection breaks, or it is no stream of events.
    pub async fn next(&mut self) -> Result<Option<&str>, EventsError> {
        while !self.parser.read_event()? {
            match self.response.chunk().await {
                Ok(Some(chunk)) => self.parser.push(&chunk),
                Ok(None) => return self.parser.check_end().map(|()| None),
                Err(error) => return Err(EventsError::Cut(chain(error))),
            }
        }
        Ok(Some(self.parser.data.as_str()))
    }
}

/// Reads events from pieces of a stream.
#[derive(Debug, Default)]
struct Parser {
    buffer: Vec<u8>,
    /// How many bytes of it were read.
    read: usize,
    /// How many of them hold no further end of a line.
    searched: usize,
    /// Whether a carriage return ended the last line: a line feed after it belongs to it.
    is_after_return: bool,
    has_begun: bool,
    /// How many bytes the lines of the event have so far.
    size: usize,
    /// The data of the event: lines that end with a line feed. Without the last one if it is whole.
    data: String,
    is_whole: bool,
}

impl Parser {
    fn push(&mut self, piece: &[u8]) {
        self.buffer.drain(..self.read);
        self.searched -= self.read;
        self.read = 0;
        self.buffer.extend_from_slice(piece);
    }

    /// Reads the next event to its end. `false`: more must be pushed first. An event without data is none.
    fn read_event(&mut self) -> Result<bool, EventsError> {
        if mem::take(&mut self.is_whole) {
            self.data.clear();
        }
        while let Some(line) = self.next_line() {
            self.size += line.len() + 1;
            check_size(self.size)?;
            if line.is_empty() {
                self.size = 0;
                self.is_whole = self.data.pop().is_some();
                if self.is_whole {
                    return Ok(true);
                }
            } else if let Some(data) = data_in(text(&self.buffer[line])?) {
                self.data.push_str(data);
                self.data.push('\n');
            }
        }
        check_size(self.size + self.buffer.len() - self.read).map(|()| false)
    }

    /// Where the next line is in the buffer, without its end.
    fn next_line(&mut self) -> Option<Range<usize>> {
        loop {
            let ends = |byte: &u8| matches!(byte, b'\n' | b'\r');
            let Some(length) = self.buffer[self.searched..].iter().position(ends) else {
                self.searched = self.buffer.len();
                return None;
            };
            let (mut line, end) = (self.read..self.searched + length, self.buffer[self.searched + length]);
            (self.read, self.searched) = (line.end + 1, line.end + 1);
            let is_second_half =
                mem::replace(&mut self.is_after_return, end == b'\r') && end == b'\n' && line.is_empty();
            if is_second_half {
                continue;
            }
            if !mem::replace(&mut self.has_begun, true) && self.buffer[line.clone()].starts_with(MARK) {
                line.start += MARK.len();
            }
            return Some(line);
        }
    }

    /// Checks what is left at the end of the stream: an event that has no end does not count.
    fn check_end(&self) -> Result<(), EventsError> {
        text(&self.buffer[self.read..]).map(drop)
    }
}

fn check_size(size: usize) -> Result<(), EventsError> {
    if size > MAX_EVENT { Err(EventsError::Broken(too_large())) } else { Ok(()) }
}

fn text(bytes: &[u8]) -> Result<&str, EventsError> {
    std::str::from_utf8(bytes).map_err(|_| EventsError::Broken("not UTF-8".to_owned()))
}

/// The data in a line, if that has some.
fn data_in(line: &str) -> Option<&str> {
    let (name, value) = line.split_once(':').unwrap_or((line, ""));
    (name == "data").then(|| value.strip_prefix(' ').unwrap_or(value))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// The events of a stream that comes in these pieces, until one is wrong.
    fn events<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<String>, EventsError> {
        let (mut parser, mut events) = (Parser::default(), Vec::new());
        for piece in pieces {
            parser.push(piece);
            while parser.read_event()? {
                events.push(parser.data.clone());
            }
        }
        parser.check_end().map(|()| events)
    }

    #[rstest]
    #[case::line_feeds("data: a\n\ndata: b\n\n", &["a", "b"])]
    #[case::both("data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"])]
    #[case::carriage_returns("data: a\r\rdata: b\r\r", &["a", "b"])]
    #[case::a_mark("\u{feff}data: a\n\n", &["a"])]
    #[case::several_lines("data: a\ndata:\ndata:  b\n\n", &["a\n\n b"])]
    #[case::no_space_and_no_colon("data:{\"a\":1}\n\ndata\n\n", &["{\"a\":1}", ""])]
    #[case::other_lines(": alive\n\nevent: end\nid: 1\ndata: ä\nretry: 5\ndatum: b\n\nevent: none\n\n", &["ä"])]
    #[case::no_end("data: a\n\ndata: b\n", &["a"])]
    #[case::nothing("", &[])]
    fn events_are_read_however_they_are_cut(#[case] stream: &str, #[case] expected: &[&str]) {
        let stream = stream.as_bytes();

        assert_eq!(events([stream]).expect("it is read"), expected);
        assert_eq!(events(stream.chunks(1)).expect("it is read"), expected);
        for cut in 0..stream.len() {
            let (first, second) = stream.split_at(cut);
            assert_eq!(events([first, second]).expect("it is read"), expected, "cut at {cut}");
        }
    }

    #[rstest]
    #[case(b"data: \xFF\n\n")]
    #[case(b": \xFF\n")]
    #[case(b"data: a\n\ndata: \xC3")]
    fn what_is_no_text_is_broken(#[case] stream: &[u8]) {
        assert_eq!(events([stream]), Err(EventsError::Broken("not UTF-8".to_owned())));
    }

    #[test]
    fn an_event_without_an_end_is_too_large_and_many_small_ones_are_not() {
        let too_large = Err(EventsError::Broken(too_large()));
        let line = [vec![b'x'; 1023], b"\n".to_vec()].concat();
        assert_eq!(events(std::iter::repeat_n(&line[..], MAX_EVENT / 1024 + 1)), too_large);
        assert_eq!(events(std::iter::repeat_n(&line[..1023], MAX_EVENT / 1023 + 1)), too_large);
        let ended = [vec![b'x'; MAX_EVENT + 1], b"\n\n".to_vec()].concat();
        assert_eq!(events([&ended[..]]), too_large, "its end is in the same piece");
        let event = [vec![b'x'; 1020], b"\r\n\r\n".to_vec()].concat();
        assert_eq!(events(std::iter::repeat_n(&event[..], 4200)), Ok(Vec::new()));
    }
}
