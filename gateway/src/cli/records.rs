//! What is stored, as commands read it: from the running gateway, or, while none answers, from the database by the same routes.

use std::{io, sync::Arc, time::Duration};

use anyhow::Context;
use axum::{Router, body::Body, http::Request};
use clap::ValueEnum;
use rejoinder_core::SystemClock;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use tokio::sync::OnceCell;
use tower::ServiceExt as _;
use tracing::Level;
use url::form_urlencoded::Serializer;

use super::{
    global::Global,
    options::Database,
    running::{self, RunningGateway},
};
use crate::{
    console::failure::Failure,
    http::{LONGEST_PAGE, Records as StoredRecords, records_router},
};

/// How long the running gateway may take before the database is read instead.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A parameter of a list. It is left out if it has no value.
pub(super) type Parameter = (&'static str, Option<String>);

#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Page<T> {
    pub(super) items: Vec<T>,
    pub(super) next: Option<String>,
}

impl<T> Page<T> {
    /// What `text` makes of the items, and how the list goes on; only `nothing` if there are none.
    pub(super) fn text(&self, nothing: &str, more: &str, text: impl FnOnce(&[T]) -> String) -> String {
        if self.items.is_empty() {
            return nothing.to_owned();
        }
        let text = text(&self.items);
        match &self.next {
            Some(next) => format!("{text}\n\n{more}: --before {next}"),
            None => text,
        }
    }
}

/// Where commands read.
pub(super) struct Records<'a> {
    running: Option<RunningGateway>,
    file: OnceCell<Router>,
    database: &'a Database,
    global: &'a Global,
}

impl Database {
    /// Finds the running gateway, unless a file is named; opens the database if there is none.
    pub(super) async fn records<'a>(&'a self, global: &'a Global) -> Result<Records<'a>, Failure> {
        // A caller without the gateway's secrets reads the database.
        let running = if self.is_named() { None } else { RunningGateway::find(global).ok() };
        let records = Records { running, file: OnceCell::new(), database: self, global };
        if records.running.is_none() {
            records.file().await?;
        }
        Ok(records)
    }
}

impl Records<'_> {
    async fn file(&self) -> Result<&Router, Failure> {
        let open = async || {
            let store = self.database.open(self.global).await?;
            // Says what cannot be read.
            let lines = tracing_subscriber::fmt().with_max_level(Level::ERROR).with_writer(io::stderr);
            let _ = lines.without_time().with_ansi(false).with_target(false).try_init();
            Ok::<_, Failure>(records_router(StoredRecords::new(&store, Arc::new(SystemClock))))
        };
        self.file.get_or_try_init(open).await
    }

    /// Reads `path` below `/admin/api`.
    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        // The database also has the answer if the gateway is stuck, has another token or is of another version.
        if let Some(gateway) = self.running.as_ref().filter(|_| !self.file.initialized())
            && let Ok(Ok(answer)) = tokio::time::timeout(TIMEOUT, gateway.get(path)).await
            && let Ok(found) = read(answer)
        {
            return Ok(found);
        }
        let request = Request::get(format!("/admin/api/{path}")).body(Body::empty()).context("cannot ask")?;
        let Ok(response) = self.file().await?.clone().oneshot(request).await;
        let (parts, body) = response.into_parts();
        let body = axum::body::to_bytes(body, usize::MAX).await.context("cannot read the answer")?;
        read(running::answer(parts.status, &body)?)
    }

    /// Reads the list `path`: at most `limit` items that come after `before`.
    pub(super) async fn list<T: DeserializeOwned>(
        &self,
        path: &str,
        parameters: &[Parameter],
        before: Option<String>,
        limit: u32,
    ) -> Result<Page<T>, Failure> {
        let mut list = Page { items: Vec::new(), next: before };
        let mut missing = limit;
        loop {
            let asked = missing.min(LONGEST_PAGE);
            let place = [("before", list.next), ("limit", Some(asked.to_string()))];
            let given = parameters.iter().chain(&place).filter_map(|(name, value)| Some((name, value.as_deref()?)));
            let query = Serializer::new(String::new()).extend_pairs(given).finish();
            let page: Page<T> = self.get(&format!("{path}?{query}")).await?;
            list.items.extend(page.items);
            list.next = page.next;
            missing -= asked;
            if list.next.is_none() || missing == 0 {
                return Ok(list);
            }
        }
    }
}

fn read<T: DeserializeOwned>(answer: Value) -> Result<T, Failure> {
    Ok(serde_json::from_value(answer).context("the answer cannot be read")?)
}

/// The name of a choice, for a parameter.
pub(super) fn named(choice: Option<impl ValueEnum>) -> Option<String> {
    choice?.to_possible_value().map(|value| value.get_name().to_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use axum::{Json, extract::Query, routing::get};
    use clap::{Args as _, Command, FromArgMatches as _};
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn a_long_list_is_read_page_by_page() {
        let numbers = async |Query(asked): Query<HashMap<String, u32>>| {
            let (before, limit) = (asked["before"], asked["limit"].min(LONGEST_PAGE));
            let items: Vec<u32> = (before + 1..=before + limit).collect();
            Json(json!({ "items": items, "next": (before + limit).to_string() }))
        };
        let routes = Router::new().route("/admin/api/numbers", get(numbers));
        let arguments = Global::augment_args(Command::new("rejoinder")).get_matches_from(["rejoinder"]);
        let (database, global) = (Database::default(), Global::from_arg_matches(&arguments).unwrap());
        let file = OnceCell::new_with(Some(routes));
        let records = Records { running: None, file, database: &database, global: &global };

        let list: Page<u32> = records.list("numbers", &[("text", None)], Some("7".to_owned()), 250).await.unwrap();

        assert_eq!(list.items, (8..=257).collect::<Vec<_>>());
        assert_eq!(list.next.as_deref(), Some("257"));
    }
}
