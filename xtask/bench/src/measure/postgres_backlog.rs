//! Take-over, claims and the first page of the list with many open and many settled turns on PostgreSQL, compared with a database that
//! has [`POSTED`] turns.
//!
//! Two nodes have two hooks and a Telegram bot. One hook has an agent that never answers: its turns are the backlog. In each round a node
//! is killed and another takes over; then an agent answers in place of the one that never does, and works the backlog off.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use hyper::StatusCode;
use sqlx::PgConnection;
use tokio::time::sleep;

use super::{plan::plan, settled::settle_originals, telegram};
use crate::{
    bench::{Backlog, Bench},
    client::{Client, Endpoint, TOKEN},
    copies::postgres::{Which, begin_at, multiply},
    figures::{
        Sample,
        Target::AtLeast,
        Unit::{Milliseconds, PerSecond, Ratio},
    },
    gateway::{Gateway, Home},
    helper::{Helper, load},
    load::Plan,
    postgres::Postgres,
    serve::Server,
};

/// The database with the backlog.
const MANY: &str = "many";
/// A database that begins empty in each round.
const FEW: &str = "few";

/// The number of open turns that are posted in each round, and of those that are copied.
const POSTED: u64 = 4000;
/// How many turns of the backlog end before it is measured how many do, and how many are measured.
const ENDED: (i64, i64) = (500, 2500);

const CALLERS: u32 = 16;
/// How often the page is asked for; the median counts.
const PAGES: usize = 51;

/// Where the places of settled and of open turns begin: copies are before them.
const PLACES: [i64; 2] = [1_000_000_000, 2_000_000_000];

/// How long a lease lasts after it was renewed.
const LEASE: Duration = Duration::from_secs(15);
/// How often the database is asked whether something has happened.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// When to give up.
const PATIENCE: Duration = Duration::from_mins(1);

/// The number of the next round. Each has a bot and conversations of its own, because the database [`MANY`] stays.
static ROUNDS: AtomicU32 = AtomicU32::new(1);

/// An agent that answers, and one that does not.
struct Agents {
    answers: Helper,
    stalls: Helper,
}

/// The results with one database.
struct Results {
    ready: Duration,
    page: Duration,
    lone_ms: f64,
    takeover: Takeover,
    /// Turns of the backlog that end in a second.
    claims: f64,
}

/// Times since a node was killed that had just renewed its leases.
struct Takeover {
    /// Until another node has the lease.
    lease: Duration,
    /// Until an answer is seen to what was written to the bot right after.
    answered: Duration,
    /// Until the other node has begun all turns again that ran.
    runs: Duration,
}

pub(super) async fn round(bench: &Bench) -> Result<Vec<Sample>> {
    let agents = Agents {
        answers: Helper::start(&Server::Agent { stall: false }).await?,
        stalls: Helper::start(&Server::Agent { stall: true }).await?,
    };
    let backlog = bench.backlog.get_or_try_init(|| make(bench, &agents)).await?;
    let Backlog { postgres, open, settled } = backlog;
    postgres.create(FEW).await?;
    let name = format!("round{}", ROUNDS.fetch_add(1, Ordering::Relaxed));
    let few = measure(bench, postgres, FEW, &agents, &name).await.context("with few turns")?;
    let many = measure(bench, postgres, MANY, &agents, &name).await.context("with the backlog")?;

    let with = format!("{open} open and {settled} settled turns");
    let mut samples = Vec::new();
    for (what, share) in [
        ("take-over", few.takeover.answered.as_secs_f64() / many.takeover.answered.as_secs_f64()),
        ("claims", many.claims / few.claims),
        ("first page", few.page.as_secs_f64() / many.page.as_secs_f64()),
    ] {
        let name = format!("PostgreSQL, {what} with {with} beside few");
        samples.push(Sample::with_target(name, share, Ratio, AtLeast(0.9)));
    }
    for (with, results) in [("few turns", &few), (&*with, &many)] {
        let Results { ready, page, lone_ms, takeover, claims } = results;
        let Takeover { lease, answered, runs } = takeover;
        let name = |what: &str| format!("PostgreSQL, {with}, {what}");
        let ms = |what: &str, time: Duration| Sample::untargeted(name(what), time.as_secs_f64() * 1000.0, Milliseconds);
        samples.extend([
            ms("start until ready", *ready),
            ms("first page", *page),
            Sample::untargeted(name("gateway, 1 caller, median"), *lone_ms, Milliseconds),
            ms("from kill -9 until another node has the lease", *lease),
            ms("until it answers", *answered),
            ms("until it answers, after the end of the lease", answered.saturating_sub(LEASE)),
            ms("until it has begun all runs again", *runs),
            Sample::untargeted(name("claims"), *claims, PerSecond),
        ]);
    }
    Ok(samples)
}

impl Agents {
    /// The sections of two agents: `bench`, and `backlog`, which answers if `is_worked_off`.
    fn sections(&self, is_worked_off: bool) -> String {
        let of_backlog = if is_worked_off { &self.answers } else { &self.stalls };
        [("bench", &self.answers), ("backlog", of_backlog)]
            .map(|(name, agent)| {
                let url = agent.agent_url();
                format!("[agents.{name}]\nkind = \"openai\"\nbase_url = \"{url}\"\nmodel = \"bench\"\n")
            })
            .concat()
    }
}

/// The settings of a node.
fn settings(store: &str, telegram: &str) -> String {
    format!(
        "[guard]\nsoft_deadline = \"off\"\n\
         [admin]\ntoken = \"{TOKEN}\"\n\
         [channels.webhook.backlog]\ntoken = \"{TOKEN}\"\nagent = \"backlog\"\n\
         {telegram}{store}"
    )
}

/// Fills the database [`MANY`].
async fn make(bench: &Bench, agents: &Agents) -> Result<Backlog> {
    let postgres = Postgres::start(&bench.folder).await?;
    let settings = settings(&postgres.create(MANY).await?, "");
    let home = Home::of_node(bench, "1")?.with_short_drain();
    let mut gateway = home.start_with(bench, &agents.sections(false), &settings)?;
    gateway.ready().await?;
    let mut connection = postgres.connect(MANY).await?;
    begin_at(&mut connection, PLACES[0]).await?;
    settle_originals(bench, &gateway).await?;
    begin_at(&mut connection, PLACES[1]).await?;
    post(bench, &gateway, "original").await?;
    gateway.stop().await?;
    let settled = multiply(&mut connection, Which::Settled, bench.backlog_settled, PLACES[0]).await?;
    let open = multiply(&mut connection, Which::Waiting, bench.backlog_open, PLACES[1]).await?;
    Ok(Backlog { postgres, open, settled })
}

/// Posts turns for the agent that never answers, each in a conversation of its own, whose names begin with `name`.
async fn post(bench: &Bench, gateway: &Gateway, name: &str) -> Result<()> {
    let endpoint = Endpoint {
        url: format!("http://{}/hooks/backlog", gateway.address).parse()?,
        template: Some(format!(r#"{{"message":"{{text}}","conversation":"{name}-{{conversation}}"}}"#)),
        ..Endpoint::hook(gateway.address)?
    };
    load(&Plan {
        length_ms: None,
        warm_up_ms: 0,
        requests: Some(POSTED),
        wait: 0,
        expect: Some(202),
        conversations: Some(u32::try_from(POSTED)?),
        ..plan(bench, &endpoint, CALLERS)
    })
    .await?;
    Ok(())
}

async fn measure(bench: &Bench, postgres: &Postgres, database: &str, agents: &Agents, round: &str) -> Result<Results> {
    let double = telegram::double().await;
    let person = double.person("Ada");
    let telegram = format!(
        "[channels.telegram.{round}]\ntoken = \"{}\"\napi_url = \"{}\"\npace = \"server\"\ndm_policy = \"open\"\nstreaming = \"off\"\n",
        double.token(),
        double.url()
    );
    let settings = settings(&postgres.section(database), &telegram);
    let home = |name: &str| Home::of_node(bench, name).map(Home::with_short_drain);
    let (first_home, second_home, third_home) = (home("1")?, home("2")?, home("3")?);

    let mut first = first_home.start_with(bench, &agents.sections(false), &settings)?;
    let ready = first.ready().await?;
    post(bench, &first, round).await?;
    let page = page(&first).await?;
    let lone = load(&plan(bench, &Endpoint::hook(first.address)?, 1)).await?;
    person.next_after(person.says("ping")).await;

    let mut second = second_home.start_with(bench, &agents.sections(false), &settings)?;
    second.ready().await?;
    let mut connection = postgres.connect(database).await?;
    let (holder, _) = renewed(&mut connection).await?;
    ensure!(!is_true(&mut connection, NOTHING_RUNS, &holder).await?, "the node that has the lease runs nothing");
    let mut other_connection = postgres.connect(database).await?;
    let (_, renewed_at) = renewed(&mut connection).await?;
    first.kill().await?;
    let killed = Instant::now();
    let asked = person.says("ping");
    let (lease, runs, answered) = tokio::join!(
        until(&mut connection, IS_TAKEN, &holder),
        until(&mut other_connection, NOTHING_RUNS, &holder),
        person.next_after(asked),
    );
    let since = |at: Instant| at.saturating_duration_since(killed);
    let takeover = Takeover { lease: since(lease?), answered: since(answered), runs: since(runs?) };
    let late = killed.saturating_duration_since(renewed_at);
    ensure!(late < Duration::from_secs(1), "the node was killed {late:?} after it had renewed its lease");
    second.stop().await?;

    let start = || third_home.start_with(bench, &agents.sections(true), &settings);
    let claims = claims(&mut connection, start).await?;
    Ok(Results { ready, page, lone_ms: lone.median_ms, takeover, claims })
}

/// The median time of the first page of turns, as the operator's page asks for it.
async fn page(gateway: &Gateway) -> Result<Duration> {
    let mut client = Client::connect(Arc::new(Endpoint::hook(gateway.address)?)).await?;
    let mut times = Vec::new();
    for _ in 0..PAGES {
        let asked = Instant::now();
        let answer = client.get("/admin/api/turns").await?;
        times.push(asked.elapsed());
        ensure!(answer.status == StatusCode::OK, "the list of turns is answered with {}", answer.status);
    }
    times.sort();
    Ok(times[PAGES / 2])
}

/// Waits until a node has renewed its leases. Returns the node, and when.
async fn renewed(connection: &mut PgConnection) -> Result<(String, Instant)> {
    let look = "select coalesce(node::text, ''), until::text from leases where name = 'housekeeper'";
    let (begun, mut before) = (Instant::now(), None);
    while begun.elapsed() < PATIENCE {
        let now: Option<(String, String)> = sqlx::query_as(look).fetch_optional(&mut *connection).await?;
        let is_renewed = before.is_some() && before != now;
        if let (true, Some((node, _))) = (is_renewed, &now) {
            return Ok((node.clone(), Instant::now()));
        }
        before = now;
        sleep(CHECK_INTERVAL).await;
    }
    bail!("no node renews its leases")
}

/// Waits until something is true of a node.
async fn until(connection: &mut PgConnection, condition: &'static str, node: &str) -> Result<Instant> {
    let begun = Instant::now();
    while !is_true(connection, condition, node).await? {
        ensure!(begun.elapsed() < PATIENCE, "nobody takes over what a killed node had");
        sleep(CHECK_INTERVAL).await;
    }
    Ok(Instant::now())
}

async fn is_true(connection: &mut PgConnection, condition: &'static str, node: &str) -> Result<bool> {
    Ok(sqlx::query_scalar(condition).bind(node).fetch_one(connection).await?)
}

const IS_TAKEN: &str = "select exists (select 1 from leases where name = 'housekeeper' and node <> $1::uuid)";

const NOTHING_RUNS: &str = "
    select not exists (
        select 1 from turns as t join slots as s on s.conversation_id = t.conversation_id and s.turn_id = t.id
        where t.work = 'running' and s.node = $1::uuid)";

/// Starts a node that works the backlog off. Returns how many turns end in a second.
async fn claims(connection: &mut PgConnection, start: impl FnOnce() -> Result<Gateway>) -> Result<f64> {
    let now = "select (extract(epoch from clock_timestamp()) * 1000)::bigint";
    let since: i64 = sqlx::query_scalar(now).fetch_one(&mut *connection).await?;
    let gateway = start()?;
    let from = ended(connection, since, ENDED.0).await?;
    let to = ended(connection, since, ENDED.0 + ENDED.1).await?;
    gateway.stop().await?;
    let turns = f64::from(u32::try_from(to.0 - from.0)?);
    Ok(turns / (to.1 - from.1).as_secs_f64())
}

/// Waits until so many turns have ended. Returns how many have, and when.
async fn ended(connection: &mut PgConnection, since: i64, wanted: i64) -> Result<(i64, Instant)> {
    let begun = Instant::now();
    loop {
        let count = "select count(*) from turns where ended_at >= $1";
        let count: i64 = sqlx::query_scalar(count).bind(since).fetch_one(&mut *connection).await?;
        if count >= wanted {
            return Ok((count, Instant::now()));
        }
        ensure!(begun.elapsed() < PATIENCE, "only {count} turns of the backlog have ended");
        sleep(CHECK_INTERVAL).await;
    }
}
