//! Converts sounds beside the runtime: few at once, within a time, and what goes wrong is an error.

use std::time::Duration;

use bytes::Bytes;
use tokio::{sync::Semaphore, task::spawn_blocking, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::decoding::{ConversionError, Source};

/// How long one conversion may take, with the wait for those before it.
const PATIENCE: Duration = Duration::from_mins(1);

/// How many sounds are converted at once: each keeps a core busy.
static PLACES: Semaphore = Semaphore::const_new(2);

/// Has `write` make another file of a sound, which may be `longest` when it is played. Stops when it is dropped.
pub(crate) async fn convert(
    bytes: Bytes,
    longest: Duration,
    write: fn(&Source) -> Result<Vec<u8>, ConversionError>,
) -> Result<Vec<u8>, ConversionError> {
    let stopped = CancellationToken::new();
    let source = Source { bytes, longest, stopped: stopped.clone() };
    let _stops = stopped.drop_guard();
    let conversion = async {
        let _place = PLACES.acquire().await;
        spawn_blocking(move || write(&source)).await
    };
    match timeout(PATIENCE, conversion).await {
        Ok(Ok(converted)) => converted,
        // It panicked.
        Ok(Err(_)) => Err(ConversionError::Failed),
        Err(_) => Err(ConversionError::TooSlow),
    }
}
