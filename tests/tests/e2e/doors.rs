//! What a hostile neighbour can do over HTTP: nothing that others notice.

use std::{
    cell::RefCell,
    net::{IpAddr, Ipv4Addr},
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use rejoinder_tests::{Chat, Gateway, PATIENCE, Reply, ScriptedAgent, eventually, free_port};
use reqwest::StatusCode;
use rstest::rstest;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    task::JoinSet,
};

use crate::{TOKEN, hook};

const CHAT_TOKEN: &str = "the-token-of-the-family";
const CHAT: &str = "[channels.webchat.main]\naccess = \"token\"\ntoken = \"the-token-of-the-family\"\n";

const EVE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
const ADA: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// M4: sockets that say nothing, as many as there are places.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn sockets_that_say_nothing_lock_nobody_out() {
    let gateway = Gateway::builder().config(CHAT).start().await;
    let url = gateway.url();

    let silent = join_all((0..512).map(|_| Chat::socket(&url, EVE))).await;
    let visitor = Chat::hello(&url, ADA, CHAT_TOKEN).await;

    let (open, refused): (Vec<_>, Vec<_>) = silent.into_iter().partition(Result::is_ok);
    assert_eq!((open.len(), refused.len()), (8, 504));
    assert_eq!(visitor, Ok("welcome".to_owned()));
}

/// M4: two guesses a second, and the right token tells nobody by its speed that it is right.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn who_guesses_the_chats_token_waits_and_others_do_not() {
    let gateway = Gateway::builder().config(CHAT).start().await;
    let url = gateway.url();
    for _ in 0..6 {
        assert_eq!(Chat::hello(&url, EVE, "a-guess").await, Ok("token_wrong".to_owned()));
    }
    let begun = Instant::now();

    let guesses = join_all((0..4).map(|_| Chat::hello(&url, EVE, "a-guess")));
    let visitor = async { (Chat::hello(&url, ADA, CHAT_TOKEN).await, begun.elapsed()) };
    let (guesses, right, (visitor, soon)) = tokio::join!(guesses, Chat::hello(&url, EVE, CHAT_TOKEN), visitor);

    // Five checks in line: four wrong ones and the right one.
    let all = begun.elapsed();
    assert!(guesses.iter().all(|answer| answer.as_deref() == Ok("token_wrong")), "{guesses:?}");
    assert_eq!((right, visitor), (Ok("welcome".to_owned()), Ok("welcome".to_owned())));
    assert!(all >= Duration::from_secs(2) && soon < all, "{soon:?} of {all:?}");
    let metrics = gateway.http().get(format!("{}/metrics", gateway.url())).send().await.unwrap().text().await.unwrap();
    let counted = "rejoinder_refused_requests_total{surface=\"webchat.main\",reason=\"wrong\"} 10";
    assert!(metrics.contains(counted), "{metrics}");
    let warnings = gateway.log().lines().filter(|line| line.contains("refused a caller")).count();
    assert_eq!(warnings, 1, "{}", gateway.log());
}

/// A3: an address uses up its share with requests whose bodies do not come and with health checks, and goes on connecting.
#[rstest]
#[case(64)]
#[case(1024)]
#[case(4096)]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_address_that_takes_all_its_places_keeps_nobody_else_out(#[case] share: u32) {
    raise_open_files();
    let gateway =
        Gateway::builder().open_files(4 * share).env("REJOINDER__SERVER__REQUEST_TIMEOUT", "10m").start().await;
    let (gateway, spare) = (Arc::new(gateway), (share / 8).clamp(1, 64));
    let head = b"POST /admin/api/session HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n";
    let mut attack = JoinSet::new();
    let slow = join_all((0..share - spare).map(async |_| {
        let mut stream = connect(&gateway, EVE).await;
        stream.write_all(head).await.unwrap();
        stream
    }))
    .await;
    let slow = RefCell::new(slow);
    for _ in 0..=spare {
        let gateway = Arc::clone(&gateway);
        attack.spawn(async move {
            loop {
                let mut stream = connect(&gateway, EVE).await;
                while health(&mut stream).await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(8)).await;
                }
            }
        });
    }
    eventually("the attacker has no request left", async || {
        let mut stream = connect(&gateway, EVE).await;
        stream.write_all(b"GET /chat HTTP/1.1\r\nHost: localhost\r\n\r\n").await.ok()?;
        let mut status = [0; 12];
        stream.read_exact(&mut status).await.ok()?;
        if status == *b"HTTP/1.1 503" {
            return Some(());
        }
        // One whose head was not read in time had to make room.
        stream.write_all(head).await.ok()?;
        slow.borrow_mut().push(stream);
        None
    })
    .await;

    let mut slowest = Duration::ZERO;
    for _ in 0..20 {
        let asked = Instant::now();
        let probe = async { health(&mut connect(&gateway, ADA).await).await };
        tokio::time::timeout(PATIENCE, probe).await.expect("nobody waits for the attacker").expect("an answer");
        slowest = slowest.max(asked.elapsed());
    }

    eprintln!("{share} places: the slowest of 20 took {slowest:?}");
    drop((slow, attack));
}

/// Lets this process open as many files as the system allows.
fn raise_open_files() {
    let raised =
        Command::new("sh").args(["-c", "prlimit --pid \"$PPID\" --nofile=\"$(ulimit -Hn):$(ulimit -Hn)\""]).status();
    assert!(raised.is_ok_and(|status| status.success()), "the limit is raised");
}

/// Asks for the health on an open connection.
async fn health(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await?;
    let (mut answer, mut buffer) = (Vec::new(), [0; 1024]);
    while !answer.ends_with(b"ok\n") {
        match stream.read(&mut buffer).await? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            read => answer.extend_from_slice(&buffer[..read]),
        }
    }
    Ok(())
}

/// A10: a page elsewhere whose name leads to this machine.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn on_loopback_every_door_wants_our_name() {
    let agent = ScriptedAgent::replying("done").await;
    let api = "[channels.api.main]\ntoken = \"the-token-of-the-api\"\n";
    let gateway = Gateway::builder().config(&hook("")).config(CHAT).config(api).config(&agent.section()).start().await;
    let asked = async |path: &str, host: &str| {
        let url = format!("{}{path}", gateway.url());
        let request = gateway.http().post(url).header("host", host).bearer_auth(TOKEN).body("hello");
        request.send().await.unwrap().status()
    };

    for path in ["/hooks/test", "/v1/chat/completions"] {
        assert_eq!(asked(path, "evil.example").await, StatusCode::FORBIDDEN, "{path}");
        assert_ne!(asked(path, "localhost:7420").await, StatusCode::FORBIDDEN, "{path}");
    }
}

/// M5: many bodies without their ends, from one neighbour.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn bodies_before_proof_are_bounded() {
    const BODY: usize = 1 << 20;
    let agent = ScriptedAgent::replying("done").await;
    let secret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz";
    let section = format!("[channels.webhook.test]\nsigning_secret = \"{secret}\"\n");
    let gateway = Gateway::builder().config(&section).config(&agent.section()).start().await;
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let head = format!(
        "POST /hooks/test HTTP/1.1\r\nHost: localhost\r\nwebhook-id: a\r\nwebhook-timestamp: {now}\r\n\
         webhook-signature: v1,{}=\r\nContent-Length: {BODY}\r\n\r\n",
        "A".repeat(43)
    );

    let half_sent = join_all((0..24).map(async |_| {
        let mut stream = connect(&gateway, EVE).await;
        stream.write_all(head.as_bytes()).await.unwrap();
        // Fails when the gateway refuses the rest.
        let _ = stream.write_all(&vec![b'a'; BODY - 1]).await;
        stream
    }))
    .await;
    let refused = eventually("the bodies beyond the limit are refused", async || {
        let is_refused = |stream: &TcpStream| {
            let mut status = [0; 12];
            stream.try_read(&mut status).is_ok() && status == *b"HTTP/1.1 503"
        };
        Some(half_sent.iter().filter(|stream| is_refused(stream)).count()).filter(|count| *count > 0)
    })
    .await;
    let signature = standardwebhooks::Webhook::new(secret).unwrap();
    let signature = signature.sign("b", now.try_into().unwrap(), b"hello").unwrap();
    let signed = gateway.hook("test", "").bare().header("webhook-id", "b").header("webhook-timestamp", now);
    let answered = Reply::of(signed.header("webhook-signature", signature).body("hello")).await;

    assert!(refused < half_sent.len(), "those within the limit are read");
    assert_eq!((answered.status, answered.text()), (StatusCode::OK, "done"));
}

async fn connect(gateway: &Gateway, from: IpAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((from, 0).into()).unwrap();
    socket.connect(gateway.url().strip_prefix("http://").unwrap().parse().unwrap()).await.unwrap()
}

/// What an unsigned request gets without having sent its body.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_signature_that_cannot_hold_is_refused_before_the_body_is_read() {
    let section = "[channels.webhook.test]\nsigning_secret = \"whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz\"\n";
    let gateway = Gateway::builder().config(section).start().await;

    let mut stream = connect(&gateway, EVE).await;
    let head =
        "POST /hooks/test HTTP/1.1\r\nHost: localhost\r\nwebhook-signature: x\r\nContent-Length: 1048576\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).await.unwrap();

    assert_eq!(std::str::from_utf8(&status), Ok("HTTP/1.1 401"));
}

/// The operator's routes at an address of their own, and the commands that use them.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_operators_routes_have_an_address_of_their_own() {
    let port = free_port();
    let agent = ScriptedAgent::replying("done").await;
    let gateway = Gateway::builder().config(&hook("")).config(&agent.section()).prepare();
    gateway.reconfigure(|toml| toml.replace("[admin]\n", &format!("[admin]\nlisten = \"127.0.0.1:{port}\"\n")));
    let mut gateway = gateway;
    gateway.restart().await;
    let turn = gateway.hook("test", TOKEN).ask("hello").await.turn();
    let own = format!("http://127.0.0.1:{port}");
    let get = async |url: String| {
        let response = gateway.http().get(url).bearer_auth("admin-token-of-the-tests").send().await.unwrap();
        (response.status(), response.text().await.unwrap())
    };

    for path in ["/admin/api/turns", "/metrics", "/openapi.json"] {
        assert_eq!(get(format!("{}{path}", gateway.url())).await.0, StatusCode::NOT_FOUND, "{path}");
        assert_eq!(get(format!("{own}{path}")).await.0, StatusCode::OK, "{path}");
    }
    assert_eq!(get(format!("{}/readyz", gateway.url())).await.1, r#"{"status":"ready"}"#);
    assert!(get(format!("{own}/readyz")).await.1.contains("webhook.test"));
    assert_eq!(get(format!("{own}/hooks/test/turns/{turn}")).await.0, StatusCode::NOT_FOUND);
    let doctor = String::from_utf8(gateway.run(&["doctor"]).stdout).unwrap();
    assert!(doctor.contains(&format!("running at {own}: ready")), "{doctor}");
    let retry = gateway.run(&["dead-letters", "retry", &turn]);
    let error = String::from_utf8_lossy(&retry.stderr).into_owned();
    assert!(error.contains("it is no dead letter any more: it is settled"), "{error}");
}

/// The proxy may add no header that says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn behind_a_proxy_nobody_is_on_this_machine_but_at_the_operators_address() {
    let port = free_port();
    let mut gateway = Gateway::builder().config(&hook("")).prepare();
    let public_url = "[server]\npublic_url = \"https://gateway.example\"\n";
    gateway.reconfigure(|toml| toml.replace("[server]\n", public_url));
    gateway.restart().await;
    let get = async |url: String| {
        let response = gateway.http().get(url).send().await.unwrap();
        (response.status(), response.text().await.unwrap())
    };

    for path in ["/metrics", "/openapi.json"] {
        assert_eq!(get(format!("{}{path}", gateway.url())).await.0, StatusCode::UNAUTHORIZED, "{path}");
    }
    assert_eq!(get(format!("{}/readyz", gateway.url())).await.1, r#"{"status":"ready"}"#);
    let doctor = String::from_utf8(gateway.run(&["doctor"]).stdout).unwrap();
    assert!(doctor.contains("trusted_proxies"), "{doctor}");

    gateway.kill();
    gateway.reconfigure(|toml| toml.replace("[admin]\n", &format!("[admin]\nlisten = \"127.0.0.1:{port}\"\n")));
    gateway.restart().await;

    for path in ["/metrics", "/openapi.json"] {
        assert_eq!(gateway.http().get(format!("http://127.0.0.1:{port}{path}")).send().await.unwrap().status(), 200);
    }
}
