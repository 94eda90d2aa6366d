//! Channels: accounts, who may write, and groups.
//!
//! Sources, in the repository openclaw/openclaw: `src/config/types.telegram.ts`, `src/config/types.discord.ts`,
//! `extensions/matrix/src/types.ts`.

use serde_json::{Map, Value};

use super::secrets::Secrets;
use crate::{
    cli::import::{
        access::{Access, Direct, Group, Senders},
        draft::{Block, Draft, Names, account_name},
        notes::Notes,
        shared::matrix_account,
        table::Table,
    },
    console::secret::SecretLocation,
    platforms,
};

/// The keys that an account does not inherit: the bot is one account alone.
const OWN_KEYS: &[&str] =
    &["accounts", "defaultAccount", "name", "botToken", "tokenFile", "token", "accessToken", "password", "userId"];

/// Adds a section for each account.
pub(super) fn read(root: &mut Table, secrets: &Secrets<'_>, draft: &mut Draft, notes: &mut Notes) {
    let Some(channels) = root.enter("channels") else { return };
    let default_policy = channels.enter("defaults").and_then(|defaults| defaults.text("groupPolicy"));
    for platform in ["telegram", "discord", "matrix"] {
        let mut names = Names::default();
        for (id, mut table) in accounts(channels, platform) {
            // The secret of each is in a file of its name.
            let name = names.unused(&account_name(&id), "main");
            draft.name_account(platform, &id, &name);
            let mut block = Block::new(&["channels", platform, &name]);
            let mut account = Account { platform, name: &name, table: &mut table, secrets, notes };
            let access = match platform {
                "telegram" => account.telegram(&mut block),
                "discord" => account.discord(&mut block),
                _ => account.matrix(&mut block),
            };
            let access = access.with(default_policy.as_deref(), &mut account);
            if let Some(format) = platforms::id_format(platform) {
                access.write(format, &mut block, notes);
            }
            table.note_rest(notes);
            draft.blocks.push(block);
        }
    }
}

/// The accounts of a platform, the default one first: the id of each, and what holds for it.
fn accounts(channels: &mut Table, platform: &str) -> Vec<(String, Table)> {
    let path = channels.path(platform);
    let Some(Value::Object(mut base)) = channels.rest().get(platform).cloned().filter(Value::is_object) else {
        return Vec::new();
    };
    channels.take(platform);
    let Some(Value::Object(accounts)) =
        base.remove("accounts").filter(|accounts| accounts.as_object().is_some_and(|it| !it.is_empty()))
    else {
        return vec![("default".to_owned(), Table::new(&path, base))];
    };
    let shared: Map<_, _> = base.clone().into_iter().filter(|(name, _)| !OWN_KEYS.contains(&name.as_str())).collect();
    let mut all = Vec::new();
    let has_own =
        ["botToken", "tokenFile", "token", "accessToken", "password"].iter().any(|name| base.contains_key(*name));
    if has_own && !accounts.contains_key("default") {
        all.push(("default".to_owned(), Table::new(&path, base.clone())));
    }
    let (default, others): (Vec<_>, Vec<_>) = accounts.into_iter().partition(|(id, _)| id == "default");
    for (id, own) in default.into_iter().chain(others) {
        // The default account has the platform's own keys as well.
        let mut table = if id == "default" { base.clone() } else { shared.clone() };
        if let Value::Object(own) = own {
            table.extend(own);
        }
        let table = Table::new(&format!("{path}.accounts.{id}"), table);
        all.push((id, table));
    }
    all
}

struct Account<'a> {
    platform: &'static str,
    name: &'a str,
    table: &'a mut Table,
    secrets: &'a Secrets<'a>,
    notes: &'a mut Notes,
}

/// Group rules before the default is known.
struct Found {
    access: Access,
    policy: Option<String>,
}

impl Found {
    fn with(self, default: Option<&str>, account: &mut Account<'_>) -> Access {
        let Self { mut access, policy } = self;
        match policy.as_deref().or(default).unwrap_or("allowlist") {
            "open" => {
                access.senders = Senders::Everyone;
                access.other_groups |= account.platform != "telegram" || access.groups.is_empty();
            }
            "allowlist" => {}
            other => {
                if other != "disabled" {
                    account.notes.add(
                        &access.key,
                        format!("has an unknown groupPolicy `{other}`"),
                        "groups are switched off: set group_policy",
                    );
                }
                access.groups_enabled = false;
            }
        }
        access
    }
}

impl Account<'_> {
    fn telegram(&mut self, block: &mut Block) -> Found {
        self.common(block);
        let token = match self.table.text("tokenFile") {
            Some(path) => Some(Ok(SecretLocation::File(self.secrets.path(&path)))),
            None => self.secret("botToken", "token"),
        };
        self.set_token(block, token, "TELEGRAM_BOT_TOKEN");
        if let Some(previews) = self.table.flag("linkPreview") {
            block.set("link_previews", previews);
        }
        let mut access = self.access();
        let mut groups = self.table.enter("groups");
        let listed = groups.as_mut().map(|groups| groups.names());
        let anywhere = groups.as_mut().and_then(|groups| groups.enter("*")).map(|group| group.flag("requireMention"));
        access.needs_mention = anywhere.flatten().unwrap_or(true);
        access.other_groups = listed.as_ref().is_none_or(|ids| ids.is_empty() || ids.iter().any(|id| id == "*"));
        for id in listed.unwrap_or_default().into_iter().filter(|id| id != "*") {
            let Some(groups) = self.table.enter("groups") else { break };
            let key = groups.path(&id);
            let Some(group) = groups.enter(&id) else { continue };
            let people =
                group.list("allowFrom").map(|people| people.iter().map(|it| plain_id("telegram", it)).collect());
            let policy = group.text("groupPolicy");
            let senders = match (people, policy.as_deref()) {
                (_, Some("open")) => Senders::Everyone,
                (Some(people), _) => Senders::Only(people),
                (None, _) => Senders::AsElsewhere,
            };
            let is_enabled = group.flag("enabled") != Some(false) && policy.as_deref() != Some("disabled");
            access.groups.push(Group { id, key, is_enabled, needs_mention: group.flag("requireMention"), senders });
        }
        let policy = self.table.text("groupPolicy");
        Found { access, policy }
    }

    fn discord(&mut self, block: &mut Block) -> Found {
        self.common(block);
        let token = self.secret("token", "token");
        self.set_token(block, token, "DISCORD_BOT_TOKEN");
        let mut access = self.access();
        let servers = self.table.enter("guilds").map(|servers| servers.names()).unwrap_or_default();
        let mut mentions = Vec::new();
        for server in servers {
            let Some(table) = self.table.enter("guilds").and_then(|servers| servers.enter(&server)) else { continue };
            table.take("slug");
            let needs_mention = table.flag("requireMention");
            mentions.push(needs_mention);
            let people = senders(table, "users");
            let Some(channels) = table.enter("channels") else {
                self.notes.add(
                    &table.path("channels"),
                    "is missing, so that all channels of the server are meant",
                    "list them by id as [channels.discord.NAME.groups.\"ID\"]",
                );
                continue;
            };
            for id in channels.names() {
                let key = channels.path(&id);
                let Some(channel) = channels.enter(&id) else { continue };
                let is_enabled = channel.flag("allow").or(channel.flag("enabled")) != Some(false);
                let needs_mention = channel.flag("requireMention").or(needs_mention);
                let senders = senders(channel, "users").or_else(|| people.clone()).unwrap_or(Senders::Everyone);
                access.groups.push(Group { id, key, is_enabled, needs_mention, senders });
            }
        }
        access.needs_mention = mentions.first() != Some(&Some(false)) || mentions.len() > 1;
        let policy = self.table.text("groupPolicy");
        Found { access, policy }
    }

    fn matrix(&mut self, block: &mut Block) -> Found {
        self.common(block);
        let (homeserver, user) = (self.table.text("homeserver"), self.table.text("userId"));
        // Rejoinder needs a device of its own, which the password makes.
        let password = self.secret("password", "password").and_then(Result::ok);
        let token = self.secret("accessToken", "access-token").and_then(Result::ok);
        matrix_account(block, (homeserver, user), (password, token));
        if let Some(name) = self.table.text("deviceName") {
            block.set("device_name", name);
        }
        match self.table.text("autoJoin").as_deref() {
            Some("always") => block.set("auto_join", "always"),
            Some("off") => block.set("auto_join", "never"),
            _ => {}
        }
        // Encrypted rooms are always read here.
        self.table.take("encryption");
        let mut access = self.access();
        for name in ["groups", "rooms"] {
            let Some(rooms) = self.table.enter(name) else { continue };
            for id in rooms.names() {
                let key = rooms.path(&id);
                let Some(room) = rooms.enter(&id) else { continue };
                let is_enabled = room.flag("enabled").or(room.flag("allow")) != Some(false);
                let needs_mention = room.flag("requireMention").or(room.flag("autoReply").map(|it| !it));
                if id == "*" {
                    access.needs_mention = needs_mention.unwrap_or(true);
                    access.other_groups = is_enabled;
                    continue;
                }
                let everyone =
                    if access.senders == Senders::AsElsewhere { Senders::Everyone } else { Senders::AsElsewhere };
                let senders = senders(room, "users").unwrap_or(everyone);
                access.groups.push(Group { id, key, is_enabled, needs_mention, senders });
            }
        }
        let policy = self.table.text("groupPolicy");
        Found { access, policy }
    }

    /// What all accounts have.
    fn common(&mut self, block: &mut Block) {
        if let Some(name) = self.table.text("name") {
            block.remark(format!("{name}."));
        }
        if self.table.flag("enabled") == Some(false) {
            block.turn_off("the account is switched off there");
        }
        let is_off = |value: &Value| matches!(value, Value::Bool(false)) || value.as_str() == Some("off");
        for name in ["streaming", "streamMode"] {
            if self.table.rest().get(name).is_some_and(|value| is_off(value) || value.is_boolean() || value.is_string())
            {
                let value = self.table.take(name);
                if value.as_ref().is_some_and(is_off) {
                    block.set("streaming", "off");
                }
            }
        }
        if let Some(mode) = self.table.text("reactionNotifications").filter(|mode| mode != "off") {
            block.set("tell_reactions", matches!(&*mode, "own" | "all"));
        }
    }

    fn secret(&mut self, name: &str, file: &str) -> Option<Result<SecretLocation, String>> {
        let value = self.table.take(name)?;
        let file = format!("{}-{}-{file}", self.platform, self.name);
        Some(self.secrets.locate(value, &file).map_err(|why| {
            self.notes.add(
                &self.table.path(name),
                why.clone(),
                "put it into a file or a variable, and name it in our file",
            );
            format!("the token there {why}")
        }))
    }

    fn set_token(&self, block: &mut Block, token: Option<Result<SecretLocation, String>>, variable: &str) {
        let file = || self.secrets.data_dir.join(format!("{}-{}-token", self.platform, self.name));
        match token {
            Some(Ok(token)) => block.set_secret("token", token),
            // OpenClaw reads the variable for the default account alone.
            None if self.name == "main" => block.set_secret("token", self.secrets.variables.locate(variable, file())),
            None => {
                block.leave_open("token", "{ env = \"BOT_TOKEN\" }");
                block.turn_off("there is no token");
            }
            Some(Err(why)) => {
                block.leave_open("token", "{ env = \"BOT_TOKEN\" }");
                block.turn_off(why);
            }
        }
    }

    /// Who may write, without groups. On Discord and Matrix it stands in `dm` as well.
    fn access(&mut self) -> Access {
        let platform = self.platform;
        let mut direct = self.table.text("dmPolicy");
        let mut people = self.table.list("allowFrom");
        if let Some(dm) = self.table.enter("dm") {
            direct = direct.or(dm.text("policy"));
            people = people.or(dm.list("allowFrom"));
            if dm.flag("enabled") == Some(false) {
                direct = Some("disabled".to_owned());
            }
        }
        let ids = |people: Vec<String>| people.iter().map(|it| plain_id(platform, it)).collect::<Vec<_>>();
        let senders = self.table.list("groupAllowFrom").map(ids).filter(|senders| !senders.is_empty());
        let key = self.table.path("allowFrom");
        let direct = match direct.as_deref() {
            None => Direct::Pairing,
            Some(text) => Direct::of(text).unwrap_or_else(|| {
                self.notes.add(
                    &key,
                    format!("has an unknown dmPolicy `{text}`"),
                    "direct chats are switched off: set dm_policy",
                );
                Direct::Disabled
            }),
        };
        Access {
            key,
            direct,
            people: people.map(ids).unwrap_or_default(),
            groups_enabled: true,
            other_groups: false,
            needs_mention: true,
            senders: senders.map_or(Senders::AsElsewhere, Senders::Only),
            groups: Vec::new(),
        }
    }
}

/// The list of a group, if it has one. Roles cannot be told apart here: alone they let nobody in.
fn senders(table: &mut Table, name: &str) -> Option<Senders> {
    let platform = if name == "users" && table.has("roles") { Some(Vec::new()) } else { None };
    let people = table.list(name).or(platform)?;
    Some(Senders::Only(people.iter().map(|it| it.trim_start_matches("user:").to_owned()).collect()))
}

/// An id without the platform before it.
fn plain_id(platform: &str, id: &str) -> String {
    let prefixes = [platform, "tg", "user"];
    let rest = id.split_once(':').filter(|(prefix, _)| prefixes.contains(prefix)).map(|(_, rest)| rest);
    rest.unwrap_or(id).trim().to_owned()
}
