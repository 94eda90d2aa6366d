//! The load generator: each caller waits for an answer before it asks again.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use hdrhistogram::Histogram;
use hyper::body::Bytes;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use crate::client::{Client, Endpoint};

/// Post turns to a hook and print the result as one line of JSON.
///
/// Any status but the expected one is an error, because figures of a failing server are worthless.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Plan {
    #[command(flatten)]
    pub(crate) endpoint: Endpoint,
    /// Number of simultaneous callers, each with its own connection.
    #[arg(long)]
    pub(crate) callers: u32,
    /// Duration of the measurement in milliseconds.
    #[arg(long, required_unless_present = "requests", conflicts_with = "requests")]
    pub(crate) length_ms: Option<u64>,
    /// Duration of the warm-up before the measurement in milliseconds.
    #[arg(long, default_value_t = 0)]
    pub(crate) warm_up_ms: u64,
    /// Send this many requests instead, for up to 20 minutes.
    #[arg(long)]
    pub(crate) requests: Option<u64>,
    /// Seconds to wait for an answer, sent as `Prefer: wait`.
    #[arg(long)]
    pub(crate) wait: u32,
    /// Status that every response must have; any 2xx if not given.
    #[arg(long)]
    pub(crate) expect: Option<u16>,
    /// Number of conversations that share the turns; by default one per caller; with 0, every turn is a conversation of its
    /// own.
    #[arg(long)]
    pub(crate) conversations: Option<u32>,
}

/// The result of a load.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    /// The number of answered requests, with those of the warm-up.
    pub(crate) requests: u64,
    /// The number of measured answers.
    pub(crate) answers: u64,
    /// Answers per second.
    pub(crate) throughput: f64,
    /// Milliseconds from sending a request to the last byte of its answer.
    pub(crate) median_ms: f64,
    /// The 95th percentile.
    pub(crate) p95_ms: f64,
    /// The 99th percentile.
    pub(crate) p99_ms: f64,
    pub(crate) max_ms: f64,
    /// The body of the last answer.
    pub(crate) last: String,
}

/// The time limit of a load with a fixed number of requests.
const MAX_LENGTH: Duration = Duration::from_mins(20);

struct LoadRun {
    plan: Plan,
    bodies: Vec<Bytes>,
    /// Counts the requests. Limits them when [`Plan::requests`] is set.
    request_count: AtomicU64,
    measured_from: Instant,
    until: Instant,
}

impl LoadRun {
    /// The next request body of a caller; `None` when the load is over.
    fn next(&self, caller: usize) -> Result<Option<Bytes>> {
        let now = Instant::now();
        if self.plan.requests.is_none() && now >= self.until {
            return Ok(None);
        }
        ensure!(now < self.until, "the load was not done after {} s", MAX_LENGTH.as_secs());
        let number = self.request_count.fetch_add(1, Ordering::Relaxed);
        if self.plan.requests.is_some_and(|requests| number >= requests) {
            return Ok(None);
        }
        let conversation = match self.plan.conversations {
            Some(_) => usize::try_from(number)? % self.bodies.len(),
            None => caller,
        };
        Ok(Some(self.bodies[conversation].clone()))
    }
}

/// Runs the load and prints its [`Report`].
///
/// # Errors
///
/// When the server does not answer, or not with the expected status.
pub(crate) async fn run(plan: Plan) -> Result<()> {
    println!("{}", serde_json::to_string(&generate(plan).await?)?);
    Ok(())
}

async fn generate(plan: Plan) -> Result<Report> {
    let mut clients = Vec::new();
    let endpoint = Arc::new(plan.endpoint.clone());
    for _ in 0..plan.callers {
        let connected = Client::connect(Arc::clone(&endpoint)).await;
        clients.push(connected.with_context(|| format!("cannot connect to {}", endpoint.url))?);
    }
    let bodies = match plan.conversations.unwrap_or(plan.callers) {
        0 => vec![endpoint.body(None)],
        conversations => (0..conversations).map(|n| endpoint.body(Some(&format!("conversation-{n}")))).collect(),
    };
    let measured_from = Instant::now() + Duration::from_millis(plan.warm_up_ms);
    let until = measured_from + plan.length_ms.map_or(MAX_LENGTH, Duration::from_millis);
    let run = Arc::new(LoadRun { plan, bodies, request_count: AtomicU64::new(0), measured_from, until });

    let mut callers = JoinSet::new();
    for (caller, client) in clients.into_iter().enumerate() {
        callers.spawn(call(Arc::clone(&run), caller, client));
    }
    let (mut latencies, mut requests, mut last) = (histogram()?, 0, Bytes::new());
    while let Some(done) = callers.join_next().await {
        let own = done??;
        latencies.add(own.latencies)?;
        requests += own.requests;
        last = own.last;
    }
    let seconds = match run.plan.length_ms {
        Some(_) => until - measured_from,
        None => measured_from.elapsed(),
    }
    .as_secs_f64();
    Ok(Report { requests, ..report(&latencies, seconds, &last)? })
}

/// What one caller saw.
struct CallerResults {
    /// In microseconds, of the measured requests.
    latencies: Histogram<u64>,
    /// The number of all requests.
    requests: u64,
    /// The last response body.
    last: Bytes,
}

/// Runs one caller.
async fn call(run: Arc<LoadRun>, caller: usize, mut client: Client) -> Result<CallerResults> {
    let (mut latencies, mut requests, mut last) = (histogram()?, 0, Bytes::new());
    while let Some(body) = run.next(caller)? {
        let sent_at = Instant::now();
        let url = &run.plan.endpoint.url;
        let answer = client.post_turn(run.plan.wait, body).await.with_context(|| format!("{url} did not answer"))?;
        let answered_at = Instant::now();
        let is_expected = run.plan.expect.map_or(answer.status.is_success(), |expected| answer.status == expected);
        if !is_expected {
            let expected = run.plan.expect.map_or_else(|| "2xx".to_owned(), |status| status.to_string());
            bail!(
                "{url} answered {} instead of {expected}: {}",
                answer.status,
                start_of(&String::from_utf8_lossy(&answer.body))
            );
        }
        if sent_at >= run.measured_from && (run.plan.requests.is_some() || answered_at <= run.until) {
            latencies.saturating_record(u64::try_from((answered_at - sent_at).as_micros())?);
        }
        requests += 1;
        last = answer.body;
    }
    Ok(CallerResults { latencies, requests, last })
}

/// Enough of a body to see what it is.
pub(crate) fn start_of(body: &str) -> String {
    const SHOWN: usize = 500;
    let start: String = body.trim().chars().take(SHOWN).collect();
    if start.len() < body.trim().len() { format!("{start}…") } else { start }
}

/// A histogram of microseconds up to a minute, with three significant digits.
pub(crate) fn histogram() -> Result<Histogram<u64>> {
    Ok(Histogram::new_with_bounds(1, 60_000_000, 3)?)
}

/// The report of a load without warm-up.
#[expect(clippy::cast_precision_loss, reason = "microseconds and counts of a bench are far below 2^52")]
pub(crate) fn report(latencies: &Histogram<u64>, seconds: f64, last: &[u8]) -> Result<Report> {
    ensure!(!latencies.is_empty(), "no request was answered in time");
    let ms = |micros: u64| micros as f64 / 1000.0;
    Ok(Report {
        requests: latencies.len(),
        answers: latencies.len(),
        throughput: latencies.len() as f64 / seconds,
        median_ms: ms(latencies.value_at_quantile(0.5)),
        p95_ms: ms(latencies.value_at_quantile(0.95)),
        p99_ms: ms(latencies.value_at_quantile(0.99)),
        max_ms: ms(latencies.max()),
        last: String::from_utf8_lossy(last).into_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve;

    async fn echo() -> Endpoint {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        tokio::spawn(async move { axum::serve(listener, serve::echo::router()).await });
        Endpoint::hook(address).expect("a URL")
    }

    fn plan(endpoint: Endpoint) -> Plan {
        Plan {
            endpoint,
            callers: 3,
            length_ms: None,
            warm_up_ms: 0,
            requests: Some(100),
            wait: 1,
            expect: Some(200),
            conversations: Some(7),
        }
    }

    #[tokio::test]
    async fn a_load_by_count_asks_exactly_that_often() {
        let report = generate(plan(echo().await)).await.expect("the echo responds");
        assert_eq!(report.answers, 100);
        assert!(report.last.contains("ping"), "{}", report.last);
    }

    #[tokio::test]
    async fn a_load_by_time_ends_by_itself() {
        let plan = Plan { requests: None, length_ms: Some(50), conversations: None, ..plan(echo().await) };
        let report = generate(plan).await.expect("the echo responds");
        assert!(report.answers > 0 && report.throughput > 0.0, "{report:?}");
        assert!(report.requests >= report.answers, "{report:?}");
    }

    #[tokio::test]
    async fn an_unexpected_answer_ends_the_load() {
        let error = generate(Plan { expect: Some(202), ..plan(echo().await) }).await.expect_err("200 is not 202");
        assert!(error.to_string().contains("instead of 202"), "{error}");
    }

    #[tokio::test]
    async fn a_peer_may_answer_any_2xx_and_nothing_else() {
        let peer = Plan { expect: None, ..plan(echo().await) };
        assert_eq!(generate(peer.clone()).await.expect("200 is fine").answers, 100);

        let template = Some(r#"{ "no message": "{text}" }"#.to_owned());
        let refused = Plan { endpoint: Endpoint { template, ..peer.endpoint.clone() }, ..peer };
        let error = generate(refused).await.expect_err("the echo wants a message");
        assert!(error.to_string().contains("/hooks/bench answered 422 Unprocessable Entity instead of 2xx"), "{error}");
    }

    #[tokio::test]
    async fn a_server_that_closes_connections_is_measured_too() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let close = async |request: axum::extract::Request, next: axum::middleware::Next| {
            ([("connection", "close")], next.run(request).await)
        };
        let router = serve::echo::router().layer(axum::middleware::from_fn(close));
        tokio::spawn(async move { axum::serve(listener, router).await });

        let endpoint = Endpoint::hook(address).expect("a URL");
        assert_eq!(generate(plan(endpoint)).await.expect("answers").answers, 100);
    }
}
