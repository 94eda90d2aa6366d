//! Connects to a server by the transport of its section, and lists its tools.

use std::{sync::Arc, time::Duration};

use rejoinder_agents::{McpServerSection, Supervisor, redacted_url};
use rejoinder_core::{Backoff, Masker};
use rejoinder_kit::secret_headers;
use reqwest::Url;
use rmcp::{
    ClientHandler, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, Implementation, PaginatedRequestParams, ProtocolVersion, SubscriptionFilter,
        Tool,
    },
    service::{
        ClientInitializeError, ClientLifecycleMode, NotificationContext, Peer, RunningService,
        serve_client_with_lifecycle,
    },
    transport::{
        StreamableHttpClientTransport, async_rw::AsyncRwTransport, common::client_side_sse::ExponentialBackoff,
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use tokio::{
    sync::Notify,
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{
    bounded::BoundedLines,
    impatient::Impatient,
    paced::{self, Paced},
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

/// How many versions of the protocol an error names.
const MOST_VERSIONS: usize = 10;

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
    /// Hears of changed tools, where only those hear of them who ask.
    listens: Option<JoinSet<()>>,
}

/// Why a server cannot be reached.
enum Failure {
    Refused(Box<ClientInitializeError>),
    /// In words for the operator.
    Other(String),
}

impl Connector {
    /// Connects, each time within the time of the section: with the handshake, and without it if the server refuses that.
    /// `changed` is notified when the server says that its tools have changed.
    ///
    /// # Errors
    /// Says why it cannot be reached, for the operator.
    pub(crate) async fn connect(&self, changed: Arc<Notify>) -> Result<Connection, String> {
        let refused = match self.begin(ClientLifecycleMode::Initialize, &changed).await {
            Err(Failure::Refused(error)) => *error,
            Err(Failure::Other(why)) => return Err(why),
            Ok(connection) => return Ok(connection),
        };
        if !matches!(refused, ClientInitializeError::JsonRpcError(_)) {
            return Err(self.refusal(&refused));
        }
        let lifecycle = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::NO_INITIALIZE] };
        match self.begin(lifecycle, &changed).await {
            Ok(connection) => Ok(connection.hearing_changes(changed)),
            Err(Failure::Refused(error))
                if matches!(*error, ClientInitializeError::NoCompatibleProtocolVersion { .. }) =>
            {
                Err(self.refusal(&error))
            }
            // It does not know the other way either: why it refused the first counts.
            Err(_) => Err(self.refusal(&refused)),
        }
    }

    async fn begin(&self, lifecycle: ClientLifecycleMode, changed: &Arc<Notify>) -> Result<Connection, Failure> {
        let late = || Failure::Other(format!("it did not answer within {}", seconds(self.section.timeout)));
        let client = Client { changed: Arc::clone(changed) };
        if let Some(url) = &self.section.url {
            let transport = self.transport(url).map_err(Failure::Other)?;
            let begun = timeout(self.section.timeout, serve_client_with_lifecycle(client, transport, lifecycle)).await;
            let service = begun.map_err(|_| late())?.map_err(|error| Failure::Refused(Box::new(error)))?;
            return Ok(Connection { service, process: None, listens: None });
        }
        let started = process::start(&self.section, &self.supervisor).map_err(Failure::Other)?;
        let output = BoundedLines::new(started.output, MAX_MESSAGE);
        let transport =
            AsyncRwTransport::new_client(output, Impatient::new(started.input)).with_max_line_length(MAX_MESSAGE);
        match timeout(self.section.timeout, serve_client_with_lifecycle(client, transport, lifecycle)).await {
            Ok(Ok(service)) => Ok(Connection { service, process: Some(started.process), listens: None }),
            Ok(Err(ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. })) => {
                Err(Failure::Other(format!("it ended before it answered: {}", started.process.end().await)))
            }
            Ok(Err(error)) => Err(Failure::Refused(Box::new(error))),
            Err(_) => Err(late()),
        }
    }

    fn transport(&self, url: &Url) -> Result<StreamableHttpClientTransport<Paced>, String> {
        let headers = self.section.headers.iter().map(|(name, value)| (&**name, value.expose()));
        let headers = secret_headers(headers).map_err(|name| format!("the header {name} cannot be sent"))?;
        let mut backoff = ExponentialBackoff::default();
        backoff.max_delay = Some(paced::LONGEST);
        let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
        config.custom_headers = headers.into_iter().filter_map(|(name, value)| Some((name?, value))).collect();
        config.retry_config = Arc::new(backoff);
        config.max_sse_event_size = MAX_MESSAGE;
        config.max_json_response_size = MAX_MESSAGE;
        config.max_error_response_size = MAX_ERROR_BODY;
        Ok(StreamableHttpClientTransport::with_client(Paced::new(self.http.clone()), config))
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
        match error {
            ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => shortened(&format!(
                "it speaks other versions of the protocol ({}); the gateway speaks {}",
                versions(server_supported),
                versions(ProtocolVersion::KNOWN_VERSIONS)
            )),
            error if error.auth_challenge().is_some() || chain(error).contains("HTTP 401") => {
                "it wants to know who calls (401 or 403): set a header in `[agents.NAME.mcp.SERVER.headers]`, such as \
                 `Authorization = { env = \"A_VARIABLE\" }`; OAuth is not supported"
                    .to_owned()
            }
            error => self.masked(&chain(error)),
        }
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

    /// Hears of changed tools from a server without the handshake.
    fn hearing_changes(mut self, changed: Arc<Notify>) -> Self {
        let peer = self.peer();
        let capabilities = self.service.peer_info().map(|about| about.capabilities.clone());
        let tells = capabilities.and_then(|it| it.tools).and_then(|tools| tools.list_changed) == Some(true);
        self.listens = tells.then(|| JoinSet::from_iter([listen(peer, changed)]));
        self
    }

    /// Its name and version, if it says them.
    pub(crate) fn name(&self) -> Option<String> {
        let about = self.service.peer_info()?;
        let server = about.server_info.as_ref()?;
        Some(shortened(&format!("{} {}", server.name, server.version)))
    }

    /// Waits until the connection is at an end. Returns why it is.
    pub(crate) async fn ended(self) -> String {
        let Self { service, process, listens } = self;
        let reason = service.waiting().await;
        drop(listens);
        match process {
            Some(process) => format!("it ended: {}", process.end().await),
            None => format!("the connection ended: {reason:?}"),
        }
    }
}

/// Asks a server without the handshake to tell when its tools change, again when it ends the answer.
async fn listen(peer: Peer<RoleClient>, changed: Arc<Notify>) {
    let mut backoff = Backoff::default();
    loop {
        let tools = SubscriptionFilter::builder().tools_list_changed().build();
        if let Ok(mut subscription) = peer.listen(tools).await {
            while let Ok(Some(_)) = subscription.next().await {
                backoff.reset();
                changed.notify_one();
            }
        }
        sleep(backoff.pause().max(paced::SHORTEST)).await;
    }
}

fn versions(versions: &[ProtocolVersion]) -> String {
    versions.iter().take(MOST_VERSIONS).map(ToString::to_string).collect::<Vec<_>>().join(", ")
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
