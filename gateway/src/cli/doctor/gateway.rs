//! Checks of the gateway: whether one answers at its address, and its readiness.

use std::{collections::BTreeSet, io, net::SocketAddr};

use reqwest::{Client, RequestBuilder, StatusCode, redirect::Policy};
use secrecy::{ExposeSecret, SecretString};
use tokio::net::TcpSocket;

use crate::{
    cli::run,
    client::CHECK_TIMEOUT,
    console::{finding::Finding, output::capital},
    gateway::url_of,
    http::{ALIVE, AgentReadiness, ChannelReadiness, NodeReadiness, Readiness, ReadinessDetails},
    platforms,
    time::span,
};

const ABOUT: &str = "gateway";

const NODES: &str = "nodes";

/// By how many milliseconds a node's clock may be wrong.
const CLOCK_MS: u64 = 2_000;

/// What answered at the address.
enum Answer {
    Gateway(Readiness),
    SomethingElse,
    /// The connection is open, and no response comes.
    NoResponse,
    NoListener,
}

/// `token` opens the details of its readiness. `is_held`: a gateway uses the database. Without one, whoever answers may be
/// anybody, and does not get the token. `fetched`: the agents whose turns workers fetch.
pub(super) async fn check(
    address: SocketAddr,
    token: Option<SecretString>,
    is_held: bool,
    fetched: &[&str],
) -> Vec<Finding> {
    if address.port() == 0 {
        let runs = if is_held { "running" } else { "not running" };
        return vec![Finding::ok(ABOUT, format!("{runs}; it listens on port 0, so its address is unknown"))];
    }
    let token = token.filter(|_| is_held);
    let url = url_of(address);
    let bound = bind(address);
    let answer = match &bound {
        // We could bind it, so nothing listens there.
        Ok(()) => Ok(Answer::NoListener),
        Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => Ok(Answer::NoListener),
        Err(_) => {
            tokio::time::timeout(CHECK_TIMEOUT, ask(&url, token.as_ref())).await.unwrap_or(Ok(Answer::NoResponse))
        }
    };
    match answer {
        Ok(Answer::Gateway(readiness)) => {
            let mut findings = findings(&url, readiness, fetched);
            if !is_held {
                let what = format!("the gateway at {url} does not use this database");
                let advice = "It may use another data directory: pass the --data that it was started with.";
                findings.push(Finding::warning(ABOUT, what).with_advice(advice));
            }
            findings
        }
        Ok(Answer::NoResponse) if is_held => {
            let advice = "See its log, and restart it. No turn is lost.";
            vec![Finding::wrong(ABOUT, format!("the gateway at {url} does not answer")).with_advice(advice)]
        }
        Ok(Answer::SomethingElse | Answer::NoResponse) => {
            let advice = "Stop it, or set server.listen to another address.";
            vec![Finding::wrong(ABOUT, format!("something other than a gateway is at {url}")).with_advice(advice)]
        }
        Ok(Answer::NoListener) if is_held => {
            let what = format!("a gateway uses the database, but nothing answers at {url}");
            let advice = "It is just starting, or it was started with another server.listen: its log has its address.";
            vec![Finding::wrong(ABOUT, what).with_advice(advice)]
        }
        Ok(Answer::NoListener) => vec![address_finding(address, bound)],
        Err(error) => vec![Finding::wrong(ABOUT, format!("cannot check it: {error}"))],
    }
}

async fn ask(url: &str, token: Option<&SecretString>) -> Result<Answer, reqwest::Error> {
    // The gateway is on this machine: a configured proxy does not apply.
    let http = Client::builder().no_proxy().redirect(Policy::none()).build()?;
    let alive = match http.get(format!("{url}/healthz")).send().await {
        Err(error) if error.is_connect() => return Ok(Answer::NoListener),
        Err(_) => return Ok(Answer::SomethingElse),
        Ok(alive) => alive,
    };
    if alive.status() != StatusCode::OK || alive.text().await.ok().as_deref() != Some(ALIVE) {
        return Ok(Answer::SomethingElse);
    }
    let read = async |request: RequestBuilder| -> Option<Readiness> { request.send().await.ok()?.json().await.ok() };
    let readyz = || http.get(format!("{url}/readyz"));
    if let Some(token) = token
        && let Some(readiness) = read(readyz().bearer_auth(token.expose_secret())).await
    {
        return Ok(Answer::Gateway(readiness));
    }
    // The gateway may have another token.
    Ok(read(readyz()).await.map_or(Answer::SomethingElse, Answer::Gateway))
}

/// What a gateway's readiness means. `fetched`: the agents whose turns workers fetch.
fn findings(url: &str, readiness: Readiness, fetched: &[&str]) -> Vec<Finding> {
    let mut findings = vec![Finding::ok(ABOUT, format!("running at {url}: {}", readiness.status))];
    let Some(details) = readiness.details else { return findings };
    let ReadinessDetails { store, channels, agents, nodes, behind_since, .. } = details;
    if !store.writes {
        let problem = store.problem.unwrap_or_default();
        let advice = "It accepts nothing until it can: check its disk and file permissions.";
        findings.push(Finding::wrong(ABOUT, format!("its store cannot write: {problem}")).with_advice(advice));
    }
    findings.extend(of_nodes(&nodes, behind_since.is_some(), &channels));
    // Another node is asked about the others.
    for channel in channels.into_iter().filter(|channel| !channel.elsewhere) {
        let advice = advice(channel.channel.split('.').next().unwrap_or_default());
        match (channel.live && channel.sends, channel.problem) {
            (true, None) => {}
            (true, Some(problem)) => {
                findings.push(Finding::warning(ABOUT, format!("{}: {problem}", channel.channel)).with_advice(advice));
            }
            (false, Some(problem)) => {
                findings.push(Finding::wrong(ABOUT, format!("{}: {problem}", channel.channel)).with_advice(advice));
            }
            (false, None) => {
                let what = format!("{} is not ready yet", channel.channel);
                findings.push(Finding::warning(ABOUT, what).with_advice("Try again in a moment."));
            }
        }
    }
    findings.extend(agents.into_iter().flat_map(|agent| of_agent(agent, fetched)));
    findings
}

/// What is wrong between nodes, or with one of them. `is_behind`: the configuration of the one that was asked is not the latest.
fn of_nodes(nodes: &[NodeReadiness], is_behind: bool, channels: &[ChannelReadiness]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut warn = |what: String, advice: &str| {
        findings.push(Finding::warning(NODES, what).with_advice(advice));
    };
    for NodeReadiness { name, clock_ms, .. } in nodes.iter().filter(|node| node.clock_ms.unsigned_abs() > CLOCK_MS) {
        let way = if *clock_ms > 0 { "ahead of" } else { "behind" };
        let what = format!("the clock of {name} is {} {way} the database's", span(clock_ms.unsigned_abs()));
        warn(what, "Only its log lines follow it, all else the database's: set both by NTP.");
    }
    let versions: BTreeSet<_> = nodes.iter().map(|node| &*node.version).collect();
    if versions.len() > 1 {
        let what = format!("the nodes have different versions: {}", Vec::from_iter(versions).join(", "));
        warn(what, "This is for the length of an upgrade: update the others, one after the other.");
    }
    let latest = nodes.iter().filter_map(|node| node.revision).max();
    let has_older = |node: &&NodeReadiness| node.revision < latest || (node.this && is_behind);
    for NodeReadiness { name, .. } in nodes.iter().filter(has_older) {
        let advice =
            "Give it the latest, and restart it; or run rejoinder config reload there to make its own the latest.";
        warn(format!("{name} has an older configuration than the latest"), advice);
    }
    let is_held = |channel: &str| nodes.iter().any(|node| node.leases.iter().any(|lease| lease == channel));
    for channel in channels.iter().filter(|channel| channel.elsewhere && !is_held(&channel.channel)) {
        let what = format!("no node has {}: nothing is received or sent there", channel.channel);
        let advice = "It is taken within 20 seconds, if a node lives that does not drain: rejoinder nodes list.";
        findings.push(Finding::wrong(NODES, what).with_advice(advice));
    }
    findings
}

/// What only the gateway knows of an agent: how its runs end, and whether its workers ask for turns.
fn of_agent(readiness: AgentReadiness, fetched: &[&str]) -> Vec<Finding> {
    let AgentReadiness { agent, description, needs_worker, up, problem, .. } = readiness;
    let (about, is_fetched) = (format!("agents.{agent}"), fetched.contains(&agent.as_str()));
    let mut findings = Vec::new();
    if !up {
        let what = format!("it is down in the running gateway: {}", problem.unwrap_or_default());
        let advice = if is_fetched {
            "The log of its workers may say more.".to_owned()
        } else {
            format!("Run rejoinder agents test {agent}.")
        };
        findings.push(Finding::warning(about.as_str(), what).with_advice(advice));
    }
    // An older gateway does not say what it is.
    if is_fetched && !description.is_empty() {
        let what = format!("in the running gateway: {description}");
        findings.push(if needs_worker {
            Finding::warning(about, what).with_advice("Start a worker, or see the log of those that run.")
        } else {
            Finding::ok(about, what)
        });
    }
    findings
}

/// Where to read on about a problem of a platform. Each platform with accounts has a page.
fn advice(platform: &str) -> String {
    let has_page = platforms::all().any(|known| known.section().name == platform && known.setup().is_some());
    if has_page {
        format!("docs/{platform}.md lists problems and their fixes.")
    } else {
        "The gateway's log says more.".to_owned()
    }
}

/// Whether a gateway could listen there. Only binds and never listens, so a gateway that is just starting can listen.
fn bind(address: SocketAddr) -> io::Result<()> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(address)
}

fn address_finding(address: SocketAddr, bound: io::Result<()>) -> Finding {
    match bound {
        Ok(()) => Finding::ok(ABOUT, format!("not running; {address} is free")),
        Err(error) => {
            let what = format!("not running, and it cannot listen on {address}: {error}");
            Finding::wrong(ABOUT, what).with_advice(capital(run::why_not_listen(error.kind())) + ".")
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        net::Ipv4Addr,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
    };

    use axum::{Router, http::HeaderMap, routing::get};
    use tokio::net::TcpListener;

    use super::*;
    use crate::console::finding::Verdict;

    #[test]
    fn why_nobody_can_listen_is_said() {
        let address = SocketAddr::from((Ipv4Addr::new(192, 0, 2, 1), 7420));

        let finding = address_finding(address, Err(io::ErrorKind::AddrNotAvailable.into()));

        assert_eq!(finding.verdict, Verdict::Wrong);
        assert!(finding.what.contains("192.0.2.1:7420"), "{finding:?}");
        assert!(finding.advice.as_ref().is_some_and(|advice| advice.contains("no such address")), "{finding:?}");
    }

    #[tokio::test]
    async fn a_port_that_the_system_picks_is_nobodys_to_ask() {
        let findings = check(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), None, false, &[]).await;

        assert!(matches!(&findings[..], [finding] if finding.verdict == Verdict::Ok), "{findings:?}");
    }

    #[tokio::test]
    async fn the_token_is_for_the_gateway_that_uses_the_database_only() {
        let were_sent = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&were_sent);
        let ready = async move |headers: HeaderMap| {
            counted.fetch_add(usize::from(headers.contains_key("authorization")), Ordering::Relaxed);
            r#"{"status":"ready"}"#
        };
        let routes = Router::new().route("/healthz", get(async || ALIVE)).route("/readyz", get(ready));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(async { axum::serve(listener, routes).await });

        check(address, Some("secret".into()), false, &[]).await;
        assert_eq!(were_sent.load(Ordering::Relaxed), 0);
        check(address, Some("secret".into()), true, &[]).await;
        assert_eq!(were_sent.load(Ordering::Relaxed), 1);
        serving.abort();
    }

    #[test]
    fn every_page_that_is_named_is_there() {
        let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for platform in platforms::all() {
            let advice = advice(platform.section().name);
            let page = advice.split_whitespace().next().filter(|word| word.starts_with("docs/"));

            assert!(page.is_none_or(|page| docs.join(page).exists()), "{advice}");
        }
        let has_telegram = platforms::all().any(|platform| platform.section().name == "telegram");
        assert_eq!(advice("telegram").starts_with("docs/telegram.md "), has_telegram);
    }

    #[test]
    fn what_is_not_ready_is_told_apart() {
        let readiness = serde_json::from_value(serde_json::json!({
            "status": "not_ready",
            "store": { "writes": false, "problem": "disk full" },
            "channels": [
                { "channel": "webhook.siri", "live": true, "sends": true, "inbound_at": null },
                { "channel": "pager.main", "live": true, "sends": false, "inbound_at": null, "problem": "no token" },
                { "channel": "buoy.main", "live": true, "sends": true, "inbound_at": null, "problem": "no intent" },
                { "channel": "buoy.other", "live": false, "sends": true, "inbound_at": null },
                { "channel": "buoy.third", "live": false, "elsewhere": true, "sends": true, "inbound_at": null, "problem": "x" },
            ],
        }));

        let verdicts: Vec<_> =
            findings("http://x", readiness.unwrap(), &[]).into_iter().map(|finding| finding.verdict).collect();

        // No node has the last one.
        let of_channels = [Verdict::Wrong, Verdict::Wrong, Verdict::Warning, Verdict::Warning];
        assert_eq!((&verdicts[..2], &verdicts[2..]), (&[Verdict::Ok, Verdict::Wrong][..], &of_channels[..]));
    }

    #[test]
    fn what_is_wrong_between_nodes_is_told() {
        let node = |name: &str, version: &str, revision: i64, clock_ms: i64, lease: &str| {
            serde_json::json!({ "name": name, "this": false, "version": version, "revision": revision,
                "clock_ms": clock_ms, "draining": false, "leases": [lease] })
        };
        let channel = |name: &str| serde_json::json!({ "channel": name, "live": false, "elsewhere": true, "sends": true, "inbound_at": null });
        let of_behind = |nodes: Vec<serde_json::Value>, behind_since: Option<&str>| {
            let readiness = serde_json::json!({ "status": "ready", "store": { "writes": true }, "nodes": nodes,
                "behind_since": behind_since, "channels": [channel("buoy.main"), channel("buoy.other")] });
            let findings = findings("http://x", serde_json::from_value(readiness).unwrap(), &[]);
            findings.into_iter().filter(|finding| finding.about == NODES).map(|it| it.what).collect::<Vec<_>>()
        };

        let of = |nodes| of_behind(nodes, None);

        let mut good = [node("one", "1.0.0", 3, 1999, "buoy.main"), node("two", "1.0.0", 3, -1999, "buoy.other")];
        assert_eq!(of(good.to_vec()), [""; 0]);
        good[1]["this"] = true.into();
        let behind = of_behind(good.to_vec(), Some("2026-11-30T10:00:00.000Z"));
        assert_eq!(behind, ["two has an older configuration than the latest"]);
        let bad = [node("one", "1.0.0", 2, 2001, "buoy.main"), node("two", "1.1.0", 3, -90_000, "housekeeper")];
        assert_eq!(
            of(bad.to_vec()),
            [
                "the clock of one is 2.0 s ahead of the database's",
                "the clock of two is 90.0 s behind the database's",
                "the nodes have different versions: 1.0.0, 1.1.0",
                "one has an older configuration than the latest",
                "no node has buoy.other: nothing is received or sent there",
            ]
        );
    }

    #[test]
    fn what_only_the_gateway_knows_of_agents_is_told() {
        let readiness = serde_json::from_value(serde_json::json!({
            "status": "ready",
            "store": { "writes": true },
            "channels": [],
            "agents": [
                { "agent": "main", "description": "openai m at http://x", "up": true },
                { "agent": "coder", "description": "acp coder", "up": false, "problem": "it has no key" },
                { "agent": "fleet", "description": "pull, 2 workers (0 at work), last asked 3s ago", "up": true },
                { "agent": "crew", "description": "pull, 1 turn waits", "needs_worker": true, "up": true },
                { "agent": "older", "up": true },
            ],
        }));

        let findings = findings("http://x", readiness.unwrap(), &["fleet", "crew", "older"]);

        let [_, coder, fleet, crew] = &findings[..] else { panic!("{findings:?}") };
        assert_eq!((coder.verdict, &*coder.about), (Verdict::Warning, "agents.coder"));
        assert!(coder.what.ends_with("it has no key") && coder.advice.as_ref().unwrap().contains("test coder"));
        assert_eq!((fleet.verdict, &*fleet.about), (Verdict::Ok, "agents.fleet"));
        assert!(fleet.what.contains("2 workers"), "{fleet:?}");
        assert_eq!((crew.verdict, &*crew.about), (Verdict::Warning, "agents.crew"));
    }
}
