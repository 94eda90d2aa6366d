//! Starting, serving, stopping.

use std::{
    collections::HashMap,
    fmt, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use arc_swap::ArcSwap;
use axum::{Router, middleware};
use futures_util::FutureExt;
use metrics_exporter_prometheus::PrometheusHandle;
use rejoinder_config::Config;
use rejoinder_core::{
    AgentName, AgentRuntime, Engine, HandedOut, NodeId, SharedClock, Store, StoreClock, StoreError, StoredRuns,
    TextReader, store::StoreState,
};
use rejoinder_kit::{Tokens, problem_pages};
use rejoinder_reader::ChildReader;
use rejoinder_store::OpenError;
use rustix::system::uname;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::{error, info, warn};

use crate::{
    alerts::{LiveAlerts, Means, Sources},
    backup,
    built_agent::{AgentLoops, BuiltAgent},
    callers::{Caller, StoredTokens},
    exposure::{Exposure, readable_folder, writable_above},
    feed::Feed,
    figures::Figures,
    http::{self, AdminSessions, App, Bounds, Commons, ConnectionPermits, KeysInUse, Proxies, Records, Renewal},
    location::StoreLocation,
    log_lines::LineWriter,
    materials::{Materials, TokenMode, TokenSource, WiringError},
    metrics,
    node_file::{self, NodeFile},
    open_files,
    own_tools::OwnTools,
    platforms::{ChannelNotice, RouteMaterials},
    problems::Problems,
    reload::Reload,
    secrets, traces,
    wiring::{self, AgentInfo, Parts},
};

/// How often the histograms' samples are moved into buckets when nothing reads the metrics, and the channels, agents and the
/// store are looked at. A store that cannot write stays so for a second at least.
const UPKEEP: Duration = Duration::from_secs(1);

/// How long responses in progress may take after everything else has stopped.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// What [`Gateway::start`] needs.
#[derive(Clone)]
pub struct Setup {
    config: Config,
    data_dir: PathBuf,
    clock: SharedClock,
    agents: HashMap<AgentName, BuiltAgent>,
    reload: Option<Reload>,
    shutdown: CancellationToken,
}

impl Setup {
    /// A gateway with this configuration, data directory and the system clock, or that of its database server.
    pub fn new(config: Config, data_dir: impl Into<PathBuf>) -> Self {
        Self {
            config,
            data_dir: data_dir.into(),
            clock: Arc::new(StoreClock::default()),
            agents: HashMap::new(),
            reload: None,
            shutdown: CancellationToken::new(),
        }
    }

    /// Once it is cancelled, a start does not wait for a database that is away.
    #[must_use]
    pub(crate) fn with_shutdown(mut self, shutdown: CancellationToken) -> Self {
        self.shutdown = shutdown;
        self
    }

    /// Lets operators have the configuration read again.
    #[must_use]
    pub(crate) fn with_reload(mut self, reload: Reload) -> Self {
        self.reload = Some(reload);
        self
    }

    /// Adds an agent, or replaces the configured one of this name.
    #[must_use]
    pub fn with_agent(self, name: &str, agent: Arc<dyn AgentRuntime>) -> Self {
        self.with_built_agent(name, agent.into())
    }

    /// The same with all that its kind brings.
    #[must_use]
    pub fn with_built_agent(mut self, name: &str, agent: BuiltAgent) -> Self {
        self.agents.insert(name.into(), agent);
        self
    }
}

impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup").field("data_dir", &self.data_dir).finish_non_exhaustive()
    }
}

/// Why a gateway did not start.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("cannot create the data directory {}", path.display())]
    DataDir {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// Other users could replace the database or a token.
    #[error(
        "other users of this machine can write to {shown}: run chmod 700 {shown}, or choose another folder with --data",
        shown = _0.display()
    )]
    Exposed(PathBuf),
    /// Other users could replace the data directory.
    #[error(
        "other users of this machine can write to {shown}, so they could replace the data directory: run chmod go-w {shown}, or \
         choose another folder with --data",
        shown = _0.display()
    )]
    ExposedAbove(PathBuf),
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A PostgreSQL database.
    #[error("{0:#}")]
    Server(anyhow::Error),
    #[error("the data directory {} is in use by another gateway: choose another folder with --data", _0.display())]
    InUse(PathBuf),
    #[error("cannot complete the restore that was interrupted: {0:#}")]
    Restore(anyhow::Error),
    /// A channel, an agent, a token or the HTTP client cannot be created. Holds the message and the source.
    #[error("{0}")]
    Wiring(String, #[source] Option<Box<dyn std::error::Error + Send + Sync>>),
    /// The open turns cannot be read from the store.
    #[error("cannot recover the open turns of earlier runs")]
    Recovery(#[source] StoreError),
    /// `admin.listen` cannot be used.
    #[error("cannot listen on {address}, see admin.listen")]
    Operator {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    #[error("the listener has no address")]
    Listener(#[source] io::Error),
    /// The process must be restarted: nothing can be stored any more, and nothing that is not stored may be promised.
    #[error("the store has ended by an internal error, see the log; start the gateway again to continue")]
    StoreBroken,
}

impl From<WiringError> for RunError {
    fn from(error: WiringError) -> Self {
        let message = error.to_string();
        match error {
            WiringError::Token { source, .. } => Self::Wiring(message, Some(Box::new(source))),
            WiringError::Http(source) => Self::Wiring(message, Some(Box::new(source))),
            WiringError::SharedTokens(source) => Self::Wiring(message, Some(Box::new(source))),
            WiringError::Channel { .. }
            | WiringError::Agent { .. }
            | WiringError::AgentKey { .. }
            | WiringError::Speech { .. } => Self::Wiring(message, None),
        }
    }
}

/// Starts a gateway, serves it on `listener`, and stops it when `shutdown` is cancelled. Running turns get the
/// configured time (`server.drain`) to end; the other turns remain stored.
///
/// # Errors
/// When it does not start, or its store ends by an internal error.
pub async fn run(setup: Setup, listener: TcpListener, shutdown: CancellationToken) -> Result<(), RunError> {
    let address = listener.local_addr().map_err(RunError::Listener)?;
    let gateway = Box::pin(Gateway::start(setup.with_shutdown(shutdown.clone()), address)).await?;
    gateway.serve(listener, shutdown).await
}

/// A started gateway: it works on open turns of earlier runs, and does not serve HTTP yet.
pub struct Gateway {
    engine: Engine,
    loops: AgentLoops,
    store: Arc<dyn StoreState>,
    /// Held until it has ended.
    _node_file: NodeFile,
    router: Router,
    /// The operator's routes, if they are served at an address of their own.
    operator: Option<(TcpListener, Router)>,
    stop_waiting: CancellationToken,
    drain: Duration,
    connections_per_peer: Option<u32>,
    proxies: Arc<Proxies>,
    /// The local URL of the admin interface.
    address: String,
    notes: Notes,
    /// `None` if no log lines are kept.
    lines: Option<LineWriter>,
    alerts: Arc<LiveAlerts>,
    own_tools: OwnTools,
    upkeep: DropGuard,
}

/// What the start reports to the operator.
#[derive(Clone, Debug)]
pub(crate) struct Notes {
    /// The public or local URL, without a trailing slash.
    pub(crate) url: String,
    pub(crate) channels: Vec<ChannelNotice>,
    pub(crate) agents: Vec<AgentInfo>,
    /// The local URL of `/admin`, without a trailing slash, and its token; `None` if it is switched off.
    pub(crate) admin: Option<(String, TokenSource)>,
    /// A link that opens the operator's page once.
    pub(crate) page: Option<String>,
    pub(crate) data_dir: PathBuf,
    /// Remarks on the configuration, which is valid.
    pub(crate) remarks: Vec<String>,
}

impl Notes {
    /// `urls`: the gateway's own, and that of `/admin`. `page`: the path of a link.
    fn new(
        parts: &Parts,
        (url, admin_url): (String, String),
        page: Option<String>,
        data_dir: PathBuf,
        remarks: Vec<String>,
    ) -> Self {
        Self {
            url,
            channels: parts.notices.clone(),
            agents: parts.agent_infos.clone(),
            page: page.map(|path| format!("{admin_url}{path}")),
            admin: parts.admin_token_source.clone().map(|source| (admin_url, source)),
            data_dir,
            remarks,
        }
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").field("notes", &self.notes).finish_non_exhaustive()
    }
}

impl Gateway {
    /// Opens the store, builds the parts, recovers the open turns of earlier runs and starts the channels. `address` is
    /// where it will be served.
    ///
    /// # Errors
    /// When one of these steps fails; nothing keeps running then.
    #[expect(clippy::too_many_lines, reason = "a flat list of constructors reads best in one piece")]
    pub async fn start(setup: Setup, address: SocketAddr) -> Result<Self, RunError> {
        let Setup { config, data_dir, clock, agents, reload, shutdown } = setup;
        let created = secrets::make_private_dir(&data_dir);
        created.map_err(|source| RunError::DataDir { path: data_dir.clone(), source })?;
        let means = Means::of(&config.alerts).map_err(|error| RunError::Wiring(error.to_string(), None))?;
        let exporter =
            traces::Exporter::of(&config.telemetry).map_err(|error| RunError::Wiring(format!("{error:#}"), None))?;
        let database = wiring::database(&config, &data_dir);
        let mut remarks = wiring::remarks(&config);
        remarks.extend(check_exposure(&data_dir, &database)?);
        let operator = match config.admin.listen {
            Some(address) => Some(listen(address).await?),
            None => None,
        };
        let recorder = metrics::recorder();
        let node_file = NodeFile::lock(&data_dir.join(node_file::NAME)).await.map_err(|error| match error {
            OpenError::InUse { .. } => RunError::InUse(data_dir.clone()),
            error => error.into(),
        })?;
        if let Some(file) = database.file() {
            backup::recover(&data_dir, file).map_err(RunError::Restore)?;
        }
        let node = NodeId::new(clock.now());
        let store = database.open(node, &clock, &shutdown).await;
        let store =
            store.map_err(|error| error.downcast::<OpenError>().map_or_else(RunError::Server, RunError::Open))?;
        // A data directory may be moved.
        let in_folder = database.file().and_then(|file| file.strip_prefix(&data_dir).ok());
        let name = in_folder.map_or_else(|| database.to_string(), |file| file.display().to_string());
        if let Some(before) = node_file.take_over(node, &*store, &name).await {
            warn!(before, now = name, "another store than at the last start: what was stored there is not here");
        }
        let own_tools = OwnTools::served(url_of(address), &config);
        let started = match Materials::new(&config, &data_dir, TokenMode::Create, &clock, &agents) {
            Ok(mut materials) => {
                materials.own_tools = own_tools.clone();
                let stored = || Arc::new(StoredRuns::new(store.clone(), &materials.runtimes)) as Arc<dyn HandedOut>;
                materials.handed_out = database.file().is_none().then(stored);
                start(&materials, &store, node).await.map(|started| (started, materials.started_at))
            }
            Err(error) => Err(error.into()),
        };
        let ((mut parts, engine, loops), started_at) = match started {
            Ok(started) => started,
            Err(error) => {
                store.close().await;
                return Err(error);
            }
        };
        metrics::begin_at_zero(&parts);
        let tokens = StoredTokens::read(&*store, Arc::clone(&clock)).await;
        let tokens = Arc::new(recovered(tokens, &*store, &engine).await?);
        let upkeep = CancellationToken::new();
        tokio::spawn(upkeep.clone().run_until_cancelled_owned(keep_up(recorder.clone(), engine.clone())));
        let public_url = parts.public_url.as_ref().map(|url| url.as_str().trim_end_matches('/').to_owned());
        let url = public_url.clone().unwrap_or_else(|| url_of(address));
        let own_address = operator.as_ref().map_or(address, |(_, address)| *address);
        let admin_url = operator.as_ref().map_or_else(|| url.clone(), |(_, address)| url_of(*address));
        let sessions = AdminSessions::read(parts.admin_tokens.clone(), store.as_ref(), Arc::clone(&clock)).await;
        let sessions = Arc::new(recovered(sessions, &*store, &engine).await?);
        let copies = (Arc::clone(&tokens), Arc::clone(&sessions));
        let renewal = Renewal::new(engine.clone(), Arc::clone(&store), Arc::clone(&clock), copies);
        tokio::spawn(upkeep.clone().run_until_cancelled_owned(Arc::clone(&renewal).run()));
        let page = if parts.admin_tokens.is_some() { first_link(&sessions, &engine).await } else { None };
        let notes = Notes::new(&parts, (url, admin_url), page, data_dir, remarks);
        let (stop_waiting, drain) = (parts.stop_waiting.clone(), parts.drain);
        let feed = Feed::start(store.clone(), stop_waiting.clone());
        let figures = Arc::new(Figures::new(store.clone()));
        let problems = Problems {
            engine: engine.clone(),
            store: store.clone(),
            lists: store.clone(),
            lines: store.clone(),
            database: database.clone(),
            zone: Arc::new(ArcSwap::from_pointee(config.alerts.time_zone.zone.clone())),
            // The operator's own address is not public.
            page: public_url.filter(|_| operator.is_none()),
        };
        traces::follow(engine.clone(), store.clone(), store.clone(), store.clone(), exporter, upkeep.clone());
        let sources = Sources {
            problems: problems.clone(),
            figures: Arc::clone(&figures),
            log: store.clone(),
            transitions: store.clone(),
            clock: Arc::clone(&clock),
        };
        let alerts = LiveAlerts::start(means, sources, upkeep.clone());
        let commons = Commons {
            engine: engine.clone(),
            store: store.clone(),
            records: Records::new(&store, Arc::clone(&clock)),
            clock,
            recorder,
            started_at,
            database,
            tokens,
            sessions: Arc::clone(&sessions),
            renewal,
            feed,
            figures,
            keys_in_use: KeysInUse::new(store.clone(), engine.node(), engine.may_have_neighbours()),
            problems,
            alerts: Arc::clone(&alerts),
            reload,
        };
        let materials = route_materials(&commons, parts.admin_tokens.clone());
        let channel_routes = std::mem::take(&mut parts.routes).into_iter().map(|routes| routes(&materials)).collect();
        let app = |address, is_public| App::new(&parts, commons.clone(), (address, is_public));
        let (router, operator) = match operator {
            None => (http::routes(app(address, true), parts.front_page, channel_routes), None),
            Some((listener, own)) => {
                let (app, of_operator) = (app(address, true), app(own, false));
                let (router, of_operator) = http::separate_routes(app, of_operator, parts.front_page, channel_routes);
                (router, Some((listener, with_pages(of_operator))))
            }
        };
        let proxies = Arc::new(Proxies::new(config.server.trusted_proxies));
        let upkeep = upkeep.drop_guard();
        Ok(Self {
            lines: LineWriter::of_process(store.clone(), &parts.settings.masker),
            engine,
            loops,
            store,
            _node_file: node_file,
            router: with_pages(router),
            operator,
            stop_waiting,
            drain,
            connections_per_peer: config.server.connections_per_peer,
            proxies,
            address: url_of(own_address),
            notes,
            alerts,
            own_tools,
            upkeep,
        })
    }

    /// Writes down where commands reach the gateway. Without it they use the configured address.
    fn write_address(&self) {
        let path = self.notes.data_dir.join(ADDRESS_FILE);
        if let Err(error) = std::fs::write(&path, format!("{}\n", self.address)) {
            warn!(path = %path.display(), %error, "cannot write the gateway's address down for its commands");
        }
    }

    /// What changes while it runs.
    pub(crate) fn live(&self) -> (Engine, Arc<LiveAlerts>, OwnTools) {
        (self.engine.clone(), Arc::clone(&self.alerts), self.own_tools.clone())
    }

    pub(crate) const fn notes(&self) -> &Notes {
        &self.notes
    }

    /// Serves HTTP on `listener` until `shutdown` is cancelled. Then stops accepting, lets running turns end, answers
    /// callers that still wait, and closes the store.
    ///
    /// # Errors
    /// When its store has ended by an internal error. Then it stops at once.
    pub async fn serve(self, listener: TcpListener, shutdown: CancellationToken) -> Result<(), RunError> {
        self.write_address();
        let Self { engine, loops, store, router, operator, lines, upkeep, .. } = self;
        let permits = ConnectionPermits::new(Bounds::new(open_files::most(), self.connections_per_peer));
        let (broken, stopping) = (store.broken(), shutdown.child_token());
        let watching = tokio::spawn({
            let (broken, stopping) = (broken.clone(), stopping.clone());
            async move {
                broken.cancelled().await;
                stopping.cancel();
            }
        });
        let of_operator = async {
            let (listener, router) = operator?;
            Some(http::accept(listener, router, Arc::clone(&permits), Arc::clone(&self.proxies), &stopping).await)
        };
        let public = http::accept(listener, router, Arc::clone(&permits), Arc::clone(&self.proxies), &stopping);
        let (connections, of_operator) = tokio::join!(public, of_operator);
        watching.abort();
        // From now on channels and agents end because the gateway does.
        drop(upkeep);
        let drain = if broken.is_cancelled() {
            error!("stopping: the store has ended by an internal error");
            Duration::ZERO
        } else {
            info!(drain_ms = self.drain.as_millis(), "stopping: waiting for running turns, accepting nothing new");
            self.drain
        };
        let closing = tokio::spawn(async move {
            let of_operator = async {
                if let Some(connections) = of_operator {
                    connections.close().await;
                }
            };
            tokio::join!(connections.close(), of_operator)
        });
        engine.stop(drain).await;
        // Callers do not wait for the loops.
        self.stop_waiting.cancel();
        loops.stop().await;
        if tokio::time::timeout(CLOSE_TIMEOUT, closing).await.is_err() {
            warn!("some connections did not close in time");
        }
        if let Some(lines) = lines {
            lines.finish().await;
        }
        store.close().await;
        // It may be gone already.
        let _ = std::fs::remove_file(self.notes.data_dir.join(ADDRESS_FILE));
        info!("stopped");
        if broken.is_cancelled() { Err(RunError::StoreBroken) } else { Ok(()) }
    }
}

fn route_materials(commons: &Commons, configured: Option<Tokens>) -> RouteMaterials {
    let Commons { engine, tokens, renewal, .. } = commons;
    let (engine, tokens, renewal) = (engine.clone(), Arc::clone(tokens), Arc::clone(renewal));
    RouteMaterials {
        intakes: Arc::new(move |channel| engine.intake(channel)),
        callers: Arc::new(move |sent| {
            let is_configured = configured.as_ref().is_some_and(|tokens| tokens.open_for(sent));
            let (tokens, renewal) = (Arc::clone(&tokens), Arc::clone(&renewal));
            async move {
                // Another node may have made it.
                if is_configured { Ok(Some(Caller::configured())) } else { renewal.find(|| tokens.caller(sent)).await }
            }
            .boxed()
        }),
    }
}

/// What was read from the store. If it cannot be read, nothing keeps running.
async fn recovered<T>(read: Result<T, StoreError>, store: &dyn StoreState, engine: &Engine) -> Result<T, RunError> {
    match read {
        Ok(read) => Ok(read),
        Err(error) => {
            engine.stop(Duration::ZERO).await;
            store.close().await;
            Err(RunError::Recovery(error))
        }
    }
}

/// The path of a link that opens the operator's page once, at each node; `None` if it cannot be made.
async fn first_link(sessions: &AdminSessions, engine: &Engine) -> Option<String> {
    let (path, _, changes) = sessions.link(&Caller::configured()).ok()?;
    match engine.administration().change_sign_ins(changes, None).await {
        Ok(_) => Some(path),
        Err(error) => {
            warn!(%error, "cannot store a link to the operator's page");
            None
        }
    }
}

/// The routes, with pages for browsers in place of problem documents.
fn with_pages(router: Router) -> Router {
    router.layer(middleware::from_fn(problem_pages))
}

/// Moves the histograms' samples into buckets, and looks at the channels, agents and the store, again and again.
async fn keep_up(recorder: PrometheusHandle, engine: Engine) {
    let mut interval = tokio::time::interval(UPKEEP);
    loop {
        interval.tick().await;
        recorder.run_upkeep();
        engine.watch().await;
    }
}

async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), RunError> {
    let listening =
        TcpListener::bind(address).await.and_then(|listener| listener.local_addr().map(|own| (listener, own)));
    listening.map_err(|source| RunError::Operator { address, source })
}

async fn start(
    materials: &Materials<'_>,
    store: &Arc<dyn Store>,
    node: NodeId,
) -> Result<(Parts, Engine, AgentLoops), RunError> {
    let mut parts = wiring::parts(materials)?;
    if materials.share_generated(&**store).await? {
        parts = wiring::parts(materials)?;
    }
    let reader = ChildReader::own().inspect_err(|error| warn!(%error, "agents get no texts of documents"));
    let core = rejoinder_core::Parts {
        store: Arc::clone(store),
        clock: Arc::clone(materials.clock),
        node,
        channels: parts.channels.clone(),
        agents: Arc::clone(&materials.runtimes),
        speech: parts.speech.clone(),
        reader: reader.ok().map(|reader| Arc::new(reader) as Arc<dyn TextReader>),
        settings: parts.settings.clone(),
        file_links: parts.file_links.clone(),
        node_name: uname().nodename().to_string_lossy().into_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        configuration: Some(wiring::digest(materials.config)),
    };
    // Before the engine, which runs open turns at once.
    let loops = AgentLoops::start(std::mem::take(&mut parts.loops));
    let engine = Engine::start(core).await.map_err(RunError::Recovery)?;
    Ok((parts, engine, loops))
}

/// Remarks on folders of the gateway that other users can read.
fn check_exposure(data_dir: &Path, database: &StoreLocation) -> Result<Vec<String>, RunError> {
    let mut remarks = Vec::new();
    let beside = database.file().and_then(Path::parent).filter(|folder| *folder != data_dir);
    for folder in std::iter::once(data_dir).chain(beside) {
        if let Some(above) = writable_above(folder) {
            return Err(RunError::ExposedAbove(above));
        }
        match Exposure::of(folder) {
            Exposure::Closed => {}
            Exposure::Readable => {
                remarks.push(format!("{}. Run chmod 700 {}.", readable_folder(folder), folder.display()));
            }
            Exposure::Writable => return Err(RunError::Exposed(folder.to_owned())),
        }
    }
    Ok(remarks)
}

/// The file in the data directory with the local URL of a running gateway's admin interface.
pub(crate) const ADDRESS_FILE: &str = "address";

/// The local URL of the admin interface of the gateway that runs with `data_dir`, as it wrote it down.
pub(crate) fn read_address(data_dir: &Path) -> Option<String> {
    let text = std::fs::read_to_string(data_dir.join(ADDRESS_FILE)).ok()?;
    let url = text.trim();
    url.starts_with("http://").then(|| url.to_owned())
}

/// The URL at which a browser on this machine reaches `address`.
pub(crate) fn url_of(address: SocketAddr) -> String {
    if address.ip().is_unspecified() {
        format!("http://127.0.0.1:{}", address.port())
    } else {
        format!("http://{address}")
    }
}
