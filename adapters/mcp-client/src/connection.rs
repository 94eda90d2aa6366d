//! Connects to a server by the transport of its section, and lists its tools.

use std::{sync::Arc, time::Duration};

use rejoinder_agents::{McpServerSection, Supervisor, redacted_url};
use rejoinder_core::Masker;
use rejoinder_kit::secret_headers;
use rmcp::{
    ClientHandler, RoleClient,
    model::{ClientCapabilities, ClientConfig, Implementation, PaginatedRequestParams, ProtocolVersion, Tool},
    service::{ClientInitializeError, NotificationContext, Peer, RunningService, serve_client},
    transport::{
        StreamableHttpClientTransport, async_rw::AsyncRwTransport,
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use tokio::{sync::Notify, time::timeout};

use crate::{
    bounded::BoundedLines,
    impatient::Impatient,
    process::{self, Process},
    tools::MOST_TOOLS,
};

/// The largest message, in bytes.
const MAX_MESSAGE: usize = 4 << 20;

/// The largest body of an error, in bytes.
const MAX_ERROR_BODY: usize = 4 << 10;

/// How many characters of a server's own words an error has.
const MAX_ERROR: usize = 500;

/// How many pages a list of tools may have, and how many bytes.
const MOST_PAGES: usize = 32;
const MOST_LISTED: usize = 4 << 20;

/// What a connection is made with.
#[derive(Clone)]
pub(crate) struct Connector {
    pub(crate) section: McpServerSection,
    pub(crate) http: reqwest::Client,
    pub(crate) supervisor: Supervisor,
}

/// The client's side of the protocol: it hears of changed tools, and has nothing that a server could ask for.
pub(crate) struct Client {
    changed: Arc<Notify>,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let own = Implementation::new("rejoinder", env!("CARGO_PKG_VERSION")).with_title("Rejoinder");
        ClientConfig::new(ClientCapabilities::default(), own).with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}

/// A connection to a server. Its program ends when this is dropped.
pub(crate) struct Connection {
    service: RunningService<RoleClient, Client>,
    process: Option<Process>,
}

impl Connector {
    /// Connects, within the time of the section. `changed` is notified when the server says that its tools have changed.
    ///
    /// # Errors
    /// Says why it cannot be reached, for the operator.
    pub(crate) async fn connect(&self, changed: Arc<Notify>) -> Result<Connection, String> {
        let late = format!("it did not answer `initialize` within {}", seconds(self.section.timeout));
        if let Some(url) = &self.section.url {
            let headers = self.section.headers.iter().map(|(name, value)| (&**name, value.expose()));
            let headers = secret_headers(headers).map_err(|name| format!("the header {name} cannot be sent"))?;
            let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
            config.custom_headers = headers.into_iter().filter_map(|(name, value)| Some((name?, value))).collect();
            config.max_sse_event_size = MAX_MESSAGE;
            config.max_json_response_size = MAX_MESSAGE;
            config.max_error_response_size = MAX_ERROR_BODY;
            let transport = StreamableHttpClientTransport::with_client(self.http.clone(), config);
            let begun = timeout(self.section.timeout, serve_client(Client { changed }, transport)).await;
            let service = begun.map_err(|_| late)?.map_err(|error| self.refusal(&error))?;
            return Ok(Connection { service, process: None });
        }
        let started = process::start(&self.section, &self.supervisor)?;
        let output = BoundedLines::new(started.output, MAX_MESSAGE);
        let transport =
            AsyncRwTransport::new_client(output, Impatient::new(started.input)).with_max_line_length(MAX_MESSAGE);
        match timeout(self.section.timeout, serve_client(Client { changed }, transport)).await {
            Ok(Ok(service)) => Ok(Connection { service, process: Some(started.process) }),
            Ok(Err(ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. })) => {
                Err(format!("it ended before it answered: {}", started.process.end().await))
            }
            Ok(Err(error)) => Err(self.refusal(&error)),
            Err(_) => Err(late),
        }
    }

    /// Where it is, for the operator.
    pub(crate) fn place(&self) -> String {
        match (&self.section.url, &self.section.command) {
            (Some(url), _) => redacted_url(url).to_string(),
            (None, Some(command)) => command.join(" "),
            (None, None) => "nowhere".to_owned(),
        }
    }

    fn refusal(&self, error: &ClientInitializeError) -> String {
        self.masked(&chain(error))
    }

    /// The words of an error, without the values of headers and variables, and without the secret parts of the URL.
    pub(crate) fn masked(&self, text: &str) -> String {
        let (section, values) = (&self.section, self.section.headers.values().chain(self.section.env.values()));
        let inherited: Vec<_> = section.inherit.iter().filter_map(|name| std::env::var(name).ok()).collect();
        // Of `Bearer KEY`, the key is one as well.
        let values = values.flat_map(|value| {
            let value = value.expose();
            [Some(value), value.split_once(' ').map(|(_, key)| key)].into_iter().flatten()
        });
        let masker = Masker::new(values.chain(inherited.iter().map(String::as_str)));
        let url = self.section.url.as_ref();
        let text = url.map_or_else(|| text.to_owned(), |url| text.replace(url.as_str(), redacted_url(url).as_str()));
        shortened(&masker.text(text))
    }
}

impl Connection {
    pub(crate) fn peer(&self) -> Peer<RoleClient> {
        self.service.peer().clone()
    }

    /// Its name and version, if it says them.
    pub(crate) fn name(&self) -> Option<String> {
        let about = self.service.peer_info()?;
        let server = about.server_info.as_ref()?;
        Some(shortened(&format!("{} {}", server.name, server.version)))
    }

    /// Waits until the connection is at an end. Returns why it is.
    pub(crate) async fn ended(self) -> String {
        let Self { service, process } = self;
        let reason = service.waiting().await;
        match process {
            Some(process) => format!("it ended: {}", process.end().await),
            None => format!("the connection ended: {reason:?}"),
        }
    }
}

/// The server's own tools, as many as are read.
///
/// # Errors
/// Says why there is no list. It is to be [masked](Connector::masked).
pub(crate) async fn list(peer: &Peer<RoleClient>, limit: Duration) -> Result<Vec<Tool>, String> {
    let mut tools = Vec::new();
    let listing = async {
        let (mut cursor, mut size) = (None, 0);
        for _ in 0..MOST_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor);
            let page = peer.list_tools(Some(params)).await.map_err(|error| error.to_string())?;
            for mut tool in page.tools {
                tool.output_schema = None;
                size += serde_json::to_string(&tool).map_or(0, |tool| tool.len());
                tools.push(tool);
            }
            if size > MOST_LISTED {
                return Err(format!("its list of tools has more than {} MiB", MOST_LISTED >> 20));
            }
            cursor = page.next_cursor;
            if cursor.is_none() || tools.len() > MOST_TOOLS {
                break;
            }
        }
        Ok::<_, String>(())
    };
    let listed = timeout(limit, listing).await;
    listed.map_err(|_| format!("it did not list its tools within {}", seconds(limit)))??;
    Ok(tools)
}

pub(crate) fn shortened(text: &str) -> String {
    let text: String = text.chars().take(MAX_ERROR).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(crate) fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs())
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
