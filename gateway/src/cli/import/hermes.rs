//! Hermes Agent.
//!
//! Sources, in the repository NousResearch/hermes-agent: `cli-config.yaml.example`, `.env.example`, `gateway/config.py`,
//! `website/docs/reference/environment-variables.md`, `website/docs/user-guide/messaging/`.

mod channels;
mod jobs;
mod model;
mod settings;

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use serde_json::Value;

use self::settings::Settings;
use super::{
    draft::{Block, Draft},
    notes::{
        AGENT, BOT_ON_DISCORD, BOT_ON_TELEGRAM, FILE_ALONE, Hint, IN_AGENT, MODELS, NO_CHANNEL, NO_COUNTERPART, Notes,
        ON_MATRIX, OTHER_CHANNEL, SCHEDULES,
    },
    shared::{Imported, Surroundings, sessions},
    source,
    table::Table,
};
use crate::console::failure::Failure;

const HINTS: &[Hint] = &[
    ("_config_version", FILE_ALONE, "nothing"),
    (".env", "is not used by Rejoinder", "give it to the agent that you connect, if it needs it"),
    (".env[DISCORD_ALLOWED_ROLES]", "lets in people by their role on a server", "name the people: docs/people.md"),
    ("agent", AGENT, IN_AGENT),
    ("auxiliary", AGENT, IN_AGENT),
    ("compression", AGENT, IN_AGENT),
    ("custom_providers", AGENT, MODELS),
    ("delegation", AGENT, IN_AGENT),
    ("display", AGENT, IN_AGENT),
    ("memory", AGENT, IN_AGENT),
    ("model", AGENT, IN_AGENT),
    ("providers", AGENT, MODELS),
    ("skills", AGENT, IN_AGENT),
    ("terminal", AGENT, IN_AGENT),
    ("toolsets", AGENT, IN_AGENT),
    ("cron", NO_COUNTERPART, SCHEDULES),
    ("group_sessions_per_user", "has no counterpart: a group has one conversation", "docs/sessions.md"),
    ("platforms", NO_CHANNEL, OTHER_CHANNEL),
    ("platforms.telegram", NO_COUNTERPART, BOT_ON_TELEGRAM),
    ("platforms.discord", NO_COUNTERPART, BOT_ON_DISCORD),
    ("platforms.matrix", NO_COUNTERPART, ON_MATRIX),
    ("telegram", NO_COUNTERPART, BOT_ON_TELEGRAM),
    ("discord", NO_COUNTERPART, BOT_ON_DISCORD),
    ("matrix", NO_COUNTERPART, ON_MATRIX),
    ("slack", NO_CHANNEL, OTHER_CHANNEL),
    ("whatsapp", NO_CHANNEL, OTHER_CHANNEL),
    ("streaming", "is set for each channel here", "streaming in [channels.PLATFORM.NAME]"),
];

/// The configuration in the home directory, if there is one. It may be missing beside `.env`.
pub(super) fn find(home: &Path) -> Option<PathBuf> {
    let folder = home.join(".hermes");
    let is_there = ["config.yaml", ".env"].iter().any(|file| folder.join(file).is_file());
    is_there.then(|| in_folder(&folder))
}

/// The file in a folder that was named.
pub(super) fn in_folder(folder: &Path) -> PathBuf {
    folder.join("config.yaml")
}

/// Reads the configuration in `file`, and the variables and jobs beside it.
///
/// # Errors
/// When one of the files cannot be read, or there is neither a configuration nor variables.
pub(super) fn read(file: &Path, surroundings: &Surroundings) -> Result<Imported, Failure> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let variables = source::dotenv(&folder.join(".env"))?;
    let mut notes = Notes::new(HINTS);
    let root = match source::yaml(file)? {
        Some(mut root) => {
            notes.with_secrets(&variables.substitute(&mut root));
            root
        }
        None if variables.names().next().is_some() => Value::Object(serde_json::Map::new()),
        None => return Err(anyhow!("there is no {}", file.display()).into()),
    };
    let Value::Object(root) = root else { return Err(anyhow!("{}: the file is not a table", file.display()).into()) };
    let mut root = Table::new("", root);
    let settings = Settings::new(&variables, surroundings);

    let mut draft = Draft::default();
    draft.blocks.extend(model::read(&mut root, &settings, &mut notes));
    let homes = channels::read(&mut root, &settings, &mut draft, &mut notes);
    let zone = root.text("timezone").or_else(|| settings.variable("HERMES_TIMEZONE"));
    if let Some(zone) = &zone {
        let mut routing = Block::new(&["routing"]);
        routing.set("time_zone", zone.as_str());
        draft.blocks.push(routing);
    }
    draft.blocks.extend(root.enter("session_reset").and_then(|reset| {
        let (mode, hour, minutes) = (reset.text("mode")?, reset.number("at_hour"), reset.number("idle_minutes"));
        sessions(&mode, hour, minutes)
    }));
    jobs::read(folder, &homes, zone.as_deref(), surroundings.now, &mut draft, &mut notes)?;
    root.note_rest(&mut notes);
    settings.note_rest(&mut notes);
    Ok(Imported { draft, notes })
}
