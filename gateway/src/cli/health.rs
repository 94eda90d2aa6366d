//! `rejoinder health`: whether the running gateway is ready, for the health check of a container.

use std::time::Duration;

use anyhow::anyhow;

use super::{global::Global, running};
use crate::{
    console::{failure::Failure, output},
    http::Readiness,
};

/// How long the answer may take.
const TIMEOUT: Duration = Duration::from_secs(5);

pub(super) const HELP: &str = "\
It asks /readyz, without a token, and waits for at most 5 seconds.

Exit code: 0 if the gateway is ready, 1 otherwise.

Example:
  HEALTHCHECK CMD [\"rejoinder\", \"health\", \"--config\", \"/etc/rejoinder/rejoinder.toml\", \"--data\", \"/data\"]";

/// Fails with exit code 1 only: Docker reserves 2, which an invalid configuration has elsewhere.
pub(super) async fn perform(global: &Global) -> Result<(), Failure> {
    check(global).await.map_err(|failure| Failure::Failed(anyhow!("{failure}")))
}

async fn check(global: &Global) -> Result<(), Failure> {
    let url = running::find_url(global, &global.load()?.config, &global.data_dir()?)?;
    let request = running::http_client(TIMEOUT)?.get(format!("{url}/readyz"));
    // The chain of causes says nothing that a person could use.
    let none = || anyhow!("no gateway answers at {url}");
    let response = request.send().await.map_err(|_| none())?;
    let is_ready = response.status().is_success();
    let readiness: Readiness = response.json().await.map_err(|_| none())?;
    if is_ready {
        return output::print("ready");
    }
    Err(anyhow!(why_not(&readiness)).into())
}

fn why_not(readiness: &Readiness) -> String {
    let Some(details) = &readiness.details else { return "not ready".to_owned() };
    let store = details.store.problem.iter().cloned();
    let down = details.channels.iter().filter(|channel| !(channel.elsewhere || channel.live && channel.sends));
    let channels =
        down.map(|it| format!("{}: {}", it.channel, it.problem.as_deref().unwrap_or("no proof yet that it works")));
    format!("not ready: {}", store.chain(channels).collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_ready_is_said_in_one_line() {
        let why = |readiness| why_not(&serde_json::from_value(readiness).unwrap());

        assert_eq!(why(json!({ "status": "not_ready" })), "not ready");
        assert_eq!(
            why(json!({
                "status": "not_ready",
                "store": { "writes": false, "problem": "the disk is full" },
                "channels": [
                    { "channel": "webhook.siri", "live": true, "sends": true, "inbound_at": null },
                    { "channel": "telegram.main", "live": false, "sends": true, "inbound_at": null },
                    { "channel": "pager.main", "live": true, "sends": false, "inbound_at": null, "problem": "no token" },
                ],
            })),
            "not ready: the disk is full; telegram.main: no proof yet that it works; pager.main: no token"
        );
    }
}
