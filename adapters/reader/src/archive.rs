//! The parts of a ZIP archive, as office programs write them. They are found by the directory at its end.

use std::io::Read as _;

use flate2::read::DeflateDecoder;

/// How many bytes of a part are unpacked at most.
const MOST_OF_PART: u64 = 32 << 20;

/// How many bytes from its end the end of the directory may be.
const LONGEST_END: usize = 22 + 0xffff;

const STORED: usize = 0;
const DEFLATED: usize = 8;

pub(crate) struct Archive<'a> {
    bytes: &'a [u8],
    parts: Vec<Part<'a>>,
}

struct Part<'a> {
    name: &'a [u8],
    method: usize,
    /// Its packed size.
    size: usize,
    /// Where its own header begins.
    at: usize,
}

impl<'a> Archive<'a> {
    /// `None` if it is none, or its end is missing.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<Self> {
        let last = &bytes[bytes.len().saturating_sub(LONGEST_END)..];
        let end = &last[last.windows(4).rposition(|window| window == b"PK\x05\x06")?..];
        let mut directory = bytes.get(number(end, 16, 4)?..)?;
        let mut parts = Vec::new();
        for _ in 0..number(end, 10, 2)? {
            if !directory.starts_with(b"PK\x01\x02") {
                return None;
            }
            let [name, extra, comment] = [28, 30, 32].map(|at| number(directory, at, 2));
            let end_of_name = 46 + name?;
            parts.push(Part {
                name: directory.get(46..end_of_name)?,
                method: number(directory, 10, 2)?,
                size: number(directory, 20, 4)?,
                at: number(directory, 42, 4)?,
            });
            directory = directory.get(end_of_name + extra? + comment?..)?;
        }
        Some(Self { bytes, parts })
    }

    /// The names of its parts that begin and end like this, the shortest first: `slide2.xml` stands before `slide10.xml`.
    pub(crate) fn names(&self, beginning: &str, end: &str) -> Vec<&'a str> {
        let names = self.parts.iter().filter_map(|part| std::str::from_utf8(part.name).ok());
        let mut names: Vec<_> = names.filter(|name| name.starts_with(beginning) && name.ends_with(end)).collect();
        names.sort_by_key(|name| (name.len(), *name));
        names
    }

    /// The text of a part, or its beginning. `None` if there is none that can be read.
    pub(crate) fn part(&self, name: &str) -> Option<String> {
        let part = self.parts.iter().find(|part| part.name == name.as_bytes())?;
        let header = self.bytes.get(part.at..).filter(|header| header.starts_with(b"PK\x03\x04"))?;
        let begin = 30 + number(header, 26, 2)? + number(header, 28, 2)?;
        let packed = header.get(begin..begin + part.size)?;
        let mut bytes = Vec::new();
        match part.method {
            STORED => bytes.extend_from_slice(packed),
            DEFLATED => {
                // What stands before damage is read.
                let _ = DeflateDecoder::new(packed).take(MOST_OF_PART).read_to_end(&mut bytes);
            }
            _ => return None,
        }
        Some(String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }
}

/// A number of so many bytes, the lowest first.
fn number(bytes: &[u8], at: usize, size: usize) -> Option<usize> {
    let bytes = bytes.get(at..at + size)?;
    Some(bytes.iter().rev().fold(0, |number, byte| (number << 8) | usize::from(*byte)))
}
