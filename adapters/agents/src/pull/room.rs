//! Room in memory for the bodies that workers send.

use axum::http::{HeaderValue, StatusCode, header};
use rejoinder_kit::Problem;
use tokio::sync::{Semaphore, SemaphorePermit};

/// The largest body that needs no room, in bytes.
pub(super) const SMALL: usize = 64 * 1024;

/// How much room all large bodies of an agent have together, in KiB.
pub(super) const ROOM: usize = 64 * 1024;

/// The room that one body takes, until it is dropped.
pub(super) struct Room<'a> {
    all: &'a Semaphore,
    taken: Option<SemaphorePermit<'a>>,
}

impl<'a> Room<'a> {
    pub(super) const fn of(all: &'a Semaphore) -> Self {
        Self { all, taken: None }
    }

    /// Takes as much as a body of this many bytes needs.
    ///
    /// # Errors
    /// When there is not so much: other bodies have it.
    pub(super) fn grow_to(&mut self, bytes: usize) -> Result<(), Problem> {
        let taken = self.taken.as_ref().map_or(0, SemaphorePermit::num_permits);
        let more = if bytes > SMALL { bytes.div_ceil(1024).saturating_sub(taken) } else { 0 };
        let permit = u32::try_from(more).ok().and_then(|more| self.all.try_acquire_many(more).ok()).ok_or_else(full)?;
        match &mut self.taken {
            Some(taken) => taken.merge(permit),
            None => self.taken = Some(permit),
        }
        Ok(())
    }
}

fn full() -> Problem {
    let detail = "other large bodies are being read: send it again in a second";
    let title = "Service unavailable: too many large bodies at once";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too-many-large-bodies", title, detail)
        .with_header(header::RETRY_AFTER, HeaderValue::from_static("1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_bodies_share_a_room_and_small_ones_need_none() {
        let all = Semaphore::new(100);
        let (mut one, mut other, mut small) = (Room::of(&all), Room::of(&all), Room::of(&all));

        assert!(one.grow_to(70 * 1024).is_ok() && one.grow_to(80 * 1024).is_ok());
        assert_eq!(all.available_permits(), 20);
        assert_eq!(other.grow_to(SMALL + 1).unwrap_err().status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(small.grow_to(SMALL).is_ok());
        drop(one);

        assert!(other.grow_to(SMALL + 1).is_ok());
    }
}
