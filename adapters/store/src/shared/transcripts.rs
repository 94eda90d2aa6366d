//! A cache of the last transcript lines of active sessions.
//!
//! An agent without a memory of its own is given the same lines again with every turn. The cache agrees with
//! the database: a line is added when its transaction is committed, and is seen when the transaction with its receipt is. A
//! session is read again if the result of a transaction is unknown, or if its lines change in any other way. While other nodes write
//! lines, too, none is answered from it.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use quick_cache::sync::Cache;
use rejoinder_core::{
    HistoryLine, LineState, Reaction, SessionId, Speaker, StoreError, TurnId,
    store::{AnsweredTurn, LineChange, SessionChange, TranscriptLine, Transition, TurnSeq},
};

use super::transcript_lines::StoredLine;

/// How many sessions are cached. With fewer than are active at once, every turn would read its lines again.
const SESSIONS: usize = 2048;

/// How many lines are cached per session.
const LINES: usize = 64;

/// How many bytes of text are cached per session.
const BYTES: usize = 16 * 1024;

/// A line with its key in the database, by which it is ordered.
#[derive(Clone, Debug)]
struct CachedLine {
    key: (TurnSeq, u32, TurnId),
    line: Arc<HistoryLine>,
}

impl CachedLine {
    /// Whether the line is in the transcript: what the gateway said is if it was seen.
    fn counts(&self) -> bool {
        self.line.speaker != Speaker::Gateway || self.line.state.is_said()
    }
}

#[derive(Debug, Default)]
struct CachedSession {
    /// The last lines, oldest first; `None` until they are read.
    lines: Option<VecDeque<CachedLine>>,
    /// Whether the database has no older ones.
    is_all: bool,
    /// Counts how often the session was read, written or forgotten. A reading that began before says nothing any more.
    epoch: u64,
    /// The agent that has no news as long as all lines are plain and nobody reacts to anything.
    without_news: Option<WithoutNews>,
}

/// That an agent need not be told what became of its last answer: people have seen it, and nobody has reacted.
#[derive(Debug)]
struct WithoutNews {
    agent: String,
    /// How many reactions were stored since the start.
    reactions: u64,
}

/// Whether a line shows only what somebody said and others have seen.
fn is_plain(line: &HistoryLine) -> bool {
    line.speaker != Speaker::Gateway && line.state == LineState::Seen
}

impl CachedSession {
    fn forget(&mut self) {
        *self = Self { epoch: self.epoch + 1, ..Self::default() };
    }

    fn add(&mut self, line: CachedLine) {
        // Who reads it now may miss the line.
        self.epoch += 1;
        let Some(lines) = &mut self.lines else {
            self.without_news = None;
            return;
        };
        // That it was seen may be reported before that it was written.
        let is_seen = |cached: &CachedLine| cached.key == line.key && cached.line.state.is_said();
        if !line.line.state.is_said() && lines.iter().any(is_seen) {
            return;
        }
        // Before the first known line there may be unknown ones.
        if !self.is_all && lines.front().is_none_or(|first| line.key < first.key) {
            self.without_news = None;
            return;
        }
        let key = line.key;
        put(lines, line);
        if self.may_replace(key) {
            return self.forget();
        }
        self.trim();
    }

    fn seen(&mut self, turn: TurnId, claim: u32) {
        let Some(lines) = &mut self.lines else { return self.forget() };
        self.epoch += 1;
        let line = lines.iter_mut().find(|cached| cached.key.2 == turn && cached.key.1 == claim);
        let key = line.map(|line| {
            Arc::make_mut(&mut line.line).state = LineState::Seen;
            line.key
        });
        if key.is_none_or(|key| self.may_replace(key)) {
            self.forget();
        }
    }

    /// Whether a line is what an agent said, and another one of the same turn may no longer count because of it.
    fn may_replace(&self, key: (TurnSeq, u32, TurnId)) -> bool {
        let mut agents =
            self.lines.iter().flatten().filter(|it| it.key.2 == key.2 && it.line.speaker == Speaker::Agent);
        let is_seen = agents.clone().any(|it| it.key == key && it.line.state.is_said());
        is_seen && agents.any(|it| it.key != key)
    }

    fn trim(&mut self) {
        let Some(lines) = &mut self.lines else { return };
        let mut bytes: usize = lines.iter().map(|cached| cached.line.text.len()).sum();
        while (lines.len() > LINES || bytes > BYTES)
            && let Some(oldest) = lines.pop_front()
        {
            bytes -= oldest.line.text.len();
            if !is_plain(&oldest.line) {
                self.without_news = None;
            }
            self.is_all = false;
        }
    }

    fn has_no_news(&self, agent: &str, reactions: u64) -> bool {
        let is_it = |known: &WithoutNews| known.agent == agent && known.reactions == reactions;
        let are_plain = |lines: &VecDeque<CachedLine>| lines.iter().all(|cached| is_plain(&cached.line));
        self.without_news.as_ref().is_some_and(is_it) && self.lines.as_ref().is_some_and(are_plain)
    }

    fn of_turn(&self, (seq, turn): (TurnSeq, TurnId)) -> Option<Vec<HistoryLine>> {
        let lines = self.lines.as_ref()?;
        let is_known = self.is_all || lines.front().is_some_and(|first| first.key.0 < seq);
        let of_it = lines.iter().filter(|cached| cached.key.2 == turn && cached.counts());
        is_known.then(|| of_it.map(|cached| HistoryLine::clone(&cached.line)).collect())
    }

    fn last(&self, limit: usize) -> Option<Vec<Arc<HistoryLine>>> {
        let lines = self.lines.as_ref()?.iter().filter(|cached| cached.counts());
        let count = lines.clone().count();
        let last = lines.skip(count.saturating_sub(limit)).map(|cached| Arc::clone(&cached.line));
        (self.is_all || count >= limit).then(|| last.collect())
    }
}

/// Inserts a line in order. A turn has one line per claim: a new one replaces the old one.
fn put(lines: &mut VecDeque<CachedLine>, line: CachedLine) {
    if lines.len() == LINES {
        // One is trimmed again: there need not be room for twice as many.
        lines.reserve_exact(1);
    }
    let index = lines.partition_point(|cached| cached.key < line.key);
    match lines.get(index) {
        Some(cached) if cached.key == line.key => lines[index] = line,
        _ => lines.insert(index, line),
    }
}

type Session = Arc<Mutex<CachedSession>>;

fn lock(session: &Session) -> MutexGuard<'_, CachedSession> {
    session.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A turn that an agent ran before another one, as a statement finds it.
#[derive(Debug)]
pub(crate) struct FoundTurn {
    pub(crate) session: SessionId,
    pub(crate) seq: TurnSeq,
    pub(crate) turn: TurnId,
    /// Whether no other agent ran it later.
    pub(crate) is_own: bool,
    pub(crate) reactions: Vec<Reaction>,
}

/// The sessions that were used last.
#[derive(Debug)]
pub(crate) struct Transcripts {
    sessions: Cache<SessionId, Session>,
    /// How many reactions were stored since the start, in all sessions.
    reactions: AtomicU64,
    /// Whether other nodes use the database, too.
    is_shared: AtomicBool,
}

impl Default for Transcripts {
    fn default() -> Self {
        Self { sessions: Cache::new(SESSIONS), reactions: AtomicU64::new(0), is_shared: AtomicBool::new(false) }
    }
}

impl Transcripts {
    /// The last `limit` lines of a session, oldest first. `read` reads them if they are not cached.
    pub(crate) async fn lines(
        &self,
        session: SessionId,
        limit: u32,
        read: impl Future<Output = Result<Vec<StoredLine>, StoreError>>,
    ) -> Result<Vec<Arc<HistoryLine>>, StoreError> {
        if self.is_shared.load(Ordering::Acquire) {
            return Ok(read.await?.into_iter().map(|stored| stored.line).collect());
        }
        let wanted = usize::try_from(limit).unwrap_or(usize::MAX);
        let reading = match self.last(session, wanted) {
            Ok(lines) => return Ok(lines),
            Err(reading) => reading,
        };
        let lines = read.await?;
        reading.fill(&lines, wanted);
        Ok(lines.into_iter().map(|stored| stored.line).collect())
    }

    /// The turn that `agent` ran before another one in its session, if there may be something to tell of it. `find` finds it, and
    /// `read` reads the lines of a turn if they are not cached.
    pub(crate) async fn answered_before<F>(
        &self,
        session: SessionId,
        agent: &str,
        find: impl Future<Output = Result<Option<FoundTurn>, StoreError>>,
        read: impl FnOnce(SessionId, (TurnSeq, TurnId)) -> F,
    ) -> Result<Option<AnsweredTurn>, StoreError>
    where
        F: Future<Output = Result<Vec<HistoryLine>, StoreError>>,
    {
        if self.is_shared.load(Ordering::Acquire) {
            let Some(found) = find.await?.filter(|found| found.is_own) else { return Ok(None) };
            let lines = read(found.session, (found.seq, found.turn)).await?;
            return Ok(Some(AnsweredTurn { lines, reactions: found.reactions }));
        }
        let Some(reading) = self.read_news(session, agent) else { return Ok(None) };
        let Some(found) = find.await?.filter(|found| found.is_own) else { return Ok(None) };
        let turn = (found.seq, found.turn);
        let lines = match self.of_turn(found.session, turn) {
            Some(lines) => lines,
            None => read(found.session, turn).await?,
        };
        if found.session == session && found.reactions.is_empty() && lines.iter().all(is_plain) {
            reading.found_none(agent);
        }
        Ok(Some(AnsweredTurn { lines, reactions: found.reactions }))
    }

    /// The last `limit` lines of a session, oldest first. When they are not cached, `Err` with the [`Reading`] to
    /// [fill](Reading::fill).
    fn last(&self, session: SessionId, limit: usize) -> Result<Vec<Arc<HistoryLine>>, Reading> {
        let session = self.session(session);
        let known = lock(&session);
        let (lines, epoch) = (known.last(limit), known.epoch);
        drop(known);
        lines.ok_or(Reading { session, epoch })
    }

    fn session(&self, session: SessionId) -> Session {
        let session =
            self.sessions.get_or_insert_with(&session, || Ok::<_, std::convert::Infallible>(Session::default()));
        let Ok(session) = session;
        session
    }

    /// `None` if it is known that an agent need not be told what became of its last answer in a session. Otherwise it must be read.
    fn read_news(&self, session: SessionId, agent: &str) -> Option<ReadingNews> {
        let reactions = self.reactions.load(Ordering::Acquire);
        let session = self.session(session);
        let known = lock(&session);
        let (has_none, epoch) = (known.has_no_news(agent, reactions), known.epoch);
        drop(known);
        (!has_none).then_some(ReadingNews { session, epoch, reactions })
    }

    /// Announces that somebody's reaction may be stored, until what is returned is dropped.
    pub(crate) fn reacting(&self) -> Reacting<'_> {
        Reacting(self)
    }

    /// The lines of a turn, oldest first, if they are cached.
    fn of_turn(&self, session: SessionId, turn: (TurnSeq, TurnId)) -> Option<Vec<HistoryLine>> {
        self.sessions.get(&session).and_then(|session| lock(&session).of_turn(turn))
    }

    /// Lines of a session were removed: it is read again.
    pub(crate) fn forget(&self, session: SessionId) {
        if let Some(session) = self.sessions.get(&session) {
            lock(&session).forget();
        }
    }

    /// All sessions are read again.
    pub(crate) fn forget_all(&self) {
        self.sessions.clear();
    }

    /// Other nodes write lines as well from now on, or no more: nothing is known of what was written before.
    pub(crate) fn set_shared(&self, is_shared: bool) {
        if is_shared {
            self.is_shared.store(true, Ordering::Release);
            self.forget_all();
        } else if self.is_shared.load(Ordering::Acquire) {
            self.forget_all();
            self.is_shared.store(false, Ordering::Release);
        }
    }

    /// Announces the lines that `transition` is about to write or to change.
    pub(crate) fn writing(&self, transition: &Transition) -> Writing<'_> {
        let removes = |change: &SessionChange| match change {
            SessionChange::Delete { session } | SessionChange::LeaveOut { session, .. } => Some(*session),
            _ => None,
        };
        let mut changed: Vec<_> = transition.sessions.iter().filter_map(removes).collect();
        let mut seen = Vec::new();
        for change in &transition.lines {
            match *change {
                LineChange::Seen { session, turn, claim } => seen.push((session, turn, claim)),
                LineChange::Other { session } => changed.push(session),
            }
        }
        Writing { transcripts: self, lines: transition.transcript.clone(), seen, changed }
    }
}

/// A session whose lines are being read.
#[derive(Debug)]
struct Reading {
    session: Session,
    epoch: u64,
}

impl Reading {
    /// Caches the last lines, as read with `limit`, oldest first. Fewer than `limit` are all there are.
    fn fill(self, read: &[StoredLine], limit: usize) {
        let mut session = lock(&self.session);
        if session.epoch != self.epoch {
            return;
        }
        session.epoch += 1;
        session.is_all = read.len() < limit;
        let cached = |it: &StoredLine| CachedLine { key: (it.seq, it.claim, it.turn), line: Arc::clone(&it.line) };
        session.lines = Some(read.iter().map(cached).collect());
        session.trim();
    }
}

/// A session of which is read what became of an agent's last answer.
#[derive(Debug)]
struct ReadingNews {
    session: Session,
    epoch: u64,
    reactions: u64,
}

impl ReadingNews {
    /// There is nothing to tell.
    fn found_none(self, agent: &str) {
        let mut session = lock(&self.session);
        if session.epoch == self.epoch {
            session.without_news = Some(WithoutNews { agent: agent.to_owned(), reactions: self.reactions });
        }
    }
}

/// A reaction that is being stored. When it is dropped, it may be.
pub(crate) struct Reacting<'a>(&'a Transcripts);

impl Drop for Reacting<'_> {
    fn drop(&mut self) {
        self.0.reactions.fetch_add(1, Ordering::Release);
    }
}

/// Lines that are being written. When it is dropped without a known result, their sessions are read again.
#[derive(Debug)]
pub(crate) struct Writing<'a> {
    transcripts: &'a Transcripts,
    lines: Vec<TranscriptLine>,
    seen: Vec<(SessionId, TurnId, u32)>,
    /// Sessions whose lines change otherwise.
    changed: Vec<SessionId>,
}

impl Writing<'_> {
    /// Reports the result: the lines were written, or certainly not.
    pub(crate) fn done(mut self, are_written: bool) {
        for TranscriptLine { session, seq, turn, claim, line } in self.lines.drain(..) {
            // It may be cached only since the writing began.
            if are_written && let Some(session) = self.transcripts.sessions.get(&session) {
                lock(&session).add(CachedLine { key: (seq, claim, turn), line: Arc::new(line) });
            }
        }
        for (session, turn, claim) in self.seen.drain(..) {
            if are_written && let Some(session) = self.transcripts.sessions.get(&session) {
                lock(&session).seen(turn, claim);
            }
        }
        if !are_written {
            self.changed.clear();
        }
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        let lines = self.lines.iter().map(|line| line.session);
        let seen = self.seen.iter().map(|(session, ..)| *session);
        for session in lines.chain(seen).chain(self.changed.iter().copied()) {
            self.transcripts.forget(session);
        }
    }
}

#[cfg(test)]
mod tests {
    use rejoinder_core::Timestamp;

    use super::*;

    fn line(text: &str, speaker: Speaker, at: i64) -> HistoryLine {
        let (text, at) = (text.to_owned(), Timestamp::from_millis(at));
        HistoryLine { speaker, author: None, forwarded: None, text, at, state: LineState::Seen }
    }

    fn texts(lines: &[Arc<HistoryLine>]) -> Vec<&str> {
        lines.iter().map(|line| line.text.as_str()).collect()
    }

    fn turn(seq: TurnSeq) -> TurnId {
        format!("00000000-0000-7000-8000-{seq:012}").parse().expect("it is an id")
    }

    fn claim(speaker: Speaker) -> u32 {
        u32::from(speaker != Speaker::Person)
    }

    fn one(session: SessionId, seq: TurnSeq, line: HistoryLine) -> Transition {
        let transcript = vec![TranscriptLine { session, turn: turn(seq), seq, claim: claim(line.speaker), line }];
        Transition { transcript, ..Transition::default() }
    }

    fn stored(seq: TurnSeq, line: HistoryLine) -> StoredLine {
        StoredLine::of(seq, claim(line.speaker), turn(seq), line)
    }

    fn written(transcripts: &Transcripts, session: SessionId, seq: TurnSeq, line: HistoryLine) {
        transcripts.writing(&one(session, seq, line)).done(true);
    }

    #[test]
    fn what_was_read_and_what_is_written_later_is_in_order() {
        let (transcripts, session) = (Transcripts::default(), SessionId::new(Timestamp::from_millis(0)));
        let (first, second) = (1, 2);
        let reading = transcripts.last(session, 3).expect_err("nothing is known yet");
        let read =
            [line("a", Speaker::Person, 1_000), line("b", Speaker::Agent, 1_500)].map(|line| stored(first, line));
        reading.fill(&read, 3);
        written(&transcripts, session, second, line("c", Speaker::Person, 2_000));
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
        let read = [stored(1, line("a", Speaker::Person, 1_000))];
        transcripts.last(session, 1).expect_err("nothing is known yet").fill(&read, 1);

        assert!(transcripts.last(session, 1).is_ok());
        assert!(transcripts.last(session, 2).is_err());
    }

    #[test]
    fn an_agent_without_news_need_not_be_told_until_something_happens() {
        let (transcripts, session) = (Transcripts::default(), SessionId::new(Timestamp::from_millis(0)));
        transcripts.last(session, 3).expect_err("nothing is known yet").fill(&[], 3);
        let has_none = |agent| transcripts.read_news(session, agent).is_none();
        let read = || transcripts.read_news(session, "main").expect("it must be read").found_none("main");
        read();
        assert!(has_none("main") && !has_none("other"));

        written(&transcripts, session, 1, line("plain", Speaker::Agent, 1_000));
        assert!(has_none("main"), "its answer was seen");
        let reading = transcripts.read_news(session, "other").expect("it must be read");
        written(&transcripts, session, 2, line("since", Speaker::Agent, 1_500));
        reading.found_none("other");
        assert!(!has_none("other"), "a line was written while it was read");

        drop(transcripts.reacting());
        assert!(!has_none("main"), "somebody may have reacted to the answer");
        read();
        assert!(has_none("main"));

        let lost = HistoryLine { state: LineState::OnItsWay, ..line("lost", Speaker::Agent, 2_000) };
        written(&transcripts, session, 3, lost);
        assert!(!has_none("main"), "it may not arrive");
        let seen = LineChange::Seen { session, turn: turn(3), claim: 1 };
        transcripts.writing(&Transition { lines: vec![seen], ..Transition::default() }).done(true);
        assert!(has_none("main"), "it has arrived");

        written(&transcripts, session, 4, line("Sorry.", Speaker::Gateway, 3_000));
        for seq in 5..200 {
            written(&transcripts, session, seq, line("long ago", Speaker::Person, 4_000));
        }
        assert!(!has_none("main"), "what the gateway said in its place is cached no more");
    }

    #[test]
    fn a_session_whose_writing_ended_in_an_unknown_way_is_read_anew() {
        let (transcripts, session) = (Transcripts::default(), SessionId::new(Timestamp::from_millis(0)));
        transcripts.last(session, 3).expect_err("nothing is known yet").fill(&[], 3);

        drop(transcripts.writing(&one(session, 1, line("a", Speaker::Person, 1_000))));

        assert!(transcripts.last(session, 3).is_err());
    }

    #[tokio::test]
    async fn nothing_is_answered_from_memory_while_other_nodes_write() {
        let (transcripts, session) = (Transcripts::default(), SessionId::new(Timestamp::from_millis(0)));
        let read = async |text: &str| {
            let found = Ok(vec![stored(1, line(text, Speaker::Person, 1_000))]);
            let lines = transcripts.lines(session, 3, std::future::ready(found)).await.expect("they are read");
            texts(&lines).join(",")
        };
        assert_eq!(
            (read("a").await, read("b").await),
            ("a".to_owned(), "a".to_owned()),
            "the second time, it is cached"
        );

        transcripts.set_shared(true);
        assert_eq!((read("b").await, read("c").await), ("b".to_owned(), "c".to_owned()));
        transcripts.set_shared(false);

        assert_eq!((read("d").await, read("e").await), ("d".to_owned(), "d".to_owned()));
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
        written(&transcripts, session, 1, line("a", Speaker::Person, 1_000));

        reading.fill(&[], 3);

        assert!(transcripts.last(session, 3).is_err());
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

        drop(transcripts.writing(&one(session, 1, line("a", Speaker::Person, 1_000))));
        reading.fill(&[], 3);

        assert!(transcripts.last(session, 3).is_err());
    }

    #[test]
    fn a_line_whose_writing_began_before_its_session_was_read_is_not_missed() {
        let (transcripts, session) = (Transcripts::default(), SessionId::new(Timestamp::from_millis(0)));
        let writing = transcripts.writing(&one(session, 1, line("a", Speaker::Person, 1_000)));
        transcripts.last(session, 3).expect_err("nothing is known yet").fill(&[], 3);

        writing.done(true);

        assert_eq!(texts(&transcripts.last(session, 3).expect("all is known")), ["a"]);
    }

    /// The answer of an older turn may be written after many younger lines.
    #[test]
    fn a_late_line_before_the_known_ones_leaves_no_gap() {
        let (transcripts, session) = (Transcripts::default(), SessionId::new(Timestamp::from_millis(0)));
        let late = 2;
        let read: Vec<_> = (8..=10).map(|it| stored(it, line("young", Speaker::Person, 1_000 * it))).collect();
        transcripts.last(session, 3).expect_err("nothing is known yet").fill(&read, 3);

        written(&transcripts, session, late, line("old", Speaker::Agent, 20_000));

        assert_eq!(texts(&transcripts.last(session, 3).expect("three are known")), ["young"; 3]);
        assert!(transcripts.last(session, 4).is_err(), "what is between is not known");
    }

    /// A line of the agent's that is on its way.
    fn sent(text: &str) -> HistoryLine {
        HistoryLine { state: LineState::OnItsWay, ..line(text, Speaker::Agent, 2_000) }
    }

    fn receipt(session: SessionId) -> Transition {
        let lines = vec![LineChange::Seen { session, turn: turn(1), claim: 1 }];
        Transition { lines, ..Transition::default() }
    }

    #[test]
    fn a_line_is_seen_with_its_receipt_and_is_not_read_again() {
        let (transcripts, session) = (Transcripts::default(), SessionId::new(Timestamp::from_millis(0)));
        transcripts.last(session, 3).expect_err("nothing is known yet").fill(&[], 3);
        written(&transcripts, session, 1, sent("a"));
        let state = || transcripts.last(session, 3).expect("all is known")[0].state.clone();
        assert_eq!(state(), LineState::OnItsWay);

        transcripts.writing(&receipt(session)).done(true);

        assert_eq!(state(), LineState::Seen);
    }

    /// The task that wrote a line may be told later than the one that wrote its receipt.
    #[test]
    fn a_receipt_that_is_reported_before_its_line_counts() {
        let (transcripts, session) = (Transcripts::default(), SessionId::new(Timestamp::from_millis(0)));
        let (line, seen) = (transcripts.writing(&one(session, 1, sent("a"))), transcripts.writing(&receipt(session)));
        let read = [stored(1, HistoryLine { state: LineState::Seen, ..sent("a") })];
        transcripts.last(session, 3).expect_err("nothing is known yet").fill(&read, 3);

        seen.done(true);
        line.done(true);

        assert_eq!(transcripts.last(session, 3).expect("all is known")[0].state, LineState::Seen);
    }

    #[test]
    fn what_was_read_before_a_receipt_is_not_kept() {
        let (transcripts, session) = (Transcripts::default(), SessionId::new(Timestamp::from_millis(0)));
        let reading = transcripts.last(session, 3).expect_err("nothing is known yet");
        transcripts.writing(&receipt(session)).done(true);

        reading.fill(&[stored(1, sent("a"))], 3);

        assert!(transcripts.last(session, 3).is_err());
    }

    #[test]
    fn a_session_whose_lines_change_otherwise_is_read_again() {
        let (transcripts, session) = (Transcripts::default(), SessionId::new(Timestamp::from_millis(0)));
        transcripts.last(session, 3).expect_err("nothing is known yet").fill(&[], 3);
        let lines = vec![LineChange::Other { session }];

        transcripts.writing(&Transition { lines, ..Transition::default() }).done(true);

        assert!(transcripts.last(session, 3).is_err());
    }
}
