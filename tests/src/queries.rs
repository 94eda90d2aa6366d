//! What a test queries a gateway for.

use serde_json::Value;

use crate::{Gateway, eventually};

impl Gateway {
    /// Waits until nothing is owed any more.
    ///
    /// # Panics
    /// If something is still owed after [`PATIENCE`](crate::PATIENCE).
    pub async fn until_settled(&self) {
        eventually("nothing is owed", async || self.owes_nothing().await.then_some(())).await;
    }

    /// Asks the gateway first, if it can answer: to start the binary for each look costs ten times the CPU time.
    async fn owes_nothing(&self) -> bool {
        let list: Option<Value> = async {
            let response = self.admin_request(reqwest::Method::GET, "turns?state=open", None).send().await.ok()?;
            response.error_for_status().ok()?.json().await.ok()
        }
        .await;
        let is_open = |list: Value| list["items"].as_array().is_some_and(|items| !items.is_empty());
        !list.is_some_and(is_open) && self.open_turns().is_empty()
    }

    /// The most memory that the process has had, in KiB.
    ///
    /// # Panics
    /// If it does not run.
    #[must_use]
    pub fn peak_memory(&self) -> u64 {
        let process = self.process_id().expect("the gateway runs");
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("the process is there");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the memory of a process");
        peak.trim().trim_end_matches(" kB").parse().expect("a number")
    }

    /// The id of the only turn of this gateway, in any state.
    ///
    /// # Panics
    /// If there is no turn, or more than one.
    #[must_use]
    pub fn only_turn(&self) -> String {
        let list: Value =
            serde_json::from_str(&self.output_of(&["turns", "list", "--json"])).expect("the list is JSON");
        let items = list["items"].as_array().expect("the list has items");
        assert_eq!(items.len(), 1, "{items:#?}");
        items[0]["turn_id"].as_str().expect("a turn has an id").to_owned()
    }

    /// How many turns ended as `undeliverable`.
    #[must_use]
    pub fn undeliverable(&self) -> usize {
        self.turns("undeliverable").len()
    }

    /// Whether `/readyz` reports ready, and its body.
    ///
    /// # Panics
    /// If it does not respond.
    pub async fn readiness(&self) -> (bool, String) {
        let response = self.http().get(format!("{}/readyz", self.url())).send().await.expect("/readyz responds");
        (response.status().is_success(), response.text().await.expect("it says something"))
    }

    /// Waits until `/readyz` reports not ready for a reason that contains `reason`; returns its body.
    ///
    /// # Panics
    /// If that does not happen in time.
    pub async fn until_not_ready(&self, reason: &str) -> String {
        let about = format!("the gateway is not ready: {reason}");
        eventually(&about, async || {
            let (is_ready, body) = self.readiness().await;
            (!is_ready && body.contains(reason)).then_some(body)
        })
        .await
    }

    /// The body of `/metrics`.
    ///
    /// # Panics
    /// If it does not respond.
    pub async fn metrics(&self) -> String {
        let response = self.http().get(format!("{}/metrics", self.url())).send().await.expect("/metrics responds");
        response.text().await.expect("the metrics are text")
    }
}
