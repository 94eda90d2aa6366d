//! What a service manager such as systemd is told about the running gateway. Without `NOTIFY_SOCKET` nothing is told.

use sd_notify::NotifyState;
use tokio_util::sync::CancellationToken;
use tracing::warn;

/// Says that the gateway serves `url` from now on, and when it stops. Answers the watchdog from a task of this runtime: when
/// its threads are stuck, nobody answers, and the service manager starts the gateway again.
pub(super) fn start(url: &str, shutdown: CancellationToken) {
    tell(&[NotifyState::Ready, NotifyState::Status(&format!("serving {url}"))]);
    if let Some(patience) = sd_notify::watchdog_enabled().filter(|patience| !patience.is_zero()) {
        tokio::spawn(async move {
            let mut interval = tokio::time::interval(patience / 2);
            loop {
                interval.tick().await;
                tell(&[NotifyState::Watchdog]);
            }
        });
    }
    tokio::spawn(async move {
        shutdown.cancelled_owned().await;
        tell(&[NotifyState::Stopping, NotifyState::Status("stopping: waiting for running turns")]);
    });
}

pub(super) fn reloading() {
    let mut what = vec![NotifyState::Reloading];
    what.extend(NotifyState::monotonic_usec_now().ok());
    tell(&what);
}

pub(super) fn reloaded() {
    tell(&[NotifyState::Ready]);
}

fn tell(what: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(what) {
        warn!(%error, "cannot tell the service manager");
    }
}
