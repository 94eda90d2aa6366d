//! The line of the lanes that wait for the budget of an account.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

use crate::model::Class;

/// The places of a line: final signals first, and of one class who waits longest.
#[derive(Default)]
pub(crate) struct Line(Mutex<Places>);

#[derive(Default)]
struct Places {
    waiting: BTreeMap<(Class, u64), Arc<Notify>>,
    next: u64,
}

/// A place in a line. Given up when dropped.
pub(crate) struct Place {
    line: Arc<Line>,
    key: (Class, u64),
    is_first: Arc<Notify>,
}

impl Line {
    /// Takes the last place of a class.
    pub(crate) fn enter(self: &Arc<Self>, class: Class) -> Place {
        let is_first = Arc::<Notify>::default();
        let mut places = self.places();
        let key = (class, places.next);
        places.next += 1;
        places.waiting.insert(key, Arc::clone(&is_first));
        drop(places);
        Place { line: Arc::clone(self), key, is_first }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.places().waiting.is_empty()
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    pub(crate) const fn class(&self) -> Class {
        self.key.0
    }

    pub(crate) fn is_first(&self) -> bool {
        self.line.places().waiting.first_key_value().is_some_and(|(key, _)| *key == self.key)
    }

    pub(crate) async fn first(&self) {
        while !self.is_first() {
            self.is_first.notified().await;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut places = self.line.places();
        places.waiting.remove(&self.key);
        if let Some((_, first)) = places.waiting.first_key_value() {
            first.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn final_signals_come_first_and_then_who_waits_longest() {
        let line = Arc::<Line>::default();
        let places = [Class::Interim, Class::Final, Class::Interim, Class::Final].map(|class| line.enter(class));
        let mut waiting: Vec<_> = places.iter().map(|place| Box::pin(place.first())).collect();
        let mut first = || waiting.iter_mut().position(|place| place.now_or_never().is_some());
        assert_eq!(first(), Some(1));
        drop(waiting);

        let [one, two, three, four] = places;
        let mut order = Vec::new();
        for place in [two, four, one, three] {
            order.push(place.first().now_or_never().is_some());
            drop(place);
        }

        assert_eq!(order, [true; 4]);
        assert!(line.is_empty());
    }

    #[tokio::test]
    async fn the_next_one_is_woken_when_a_place_is_given_up() {
        let line = Arc::<Line>::default();
        let (one, two) = (line.enter(Class::Final), line.enter(Class::Final));
        let mut waiting = Box::pin(two.first());
        assert!((&mut waiting).now_or_never().is_none());

        drop(one);

        waiting.await;
    }
}
