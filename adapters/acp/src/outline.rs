//! The outline of a message that is too long to be kept, read piece by piece. No I/O.

use crate::protocol::MAX_ID;

/// How many bytes of an outline are kept before the rest of a field is left out.
const MOST: usize = 4 << 10;

/// The most bytes of a text in it.
const MAX_TEXT: usize = 256;

/// The key of the text that says whose message it is.
const SESSION: &[u8] = b"\"sessionId\":\"";

/// The key of the text with which a request is answered.
const REQUEST: &[u8] = b"\"id\":\"";

/// The most bytes of these two texts, in which some characters are escaped.
const MAX_WHOLE: usize = 2 * MAX_ID;

/// A message with its fields and theirs. What is deeper is left out, and so are long texts.
#[derive(Debug, Default)]
pub(crate) struct Outline {
    kept: Vec<u8>,
    depth: usize,
    /// Where in `kept` the text begins that is read now.
    text: Option<usize>,
    /// The most bytes of that text.
    most: usize,
    is_escaped: bool,
    is_long: bool,
    /// Whether the rest of the field is left out.
    skips: bool,
}

impl Outline {
    /// Reads on.
    pub(crate) fn push(&mut self, piece: &[u8]) {
        for byte in piece {
            match self.text {
                Some(begin) => self.push_text(*byte, begin),
                None => self.push_structure(*byte),
            }
        }
    }

    fn push_text(&mut self, byte: u8, begin: usize) {
        let ends = byte == b'"' && !self.is_escaped;
        self.is_escaped = byte == b'\\' && !self.is_escaped;
        if !self.is_long && self.kept.len() - begin > self.most {
            self.kept.truncate(begin);
            self.is_long = true;
        }
        if ends {
            (self.text, self.is_long) = (None, false);
        }
        if !self.is_long {
            self.keep(byte);
        }
    }

    fn push_structure(&mut self, byte: u8) {
        match byte {
            b'"' => {
                self.keep(byte);
                let is_request = self.depth == 1 && self.kept.ends_with(REQUEST);
                self.most = if is_request || self.kept.ends_with(SESSION) { MAX_WHOLE } else { MAX_TEXT };
                self.text = Some(self.kept.len());
            }
            b'{' | b'[' => {
                self.keep(byte);
                self.depth += 1;
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                self.skips &= self.depth >= 2;
                self.keep(byte);
            }
            b',' if self.depth == 2 && self.kept.len() > MOST => self.skips = true,
            b' ' | b'\t' | b'\r' => {}
            _ => self.keep(byte),
        }
    }

    fn keep(&mut self, byte: u8) {
        // With more than that it is no JSON.
        if self.depth <= 2 && !self.skips && self.kept.len() < 4 * MOST {
            self.kept.push(byte);
        }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.kept
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn of(message: &str) -> String {
        let mut outline = Outline::default();
        message.as_bytes().chunks(7).for_each(|piece| outline.push(piece));
        String::from_utf8(outline.kept).expect("UTF-8")
    }

    #[rstest]
    #[case::deep(r#"{"a": {"b": {"c": [1, {"d": 2}]}, "e": [3]}, "f": 4}"#, r#"{"a":{"b":{},"e":[]},"f":4}"#)]
    #[case::brackets_in_texts(r#"{"a":{"b":"}]\"{","c":"\\"},"d":"é"}"#, r#"{"a":{"b":"}]\"{","c":"\\"},"d":"é"}"#)]
    fn what_is_deep_is_left_out(#[case] message: &str, #[case] outline: &str) {
        assert_eq!(of(message), outline);
    }

    #[test]
    fn it_stays_small() {
        let long = "é\\\"".repeat(10_000);
        assert_eq!(
            of(&format!(r#"{{"a":"{long}","{long}":1,"b":{{"c":"{long}"}}}}"#)),
            r#"{"a":"","":1,"b":{"c":""}}"#
        );
        for many in [vec!["1"; 10_000].join(","), vec![r#"{"a":[0]}"#; 10_000].join(",")] {
            let outline = of(&format!(r#"{{"result":[{many}],"id":3}}"#));
            assert!(outline.ends_with(r#"],"id":3}"#) && outline.len() < 2 * MOST, "{} bytes", outline.len());
        }
        assert!(of(&"1".repeat(100_000)).len() <= 4 * MOST);
    }
}
