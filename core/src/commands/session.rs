//! `/session`: lists sessions, begins one, goes back to one, names one, deletes one. `/new` begins one.

use super::{
    command::{Answer, Call, Command, Filled, Words},
    stop::stopped,
};
use crate::{
    base::words::{age, excerpt, plain},
    model::{ChatKind, MAX_TITLE, NewInGroups, PersonRole, SenderKind, SessionChange, SessionId, SessionRecord, name},
    ports::StoreError,
};

const LISTED: usize = 20;

/// How many sessions a number or a name is looked up in.
const MOST: u32 = 1000;

/// How many characters of the first message are listed.
const EXCERPT: usize = 40;

/// What follows `delete` if no session is to be left.
const ALL: &str = "all";

/// How many words a name has at most.
const NAME_WORDS: usize = 8;

pub(super) const SESSION: Command = Command::new(
    "session",
    &["/session", "/sessions"],
    1 + NAME_WORDS,
    "Sessions: list, new, use, rename, delete",
    |call| Box::pin(session(call)),
);

pub(super) const NEW: Command =
    Command::new("new", &["/new", "/reset"], NAME_WORDS, "Start afresh: what was said before is left behind", |call| {
        Box::pin(async { begin(call, &rest_of(call, 1)).await })
    });

async fn session(call: &Call<'_>) -> Result<Answer, StoreError> {
    let (verb, rest) = (rest_of(call, 1), rest_of(call, 2));
    let verb = verb.split(' ').next().unwrap_or_default().to_lowercase();
    match (&*verb, &*rest) {
        ("" | "list", "") => list(call).await,
        ("new", name) => begin(call, name).await,
        ("delete", ALL) if !call.is_guest_of_group() => delete_all(call).await,
        ("use" | "rename" | "delete", wanted) if !wanted.is_empty() => {
            if call.is_guest_of_group() {
                return Ok(Answer::of("session_guest"));
            }
            match &*verb {
                "use" => resume(call, wanted).await,
                "rename" => rename(call, wanted).await,
                _ => delete(call, wanted).await,
            }
        }
        _ => Ok(Answer::of("session_usage")),
    }
}

/// What follows the first words of the message.
fn rest_of(call: &Call<'_>, words: usize) -> String {
    call.turn.event.text.split_whitespace().skip(words).collect::<Vec<_>>().join(" ")
}

/// The sessions that the sender can use here, those that were used last first.
async fn usable(call: &Call<'_>) -> Result<Vec<SessionRecord>, StoreError> {
    call.sessions.store.usable_sessions(call.turn.conversation, call.session_person, MOST).await
}

/// What a session is called: its name, or what it is about, or how it begins.
fn called(session: &SessionRecord, call: &Call<'_>) -> String {
    let begins = || session.begins.as_deref().map(|text| quoted(text, EXCERPT));
    let named = session.name.as_deref().map(plain).or_else(|| title(session)).or_else(begins);
    named.unwrap_or_else(|| call.fill_in(Filled { template: "session_empty", values: Vec::new() }, None))
}

/// What a session is about, as its agent says: in quotes, as no name is.
fn title(session: &SessionRecord) -> Option<String> {
    session.title.as_deref().map(|title| quoted(title, MAX_TITLE))
}

/// The beginning of a text in quotes, which it cannot end itself.
fn quoted(text: &str, most: usize) -> String {
    format!("“{}”", plain(&excerpt(text, most)).replace(['“', '”', '„', '"'], "'"))
}

/// What a session is called in a list: its title stands after its name.
fn listed(session: &SessionRecord, call: &Call<'_>) -> String {
    let called = called(session, call);
    match title(session).filter(|_| session.name.is_some()) {
        Some(title) => format!("{called} {title}"),
        None => called,
    }
}

fn of(template: &'static str, session: &SessionRecord, call: &Call<'_>) -> Filled {
    told(template, session, called(session, call), call)
}

fn told(template: &'static str, session: &SessionRecord, called: String, call: &Call<'_>) -> Filled {
    let time = age(call.now.since(session.used_at));
    let agent = session.choice.agent.as_ref().map_or_else(|| call.configured_agent().to_owned(), ToString::to_string);
    let number = session.number.to_string();
    let values = vec![("number", number), ("session", called), ("time", time), ("by", agent)];
    Filled { template, values }
}

async fn list(call: &Call<'_>) -> Result<Answer, StoreError> {
    let sessions = usable(call).await?;
    let line = |session: &SessionRecord| {
        let template = if session.is_current { "session_current" } else { "session_line" };
        told(template, session, listed(session, call), call)
    };
    let mut lines = vec![Filled { template: "sessions", values: Vec::new() }];
    lines.extend(sessions.iter().take(LISTED).map(line));
    if sessions.len() > LISTED {
        let count = vec![("count", (sessions.len() - LISTED).to_string())];
        lines.push(Filled { template: "session_more", values: count });
    }
    Ok(Answer::saying(Words::Lines(lines)))
}

/// Whether the sender may begin a new session for everybody in their conversation.
fn may_begin(call: &Call<'_>) -> bool {
    let event = &call.turn.event;
    let is_owner = || matches!(event.known_as(&call.people.known()), Some((PersonRole::Owner, _)));
    event.chat != ChatKind::Group
        || match call.settings.sessions.new_in_groups {
            NewInGroups::Everyone => true,
            NewInGroups::Members => !call.is_guest_of_group(),
            NewInGroups::Owners => is_owner(),
        }
}

/// Begins a session, and tells how to go back to the one before, if anything was said in it.
async fn begin(call: &Call<'_>, wanted: &str) -> Result<Answer, StoreError> {
    if !may_begin(call) {
        return Ok(Answer::of("session_guest"));
    }
    let seen = call.sessions.seen(call.turn.conversation, call.session_person).await?;
    let sessions = usable(call).await?;
    let name = match new_name(wanted, &sessions) {
        Ok(name) => name,
        Err(template) => return Ok(Answer::of(template)),
    };
    let left = sessions.iter().find(|session| session.is_current && session.begins.is_some());
    let mut lines = vec![Filled { template: "new_session", values: Vec::new() }];
    lines.extend(left.map(|session| of("session_left", session, call)));
    Ok(Answer { sessions: vec![new(call, name)], seen, ..Answer::saying(Words::Templates(lines)) })
}

/// A name that no other session has; `None` if none is wanted. The error is the template that says what is wrong.
fn new_name(wanted: &str, sessions: &[SessionRecord]) -> Result<Option<String>, &'static str> {
    if wanted.is_empty() {
        return Ok(None);
    }
    let name = name(wanted).ok_or("session_name_wrong")?;
    if sessions.iter().any(|session| is_called(session, &name)) {
        return Err("session_name_taken");
    }
    Ok(Some(name))
}

fn is_called(session: &SessionRecord, name: &str) -> bool {
    session.name.as_ref().is_some_and(|other| other.to_lowercase() == name.to_lowercase())
}

fn new(call: &Call<'_>, name: Option<String>) -> SessionChange {
    let (id, conversation, person) = (SessionId::new(call.now), call.turn.conversation, call.session_person);
    SessionChange::New { id, conversation, name, person, at: call.now }
}

fn find<'a>(sessions: &'a [SessionRecord], wanted: &str) -> Option<&'a SessionRecord> {
    let number = wanted.parse::<u32>().ok();
    let name = name(wanted);
    sessions.iter().find(|session| match number {
        Some(number) => session.number == number,
        None => name.as_ref().is_some_and(|name| is_called(session, name)),
    })
}

async fn resume(call: &Call<'_>, wanted: &str) -> Result<Answer, StoreError> {
    let seen = call.sessions.seen(call.turn.conversation, call.session_person).await?;
    let sessions = usable(call).await?;
    let Some(session) = find(&sessions, wanted) else { return Ok(Answer::of("session_unknown")) };
    let changes = vec![SessionChange::Use { conversation: call.turn.conversation, session: session.id, at: call.now }];
    let words = Words::Templates(vec![of("session_used", session, call)]);
    Ok(Answer { sessions: changes, seen, ..Answer::saying(words) })
}

async fn rename(call: &Call<'_>, wanted: &str) -> Result<Answer, StoreError> {
    let seen = call.sessions.seen(call.turn.conversation, call.session_person).await?;
    let sessions = usable(call).await?;
    let (current, others): (Vec<_>, Vec<_>) = sessions.into_iter().partition(|session| session.is_current);
    let Some(current) = current.into_iter().next() else { return Ok(Answer::of("session_unknown")) };
    let name = match new_name(wanted, &others) {
        Ok(name) => name.unwrap_or_default(),
        Err(template) => return Ok(Answer::of(template)),
    };
    let changes = vec![SessionChange::Rename { session: current.id, name: name.clone() }];
    let words = Words::Templates(vec![of("session_renamed", &SessionRecord { name: Some(name), ..current }, call)]);
    Ok(Answer { sessions: changes, seen, ..Answer::saying(words) })
}

async fn delete(call: &Call<'_>, wanted: &str) -> Result<Answer, StoreError> {
    let seen = call.sessions.seen(call.turn.conversation, call.session_person).await?;
    let sessions = usable(call).await?;
    let Some(session) = find(&sessions, wanted) else { return Ok(Answer::of("session_unknown")) };
    let refused = if session.is_elsewhere {
        Some("session_elsewhere")
    } else if call.sessions.store.is_session_open(session.id).await? {
        Some("session_open")
    } else {
        None
    };
    if let Some(template) = refused {
        return Ok(Answer::saying(Words::Templates(vec![of(template, session, call)])));
    }
    // The conversation continues in a new one.
    let mut changes = Vec::new();
    let mut lines = vec![of("session_deleted", session, call)];
    if session.is_current {
        changes.push(new(call, None));
        lines.push(Filled { template: "new_session", values: Vec::new() });
    }
    changes.push(SessionChange::Delete { session: session.id });
    Ok(Answer { sessions: changes, seen, ..Answer::saying(Words::Templates(lines)) })
}

/// Deletes everything that was said here: stops what is open, and leaves only the sessions that another conversation continues in.
async fn delete_all(call: &Call<'_>) -> Result<Answer, StoreError> {
    let seen = call.sessions.seen(call.turn.conversation, call.session_person).await?;
    let mut sessions =
        call.sessions.store.usable_sessions(call.turn.conversation, call.session_person, u32::MAX).await?;
    // A key holder deletes what was said in this conversation, and not what its person said elsewhere. So does who writes in one of
    // several threads of a direct chat.
    let event = &call.turn.event;
    let is_one_of_several = event.chat == ChatKind::Direct && event.conversation.thread.is_some();
    if is_one_of_several || event.sender.kind == SenderKind::KeyHolder {
        sessions.retain(|session| session.began_here);
    }
    let (kept, gone): (Vec<_>, Vec<_>) = sessions.iter().partition(|session| session.is_elsewhere);
    let mut lines = vec![Filled { template: "sessions_deleted", values: Vec::new() }];
    lines.extend(kept.iter().map(|session| of("session_elsewhere", session, call)));
    let delete = |session: &SessionRecord| SessionChange::Delete { session: session.id };
    let changes = std::iter::once(new(call, None)).chain(gone.into_iter().map(delete)).collect();
    let (stopped, _) = stopped(call).await?;
    Ok(Answer { words: Words::Templates(lines), sessions: changes, seen, ..stopped })
}
