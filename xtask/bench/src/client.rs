//! A minimal HTTP client: one keep-alive connection.

use std::{fmt, net::SocketAddr, str::FromStr, sync::Arc, time::Duration};

use anyhow::{Context, Result};
use http_body_util::{BodyExt, Full};
use hyper::{
    Method, Request, StatusCode, Uri,
    body::Bytes,
    client::conn::http1::{self, SendRequest},
    header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, HeaderValue},
    http::uri::PathAndQuery,
};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, time::timeout};

/// The token of the hook `bench` and of its worker.
pub(crate) const TOKEN: &str = "bench-token-of-no-worth";
/// The value of `Authorization` with it.
const BEARER: &str = "Bearer bench-token-of-no-worth";

/// The text of every turn.
const TEXT: &str = "ping";

/// How long a response may take; longer than any `Prefer: wait` of a measurement.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(1);

/// A hook: what a load posts to, and how.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Endpoint {
    /// URL that every turn is posted to.
    #[arg(long, value_parser = parse_url)]
    pub(crate) url: Uri,
    /// A header of every request, as `Name: value`.
    #[arg(long = "header", allow_hyphen_values = true)]
    pub(crate) headers: Vec<Header>,
    /// The body of every request, in which `{text}` and `{conversation}` are replaced; the gateway's JSON if not given.
    #[arg(long = "body", allow_hyphen_values = true)]
    pub(crate) template: Option<String>,
}

impl Endpoint {
    /// The hook `bench` of a gateway, echo or proxy.
    ///
    /// # Errors
    ///
    /// When the address makes no URL.
    pub(crate) fn hook(server: SocketAddr) -> Result<Self> {
        let url = format!("http://{server}/hooks/bench").parse()?;
        let token = Header { name: AUTHORIZATION, value: HeaderValue::from_static(BEARER) };
        Ok(Self { url, headers: vec![token], template: None })
    }

    /// The body of a turn. Without a conversation it is one of its own, without history.
    pub(crate) fn body(&self, conversation: Option<&str>) -> Bytes {
        match (&self.template, conversation) {
            (Some(template), conversation) => {
                let filled = template.replace("{conversation}", conversation.unwrap_or_default());
                filled.replace("{text}", TEXT).into()
            }
            (None, Some(conversation)) => {
                serde_json::json!({ "message": TEXT, "conversation": conversation }).to_string().into()
            }
            (None, None) => serde_json::json!({ "message": TEXT }).to_string().into(),
        }
    }
}

/// A header of a request; shown as `Name: value`.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    name: HeaderName,
    value: HeaderValue,
}

impl FromStr for Header {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once(':').ok_or("use the form `Name: value`")?;
        let name = name.trim().parse().map_err(|_| format!("`{}` is no name of a header", name.trim()))?;
        let value = value.trim().parse().map_err(|_| "the value has characters that no header can have".to_owned())?;
        Ok(Self { name, value })
    }
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, String::from_utf8_lossy(self.value.as_bytes()))
    }
}

/// A URL with a host.
pub(crate) fn parse_url(text: &str) -> Result<Uri, String> {
    let url: Uri = text.parse().map_err(|error| format!("{error}"))?;
    if url.scheme_str() != Some("http") || url.host().is_none_or(str::is_empty) {
        return Err("only URLs that begin with http:// and a host can be measured".to_owned());
    }
    Ok(url)
}

/// One connection, which is opened again if the server closes it.
pub(crate) struct Client {
    endpoint: Arc<Endpoint>,
    connection: SendRequest<Full<Bytes>>,
}

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
}

impl Client {
    /// Opens the connection.
    ///
    /// # Errors
    ///
    /// When nothing listens there.
    pub(crate) async fn connect(endpoint: Arc<Endpoint>) -> Result<Self> {
        let connection = open(&endpoint.url).await?;
        Ok(Self { endpoint, connection })
    }

    /// Fetches `path` from the same server.
    ///
    /// # Errors
    ///
    /// When the connection fails, or no complete response comes within a minute.
    pub(crate) async fn get(&mut self, path: &str) -> Result<Answer> {
        let request = self.request(Method::GET, path).body(Full::default())?;
        self.send(request).await
    }

    /// Posts a turn with `Prefer: wait`, in seconds.
    ///
    /// # Errors
    ///
    /// As [`Client::get`].
    pub(crate) async fn post_turn(&mut self, wait: u32, body: Bytes) -> Result<Answer> {
        let path = self.endpoint.url.path_and_query().map_or("/", PathAndQuery::as_str);
        let request =
            self.request(Method::POST, path).header("prefer", format!("wait={wait}")).body(Full::new(body))?;
        self.send(request).await
    }

    fn request(&self, method: Method, path: &str) -> hyper::http::request::Builder {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(headers) = request.headers_mut() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            if let Some(host) = self.endpoint.url.authority().and_then(|host| host.as_str().parse().ok()) {
                headers.insert(HOST, host);
            }
            for Header { name, value } in &self.endpoint.headers {
                headers.insert(name, value.clone());
            }
        }
        request
    }

    async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<Answer> {
        let exchange = async {
            if self.connection.ready().await.is_err() {
                self.connection = open(&self.endpoint.url).await?;
            }
            let answer = self.connection.send_request(request).await?;
            let status = answer.status();
            let body = answer.into_body().collect().await?.to_bytes();
            anyhow::Ok(Answer { status, body })
        };
        timeout(RESPONSE_TIMEOUT, exchange).await.context("no response within a minute")?
    }
}

async fn open(url: &Uri) -> Result<SendRequest<Full<Bytes>>> {
    let host = url.host().context("the URL has no host")?.trim_matches(['[', ']']);
    let stream = TcpStream::connect((host, url.port_u16().unwrap_or(80))).await?;
    stream.set_nodelay(true)?;
    let (connection, driver) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(driver);
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_gets_text_and_conversation() {
        let template = Some(r#"{"user":"{conversation}","input":["{text}"]}"#.to_owned());
        let url = "http://localhost:8080/chat?sync=1".parse().expect("a URL");
        let endpoint = Endpoint { url, headers: Vec::new(), template };
        assert_eq!(endpoint.body(Some("ada")), r#"{"user":"ada","input":["ping"]}"#);
    }

    #[test]
    fn a_header_has_a_name_and_a_value() {
        let header: Header = "Authorization:  Bearer a:b".parse().expect("a header");
        assert_eq!(header.to_string(), "authorization: Bearer a:b");
        for wrong in ["Authorization", "no name: value", ": value", "name: line\nbreak"] {
            assert!(wrong.parse::<Header>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_http_can_be_measured() {
        assert!(parse_url("http://localhost:8080/chat").is_ok());
        assert!(parse_url("http://[::1]:8080").is_ok());
        for wrong in ["https://localhost/chat", "localhost:8080", "/chat", "http://"] {
            assert!(parse_url(wrong).is_err(), "{wrong}");
        }
    }
}
