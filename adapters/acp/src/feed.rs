//! What the agent says in a session, until the session's run takes it.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::{
    event::{CallError, Event},
    protocol::PromptEnd,
};

/// How much may wait for a run, in bytes of the agent's messages. One message of the largest size always fits.
pub(crate) const MOST_WAITING: usize = 16 << 20;

/// How many bytes a message counts for at least.
const UNIT: usize = 256;

/// A feed of events. Sending never waits: the agent's messages to all sessions come through one pipe.
#[derive(Clone, Debug)]
pub(crate) struct Feed {
    events: mpsc::UnboundedSender<Sent>,
    room: Arc<Semaphore>,
}

/// An event, and its share of the feed's room: it is given back when that is dropped.
type Sent = (Event, Option<OwnedSemaphorePermit>);

/// The end of a feed from which a run takes events.
pub(crate) struct FeedReader(mpsc::UnboundedReceiver<Sent>);

impl Feed {
    pub(crate) fn new() -> (Self, FeedReader) {
        let (events, received) = mpsc::unbounded_channel();
        (Self { events, room: Arc::new(Semaphore::new(MOST_WAITING / UNIT)) }, FeedReader(received))
    }

    /// Adds an event that came in a message of `size` bytes. Gives it back if the run is over or takes too little: the run is told
    /// once that it has missed something, and gets no more.
    pub(crate) fn push(&self, event: Event, size: usize) -> Result<(), Box<Event>> {
        let units = u32::try_from(size.div_ceil(UNIT).max(1)).unwrap_or(u32::MAX);
        if let Ok(permit) = Arc::clone(&self.room).try_acquire_many_owned(units) {
            return self.events.send((event, Some(permit))).map_err(|unsent| Box::new(unsent.0.0));
        }
        if !self.room.is_closed() {
            self.room.close();
            self.tell(Event::Overflowed);
        }
        Err(Box::new(event))
    }

    /// Says why a message was not read.
    pub(crate) fn lose(&self, why: &str) {
        // If it does not fit, the run is told that it has missed something.
        let _ = self.push(Event::Lost(why.to_owned()), 0);
    }

    /// Adds the last event.
    pub(crate) fn end(&self, end: Result<PromptEnd, CallError>) {
        self.tell(Event::Ended(end));
    }

    fn tell(&self, event: Event) {
        // It fails if the run is over.
        let _ = self.events.send((event, None));
    }

    /// Whether the run is over.
    pub(crate) fn is_closed(&self) -> bool {
        self.events.is_closed()
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.events.same_channel(&other.events)
    }
}

impl FeedReader {
    /// The next event. `None`: the connection has ended.
    pub(crate) async fn next(&mut self) -> Option<Sent> {
        self.0.recv().await
    }

    /// Takes no more events, and returns those that wait.
    pub(crate) fn close(&mut self) -> impl Iterator<Item = Event> + '_ {
        self.0.close();
        std::iter::from_fn(|| self.0.try_recv().ok().map(|(event, _)| event))
    }
}
