use std::{net::TcpListener, sync::Arc};

use rejoinder_core::SystemClock;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener as Listener,
};

use super::*;

const TOKEN: &str = "very.SECRET.token";

fn api(base: &str) -> Api {
    let http = Client::builder().build().expect("a client");
    Api::new(http, Url::parse(base).expect("an address"), TOKEN.into(), Arc::new(SystemClock))
}

/// Calls a server that answers with the raw `response`; returns the result and the request.
async fn answering(response: &'static str) -> (Result<Value, ApiError>, String) {
    let listener = Listener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let serving = tokio::spawn(async move {
        let (mut connection, _) = listener.accept().await.expect("a caller");
        let mut request = vec![0; 4096];
        let read = connection.read(&mut request).await.expect("a request");
        connection.write_all(response.as_bytes()).await.expect("an open connection");
        connection.shutdown().await.expect("an open connection");
        String::from_utf8_lossy(&request[..read]).into_owned()
    });
    let answer = api(&format!("http://{address}/below/")).get("channels/1/messages?after=2").await;
    (answer, serving.await.expect("the server was called"))
}

fn has_no_token(error: &ApiError) {
    for text in [error.to_string(), format!("{error:?}")] {
        assert!(!text.contains("SECRET"), "{text}");
    }
}

#[tokio::test]
async fn a_call_goes_to_version_10_with_the_token() {
    let (answer, request) = answering("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{\"id\":\"1\"}").await;

    assert_eq!(answer, Ok(json!({"id": "1"})));
    assert!(request.starts_with("GET /below/api/v10/channels/1/messages?after=2 HTTP/1.1"), "{request}");
    assert!(request.to_lowercase().contains("user-agent: discordbot ("), "{request}");
    assert!(request.contains(&format!("Bot {TOKEN}")), "{request}");
}

#[tokio::test]
async fn a_refusal_keeps_what_discord_said() {
    let (answer, _) = answering(
        "HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\n{\"message\":\"Missing Access very.SECRET.token\",\"code\":50001}",
    )
    .await;

    let error = answer.expect_err("refused");
    assert_eq!(error.refusal().map(|it| (it.status, it.code)), Some((403, crate::errors::code::MISSING_ACCESS)));
    has_no_token(&error);
}

#[tokio::test]
async fn a_429_says_for_how_long_and_where() {
    let (answer, _) = answering(
        "HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\nRetry-After: 65\r\nX-RateLimit-Scope: user\r\n\r\n{\"message\":\
         \"You are being rate limited.\",\"retry_after\":64.57,\"global\":false}",
    )
    .await;

    let Err(ApiError::Limited(limit)) = answer else { panic!("{answer:?}") };
    assert_eq!((limit.retry_after, limit.scope), (Duration::from_millis(64_570), rejoinder_core::Scope::Conversation));
}

#[tokio::test]
async fn a_429_of_something_in_front_of_discord_is_about_everything() {
    let (answer, _) =
        answering("HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\nRetry-After: 3600\r\n\r\n<html>").await;

    let Err(ApiError::Limited(limit)) = answer else { panic!("{answer:?}") };
    assert_eq!((limit.retry_after, limit.scope), (Duration::from_hours(1), rejoinder_core::Scope::Account));
}

#[tokio::test]
async fn what_breaks_before_or_after_writing_is_told_apart() {
    let (cut_off, _) = answering("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"id\"").await;
    assert!(matches!(cut_off, Err(ApiError::NoAnswer(_))), "{cut_off:?}");
    has_no_token(&cut_off.expect_err("cut off"));

    let nobody = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a free port");
    let unreached = api(&format!("http://{nobody}")).get::<Value>("users/@me").await;
    assert!(matches!(unreached, Err(ApiError::NotWritten(_))), "{unreached:?}");
    has_no_token(&unreached.expect_err("no server is there"));
}
