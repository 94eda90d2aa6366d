//! The commands that the gateway executes itself, the same on every channel; all others go to the agent. A command reads
//! and answers; the ledger stores.
//!
//! To add one: write a file with its [`Command`], and add it to [`LISTED`] or [`UNLISTED`]. Its
//! replies are templates in `config/default.toml`.

mod agent;
mod approve;
pub(crate) mod asks;
pub(crate) mod backlog;
pub(crate) mod bang;
mod budget;
pub(crate) mod command;
pub(crate) mod digest;
pub(crate) mod dropped;
mod help;
mod history;
mod home;
mod language;
pub(crate) mod limited;
pub(crate) mod link;
pub(crate) mod menu;
pub(crate) mod message;
pub(crate) mod own;
pub(crate) mod pairing;
mod queue;
pub(crate) mod retry;
mod session;
pub(crate) mod spoken;
mod start;
mod status;
mod stop;
pub(crate) mod stranger;
mod voice;
mod whoami;

use std::sync::Arc;

use rejoinder_guard::{CancelledBy, Event, Reply, SignalKind};

use self::command::{Answer, Call, Command, Filled, Reads, Words};
use crate::{
    base::conflicts::decide_anew,
    conversations::{addresses::Addresses, sessions},
    events::TurnEvents,
    ledger::{Ledger, trigger::Trigger},
    model::{LiveSettings, TurnId},
    ports::{RunEnd, SharedClock, StoreError},
};

/// The commands for everybody, in the order in which menus list them.
const LISTED: [&Command; 20] = [
    &start::START,
    &help::HELP,
    &session::NEW,
    &session::SESSION,
    &retry::RETRY,
    &retry::UNDO,
    &stop::STOP,
    &status::STATUS,
    &budget::BUDGET,
    &agent::AGENT,
    &agent::MODEL,
    &queue::QUEUE,
    &voice::VOICE,
    &history::HISTORY,
    &history::EXPORT,
    &whoami::WHOAMI,
    &link::LINK,
    &link::UNLINK,
    &home::HOME,
    &language::LANGUAGE,
];

/// The commands for owners, and the notices.
const UNLISTED: [&Command; 17] = [
    &approve::APPROVE,
    &approve::DECLINE,
    &asks::ASKS,
    &asks::DECIDE,
    &asks::NO_CHOICE,
    &digest::DIGEST,
    &digest::ASKS_AGAIN,
    &stranger::STRANGER,
    &pairing::PAIRING,
    &pairing::CROWDED,
    &limited::LIMITED,
    &limited::LIMITED_TODAY,
    &limited::LIMITED_SOON,
    &dropped::DROPPED,
    &backlog::BACKLOG_EXPIRED,
    &backlog::ASKS_ABOUT_BACKLOG,
    &message::MESSAGE,
];

fn all() -> impl Iterator<Item = &'static Command> {
    LISTED.into_iter().chain(UNLISTED)
}

/// The template that answers a stored command which this version does not have.
const UNKNOWN: &str = "failed";

/// The command that a text invokes, if it consists of that alone.
pub(crate) fn find(text: &str) -> Option<&'static Command> {
    let has_slash = text.trim_start().starts_with('/');
    has_slash.then(|| all().find(|command| command.matches(text))).flatten()
}

/// Whether the gateway executes `/name` itself.
pub fn is_command(name: &str) -> bool {
    all().any(|command| command.texts.iter().any(|text| text.strip_prefix('/') == Some(name)))
}

pub(crate) struct Commands {
    pub(crate) reads: Reads,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) addresses: Arc<Addresses>,
    pub(crate) settings: LiveSettings,
    pub(crate) clock: SharedClock,
}

impl Commands {
    /// Executes the turn's command and answers it in one transaction. Retries until this is stored, the store has
    /// rejected it too often, or the gateway stops.
    pub(crate) async fn perform(&self, turn: TurnId) {
        let mut retry = self.ledger.store_retry("the result of a command", turn);
        while let Err(error) = self.try_to_perform(turn).await {
            if !retry.wait(&error).await {
                return;
            }
        }
    }

    /// Like [`perform`](Self::perform), without retries. Does nothing if the turn has ended.
    pub(crate) async fn try_to_perform(&self, turn: TurnId) -> Result<(), StoreError> {
        decide_anew!(self.perform_once(turn).await?)
    }

    /// `None` if what the command was decided on was changed meanwhile.
    async fn perform_once(&self, turn: TurnId) -> Result<Option<()>, StoreError> {
        let Some(turn) = self.reads.store.turn(turn).await? else { return Ok(Some(())) };
        if turn.obligation.state().is_final() {
            return Ok(Some(()));
        }
        let command = all().find(|command| turn.handler == command.handler());
        let settings = self.settings.get();
        let reads = &self.reads;
        let session_person = sessions::session_person(&turn.event, &reads.people.known());
        let routed = settings.agent_for(&turn.event, turn.rule.as_deref());
        let here = self.addresses.of_turn(&turn).await?;
        let (choice, _) = reads.sessions.chosen(&here, session_person, routed, &settings.sessions).await?;
        let has_open_question = here.has_open_question;
        let call = Call {
            reads,
            turn: &turn,
            session_person,
            has_open_question,
            voice: here.voice,
            choice,
            settings: &settings,
            now: self.clock.now(),
        };
        let answer = match command {
            Some(command) => (command.act)(&call).await?,
            None => own::answer(&call).unwrap_or_else(|| Answer::of(UNKNOWN)),
        };
        let Answer {
            words,
            mut turn_events,
            sessions,
            queue,
            voice,
            person,
            approval,
            closes,
            step,
            log,
            language,
            seen,
            depends_on_turns,
        } = answer;
        let replaced = call.replaced().await?;
        let edited = || Event::Cancelled { by: CancelledBy::Edit(call.turn.id.to_string()) };
        turn_events.extend(replaced.map(|turn| TurnEvents { turn, events: vec![edited()] }));
        let (at, number, end) = (call.now, turn.runs, SignalKind::Reply.as_str().to_owned());
        let end = RunEnd::new(turn.id, number, at, end, None);
        let joined = |lines: Vec<Filled>, between: &str| {
            let lines: Vec<_> = lines.into_iter().map(|line| call.fill_in(line, language)).collect();
            Reply::text(lines.join(between))
        };
        let reply = match words {
            Words::Templates(lines) => joined(lines, "\n"),
            Words::Lines(lines) => joined(lines, "\n\n"),
            Words::Own(reply) => reply,
        };
        let queue = queue.map(|mode| (turn.conversation, mode));
        let voice = voice.map(|mode| (turn.conversation, mode));
        turn_events.push(TurnEvents { turn, events: vec![Event::Answered(reply)] });
        let presses: Vec<_> = log.iter().filter_map(digest::button).collect();
        let is_once = step.is_some() || approval.is_some() || depends_on_turns || !seen.is_empty();
        let (person, approval, step) = (person.map(Box::new), approval.map(Box::new), step.map(Box::new));
        let trigger = Trigger::Command { end, sessions, queue, voice, person, approval, closes, step, log, seen };
        if is_once {
            if self.ledger.try_to_decide(&mut turn_events, &trigger).await?.is_none() {
                return Ok(None);
            }
        } else {
            self.ledger.decide_all(&mut turn_events, &trigger).await?;
        }
        presses.into_iter().for_each(digest::count);
        Ok(Some(()))
    }
}

#[cfg(test)]
mod properties;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_text_that_is_the_command_is_the_command() {
        let name = |text| find(text).map(|command| command.name);

        assert_eq!(name(" /stop\n"), Some("stop"));
        assert_eq!(name("/cancel"), Some("stop"));
        assert_eq!(name("/new"), Some("new"));
        assert_eq!(name("/start"), Some("start"));
        assert_eq!(name("/start from-the-website"), Some("start"));
        assert_eq!(name("/start the engine now"), None);
        assert_eq!(name("/started"), None);
        assert_eq!(name("/stop it"), None);
        assert_eq!(name("please stop"), None);
        assert_eq!(name("/stranger"), None);
        assert_eq!(name("/STOP"), Some("stop"));
        assert!(all().all(|command| command.texts.iter().all(|text| text.starts_with('/'))));
    }

    #[test]
    fn agents_are_told_of_notices_and_of_no_command() {
        let recorded: Vec<_> = all().filter(|it| it.handler().is_recorded()).map(|it| it.name).collect();

        assert_eq!(recorded, ["dropped", "late_messages", "message"]);
    }

    #[test]
    fn a_command_is_known_by_its_names() {
        assert!(["help", "cancel", "approve"].into_iter().all(is_command));
        assert!(!["/help", "stranger", ""].into_iter().any(is_command));
    }
}
