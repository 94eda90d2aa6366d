//! OpenClaw, formerly Clawdbot and Moltbot.
//!
//! Sources, in the repository openclaw/openclaw: `src/config/paths.ts` (where the files are), `src/config/types.*.ts` (their
//! shapes), `docs/gateway/configuration.md` and `docs/gateway/configuration-examples.md`.

mod agents;
mod channels;
mod database;
mod includes;
mod jobs;
mod secrets;

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use serde_json::Value;

use self::{agents::Agents, includes::Includes, secrets::Secrets};
use super::{
    draft::{Block, Draft},
    notes::{
        AGENT, BOT_ON_DISCORD, BOT_ON_TELEGRAM, FILE_ALONE, Hint, IN_AGENT, MODELS, NO_CHANNEL, NO_COUNTERPART, Notes,
        ON_MATRIX, OTHER_CHANNEL, SCHEDULES,
    },
    shared::{Imported, Surroundings, queue, sessions},
    source,
    table::{Table, as_table},
    variables::Variables,
};
use crate::console::failure::Failure;

/// The names of the folder in the home directory, the newest first.
const FOLDERS: &[&str] = &[".openclaw", ".clawdbot", ".moldbot", ".moltbot"];

const FILES: &[&str] = &["openclaw.json", "clawdbot.json", "moldbot.json", "moltbot.json"];

const HINTS: &[Hint] = &[
    ("$schema", FILE_ALONE, "nothing"),
    ("meta", FILE_ALONE, "nothing"),
    ("wizard", FILE_ALONE, "nothing"),
    ("channels", NO_CHANNEL, OTHER_CHANNEL),
    ("channels.defaults", "is set for each channel here", "[channels.PLATFORM.NAME]"),
    ("channels.telegram", NO_COUNTERPART, BOT_ON_TELEGRAM),
    ("channels.discord", NO_COUNTERPART, BOT_ON_DISCORD),
    ("channels.matrix", NO_COUNTERPART, ON_MATRIX),
    ("agents", AGENT, IN_AGENT),
    ("agent", AGENT, IN_AGENT),
    ("models", AGENT, MODELS),
    ("auth", "is a login of the agent", "give [agents.NAME] an api_key, or connect an agent that logs in by itself"),
    ("tools", AGENT, IN_AGENT),
    ("skills", AGENT, IN_AGENT),
    ("plugins", "is code of OpenClaw", "an agent or an adapter of your own: docs/write-an-agent.md"),
    ("memory", AGENT, IN_AGENT),
    ("browser", AGENT, IN_AGENT),
    ("hooks", "has other rules here", "a [channels.webhook.NAME] for each: docs/webhooks.md"),
    (
        "gateway",
        "is about OpenClaw's own server",
        "[server], and `rejoinder tokens create` for access: docs/service.md",
    ),
    ("logging", "is about OpenClaw's own log", "[log]"),
    ("session", NO_COUNTERPART, "[sessions]: docs/sessions.md"),
    ("messages.queue", NO_COUNTERPART, "[queue]: docs/queues.md"),
    ("messages", NO_COUNTERPART, "[guard.templates] for what the gateway itself says: docs/configuration.md"),
    ("commands.ownerAllowFrom", "is said of people here", "[people.NAME] with role = \"owner\": docs/people.md"),
    ("commands", "has other rules here", "docs/chat-commands.md"),
    ("approvals", "has other rules here", "[approvals]: docs/approvals.md"),
    ("cron", NO_COUNTERPART, SCHEDULES),
    ("bindings", NO_COUNTERPART, "[[routing.rules]]: docs/routing.md"),
    ("diagnostics", NO_COUNTERPART, "[telemetry] and docs/metrics.md"),
];

/// The configuration in the home directory, if there is one.
pub(super) fn find(home: &Path) -> Option<PathBuf> {
    let files = FOLDERS.iter().flat_map(|folder| FILES.iter().map(move |file| home.join(folder).join(file)));
    files.into_iter().find(|file| file.is_file())
}

/// Where to look in a folder that was named.
pub(super) fn in_folder(folder: &Path) -> PathBuf {
    let files = || FILES.iter().map(|file| folder.join(file));
    files().find(|file| file.is_file()).unwrap_or_else(|| folder.join(FILES[0]))
}

/// Reads the configuration in `file`, and the jobs beside it.
///
/// # Errors
/// When one of the files cannot be read.
pub(super) fn read(file: &Path, surroundings: &Surroundings) -> Result<Imported, Failure> {
    let value = Includes::read(file)?.ok_or_else(|| anyhow!("there is no {}", file.display()))?;
    let Value::Object(root) = value else { return Err(anyhow!("{}: the file is not a table", file.display()).into()) };
    let folder = file.parent().unwrap_or(Path::new(""));
    let mut variables = source::dotenv(&folder.join(".env"))?;
    let mut root = Value::Object(root);
    variables.add(inline_variables(&mut root));
    let with_secrets = variables.substitute(&mut root);
    let mut root = Table::new("", as_table(root));
    let providers =
        root.enter("secrets").and_then(|secrets| secrets.take("providers")).map(as_table).unwrap_or_default();
    let secrets = Secrets {
        variables: &variables,
        providers: &providers,
        folder,
        home: &surroundings.home,
        data_dir: &surroundings.data_dir,
    };

    let (mut draft, mut notes) = (Draft::default(), Notes::new(HINTS));
    notes.with_secrets(&with_secrets);
    let agents = Agents::read(&mut root, &secrets, &mut draft, &mut notes);
    channels::read(&mut root, &secrets, &mut draft, &mut notes);
    agents.bind(&mut root, &mut draft, &mut notes);
    settings(&mut root, &agents, &mut draft);
    jobs::read(&mut root, &secrets, surroundings.now, &mut draft, &mut notes)?;
    root.note_rest(&mut notes);
    Ok(Imported { draft, notes })
}

/// The variables that the configuration itself sets: `env.NAME` and `env.vars.NAME`.
fn inline_variables(root: &mut Value) -> Variables {
    let mut variables = Variables::default();
    let Some(Value::Object(env)) = root.get_mut("env") else { return variables };
    let inner = env.remove("vars").map(as_table).unwrap_or_default();
    let outer: Vec<_> = env.iter().filter(|(_, value)| value.is_string()).map(|(name, _)| name.clone()).collect();
    let outer = outer.into_iter().filter_map(|name| env.remove_entry(&name)).collect::<Vec<_>>();
    for (name, value) in inner.into_iter().chain(outer) {
        if let Value::String(value) = value {
            variables.set(&name, value);
        }
    }
    if env.is_empty()
        && let Value::Object(root) = root
    {
        root.remove("env");
    }
    variables
}

/// What holds for all channels: the agent, the time zone, sessions and the queue.
fn settings(root: &mut Table, agents: &Agents, draft: &mut Draft) {
    let mut routing = Block::new(&["routing"]);
    if let Some(default) = agents.default_agent(draft) {
        routing.set("default_agent", default);
    }
    let defaults = root.enter("agents").and_then(|agents| agents.enter("defaults"));
    if let Some(zone) = defaults.and_then(|defaults| defaults.text("userTimezone")) {
        routing.set("time_zone", zone);
    }
    draft.blocks.extend(Some(routing).filter(|block| !block.is_empty()));
    draft.blocks.extend(root.enter("session").and_then(|session| session.enter("reset")).and_then(|reset| {
        let (mode, hour, minutes) = (reset.text("mode")?, reset.number("atHour"), reset.number("idleMinutes"));
        sessions(&mode, hour, minutes)
    }));
    let mode =
        ["messages", "routing"].into_iter().find_map(|section| root.enter(section)?.enter("queue")?.text("mode"));
    draft.blocks.extend(mode.and_then(|mode| queue(&mode)));
}
