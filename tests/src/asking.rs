//! What a test asks a gateway about itself.

use serde_json::Value;

use crate::{Gateway, eventually};

impl Gateway {
    /// Waits until nothing is owed any more: everybody has what they will get.
    ///
    /// # Panics
    /// When something still is after [`PATIENCE`](crate::PATIENCE).
    pub async fn settles(&self) {
        eventually("nothing is owed", async || self.open_turns().is_empty().then_some(())).await;
    }

    /// The only turn of this gateway, in whatever state.
    ///
    /// # Panics
    /// When it has none, or more.
    #[must_use]
    pub fn only_turn(&self) -> String {
        let list: Value = serde_json::from_str(&self.prints(&["turns", "list", "--json"])).expect("the list is JSON");
        let items = list["items"].as_array().expect("the list has items");
        assert_eq!(items.len(), 1, "{items:#?}");
        items[0]["turn_id"].as_str().expect("a turn has an id").to_owned()
    }

    /// How many turns no way of answering was left for.
    #[must_use]
    pub fn undeliverable(&self) -> usize {
        self.turns("undeliverable").len()
    }

    /// Whether `/readyz` says that it is ready, and what it says.
    ///
    /// # Panics
    /// When it does not answer.
    pub async fn readiness(&self) -> (bool, String) {
        let response = self.http().get(format!("{}/readyz", self.url())).send().await.expect("it answers");
        (response.status().is_success(), response.text().await.expect("it says something"))
    }

    /// Waits until `/readyz` says that it is not ready, for a reason with these words; gives all it says.
    ///
    /// # Panics
    /// When it does not.
    pub async fn complains(&self, words: &str) -> String {
        let about = format!("it is not ready: {words}");
        eventually(&about, async || {
            let (ready, said) = self.readiness().await;
            (!ready && said.contains(words)).then_some(said)
        })
        .await
    }

    /// Its metrics.
    ///
    /// # Panics
    /// When it does not show them.
    pub async fn metrics(&self) -> String {
        let response = self.http().get(format!("{}/metrics", self.url())).send().await.expect("it answers");
        response.text().await.expect("the metrics are text")
    }
}
