//! Traces: how a turn is named in those of other programs (<https://www.w3.org/TR/trace-context/>).

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::model::ids::{DeliveryId, TurnId};

/// The longest `tracestate` that is passed on, in bytes.
const MAX_STATE: usize = 512;

/// The trace that the caller of a hook is in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallerTrace {
    /// The header `traceparent`.
    parent: TraceParent,
    /// The header `tracestate`; empty without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    state: String,
}

impl CallerTrace {
    /// Reads the headers `traceparent` and `tracestate`. `None` if the first one is wrong: the turn begins a trace then.
    pub fn read(parent: &str, state: Option<&str>) -> Option<Self> {
        let state = state.filter(|state| state.len() <= MAX_STATE).unwrap_or_default();
        Some(Self { parent: TraceParent::read(parent)?, state: state.to_owned() })
    }
}

/// A span within a trace, written as in the header `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TraceParent {
    trace: u128,
    span: u64,
    is_sampled: bool,
}

impl TraceParent {
    fn read(text: &str) -> Option<Self> {
        let mut parts = text.trim().split('-');
        let mut hex = |length| {
            let is_hex =
                |part: &&str| part.len() == length && part.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'));
            u128::from_str_radix(parts.next().filter(is_hex)?, 16).ok()
        };
        let (version, trace, span, flags) = (hex(2)?, hex(32)?, hex(16)?, hex(2)?);
        // Later versions may add fields, 255 is none.
        let is_valid = trace != 0 && span != 0 && version != 255 && (version > 0 || parts.next().is_none());
        is_valid.then(|| Self { trace, span: u64::try_from(span).unwrap_or_default(), is_sampled: flags & 1 == 1 })
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace, self.span, u8::from(self.is_sampled))
    }
}

impl FromStr for TraceParent {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::read(text).ok_or("not a traceparent")
    }
}

stored_as_text!(TraceParent);

/// The headers that tell a program which trace a request belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceHeaders {
    /// `traceparent`.
    pub parent: String,
    /// `tracestate`; empty without one.
    pub state: String,
}

impl TraceHeaders {
    /// The headers, by their names.
    pub fn pairs(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let state = (!self.state.is_empty()).then_some(("tracestate", &*self.state));
        std::iter::once(("traceparent", &*self.parent)).chain(state)
    }
}

/// A part of a turn's trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// The turn, from its event to its end.
    Turn,
    /// From the event to the moment when it was stored.
    Intake,
    /// The wait for the first run.
    Wait,
    Run(u32),
    /// The attempt with this number to send a delivery.
    Attempt(DeliveryId, u32),
}

/// The trace of a turn. It follows from the turn alone, so that it is the same in every process, before and after a crash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnTrace {
    turn: TurnId,
    caller: Option<CallerTrace>,
}

impl TurnTrace {
    /// The trace of a turn, whose caller may be in one already.
    pub const fn new(turn: TurnId, caller: Option<CallerTrace>) -> Self {
        Self { turn, caller }
    }

    /// The trace: the caller's, or the turn's id.
    pub fn id(&self) -> u128 {
        self.caller.as_ref().map_or(self.turn.as_uuid().as_u128(), |caller| caller.parent.trace)
    }

    /// The caller's span, in which the turn is.
    pub fn parent(&self) -> Option<u64> {
        self.caller.as_ref().map(|caller| caller.parent.span)
    }

    /// Whether the trace is recorded: the caller decides, if it is in one.
    pub fn is_sampled(&self) -> bool {
        self.caller.as_ref().is_none_or(|caller| caller.parent.is_sampled)
    }

    /// The caller's `tracestate`; empty without one.
    pub fn state(&self) -> &str {
        self.caller.as_ref().map_or("", |caller| &caller.state)
    }

    /// The id of a span: never 0.
    pub fn span(&self, span: Span) -> u64 {
        let turn = self.turn.as_uuid();
        let (of, kind, number) = match span {
            Span::Turn => (turn, 1, 0),
            Span::Intake => (turn, 2, 0),
            Span::Wait => (turn, 3, 0),
            Span::Run(number) => (turn, 4, number),
            Span::Attempt(delivery, number) => (delivery.as_uuid(), 5, number),
        };
        let (_, random) = of.as_u64_pair();
        mixed(random ^ mixed((kind << 32) | u64::from(number))).max(1)
    }

    /// The headers of a request that belongs to `span`.
    pub fn headers(&self, span: Span) -> TraceHeaders {
        let parent = TraceParent { trace: self.id(), span: self.span(span), is_sampled: self.is_sampled() };
        TraceHeaders { parent: parent.to_string(), state: self.state().to_owned() }
    }
}

/// Spreads the bits of a number (the finaliser of SplitMix64). No two numbers give the same.
const fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use rejoinder_guard::Timestamp;

    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_traceparent_is_read_and_written_back() {
        let caller = CallerTrace::read(PARENT, Some("vendor=1")).unwrap();

        assert_eq!(caller.parent.to_string(), PARENT);
        assert_eq!(caller.parent.span, 0x00f0_67aa_0ba9_02b7);
        let json = serde_json::to_string(&caller).unwrap();
        assert_eq!(serde_json::from_str::<CallerTrace>(&json).unwrap(), caller);
    }

    #[test]
    fn what_is_no_traceparent_is_ignored() {
        for wrong in [
            "",
            "00",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(CallerTrace::read(wrong, None), None, "{wrong}");
        }
        let later = "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00-more";
        assert!(!CallerTrace::read(later, None).unwrap().parent.is_sampled);
    }

    #[test]
    fn a_turn_without_a_caller_is_a_trace_of_its_own_whose_spans_differ() {
        let turn = TurnId::new(Timestamp::from_millis(1));
        let trace = TurnTrace::new(turn, None);

        assert_eq!(format!("{:032x}", trace.id()), turn.to_string().replace('-', ""));
        assert_eq!(trace, TurnTrace::new(turn, None));
        let delivery = DeliveryId::new(Timestamp::from_millis(2));
        let attempts = [Span::Attempt(delivery, 1), Span::Attempt(delivery, 2)];
        let spans = [Span::Turn, Span::Intake, Span::Wait, Span::Run(1), Span::Run(2)].into_iter().chain(attempts);
        let ids: std::collections::HashSet<_> = spans.map(|span| trace.span(span)).collect();
        assert_eq!(ids.len(), 7);
    }

    #[test]
    fn the_callers_trace_is_passed_on_with_a_span_of_the_turn() {
        let turn = TurnId::new(Timestamp::from_millis(1));
        let trace = TurnTrace::new(turn, CallerTrace::read(PARENT, Some("vendor=1")));

        let TraceHeaders { parent, state } = trace.headers(Span::Run(1));

        assert_eq!(
            (&parent[..36], &parent[52..], &*state),
            ("00-4bf92f3577b34da6a3ce929d0e0e4736-", "-01", "vendor=1")
        );
        assert_ne!(&parent[36..52], "00f067aa0ba902b7");
    }
}
