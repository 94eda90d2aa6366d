//! What is wrong with the gateway: for the overview, and for those who are told.

use std::path::PathBuf;

use rejoinder_config::AlertKind;
use rejoinder_core::{
    Engine, Part, Store,
    store::{Backlog, Schedule},
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::disk::Room;

/// Below how many free bytes a disk is nearly full, unless a twentieth of it is less.
const ROOM: u64 = 1 << 30;

/// What people are told of.
const ALERTS: [(&str, AlertKind); 8] = [
    ("store", AlertKind::Store),
    ("disk", AlertKind::Disk),
    ("channel", AlertKind::Channel),
    ("agent", AlertKind::Agent),
    ("overdue", AlertKind::Overdue),
    ("undeliverable", AlertKind::Undeliverable),
    ("callbacks", AlertKind::Callbacks),
    ("schedule", AlertKind::Schedule),
];

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// `store`, `disk`, `channel`, `paused`, `agent`, `overdue`, `undeliverable`, `callbacks`, `absent` or `schedule`.
    pub(crate) kind: &'static str,
    /// What is wrong, in one sentence.
    pub(crate) text: String,
    /// The channel, the agent or the schedule that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) subject: Option<String>,
    /// How many turns or deliveries it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) count: Option<u64>,
}

impl Problem {
    /// A problem without a subject.
    pub(crate) const fn new(kind: &'static str, text: String) -> Self {
        Self { kind, text, subject: None, count: None }
    }

    /// How alerts call it; `None` if nobody is told of it.
    pub(crate) fn alert(&self) -> Option<AlertKind> {
        ALERTS.iter().find_map(|(kind, alert)| (*kind == self.kind).then_some(*alert))
    }

    /// The problem that people were told of as a `kind`; `None` if there is no such kind.
    pub(crate) fn told(kind: &str, text: String) -> Option<Self> {
        ALERTS.iter().find(|(name, _)| *name == kind).map(|(name, _)| Self::new(name, text))
    }
}

/// Where the problems of one gateway are looked for.
#[derive(Clone)]
pub(crate) struct Problems {
    pub(crate) engine: Engine,
    pub(crate) store: std::sync::Arc<dyn Store>,
    /// The file of the database.
    pub(crate) database: PathBuf,
}

impl Problems {
    /// What is wrong now, the worst first. `store` is why the store cannot write, and `backlog` what waits, if that is known.
    pub(crate) fn find(&self, store: Option<String>, backlog: Option<&Backlog>) -> Vec<Problem> {
        let mut problems = Vec::new();
        if let Some(error) = store {
            let text = format!("The store cannot write: {error}. Nothing is accepted until it can.");
            problems.push(Problem::new("store", text));
        }
        let room = Room::of(&self.database).ok();
        if let Some(Room { free, size }) = room.filter(|room| room.free < ROOM.min(room.size / 20)) {
            let (database, free) = (self.database.display(), free >> 20);
            let text = format!("The disk of {database} is nearly full: {free} MiB of {} GiB are free.", size >> 30);
            problems.push(Problem::new("disk", text));
        }
        let mut down: Vec<_> = self.engine.down().into_iter().map(of_part).collect();
        down.sort_by(|one, other| (other.kind, &one.subject).cmp(&(one.kind, &other.subject)));
        problems.extend(down);
        problems.extend(backlog.into_iter().flat_map(counted));
        problems.extend(self.engine.schedules(None).iter().filter(|it| it.has_paused_itself()).map(of_schedule));
        problems
    }
}

fn of_part((part, problem): (Part, String)) -> Problem {
    let (kind, subject, text) = match part {
        Part::Channel(channel) => ("channel", channel.to_string(), format!("{channel} is down: {problem}.")),
        Part::Agent(agent) => {
            let text = format!("The agent {agent} fails: {problem}.");
            ("agent", agent, text)
        }
    };
    Problem { kind, text, subject: Some(subject), count: None }
}

/// A schedule that has paused itself.
fn of_schedule(schedule: &Schedule) -> Problem {
    let name = &schedule.new.name;
    let why = schedule.why.as_deref().unwrap_or("it failed too often");
    let text = format!("The schedule {name} is paused: {}.", why.trim_end_matches('.'));
    Problem { subject: Some(name.clone()), ..Problem::new("schedule", text) }
}

fn counted(backlog: &Backlog) -> impl Iterator<Item = Problem> {
    let counted = [
        (
            "overdue",
            backlog.overdue,
            "One turn is late: the person has seen no answer in time",
            "turns are late: these people have seen no answer in time",
        ),
        ("undeliverable", backlog.undeliverable, "One turn could not be answered", "turns could not be answered"),
        ("callbacks", backlog.dead_copies, "One callback of a hook was given up", "callbacks of hooks were given up"),
        (
            "absent",
            backlog.absent,
            "One turn waits for a channel that is not configured",
            "turns wait for a channel that is not configured",
        ),
    ];
    counted.into_iter().filter(|(_, count, ..)| *count > 0).map(|(kind, count, one, many)| {
        let text = if count == 1 { format!("{one}.") } else { format!("{count} {many}.") };
        Problem { kind, text, subject: None, count: Some(count) }
    })
}
