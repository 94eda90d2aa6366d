//! A cache of the last transcript lines of active sessions.
//!
//! An agent without a memory of its own is given the same lines again with every turn. The cache agrees with
//! the database: a line is added when its transaction is committed, and a session whose transaction has an
//! unknown result is read again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quick_cache::sync::Cache;
use rejoinder_core::{
    HistoryLine, SessionId, Speaker,
    store::{SessionChange, TranscriptLine, Transition, TurnSeq},
};

/// How many sessions are cached. With fewer than are active at once, every turn would read its lines again.
const SESSIONS: usize = 2048;

/// How many lines are cached per session.
const LINES: usize = 64;

/// How many bytes of text are cached per session.
const BYTES: usize = 16 * 1024;

/// A line with its turn, by which it is found and ordered.
#[derive(Clone, Debug)]
struct CachedLine {
    turn: TurnSeq,
    line: HistoryLine,
}

impl CachedLine {
    /// The order in the database: by turn, then by time, then by speaker.
    fn order(&self) -> (TurnSeq, i64, u8) {
        let speaker = match self.line.speaker {
            Speaker::Person => 0,
            Speaker::Agent => 1,
            Speaker::Gateway => 2,
        };
        (self.turn, self.line.at.as_millis(), speaker)
    }
}

/// The cached lines of a session.
#[derive(Debug, Default)]
struct CachedSession {
    /// The last lines, oldest first; `None` until they are read.
    lines: Option<Vec<CachedLine>>,
    /// Whether the database has no older ones.
    is_all: bool,
    /// Lines that are committed while `lines` is `None`.
    since: Vec<CachedLine>,
    /// Counts how often the session was read or forgotten. A reading that began before says nothing any more.
    epoch: u64,
}

impl CachedSession {
    fn forget(&mut self) {
        *self = Self { epoch: self.epoch + 1, ..Self::default() };
    }

    fn add(&mut self, line: CachedLine) {
        let Some(lines) = &mut self.lines else {
            // The session may never be read: its new lines must not pile up.
            if self.since.len() == LINES {
                self.forget();
            }
            return self.since.push(line);
        };
        // Before the first known line there may be unknown ones.
        if !self.is_all && lines.first().is_none_or(|first| line.order() < first.order()) {
            return;
        }
        put(lines, line);
        self.trim();
    }

    fn trim(&mut self) {
        let Some(lines) = &mut self.lines else { return };
        while lines.len() > LINES || lines.iter().map(|cached| cached.line.text.len()).sum::<usize>() > BYTES {
            lines.remove(0);
            self.is_all = false;
        }
    }

    fn last(&self, limit: usize) -> Option<Vec<HistoryLine>> {
        let lines = self.lines.as_ref()?;
        (self.is_all || lines.len() >= limit)
            .then(|| lines[lines.len().saturating_sub(limit)..].iter().map(|cached| cached.line.clone()).collect())
    }
}

/// Inserts a line in order. A turn has one line per speaker: a new one replaces the old one.
fn put(lines: &mut Vec<CachedLine>, line: CachedLine) {
    lines.retain(|cached| (cached.turn, cached.line.speaker) != (line.turn, line.line.speaker));
    let place = lines.partition_point(|cached| cached.order() <= line.order());
    lines.insert(place, line);
}

type Session = Arc<Mutex<CachedSession>>;

fn lock(session: &Session) -> MutexGuard<'_, CachedSession> {
    session.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The sessions that were used last.
#[derive(Debug)]
pub(super) struct Transcripts(Cache<SessionId, Session>);

impl Default for Transcripts {
    fn default() -> Self {
        Self(Cache::new(SESSIONS))
    }
}

impl Transcripts {
    /// The last `limit` lines of a session, oldest first. When they are not cached, `Err` with the [`Reading`] to
    /// [fill](Reading::fill).
    pub(super) fn last(&self, session: SessionId, limit: usize) -> Result<Vec<HistoryLine>, Reading> {
        let session = self.0.get_or_insert_with(&session, || Ok::<_, std::convert::Infallible>(Session::default()));
        let Ok(session) = session;
        let known = lock(&session);
        let (lines, epoch) = (known.last(limit), known.epoch);
        drop(known);
        lines.ok_or(Reading { session, epoch })
    }

    /// Lines of a session were removed: it is read again.
    pub(super) fn forget(&self, session: SessionId) {
        if let Some(session) = self.0.get(&session) {
            lock(&session).forget();
        }
    }

    /// Announces the lines that `transition` is about to write.
    pub(super) fn writing(&self, transition: &Transition) -> Writing<'_> {
        let removes = |change: &SessionChange| match change {
            SessionChange::Delete { session } | SessionChange::LeaveOut { session, .. } => Some(*session),
            _ => None,
        };
        let changed = transition.sessions.iter().filter_map(removes).collect();
        Writing { transcripts: self, lines: transition.transcript.clone(), changed }
    }
}

/// A session whose lines are being read.
#[derive(Debug)]
pub(super) struct Reading {
    session: Session,
    epoch: u64,
}

impl Reading {
    /// Caches the last lines, as read with `limit`, oldest first. Fewer than `limit` are all there are.
    pub(super) fn fill(self, read: &[(TurnSeq, HistoryLine)], limit: usize) {
        let mut session = lock(&self.session);
        if session.epoch != self.epoch {
            return;
        }
        session.epoch += 1;
        let since = std::mem::take(&mut session.since);
        session.is_all = read.len() < limit;
        session.lines = Some(read.iter().map(|(turn, line)| CachedLine { turn: *turn, line: line.clone() }).collect());
        session.trim();
        for line in since {
            session.add(line);
        }
    }
}

/// Lines that are being written. When it is dropped without a known result, their sessions are read again.
#[derive(Debug)]
pub(super) struct Writing<'a> {
    transcripts: &'a Transcripts,
    lines: Vec<TranscriptLine>,
    /// Sessions that have fewer lines afterwards.
    changed: Vec<SessionId>,
}

impl Writing<'_> {
    /// Reports the result: the lines were written, or certainly not.
    pub(super) fn done(mut self, are_written: bool) {
        for TranscriptLine { session, seq: turn, line, .. } in self.lines.drain(..) {
            // It may be cached only since the writing began.
            if are_written && let Some(session) = self.transcripts.0.get(&session) {
                lock(&session).add(CachedLine { turn, line });
            }
        }
        if !are_written {
            self.changed.clear();
        }
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        for session in self.lines.iter().map(|line| line.session).chain(self.changed.iter().copied()) {
            self.transcripts.forget(session);
        }
    }
}

#[cfg(test)]
mod tests {
    use rejoinder_core::{Timestamp, TurnId};

    use super::*;

    fn line(text: &str, speaker: Speaker, at: i64) -> HistoryLine {
        HistoryLine { speaker, author: None, forwarded: None, text: text.to_owned(), at: Timestamp::from_millis(at) }
    }

    fn texts(lines: &[HistoryLine]) -> Vec<&str> {
        lines.iter().map(|line| line.text.as_str()).collect()
    }

    fn written(transcripts: &Transcripts, session: SessionId, seq: TurnSeq, line: HistoryLine) {
        let turn = TurnId::new(Timestamp::from_millis(0));
        let transcript = vec![TranscriptLine { session, turn, seq, line }];
        transcripts.writing(&Transition { transcript, ..Transition::default() }).done(true);
    }

    #[test]
    fn what_was_read_and_what_is_written_later_is_in_order() {
        let (transcripts, session) = (Transcripts::default(), SessionId::new(Timestamp::from_millis(0)));
        let (first, second) = (1, 2);
        let reading = transcripts.last(session, 3).expect_err("nothing is known yet");

        written(&transcripts, session, second, line("c", Speaker::Person, 2_000));
        reading.fill(&[(first, line("a", Speaker::Person, 1_000)), (first, line("b", Speaker::Agent, 1_500))], 3);
        written(&transcripts, session, second, line("d", Speaker::Agent, 2_500));

        assert_eq!(texts(&transcripts.last(session, 10).expect("all is known")), ["a", "b", "c", "d"]);
        assert_eq!(texts(&transcripts.last(session, 2).expect("all is known")), ["c", "d"]);
    }

    #[test]
    fn a_line_that_is_written_again_takes_the_place_of_the_first() {
        let (transcripts, session) = (Transcripts::default(), SessionId::new(Timestamp::from_millis(0)));
        let first = 1;
        transcripts.last(session, 3).expect_err("nothing is known yet").fill(&[], 3);

        written(&transcripts, session, first, line("no", Speaker::Agent, 1_500));
        written(&transcripts, session, first, line("yes", Speaker::Agent, 1_700));

        assert_eq!(texts(&transcripts.last(session, 3).expect("all is known")), ["yes"]);
    }

    #[test]
    fn more_than_what_is_known_is_read() {
        let (transcripts, session) = (Transcripts::default(), SessionId::new(Timestamp::from_millis(0)));
        let read = [(1, line("a", Speaker::Person, 1_000))];
        transcripts.last(session, 1).expect_err("nothing is known yet").fill(&read, 1);

        assert!(transcripts.last(session, 1).is_ok());
        assert!(transcripts.last(session, 2).is_err());
    }

    #[test]
    fn a_session_whose_writing_ended_in_an_unknown_way_is_read_anew() {
        let (transcripts, session) = (Transcripts::default(), SessionId::new(Timestamp::from_millis(0)));
        transcripts.last(session, 3).expect_err("nothing is known yet").fill(&[], 3);
        let turn = TurnId::new(Timestamp::from_millis(0));
        let transcript = vec![TranscriptLine { session, turn, seq: 1, line: line("a", Speaker::Person, 1_000) }];

        drop(transcripts.writing(&Transition { transcript, ..Transition::default() }));

        assert!(transcripts.last(session, 3).is_err());
    }

    #[test]
    fn long_lines_are_not_kept() {
        let (transcripts, session) = (Transcripts::default(), SessionId::new(Timestamp::from_millis(0)));
        transcripts.last(session, 3).expect_err("nothing is known yet").fill(&[], 3);

        written(&transcripts, session, 1, line(&"a".repeat(BYTES + 1), Speaker::Agent, 1_000));

        assert!(transcripts.last(session, 3).is_err());
    }

    #[test]
    fn what_is_written_while_a_session_is_read_is_not_missed() {
        let (transcripts, session) = (Transcripts::default(), SessionId::new(Timestamp::from_millis(0)));
        let reading = transcripts.last(session, 3).expect_err("nothing is known yet");
        for number in 1..=66 {
            written(&transcripts, session, number, line(&number.to_string(), Speaker::Person, 1_000 * number));
        }

        reading.fill(&[], 3);

        let known = transcripts.last(session, 3);
        assert!(known.as_ref().is_err() || texts(known.as_ref().unwrap()) == ["64", "65", "66"], "{known:?}");
    }

    #[test]
    fn of_two_who_read_a_session_at_once_the_later_one_takes_nothing_away() {
        let (transcripts, session) = (Transcripts::default(), SessionId::new(Timestamp::from_millis(0)));
        let first = transcripts.last(session, 3).expect_err("nothing is known yet");
        let second = transcripts.last(session, 3).expect_err("nothing is known yet");
        first.fill(&[], 3);
        written(&transcripts, session, 1, line("a", Speaker::Person, 1_000));

        second.fill(&[], 3);

        assert_eq!(texts(&transcripts.last(session, 3).expect("all is known")), ["a"]);
    }

    #[test]
    fn what_was_read_before_a_writing_with_an_unknown_end_is_not_kept() {
        let (transcripts, session) = (Transcripts::default(), SessionId::new(Timestamp::from_millis(0)));
        let reading = transcripts.last(session, 3).expect_err("nothing is known yet");
        let transcript = vec![TranscriptLine {
            session,
            turn: TurnId::new(Timestamp::from_millis(0)),
            seq: 1,
            line: line("a", Speaker::Person, 1_000),
        }];

        drop(transcripts.writing(&Transition { transcript, ..Transition::default() }));
        reading.fill(&[], 3);

        assert!(transcripts.last(session, 3).is_err());
    }

    #[test]
    fn a_line_whose_writing_began_before_its_session_was_read_is_not_missed() {
        let (transcripts, session) = (Transcripts::default(), SessionId::new(Timestamp::from_millis(0)));
        let transcript = vec![TranscriptLine {
            session,
            turn: TurnId::new(Timestamp::from_millis(0)),
            seq: 1,
            line: line("a", Speaker::Person, 1_000),
        }];
        let writing = transcripts.writing(&Transition { transcript, ..Transition::default() });
        transcripts.last(session, 3).expect_err("nothing is known yet").fill(&[], 3);

        writing.done(true);

        assert_eq!(texts(&transcripts.last(session, 3).expect("all is known")), ["a"]);
    }

    /// The answer of an older turn may be written after many younger lines.
    #[test]
    fn a_late_line_before_the_known_ones_leaves_no_gap() {
        let (transcripts, session) = (Transcripts::default(), SessionId::new(Timestamp::from_millis(0)));
        let late = 2;
        let read: Vec<_> = (8..=10).map(|it| (it, line("young", Speaker::Person, 1_000 * it))).collect();
        transcripts.last(session, 3).expect_err("nothing is known yet").fill(&read, 3);

        written(&transcripts, session, late, line("old", Speaker::Agent, 20_000));

        assert_eq!(texts(&transcripts.last(session, 3).expect("three are known")), ["young"; 3]);
        assert!(transcripts.last(session, 4).is_err(), "what is between is not known");
    }
}
