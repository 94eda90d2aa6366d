//! The line of the lanes that wait for the budget of an account.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

use crate::model::Class;

/// The positions of a line: final signals first, and of one class who waits longest.
#[derive(Default)]
pub(crate) struct AccountLine(Mutex<LinePositions>);

#[derive(Default)]
struct LinePositions {
    waiting: BTreeMap<(Class, u64), Arc<Notify>>,
    next: u64,
}

/// A position in a line. Given up when dropped.
pub(crate) struct LinePosition {
    line: Arc<AccountLine>,
    key: (Class, u64),
    is_first: Arc<Notify>,
}

impl AccountLine {
    /// Takes the last position of a class.
    pub(crate) fn enter(self: &Arc<Self>, class: Class) -> LinePosition {
        let is_first = Arc::<Notify>::default();
        let mut positions = self.positions();
        let key = (class, positions.next);
        positions.next += 1;
        positions.waiting.insert(key, Arc::clone(&is_first));
        drop(positions);
        LinePosition { line: Arc::clone(self), key, is_first }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.positions().waiting.is_empty()
    }

    fn positions(&self) -> MutexGuard<'_, LinePositions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LinePosition {
    pub(crate) const fn class(&self) -> Class {
        self.key.0
    }

    pub(crate) fn is_first(&self) -> bool {
        self.line.positions().waiting.first_key_value().is_some_and(|(key, _)| *key == self.key)
    }

    pub(crate) async fn first(&self) {
        while !self.is_first() {
            self.is_first.notified().await;
        }
    }
}

impl Drop for LinePosition {
    fn drop(&mut self) {
        let mut positions = self.line.positions();
        positions.waiting.remove(&self.key);
        if let Some((_, first)) = positions.waiting.first_key_value() {
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
        let line = Arc::<AccountLine>::default();
        let positions = [Class::Interim, Class::Final, Class::Interim, Class::Final].map(|class| line.enter(class));
        let mut waiting: Vec<_> = positions.iter().map(|position| Box::pin(position.first())).collect();
        let mut first = || waiting.iter_mut().position(|position| position.now_or_never().is_some());
        assert_eq!(first(), Some(1));
        drop(waiting);

        let [one, two, three, four] = positions;
        let mut order = Vec::new();
        for position in [two, four, one, three] {
            order.push(position.first().now_or_never().is_some());
            drop(position);
        }

        assert_eq!(order, [true; 4]);
        assert!(line.is_empty());
    }

    #[tokio::test]
    async fn the_next_one_is_woken_when_a_place_is_given_up() {
        let line = Arc::<AccountLine>::default();
        let (one, two) = (line.enter(Class::Final), line.enter(Class::Final));
        let mut waiting = Box::pin(two.first());
        assert!((&mut waiting).now_or_never().is_none());

        drop(one);

        waiting.await;
    }
}
