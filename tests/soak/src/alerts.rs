//! Judges what the operator is told: each trouble once, and once that it is over.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use rejoinder_core::{Clock as _, SystemClock};
use rejoinder_tests::{Gateway, Pager};
use reqwest::{Method, RequestBuilder};
use serde::Serialize;
use serde_json::Value;
use tokio::{task::JoinHandle, time::sleep};

use crate::evidence::millis;

/// How often the overview is looked at.
const LOOK: Duration = Duration::from_millis(500);
/// How long it may take until the operator is told that all is well.
const ALL_CLEAR: Duration = Duration::from_mins(2);
/// How long a trouble lasts, in milliseconds, that must be told.
const LASTS: i64 = 10_000;
/// What is over only when the operator does something.
const LASTING: [&str; 4] = ["error", "undeliverable", "undelivered", "callbacks"];

/// The keys of `[alerts]`, besides the target.
pub(crate) const SETTINGS: &str = "after = \"1s\"\nwindow = \"5s\"\n";

/// A kind of trouble, and what it is about.
type Key = (String, String);

/// A trouble that the overview showed, from its first look to its last, in milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Trouble {
    key: Key,
    first: i64,
    last: i64,
}

/// The result.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Verdict {
    /// Troubles that were told.
    pub(crate) told: usize,
    /// Those that were told to be over.
    pub(crate) over: usize,
    /// Troubles of the overview that had to be told.
    pub(crate) lasting: usize,
    pub(crate) problems: Vec<String>,
}

/// Looks at the overview, and notes its troubles.
pub(crate) struct Watch {
    troubles: Arc<Mutex<Vec<Trouble>>>,
    looking: JoinHandle<()>,
}

impl Watch {
    pub(crate) fn start(gateway: &Gateway) -> Self {
        let troubles = Arc::<Mutex<Vec<Trouble>>>::default();
        let overview = gateway.admin_request(Method::GET, "overview", None).timeout(LOOK * 4);
        let noted = Arc::clone(&troubles);
        let note = move |trouble| noted.lock().unwrap_or_else(PoisonError::into_inner).push(trouble);
        Self { troubles, looking: tokio::spawn(look_on(overview, note)) }
    }

    /// Ends it, and judges what `pager` was told. What is over is told a little later.
    pub(crate) async fn end(self, pager: &Pager, in_doubt: &[Range<i64>]) -> Verdict {
        let told = || {
            let troubles = self.troubles.lock().unwrap_or_else(PoisonError::into_inner);
            judge(&pager.alerts(), &troubles, in_doubt)
        };
        let since = Instant::now();
        while since.elapsed() < ALL_CLEAR && !told().problems.is_empty() {
            sleep(LOOK).await;
        }
        self.looking.abort();
        told()
    }
}

/// Looks at the overview until it is aborted. What one process shows is no trouble of the next.
async fn look_on(gateway: RequestBuilder, mut note: impl FnMut(Trouble)) {
    let mut shown = BTreeMap::<Key, Trouble>::new();
    loop {
        sleep(LOOK).await;
        let now = SystemClock.now().as_millis();
        let found = match look(&gateway).await {
            Some(overview) => keys(&overview["problems"]),
            None => BTreeSet::new(),
        };
        shown.retain(|key, trouble| {
            let is_over = !found.contains(key);
            if is_over {
                note(trouble.clone());
            }
            !is_over
        });
        for key in found {
            let trouble = shown.entry(key.clone()).or_insert(Trouble { key, first: now, last: now });
            trouble.last = now;
        }
    }
}

async fn look(request: &RequestBuilder) -> Option<Value> {
    request.try_clone()?.send().await.ok()?.json().await.ok()
}

fn keys(problems: &Value) -> BTreeSet<Key> {
    let text = |problem: &Value, name: &str| problem[name].as_str().unwrap_or_default().to_owned();
    problems.as_array().into_iter().flatten().map(|it| (text(it, "kind"), text(it, "subject"))).collect()
}

/// Judges `alerts`, in order. What was told while `in_doubt` may not have been noted before the process was killed.
fn judge(alerts: &[Value], troubles: &[Trouble], in_doubt: &[Range<i64>]) -> Verdict {
    let is_in_doubt = |told: &i64| in_doubt.iter().any(|range| range.contains(told));
    let mut verdict = Verdict::default();
    let (mut told, mut over) = (BTreeMap::<Key, i64>::new(), BTreeMap::<Key, i64>::new());
    // From the alert to the one that says that it is over.
    let mut spans = Vec::<(Key, i64, i64)>::new();
    for alert in alerts.iter().filter(|alert| alert["type"] == "alert") {
        let at = millis(&alert["timestamp"]).unwrap_or_default();
        let data = &alert["data"];
        for key in keys(&data["begun"]) {
            verdict.told += 1;
            if told.get(&key).is_some_and(|first| !is_in_doubt(first)) {
                verdict.problems.push(format!("told twice: {key:?} in {data}"));
            }
            if let Some(first) = told.insert(key.clone(), at) {
                spans.push((key, first, at));
            }
        }
        for key in keys(&data["grown"]).into_iter().chain(keys(&data["still"])) {
            if !told.contains_key(&key) {
                verdict.problems.push(format!("never told: {key:?} in {data}"));
            }
        }
        for key in keys(&data["ended"]) {
            verdict.over += 1;
            match told.remove(&key) {
                Some(first) => spans.push((key.clone(), first, at)),
                // The next process takes it for wrong until then.
                None if let Some(last) = over.get(&key).filter(|last| is_in_doubt(last)) => {
                    spans.push((key.clone(), *last, at));
                }
                None => verdict.problems.push(format!("over twice, or never told: {key:?} in {data}")),
            }
            over.insert(key, at);
        }
    }
    let lasting = told.iter().chain(over.iter().filter(|(_, last)| is_in_doubt(last)));
    spans.extend(lasting.map(|(key, since)| (key.clone(), *since, i64::MAX)));
    for (key, _) in told.into_iter().filter(|(key, first)| !LASTING.contains(&&*key.0) && !is_in_doubt(first)) {
        verdict.problems.push(format!("not said to be over: {key:?}"));
    }
    for trouble in troubles.iter().filter(|trouble| trouble.last - trouble.first >= LASTS) {
        verdict.lasting += 1;
        let is_told =
            |(key, from, to): &(Key, i64, i64)| *key == trouble.key && *from <= trouble.last && *to >= trouble.first;
        if !spans.iter().any(is_told) {
            verdict.problems.push(format!("not told: {trouble:?}"));
        }
    }
    verdict
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn alert(second: i64, data: &Value) -> Value {
        json!({ "type": "alert", "timestamp": format!("2026-05-01T00:00:{second:02}Z"), "data": data })
    }

    fn channel() -> Value {
        json!([{ "kind": "channel", "subject": "telegram.soak" }])
    }

    /// The second as in [`alert`].
    fn at(second: i64) -> i64 {
        millis(&json!(format!("2026-05-01T00:00:{second:02}Z"))).expect("a time")
    }

    /// `in_doubt`: from when until when, in seconds.
    fn problems(alerts: &[Value], troubles: &[Trouble], in_doubt: &[(i64, i64)]) -> Vec<String> {
        let in_doubt: Vec<_> = in_doubt.iter().map(|(from, until)| at(*from)..at(*until)).collect();
        let all = judge(alerts, troubles, &in_doubt).problems;
        all.iter().map(|problem| problem.split(':').next().expect("words").to_owned()).collect()
    }

    #[test]
    fn each_trouble_is_told_once_and_over_once() {
        let (begun, ended) = (json!({ "begun": channel() }), json!({ "ended": channel() }));
        let once = [alert(1, &begun), alert(9, &ended)];
        let twice = [alert(1, &begun), alert(5, &begun), alert(9, &ended), alert(9, &ended)];

        assert!(problems(&once, &[], &[]).is_empty());
        assert_eq!(problems(&once[..1], &[], &[]), ["not said to be over"]);
        assert_eq!(problems(&once[1..], &[], &[]), ["over twice, or never told"]);
        assert_eq!(problems(&twice, &[], &[]), ["told twice", "over twice, or never told"]);
        assert!(problems(&twice, &[], &[(0, 2), (8, 10)]).is_empty());
        assert!(problems(&once[..1], &[], &[(0, 2)]).is_empty());
        assert_eq!(problems(&[alert(1, &json!({ "still": channel() }))], &[], &[]), ["never told"]);
    }

    #[test]
    fn what_lasts_is_told() {
        let alerts = [alert(1, &json!({ "begun": channel() })), alert(9, &json!({ "ended": channel() }))];
        let trouble = |kind: &str, first, last| Trouble {
            key: (kind.to_owned(), "telegram.soak".to_owned()),
            first: at(first),
            last: at(last),
        };

        assert!(problems(&alerts, &[trouble("channel", 0, 12), trouble("agent", 10, 15)], &[]).is_empty());
        assert_eq!(problems(&alerts, &[trouble("channel", 20, 40)], &[]), ["not told"]);
        // The process that was killed had not noted that it was over.
        assert!(problems(&alerts, &[trouble("channel", 20, 40)], &[(8, 10)]).is_empty());
        assert_eq!(problems(&alerts, &[trouble("agent", 0, 12)], &[]), ["not told"]);
    }
}
