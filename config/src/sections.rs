//! The whole configuration and its sections.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use rejoinder_core::{Language, WordsTo};
use secrecy::SecretString;
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    Admin, Agent, Alerts, Approvals, Build, Channels, Commands, Files, Guard, Limits, Log, Metrics, Outbox, Pairing,
    Persons, Queue, Retention, Routing, Schedules, Server, Sessions, Store, StoreUrl, Telemetry, Triggers, Voice,
    check::{Checks, Names, Section},
    environment::ResolveContext,
    key::Key,
    names::{list, nearest, unknown},
    node::{Node, Table, Value},
    problem::{Origin, Problem},
    read::Reader,
};

/// Defines [`Config`] and the struct that it is read into.
macro_rules! sections {
    ($($(#[$attribute:meta])* $name:ident: $section:ty,)*) => {
        /// A complete, checked configuration.
        #[derive(Clone, Debug, Serialize)]
        pub struct Config {
            $($(#[$attribute])* pub $name: $section,)*
            /// The file that it was read from, as it was given or found.
            #[serde(skip)]
            pub file: Option<PathBuf>,
            /// The files that secrets were read from.
            #[serde(skip)]
            pub secret_files: BTreeSet<PathBuf>,
            /// All secrets, without those that are generated. So that nothing that is kept contains them.
            #[serde(skip)]
            pub secrets: Vec<SecretString>,
        }

        const SECTIONS: &[&str] = &[$(stringify!($name)),*];

        /// The sections that could be read.
        struct Sections {
            $($name: Option<$section>,)*
        }

        impl Sections {
            /// `None` if one could not be read.
            fn complete(self, context: &ResolveContext<'_>) -> Option<Config> {
                Some(Config {
                    $($name: self.$name?,)*
                    file: None,
                    secret_files: context.secret_files.take(),
                    secrets: context.secrets.take(),
                })
            }
        }
    };
}

sections! {
    server: Server,
    store: Store,
    admin: Admin,
    metrics: Metrics,
    log: Log,
    telemetry: Telemetry,
    alerts: Alerts,
    channels: Channels,
    people: Persons,
    pairing: Pairing,
    approvals: Approvals,
    /// By name. Never empty.
    agents: BTreeMap<String, Agent>,
    routing: Routing,
    queue: Queue,
    sessions: Sessions,
    limits: Limits,
    files: Files,
    voice: Voice,
    commands: Commands,
    schedules: Schedules,
    triggers: Triggers,
    guard: Guard,
    outbox: Outbox,
    retention: Retention,
}

/// Sections of which each value can be judged alone.
macro_rules! unchecked {
    ($($section:ty),*) => {
        $(impl Section for $section {})*
    };
}

unchecked!(Admin, Log, Metrics, Outbox, Pairing, Queue, Retention, Sessions);

impl Config {
    /// Reads and checks the merged tree.
    pub(crate) fn read(mut tree: Node, context: &ResolveContext<'_>, build: &Build) -> Result<Self, Vec<Problem>> {
        let problems = choose_default_agent(&mut tree).into_iter().collect();
        add_nowhere(&mut tree);
        let names = names(&tree, build);
        let mut reader = Reader { context, names: &names, problems };

        let root = Key::default();
        for (name, node) in tree.table().into_iter().flatten() {
            if !SECTIONS.contains(&&**name) {
                reader.problem(root.name(name), &node.origin, unknown(name, SECTIONS.iter().copied()));
            }
        }
        let (channels_key, agents_key) = (root.name("channels"), root.name("agents"));
        let channels =
            tree.get("channels").map(|node| Channels::read(node, &channels_key, &mut reader, build.platforms));
        let agents = tree.get("agents").map(|node| Agent::read_all(node, &agents_key, &mut reader, build.agents));
        let (channels, agents) = (channels.unwrap_or_default(), agents.unwrap_or_default());
        let guard = section::<Guard>(&tree, "guard", &mut reader);
        if let (Some(guard), Some(node)) = (&guard, tree.get("channels")) {
            let mut checks = Checks::new(&channels_key, node, &names);
            for (id, channel) in channels.iter() {
                let key = channels_key.names(&[id.platform(), id.name()]);
                channel.common.keys.groups.check_with(&id, guard, &key, &mut checks);
            }
            reader.problems.extend(checks.into_problems());
        }
        let people = section_and(&tree, "people", &mut reader, |people: &Persons, checks| {
            people.check_channels(&channels, checks);
        });
        let approvals = section_and(&tree, "approvals", &mut reader, |approvals: &Approvals, checks| {
            if let Some(people) = &people {
                approvals.check_people(people, checks);
            }
        });
        let limits = section_and(&tree, "limits", &mut reader, |limits: &Limits, checks| {
            limits.check_with(&agents, people.iter().flat_map(Persons::own_limits), checks);
        });
        let sections = Sections {
            server: section(&tree, "server", &mut reader),
            store: section_and(&tree, "store", &mut reader, |store: &Store, checks| {
                store.check_with(build.postgres, checks);
            }),
            admin: section(&tree, "admin", &mut reader),
            metrics: section(&tree, "metrics", &mut reader),
            log: section(&tree, "log", &mut reader),
            telemetry: section(&tree, "telemetry", &mut reader),
            alerts: section(&tree, "alerts", &mut reader),
            people,
            pairing: section(&tree, "pairing", &mut reader),
            approvals,
            routing: section_and(&tree, "routing", &mut reader, |routing: &Routing, checks| {
                routing.check_with(&channels, guard.as_ref(), checks);
            }),
            queue: section(&tree, "queue", &mut reader),
            sessions: section(&tree, "sessions", &mut reader),
            limits,
            files: section(&tree, "files", &mut reader),
            voice: section(&tree, "voice", &mut reader),
            commands: section(&tree, "commands", &mut reader),
            schedules: section(&tree, "schedules", &mut reader),
            triggers: section(&tree, "triggers", &mut reader),
            outbox: section(&tree, "outbox", &mut reader),
            retention: section(&tree, "retention", &mut reader),
            channels: Some(channels),
            agents: Some(agents),
            guard,
        };
        let config = if reader.problems.is_empty() { sections.complete(context) } else { None };
        let Some(mut config) = config else { return Err(reader.problems) };
        let mut aside = Reader { context, names: &names, problems: Vec::new() };
        if let Some(built_in) = section(&build.defaults(), "guard", &mut aside) {
            config.guard.know(&names.languages, &built_in);
        }
        if let StoreUrl::Postgres(url) = &config.store.url {
            config.secrets.extend(url.password().map(|password| password.get().clone()));
        }
        Ok(config)
    }
}

/// Reads and checks one section alone. It must contain no references to other sections.
pub(crate) fn read_alone<T: Section + DeserializeOwned>(
    tree: &Node,
    name: &str,
    context: &ResolveContext<'_>,
) -> Result<T, Vec<Problem>> {
    let names = Names::default();
    let mut reader = Reader { context, names: &names, problems: Vec::new() };
    section(tree, name, &mut reader).filter(|_| reader.problems.is_empty()).ok_or(reader.problems)
}

fn section<T: Section + DeserializeOwned>(tree: &Node, name: &str, reader: &mut Reader<'_>) -> Option<T> {
    section_and(tree, name, reader, |_, _| {})
}

/// Reads one section, checks it, and runs the `more` checks.
fn section_and<T: Section + DeserializeOwned>(
    tree: &Node,
    name: &str,
    reader: &mut Reader<'_>,
    more: impl Fn(&T, &mut Checks<'_>),
) -> Option<T> {
    let node = tree.get(name).expect("default.toml has every section");
    reader.read_and(node, &Key::default().name(name), more)
}

fn names(tree: &Node, build: &Build) -> Names {
    let channels = tree.get("channels").and_then(Node::table).into_iter().flatten();
    let default_agent = tree.get("routing").and_then(|routing| routing.get("default_agent"));
    let agent_of = |channel: &Node| channel.get("agent").or(default_agent).and_then(Node::text).map(ToOwned::to_owned);
    let mut names = Names {
        agents: tree.get("agents").and_then(Node::table).into_iter().flat_map(Table::keys).cloned().collect(),
        has_public_url: tree.get("server").is_some_and(|server| server.get("public_url").is_some()),
        platforms: build.platforms.iter().map(|platform| platform.name.to_owned()).collect(),
        channels: channels
            .flat_map(|(platform, node)| node.table().into_iter().flatten().map(move |channel| (platform, channel)))
            .map(|(platform, (name, node))| (format!("{platform}.{name}"), agent_of(node)))
            .collect(),
        languages: BTreeSet::from([Language::ENGLISH]),
        said: BTreeSet::new(),
    };
    let rules = tree.get("routing").and_then(|routing| routing.get("rules"));
    for node in rules.into_iter().chain(tree.get("channels")) {
        add_said(node, &mut names.said);
    }
    names.languages.extend(languages(tree, &names));
    names
}

/// The languages of the tables in `guard.templates`. A name of three letters may be that of a platform, misspelt.
fn languages(tree: &Node, names: &Names) -> Vec<Language> {
    let templates = tree.get("guard").and_then(|guard| guard.get("templates")).and_then(Node::table);
    let tables = templates.into_iter().flatten().filter(|(_, node)| node.table().is_some()).map(|(name, _)| name);
    let known = || names.platforms.iter().chain(names.channels.keys()).map(String::as_str);
    let tables =
        tables.filter(|name| !names.platforms.contains(*name) && (name.len() == 2 || nearest(name, known()).is_none()));
    tables.filter_map(|name| Language::of(name).filter(|language| language.as_str() == name)).collect()
}

/// Adds the templates that the rungs somewhere in `node` say.
fn add_said(node: &Node, said: &mut BTreeSet<String>) {
    match &node.value {
        Value::Table(table) => {
            said.extend(table.get("say").and_then(Node::text).map(str::to_owned));
            for inner in table.values() {
                add_said(inner, said);
            }
        }
        Value::List(list) => list.iter().for_each(|inner| add_said(inner, said)),
        _ => {}
    }
}

/// Adds the channel for `words_to = "nowhere"`, if anything names it.
fn add_nowhere(tree: &mut Node) {
    let Some(origin) = names_nowhere(tree) else { return };
    let empty = || Node::new(Value::Table(Table::new()), origin.clone());
    let mut table = tree.table_mut();
    for name in ["channels", WordsTo::PLATFORM, WordsTo::NOWHERE] {
        table = table.and_then(|table| table.entry(name.to_owned()).or_insert_with(empty).table_mut());
    }
}

/// Where that is said first.
fn names_nowhere(tree: &Node) -> Option<Origin> {
    let hooks = tree.get("channels").and_then(|channels| channels.get("webhook"));
    let of_prompts = [tree.get("schedules"), tree.get("triggers"), hooks].into_iter().flatten();
    let mut named = of_prompts.filter_map(Node::table).flat_map(Table::values).filter_map(|node| node.get("words_to"));
    named.find(|to| to.text() == Some(WordsTo::NOWHERE)).map(|to| to.origin.clone())
}

/// Makes the operator's only agent the default, if none is set. Returns the problem of several agents without a default.
fn choose_default_agent(tree: &mut Node) -> Option<Problem> {
    let key = Key::default().names(&["routing", "default_agent"]);
    let is_chosen = tree
        .get("routing")
        .and_then(|node| node.get("default_agent"))
        .is_none_or(|node| node.origin != Origin::Default);
    let named = || {
        tree.get("agents")
            .and_then(Node::table)
            .into_iter()
            .flatten()
            .filter(|(_, node)| node.origin != Origin::Default)
    };
    let mut named_agents = named();
    let (first, node) = named_agents.next().filter(|_| !is_chosen)?;
    let problem = named_agents.next().map(|_| {
        let choices = list(named().map(|(name, _)| name.as_str()), "or");
        let what = format!("must be set, because there are several agents: {choices}");
        Problem::Key { key, what, origin: node.origin.clone() }
    });
    // Set it in both cases, so that the missing default is not also reported as a wrong one.
    let chosen = Node::new(Value::Text(first.clone()), node.origin.clone());
    if let Some(routing) = tree.table_mut().and_then(|tree| tree.get_mut("routing")).and_then(Node::table_mut) {
        routing.insert("default_agent".to_owned(), chosen);
    }
    problem
}
