use std::net::TcpListener;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener as Listener,
};

use super::*;

const TOKEN: &str = "123:very-SECRET_token";

fn api(base: &str) -> Api {
    let http = Client::builder().build().expect("a client");
    Api::new(http, Url::parse(base).expect("an address"), TOKEN.into())
}

/// Calls a server that answers with the raw `response`.
async fn answering(response: &'static str) -> Result<Value, ApiError> {
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
    let answer = api(&format!("http://{address}/below/")).ask("getMe", &json!({}), CALL_TIMEOUT).await;
    let request = serving.await.expect("the server was called");
    assert!(request.starts_with(&format!("POST /below/bot{TOKEN}/getMe HTTP/1.1")), "{request}");
    answer
}

fn has_no_token(error: &ApiError) {
    for text in [error.to_string(), format!("{error:?}")] {
        assert!(!text.contains("SECRET"), "{text}");
    }
}

#[tokio::test]
async fn a_result_is_what_was_asked_for() {
    let answer = answering("HTTP/1.1 200 OK\r\nContent-Length: 29\r\n\r\n{\"ok\":true,\"result\":{\"id\":1}}").await;

    assert_eq!(answer, Ok(json!({"id": 1})));
}

#[tokio::test]
async fn a_refusal_keeps_what_the_server_said() {
    let answer = answering(
        "HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\n\r\n{\"ok\":false,\"error_code\":429,\"description\":\
         \"Too Many Requests: retry after 7\",\"parameters\":{\"retry_after\":7}}",
    )
    .await;

    let Err(ApiError::Refused(refusal)) = answer else { panic!("{answer:?}") };
    assert_eq!((refusal.code, refusal.limit()), (429, Duration::from_secs(7)));
}

#[tokio::test]
async fn a_page_of_a_proxy_is_a_refusal_with_its_status() {
    let answer = answering("HTTP/1.1 502 Bad Gateway\r\nConnection: close\r\n\r\n<html>").await;

    assert!(matches!(answer, Err(ApiError::Refused(Refusal { code: 502, .. }))), "{answer:?}");
}

#[tokio::test]
async fn what_was_written_and_not_answered_may_have_been_done() {
    for response in ["", "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{\"ok\":", "HTTP/1.1 200 OK\r\n\r\n<html>"] {
        let error = answering(response).await.unwrap_err();
        assert!(matches!(error, ApiError::NoAnswer(_)), "{error:?}");
        has_no_token(&error);
    }
}

#[tokio::test]
async fn what_could_not_connect_was_not_written() {
    let address = TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("bound");

    let error = api(&format!("http://{address}")).ask::<Value>("getMe", &json!({}), CALL_TIMEOUT).await.unwrap_err();

    assert!(matches!(error, ApiError::NotWritten(_)), "{error:?}");
    has_no_token(&error);
}

#[test]
fn a_limit_is_read_from_the_words_as_well() {
    let limit = |description: &str| Refusal::of(429, description.to_owned()).limit();

    assert_eq!(limit("Too Many Requests: retry after 12"), Duration::from_secs(12));
    assert_eq!(limit("Too Many Requests"), DEFAULT_LIMIT_IN_TESTS);
}

const DEFAULT_LIMIT_IN_TESTS: Duration = Duration::from_secs(5);
