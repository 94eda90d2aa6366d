//! Checks that reading a text costs no more than its length asks for.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

/// The lengths that are compared, in bytes.
const SHORT: usize = 8 << 10;
const LONG: usize = 16 * SHORT;

/// How much longer the long text may take. A parser whose cost grows with the length takes 16 times as long, one whose cost
/// grows with the square 256 times.
const FACTOR: u32 = 60;

/// Shorter times say little.
const TICK: Duration = Duration::from_millis(2);

/// Pieces of Markdown that open something. A text of many of them makes a careless parser look back or ahead.
pub const OPENERS: [&str; 40] = [
    "[",
    "![",
    "](",
    "[a](",
    "[a][",
    "[a]: ",
    "[^",
    ")",
    "(",
    "*",
    "**",
    "_",
    "*a_",
    "~~",
    "`",
    "`` ` ",
    "```\n",
    "<",
    "<a ",
    "<!--",
    "<@",
    "&",
    "&#",
    "\\",
    "|",
    "a|",
    "> ",
    "> - ",
    "- ",
    "  - ",
    "1. ",
    "#",
    "\n",
    "\n\n",
    " ",
    "http://",
    "http://a)",
    "@a",
    "👩\u{200d}",
    "e\u{301}",
];

/// Has `read` read texts that repeat each piece, short ones and long ones.
///
/// # Panics
/// When a text that is 16 times as long takes more than 60 times as long.
pub fn assert_linear(pieces: &[&str], read: impl Fn(&str)) {
    for piece in pieces {
        let took = |length: usize, tries: u32| {
            let text = piece.repeat(length / piece.len());
            let once = || {
                let begun = Stopwatch::start();
                read(&text);
                begun.elapsed()
            };
            (0..tries).map(|_| once()).min().unwrap_or_default()
        };
        let (short, long) = (took(SHORT, 3), took(LONG, 2));
        assert!(long <= short.max(TICK) * FACTOR, "{piece:?}: {SHORT} bytes take {short:?}, {LONG} bytes {long:?}");
    }
}

/// Measures the time in which this thread ran, so that other processes do not count; where that is unknown, all time.
struct Stopwatch {
    ran: Option<Duration>,
    at: Instant,
}

impl Stopwatch {
    fn start() -> Self {
        Self { ran: Self::ran(), at: Instant::now() }
    }

    fn elapsed(&self) -> Duration {
        Self::ran().zip(self.ran).map_or_else(|| self.at.elapsed(), |(now, begun)| now.saturating_sub(begun))
    }

    /// How long this thread has run so far, on Linux.
    fn ran() -> Option<Duration> {
        // Brings the number up to date.
        thread::yield_now();
        let numbers = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        Some(Duration::from_nanos(numbers.split(' ').next()?.parse().ok()?))
    }
}
