//! A cache of the last transcript lines of active sessions.
//!
//! An agent without a memory of its own is given the same lines again with every turn. The cache agrees with
//! the database: a line is added when its transaction is committed, and is seen when the transaction with its receipt is. A
//! session is read again if the result of a transaction is unknown, or if its lines change in any other way.
//!
//! While other nodes live, the database counts the changes of each session. A session is read again if another node has changed it: if
//! the count is not the one that was read with the lines, plus the changes of this node since. A transaction counts once for each
//! session that it [changes](line_changes).

use std::{
    collections::{BTreeSet, HashMap, VecDeque, hash_map::Entry},
    convert::Infallible,
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
    /// The database's count of changes that belongs to these lines.
    count: Option<i64>,
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

    fn fill(&mut self, found: &FoundLines, limit: usize) {
        self.epoch += 1;
        self.is_all = found.lines.len() < limit;
        if self.count != found.count {
            // Other nodes have changed something: maybe only a reaction, which the lines do not show.
            self.without_news = None;
        }
        self.count = found.count;
        let cached = |it: &StoredLine| CachedLine { key: (it.seq, it.claim, it.turn), line: Arc::clone(&it.line) };
        self.lines = Some(found.lines.iter().map(cached).collect());
        self.trim();
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

/// Lines as a statement finds them.
#[derive(Debug)]
pub(crate) struct FoundLines {
    /// Oldest first.
    pub(crate) lines: Vec<StoredLine>,
    /// The database's count of the session's changes. `None`: it does not count, or has no such session.
    pub(crate) count: Option<i64>,
}

/// The sessions that were used last.
#[derive(Debug)]
pub(crate) struct Transcripts {
    sessions: Cache<SessionId, Session>,
    /// How many reactions were stored since the start, in all sessions.
    reactions: AtomicU64,
    /// Whether other nodes use the database, too.
    is_shared: AtomicBool,
    /// How many transactions of this node are changing a session while other nodes live: a read meanwhile may see their lines or not.
    changing: Mutex<HashMap<SessionId, usize>>,
}

impl Default for Transcripts {
    fn default() -> Self {
        Self {
            sessions: Cache::new(SESSIONS),
            reactions: AtomicU64::new(0),
            is_shared: AtomicBool::new(false),
            changing: Mutex::default(),
        }
    }
}

impl Transcripts {
    /// The last `limit` lines of a session, oldest first. `read` reads them if they are not cached; `count` reads the database's count of
    /// changes.
    pub(crate) async fn lines<C, R>(
        &self,
        session: SessionId,
        limit: u32,
        count: impl FnOnce() -> C,
        read: impl FnOnce() -> R,
    ) -> Result<Vec<Arc<HistoryLine>>, StoreError>
    where
        C: Future<Output = Result<Option<i64>, StoreError>>,
        R: Future<Output = Result<FoundLines, StoreError>>,
    {
        let wanted = usize::try_from(limit).unwrap_or(usize::MAX);
        if let Some(lines) = self.cached(session, count, |known| known.last(wanted)).await? {
            return Ok(lines);
        }
        let reading = self.reading(session);
        let found = read().await?;
        self.fill(&reading, &found, wanted);
        Ok(found.lines.into_iter().map(|stored| stored.line).collect())
    }

    /// The turn that `agent` ran before another one in its session, if there may be something to tell of it. `find` finds it, and
    /// `read` reads the lines of a turn if they are not cached. `count` is as with [`lines`](Self::lines).
    pub(crate) async fn answered_before<C, F, R>(
        &self,
        session: SessionId,
        agent: &str,
        count: impl FnOnce() -> C,
        find: impl FnOnce() -> F,
        read: impl FnOnce(SessionId, (TurnSeq, TurnId)) -> R,
    ) -> Result<Option<AnsweredTurn>, StoreError>
    where
        C: Future<Output = Result<Option<i64>, StoreError>>,
        F: Future<Output = Result<Option<FoundTurn>, StoreError>>,
        R: Future<Output = Result<Vec<HistoryLine>, StoreError>>,
    {
        let reactions = self.reactions.load(Ordering::Acquire);
        let has_none = |known: &CachedSession| known.has_no_news(agent, reactions).then_some(());
        if self.cached(session, count, has_none).await?.is_some() {
            return Ok(None);
        }
        let reading = self.reading(session);
        let Some(found) = find().await?.filter(|found| found.is_own) else { return Ok(None) };
        let turn = (found.seq, found.turn);
        let cached = if self.is_shared() { None } else { self.of_turn(found.session, turn) };
        let lines = match cached {
            Some(lines) => lines,
            None => read(found.session, turn).await?,
        };
        if found.session == session && found.reactions.is_empty() && lines.iter().all(is_plain) {
            reading.found_none(WithoutNews { agent: agent.to_owned(), reactions });
        }
        Ok(Some(AnsweredTurn { lines, reactions: found.reactions }))
    }

    /// What `find` finds in the cache of a session, if the cache agrees with the database.
    async fn cached<T, C: Future<Output = Result<Option<i64>, StoreError>>>(
        &self,
        session: SessionId,
        count: impl FnOnce() -> C,
        find: impl FnOnce(&CachedSession) -> Option<T>,
    ) -> Result<Option<T>, StoreError> {
        let Some(session) = self.sessions.get(&session) else { return Ok(None) };
        let (found, epoch, expected) = {
            let known = lock(&session);
            (find(&known), known.epoch, known.count)
        };
        if found.is_none() || !self.is_shared() {
            return Ok(found);
        }
        let counted = count().await?;
        let is_current = counted.is_some() && counted == expected && lock(&session).epoch == epoch;
        Ok(found.filter(|_| is_current))
    }

    fn reading(&self, id: SessionId) -> Reading {
        let entry = self.sessions.get_or_insert_with(&id, || Ok::<_, Infallible>(Session::default()));
        let Ok(session) = entry;
        let epoch = lock(&session).epoch;
        Reading { id, session, epoch, is_changed: self.is_changing(id) }
    }

    /// Caches the last lines, as read with `limit`. Fewer than `limit` are all there are.
    fn fill(&self, reading: &Reading, found: &FoundLines, limit: usize) {
        let mut session = lock(&reading.session);
        let may_miss =
            self.is_shared() && (found.count.is_none() || reading.is_changed || self.is_changing(reading.id));
        if session.epoch == reading.epoch && !may_miss {
            session.fill(found, limit);
        }
    }

    fn is_shared(&self) -> bool {
        self.is_shared.load(Ordering::Acquire)
    }

    fn changing(&self) -> MutexGuard<'_, HashMap<SessionId, usize>> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_changing(&self, session: SessionId) -> bool {
        self.changing().contains_key(&session)
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
            if !self.is_shared.swap(true, Ordering::AcqRel) {
                self.forget_all();
            }
        } else if self.is_shared.load(Ordering::Acquire) {
            self.forget_all();
            self.is_shared.store(false, Ordering::Release);
        }
    }

    /// Announces the lines that `transition` is about to write or to change.
    pub(crate) fn writing(&self, transition: &Transition) -> Writing<'_> {
        let of_changes = || line_changes(transition);
        let sessions: BTreeSet<_> =
            if self.is_shared() { of_changes().map(|(session, _)| session).collect() } else { BTreeSet::new() };
        if !sessions.is_empty() {
            let mut changing = self.changing();
            for session in &sessions {
                *changing.entry(*session).or_default() += 1;
            }
        }
        let seen = transition.lines.iter().filter_map(|change| match *change {
            LineChange::Seen { session, turn, claim } => Some((session, turn, claim)),
            LineChange::Other { .. } => None,
        });
        let seen = seen.collect();
        let left = of_changes().filter(|(_, turn)| turn.is_none()).map(|(session, _)| session).collect();
        Writing { transcripts: self, lines: transition.transcript.clone(), seen, left, sessions }
    }
}

/// The changes that a transition makes to lines: the session of each, and the turn if its lines are written or marked as seen. The turn may
/// be in another session since. `None`: the transition does not describe the change.
pub(crate) fn line_changes(transition: &Transition) -> impl Iterator<Item = (SessionId, Option<TurnId>)> {
    let written = transition.transcript.iter().map(|line| (line.session, Some(line.turn)));
    let marked = transition.lines.iter().map(|change| match *change {
        LineChange::Seen { session, turn, .. } => (session, Some(turn)),
        LineChange::Other { session } => (session, None),
    });
    let removed = transition.sessions.iter().filter_map(|change| match change {
        SessionChange::Delete { session } | SessionChange::LeaveOut { session, .. } => Some((*session, None)),
        _ => None,
    });
    written.chain(marked).chain(removed)
}

/// A session of which something is being read.
#[derive(Debug)]
struct Reading {
    id: SessionId,
    session: Session,
    epoch: u64,
    /// Whether it was being changed when the reading began.
    is_changed: bool,
}

impl Reading {
    /// There is nothing to tell.
    fn found_none(self, known: WithoutNews) {
        let mut session = lock(&self.session);
        if session.epoch == self.epoch {
            session.without_news = Some(known);
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
    /// Sessions that are read again.
    left: Vec<SessionId>,
    /// All sessions, if other nodes lived when this began: they are in `changing`, and their counts go up when this is written.
    sessions: BTreeSet<SessionId>,
}

impl Writing<'_> {
    /// Reports the result: the lines were written, or certainly not.
    pub(crate) fn done(mut self, are_written: bool) {
        if self.sessions.is_empty() && self.transcripts.is_shared() {
            // A read since then may show what other nodes made of these lines: they are read again.
            return;
        }
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
        for session in self.left.drain(..) {
            if are_written {
                self.transcripts.forget(session);
            }
        }
        if are_written {
            // Last: a change must be cached or forgotten before it is counted.
            for session in self.sessions.iter().filter_map(|session| self.transcripts.sessions.get(session)) {
                let mut session = lock(&session);
                session.count = session.count.map(|count| count + 1);
            }
        }
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        let lines = self.lines.iter().map(|line| line.session);
        let seen = self.seen.iter().map(|(session, ..)| *session);
        for session in lines.chain(seen).chain(self.left.iter().copied()) {
            self.transcripts.forget(session);
        }
        if !self.sessions.is_empty() {
            let mut changing = self.transcripts.changing();
            for session in &self.sessions {
                if let Entry::Occupied(mut number) = changing.entry(*session) {
                    *number.get_mut() -= 1;
                    if *number.get() == 0 {
                        number.remove();
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{Ready, ready};

    use rejoinder_core::Timestamp;

    use super::*;

    fn line(text: &str, speaker: Speaker, at: i64) -> HistoryLine {
        let (text, at) = (text.to_owned(), Timestamp::from_millis(at));
        HistoryLine { spoken: false, speaker, author: None, forwarded: None, text, at, state: LineState::Seen }
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

    fn fill(transcripts: &Transcripts, reading: &Reading, lines: &[StoredLine], limit: usize) {
        transcripts.fill(reading, &FoundLines { lines: lines.to_vec(), count: None }, limit);
    }

    fn known(transcripts: &Transcripts, session: SessionId, limit: usize) -> Option<Vec<Arc<HistoryLine>>> {
        transcripts.sessions.get(&session).and_then(|session| lock(&session).last(limit))
    }

    fn written(transcripts: &Transcripts, session: SessionId, seq: TurnSeq, line: HistoryLine) {
        transcripts.writing(&one(session, seq, line)).done(true);
    }

    #[test]
    fn what_was_read_and_what_is_written_later_is_in_order() {
        let (transcripts, session) = (Transcripts::default(), SessionId::new(Timestamp::from_millis(0)));
        let (first, second) = (1, 2);
        let reading = transcripts.reading(session);
        let read =
            [line("a", Speaker::Person, 1_000), line("b", Speaker::Agent, 1_500)].map(|line| stored(first, line));
        fill(&transcripts, &reading, &read, 3);
        written(&transcripts, session, second, line("c", Speaker::Person, 2_000));
        written(&transcripts, session, second, line("d", Speaker::Agent, 2_500));

        assert_eq!(texts(&known(&transcripts, session, 10).expect("all is known")), ["a", "b", "c", "d"]);
        assert_eq!(texts(&known(&transcripts, session, 2).expect("all is known")), ["c", "d"]);
    }

    #[test]
    fn a_line_that_is_written_again_takes_the_place_of_the_first() {
        let (transcripts, session) = (Transcripts::default(), SessionId::new(Timestamp::from_millis(0)));
        let first = 1;
        fill(&transcripts, &transcripts.reading(session), &[], 3);

        written(&transcripts, session, first, line("no", Speaker::Agent, 1_500));
        written(&transcripts, session, first, line("yes", Speaker::Agent, 1_700));

        assert_eq!(texts(&known(&transcripts, session, 3).expect("all is known")), ["yes"]);
    }

    #[test]
    fn more_than_what_is_known_is_read() {
        let (transcripts, session) = (Transcripts::default(), SessionId::new(Timestamp::from_millis(0)));
        let read = [stored(1, line("a", Speaker::Person, 1_000))];
        fill(&transcripts, &transcripts.reading(session), &read, 1);

        assert!(known(&transcripts, session, 1).is_some());
        assert!(known(&transcripts, session, 2).is_none());
    }

    #[test]
    fn an_agent_without_news_need_not_be_told_until_something_happens() {
        let (transcripts, session) = (Transcripts::default(), SessionId::new(Timestamp::from_millis(0)));
        fill(&transcripts, &transcripts.reading(session), &[], 3);
        let reactions = || transcripts.reactions.load(Ordering::Acquire);
        let has_none = |agent| {
            let known = transcripts.sessions.get(&session).expect("it was read");
            lock(&known).has_no_news(agent, reactions())
        };
        let none_for = |agent: &str| WithoutNews { agent: agent.to_owned(), reactions: reactions() };
        let read = || transcripts.reading(session).found_none(none_for("main"));
        read();
        assert!(has_none("main") && !has_none("other"));

        written(&transcripts, session, 1, line("plain", Speaker::Agent, 1_000));
        assert!(has_none("main"), "its answer was seen");
        let reading = transcripts.reading(session);
        written(&transcripts, session, 2, line("since", Speaker::Agent, 1_500));
        reading.found_none(none_for("other"));
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
        fill(&transcripts, &transcripts.reading(session), &[], 3);

        drop(transcripts.writing(&one(session, 1, line("a", Speaker::Person, 1_000))));

        assert!(known(&transcripts, session, 3).is_none());
    }

    /// A database that counts changes, and has lines as text.
    #[derive(Default)]
    struct Database {
        transcripts: Transcripts,
        lines: Mutex<(Vec<&'static str>, i64)>,
    }

    impl Database {
        fn stored(&self) -> MutexGuard<'_, (Vec<&'static str>, i64)> {
            self.lines.lock().expect("no panic")
        }

        /// Somebody writes a line.
        fn write(&self, text: &'static str) {
            let mut stored = self.stored();
            stored.0.push(text);
            stored.1 += 1;
        }

        fn count(&self) -> Ready<Result<Option<i64>, StoreError>> {
            ready(Ok(Some(self.stored().1)))
        }

        fn found(&self) -> FoundLines {
            let (texts, count) = &*self.stored();
            let lines = (1..).zip(texts).map(|(seq, text)| stored(seq, line(text, Speaker::Person, 1_000)));
            FoundLines { lines: lines.collect(), count: Some(*count) }
        }

        /// The lines, and whether they were read.
        async fn lines(&self, session: SessionId) -> (String, bool) {
            let is_read = AtomicBool::new(false);
            let read = || {
                is_read.store(true, Ordering::Relaxed);
                ready(Ok(self.found()))
            };
            let lines = self.transcripts.lines(session, 9, || self.count(), read).await.expect("they are read");
            (texts(&lines).join(" "), is_read.into_inner())
        }

        /// This node writes the line of a turn.
        fn writing(&self, session: SessionId, seq: TurnSeq, text: &str) -> Writing<'_> {
            self.transcripts.writing(&one(session, seq, line(text, Speaker::Person, 1_000)))
        }
    }

    fn read(lines: &str) -> (String, bool) {
        (lines.to_owned(), true)
    }

    fn cached(lines: &str) -> (String, bool) {
        (lines.to_owned(), false)
    }

    #[tokio::test]
    async fn while_other_nodes_write_lines_are_read_again_if_these_have_changed_them() {
        let (database, session) = (Database::default(), SessionId::new(Timestamp::from_millis(0)));
        assert_eq!(database.lines(session).await, read(""));
        database.write("a");
        assert_eq!(database.lines(session).await, cached(""), "nobody else should write");

        database.transcripts.set_shared(true);
        assert_eq!(database.lines(session).await, read("a"));
        assert_eq!(database.lines(session).await, cached("a"));
        database.write("b");
        assert_eq!(database.lines(session).await, read("a b"));

        let writing = database.writing(session, 3, "c");
        database.write("c");
        writing.done(true);
        database.transcripts.set_shared(true);
        assert_eq!(database.lines(session).await, cached("a b c"), "this node wrote the last one");

        database.writing(session, 4, "no").done(false);
        assert_eq!(database.lines(session).await, cached("a b c"));
        drop(database.writing(session, 4, "unknown"));
        assert_eq!(database.lines(session).await, read("a b c"));
        database.transcripts.set_shared(false);
        assert_eq!(database.lines(session).await, read("a b c"));
    }

    #[tokio::test]
    async fn lines_that_are_read_while_this_node_writes_one_are_not_cached() {
        let (database, session) = (Database::default(), SessionId::new(Timestamp::from_millis(0)));
        database.transcripts.set_shared(true);

        let writing = database.writing(session, 1, "a");
        database.write("a");
        assert_eq!(database.lines(session).await, read("a"), "it is stored, and not reported");
        writing.done(true);
        database.write("b");
        assert_eq!(database.lines(session).await, read("a b"), "it was not counted twice");

        let reading = database.transcripts.reading(session);
        let (found, writing) = (database.found(), database.writing(session, 3, "c"));
        database.write("c");
        database.transcripts.fill(&reading, &found, 9);
        writing.done(true);
        database.write("d");
        assert_eq!(database.lines(session).await, read("a b c d"));
    }

    #[tokio::test]
    async fn a_writing_that_began_before_others_wrote_is_not_counted() {
        let (database, session) = (Database::default(), SessionId::new(Timestamp::from_millis(0)));
        let writing = database.writing(session, 1, "a");
        database.transcripts.set_shared(true);
        database.write("a");
        assert_eq!(database.lines(session).await, read("a"));

        writing.done(true);
        database.write("b");

        assert_eq!(database.lines(session).await, read("a b"));
    }

    #[tokio::test]
    async fn what_others_made_of_a_line_whose_writing_began_before_is_not_undone() {
        let (database, session) = (Database::default(), SessionId::new(Timestamp::from_millis(0)));
        let writing = database.writing(session, 1, "a");
        database.transcripts.set_shared(true);
        database.write("a");
        database.stored().0.clear();
        database.stored().1 += 1;
        assert_eq!(database.lines(session).await, read(""));

        writing.done(true);

        assert_eq!(database.lines(session).await, read(""));
    }

    #[tokio::test]
    async fn while_other_nodes_write_it_is_asked_whether_there_is_news() {
        let (database, session) = (Database::default(), SessionId::new(Timestamp::from_millis(0)));
        database.transcripts.set_shared(true);
        database.lines(session).await;
        let is_looked_for = async || {
            let is_found = AtomicBool::new(false);
            let find = || {
                is_found.store(true, Ordering::Relaxed);
                let reactions = Vec::new();
                ready(Ok(Some(FoundTurn { session, seq: 1, turn: turn(1), is_own: true, reactions })))
            };
            let read = |_, _| ready(Ok(Vec::new()));
            let answered = database.transcripts.answered_before(session, "main", || database.count(), find, read);
            answered.await.expect("it is read");
            is_found.into_inner()
        };
        assert_eq!((is_looked_for().await, is_looked_for().await), (true, false));

        database.write("by another node");
        assert!(is_looked_for().await);
        database.lines(session).await;
        assert_eq!((is_looked_for().await, is_looked_for().await), (true, false));

        // A reaction, say: the lines are as before.
        database.stored().1 += 1;
        database.lines(session).await;
        assert!(is_looked_for().await, "it is not known from the lines");
    }

    #[test]
    fn long_lines_are_not_kept() {
        let (transcripts, session) = (Transcripts::default(), SessionId::new(Timestamp::from_millis(0)));
        fill(&transcripts, &transcripts.reading(session), &[], 3);

        written(&transcripts, session, 1, line(&"a".repeat(BYTES + 1), Speaker::Agent, 1_000));

        assert!(known(&transcripts, session, 3).is_none());
    }

    #[test]
    fn what_is_written_while_a_session_is_read_is_not_missed() {
        let (transcripts, session) = (Transcripts::default(), SessionId::new(Timestamp::from_millis(0)));
        let reading = transcripts.reading(session);
        written(&transcripts, session, 1, line("a", Speaker::Person, 1_000));

        fill(&transcripts, &reading, &[], 3);

        assert!(known(&transcripts, session, 3).is_none());
    }

    #[test]
    fn of_two_who_read_a_session_at_once_the_later_one_takes_nothing_away() {
        let (transcripts, session) = (Transcripts::default(), SessionId::new(Timestamp::from_millis(0)));
        let first = transcripts.reading(session);
        let second = transcripts.reading(session);
        fill(&transcripts, &first, &[], 3);
        written(&transcripts, session, 1, line("a", Speaker::Person, 1_000));

        fill(&transcripts, &second, &[], 3);

        assert_eq!(texts(&known(&transcripts, session, 3).expect("all is known")), ["a"]);
    }

    #[test]
    fn what_was_read_before_a_writing_with_an_unknown_end_is_not_kept() {
        let (transcripts, session) = (Transcripts::default(), SessionId::new(Timestamp::from_millis(0)));
        let reading = transcripts.reading(session);

        drop(transcripts.writing(&one(session, 1, line("a", Speaker::Person, 1_000))));
        fill(&transcripts, &reading, &[], 3);

        assert!(known(&transcripts, session, 3).is_none());
    }

    #[test]
    fn a_line_whose_writing_began_before_its_session_was_read_is_not_missed() {
        let (transcripts, session) = (Transcripts::default(), SessionId::new(Timestamp::from_millis(0)));
        let writing = transcripts.writing(&one(session, 1, line("a", Speaker::Person, 1_000)));
        fill(&transcripts, &transcripts.reading(session), &[], 3);

        writing.done(true);

        assert_eq!(texts(&known(&transcripts, session, 3).expect("all is known")), ["a"]);
    }

    /// The answer of an older turn may be written after many younger lines.
    #[test]
    fn a_late_line_before_the_known_ones_leaves_no_gap() {
        let (transcripts, session) = (Transcripts::default(), SessionId::new(Timestamp::from_millis(0)));
        let late = 2;
        let read: Vec<_> = (8..=10).map(|it| stored(it, line("young", Speaker::Person, 1_000 * it))).collect();
        fill(&transcripts, &transcripts.reading(session), &read, 3);

        written(&transcripts, session, late, line("old", Speaker::Agent, 20_000));

        assert_eq!(texts(&known(&transcripts, session, 3).expect("three are known")), ["young"; 3]);
        assert!(known(&transcripts, session, 4).is_none(), "what is between is not known");
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
        fill(&transcripts, &transcripts.reading(session), &[], 3);
        written(&transcripts, session, 1, sent("a"));
        let state = || known(&transcripts, session, 3).expect("all is known")[0].state.clone();
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
        fill(&transcripts, &transcripts.reading(session), &read, 3);

        seen.done(true);
        line.done(true);

        assert_eq!(known(&transcripts, session, 3).expect("all is known")[0].state, LineState::Seen);
    }

    #[test]
    fn what_was_read_before_a_receipt_is_not_kept() {
        let (transcripts, session) = (Transcripts::default(), SessionId::new(Timestamp::from_millis(0)));
        let reading = transcripts.reading(session);
        transcripts.writing(&receipt(session)).done(true);

        fill(&transcripts, &reading, &[stored(1, sent("a"))], 3);

        assert!(known(&transcripts, session, 3).is_none());
    }

    #[test]
    fn a_session_whose_lines_change_otherwise_is_read_again() {
        let (transcripts, session) = (Transcripts::default(), SessionId::new(Timestamp::from_millis(0)));
        fill(&transcripts, &transcripts.reading(session), &[], 3);
        let lines = vec![LineChange::Other { session }];

        transcripts.writing(&Transition { lines, ..Transition::default() }).done(true);

        assert!(known(&transcripts, session, 3).is_none());
    }
}
