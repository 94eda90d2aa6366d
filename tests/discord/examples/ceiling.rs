//! Measures the server's own speed: `cargo run --package rejoinder-discord-server --example ceiling`.
//!
//! People write in many direct chats, and a minimal client replies to each, with a number of concurrent calls. No gateway
//! tested against this server can be faster.

use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt, stream};
use rejoinder_discord_server::DiscordServer;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

const CONVERSATIONS: usize = 1000;
const MESSAGES: usize = 5;
const CALLS_AT_A_TIME: usize = 64;

#[tokio::main]
async fn main() {
    let server = DiscordServer::start().await;
    server.set(json!({ "keep_calls": false })).await;
    let crowd = server.crowd(CONVERSATIONS).await;
    let url = format!("{}/?v=10&encoding=json", server.gateway_url());
    let (mut socket, _) = tokio_tungstenite::connect_async(url).await.expect("the Gateway takes a connection");
    let identify = json!({ "op": 2, "d": { "token": server.token(), "intents": 53_608_447, "properties": {} } });
    socket.send(Message::text(identify.to_string())).await.expect("the payload is sent");
    server.until_connected().await;

    let began = Instant::now();
    let talking = async {
        for number in 0..MESSAGES {
            server.all_say(&crowd, 1, &format!("message {number}")).await;
        }
    };
    let heard = socket.filter_map(async |payload| {
        let payload: Value = serde_json::from_str(payload.ok()?.to_text().ok()?).ok()?;
        (payload["t"] == "MESSAGE_CREATE" && payload["d"]["author"]["bot"] == false).then(|| payload["d"].clone())
    });
    let hearing = heard.take(CONVERSATIONS * MESSAGES).collect::<Vec<_>>();
    let ((), heard) = tokio::join!(talking, hearing);
    say("people's messages, from their side to the client", began.elapsed());

    let http = reqwest::Client::builder().no_proxy().build().expect("an HTTP client");
    let authorization = format!("Bot {}", server.token());
    let began = Instant::now();
    stream::iter(heard)
        .for_each_concurrent(CALLS_AT_A_TIME, async |message| {
            let url = format!("{}/api/v10/channels/{}/messages", server.api_url(), text(&message["channel_id"]));
            let body = json!({
                "content": "an answer",
                "nonce": message["id"],
                "enforce_nonce": true,
                "allowed_mentions": { "parse": [] },
                "message_reference": { "message_id": message["id"], "fail_if_not_exists": false },
            });
            let request = http.post(url).header("Authorization", &authorization).json(&body);
            request.send().await.and_then(reqwest::Response::error_for_status).expect("the message is sent");
        })
        .await;
    say("replies with a nonce, each an event too", began.elapsed());
}

fn say(what: &str, took: Duration) {
    let number = u32::try_from(CONVERSATIONS * MESSAGES).expect("few enough");
    println!("{:6.0}/s  {what}", f64::from(number) / took.as_secs_f64());
}

fn text(value: &Value) -> &str {
    value.as_str().expect("ids are text")
}
