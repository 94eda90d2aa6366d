//! The stages of the way in, in the order in which an event passes them. Each is a file with one [`Stage`], which holds the
//! handles that it uses and no others.
//!
//! To add one: write its file, and add a line to [`all`]. A stage hands the arrival on, changed or not, or ends it.

mod access;
mod album;
mod handling;
mod late;
mod limits;
mod line;
mod own_question;
mod pair;
mod pick;
mod retry;
mod screen;

use std::sync::Arc;

use async_trait::async_trait;

use self::{
    access::Access, album::Album, handling::ChooseHandler, late::Late, limits::Limited, line::Line,
    own_question::OwnQuestion, pair::Pair, pick::Pick, retry::Retry, screen::Screen,
};
use super::{
    arrival::{Arrival, Verdict},
    limits::Limits,
};
use crate::{
    base::channels::Channels,
    conversations::{addresses::Addresses, sessions::Sessions},
    handles::slots::Slots,
    merges::Merges,
    model::settings::LiveSettings,
    people::People,
    ports::{
        clock::SharedClock,
        store::{Store, StoreError},
    },
    questions::{backlog_question::BacklogQuestion, open::Questions},
};

/// A stage of the way in.
#[async_trait]
pub(crate) trait Stage: Send + Sync {
    /// Decides whether an event goes on to the next stage, and with what changes, or opens no turn.
    async fn decide(&self, arrival: Arrival) -> Result<Verdict, StoreError>;
}

/// The handles from which each stage takes its own.
pub(crate) struct Handles<'a> {
    pub(crate) store: &'a Arc<dyn Store>,
    pub(crate) settings: &'a LiveSettings,
    pub(crate) channels: &'a Arc<Channels>,
    pub(crate) people: &'a Arc<People>,
    pub(crate) addresses: &'a Arc<Addresses>,
    pub(crate) sessions: &'a Arc<Sessions>,
    pub(crate) questions: &'a Arc<Questions>,
    pub(crate) backlog_question: &'a Arc<BacklogQuestion>,
    pub(crate) merges: &'a Arc<Merges>,
    pub(crate) slots: &'a Arc<Slots>,
    pub(crate) clock: &'a SharedClock,
}

/// Every stage. `Line` is the last: the slot that it takes is not given back by a stage behind it.
pub(crate) fn all(handles: &Handles<'_>) -> Vec<Box<dyn Stage>> {
    let (settings, clock) = (handles.settings.clone(), SharedClock::clone(handles.clock));
    let limits = Limits::new(handles.store.clone(), handles.store.clone(), settings, clock);
    let limits = Arc::new(limits);
    vec![
        Box::new(Screen::new(handles)),
        Box::new(Pick::new(handles)),
        Box::new(Retry::new(handles)),
        Box::new(Access::new(handles)),
        Box::new(OwnQuestion::new(handles)),
        Box::new(Album::new()),
        Box::new(Pair::new(handles)),
        Box::new(Late::new(handles)),
        Box::new(Limited::new(&limits)),
        Box::new(ChooseHandler::new(handles)),
        Box::new(Line::new(handles, &limits)),
    ]
}
