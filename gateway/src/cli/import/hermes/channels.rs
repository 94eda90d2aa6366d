//! Channels: accounts, who may write, and groups.
//!
//! Sources, in the repository NousResearch/hermes-agent: `website/docs/user-guide/messaging/{telegram,discord,matrix}.md`,
//! `website/docs/reference/environment-variables.md` ("Messaging"), `gateway/authz_mixin.py`.

use std::collections::{BTreeMap, BTreeSet};

use super::settings::{PlatformSettings, Settings};
use crate::{
    cli::import::{
        access::{Access, Direct, Group, Senders},
        draft::{Block, Draft},
        notes::Notes,
        shared::{self, flag, words},
        table::Table,
    },
    platforms,
};

/// The chats of `deliver = "telegram"` and the like, by platform, as `chat` or `chat:thread`.
pub(super) type Homes = BTreeMap<&'static str, String>;

/// Adds a section for each platform that has an account.
pub(super) fn read(root: &mut Table, settings: &Settings<'_>, draft: &mut Draft, notes: &mut Notes) -> Homes {
    let mut homes = Homes::new();
    let gateway_wide = GatewayWide::read(root, settings);
    for (name, groups) in [("telegram", "chats"), ("discord", "channels"), ("matrix", "rooms")] {
        let mut platform = PlatformSettings { name, root, settings };
        let mut block = Block::new(&["channels", name, "main"]);
        if !account(&mut platform, &mut block, notes) {
            continue;
        }
        if platform.find(|table| table.flag("enabled")) == Some(false) {
            block.turn_off("the account is switched off there");
        }
        homes.extend(home(&mut platform).map(|home| (name, home)));
        let access = access(&mut platform, &gateway_wide, groups, notes);
        if let Some(format) = platforms::id_format(name) {
            access.write(format, &mut block, notes);
        }
        draft.blocks.push(block);
    }
    homes
}

/// What holds on all platforms.
struct GatewayWide {
    people: Vec<String>,
    is_open: bool,
    /// `pair` or `ignore`.
    strangers: Option<String>,
}

impl GatewayWide {
    fn read(root: &mut Table, settings: &Settings<'_>) -> Self {
        let people = settings.variable("GATEWAY_ALLOWED_USERS").map(|text| words(&text)).unwrap_or_default();
        let is_open = settings.variable("GATEWAY_ALLOW_ALL_USERS").and_then(|text| flag(&text)) == Some(true);
        let strangers = root.text("unauthorized_dm_behavior");
        let strangers = strangers.or_else(|| root.enter("gateway")?.text("unauthorized_dm_behavior"));
        Self { people, is_open, strangers }
    }
}

/// Writes the account; `false` if there is none.
fn account(platform: &mut PlatformSettings<'_, '_>, block: &mut Block, notes: &mut Notes) -> bool {
    if platform.name == "matrix" {
        return matrix_account(platform, block);
    }
    let Some(token) = platform.secret("BOT_TOKEN", "token", "token") else {
        if platform.find(|table| table.has("token").then_some(())).is_some() {
            notes.add(&format!("platforms.{}.token", platform.name), "is not a text", "name the token in our file");
        }
        return false;
    };
    block.set_secret("token", token);
    if platform.name == "discord" {
        // On by default there, off here.
        block.set("auto_thread", platform.flag("AUTO_THREAD", "auto_thread").unwrap_or(true));
    }
    true
}

fn matrix_account(platform: &mut PlatformSettings<'_, '_>, block: &mut Block) -> bool {
    let (homeserver, user) = (platform.text("HOMESERVER", "homeserver"), platform.text("USER_ID", "user_id"));
    let password = platform.secret("PASSWORD", "password", "password");
    let token = platform.secret("ACCESS_TOKEN", "token", "access-token");
    if homeserver.is_none() && password.is_none() && token.is_none() {
        return false;
    }
    shared::matrix_account(block, (homeserver, user), (password, token));
    if let Some(key) = platform.secret("RECOVERY_KEY", "recovery_key", "recovery-key") {
        block.set_secret("recovery_key", key);
    }
    true
}

/// The chat for the answers of jobs.
fn home(platform: &mut PlatformSettings<'_, '_>) -> Option<String> {
    let suffix = if platform.name == "matrix" { "HOME_ROOM" } else { "HOME_CHANNEL" };
    let written = platform.find(|table| {
        let home = table.enter("home_channel")?;
        home.take("platform");
        home.take("name");
        Some((home.text("chat_id")?, home.text("thread_id")))
    });
    let settings = platform.settings;
    let of_jobs = settings.variable(&platform.variable_name("CRON_THREAD_ID"));
    let thread = of_jobs.or_else(|| settings.variable(&platform.variable_name("HOME_CHANNEL_THREAD_ID")));
    settings.variable(&platform.variable_name("HOME_CHANNEL_NAME"));
    let (chat, written_thread) = match settings.variable(&platform.variable_name(suffix)) {
        Some(chat) => (chat, None),
        None => written?,
    };
    Some(match thread.or(written_thread) {
        Some(thread) if platform.name != "matrix" => format!("{chat}:{thread}"),
        _ => chat,
    })
}

/// `groups` is what the platform's keys call groups: chats, channels or rooms.
fn access(
    platform: &mut PlatformSettings<'_, '_>,
    gateway_wide: &GatewayWide,
    groups: &str,
    notes: &mut Notes,
) -> Access {
    let mut people = platform.list("ALLOWED_USERS", "allowed_users").unwrap_or_default();
    people.extend(platform.find(|table| table.list("allow_from")).unwrap_or_default());
    people.extend_from_slice(&gateway_wide.people);
    let direct = direct(platform, gateway_wide, people.is_empty(), notes);
    if direct == Direct::Open {
        people = vec!["*".to_owned()];
    }
    let in_groups = platform.list("GROUP_ALLOWED_USERS", "group_allow_from");
    // Older configurations name chats among the people.
    let (chats, in_groups): (Vec<_>, Vec<_>) =
        in_groups.unwrap_or_default().into_iter().partition(|id| platform.name == "telegram" && id.starts_with('-'));
    let senders = match (direct, in_groups.is_empty()) {
        (Direct::Open, _) => Senders::Everyone,
        (_, true) => Senders::AsElsewhere,
        (_, false) => Senders::Only(people.iter().cloned().chain(in_groups).collect()),
    };
    let (groups, other_groups) = self::groups(platform, groups, chats);
    Access {
        key: platform.variable_name("ALLOWED_USERS"),
        direct,
        people,
        groups_enabled: true,
        other_groups,
        needs_mention: platform.flag("REQUIRE_MENTION", "require_mention").unwrap_or(true),
        senders,
        groups,
    }
}

fn direct(
    platform: &mut PlatformSettings<'_, '_>,
    gateway_wide: &GatewayWide,
    has_no_list: bool,
    notes: &mut Notes,
) -> Direct {
    let is_open = platform.flag("ALLOW_ALL_USERS", "allow_all_users").unwrap_or(gateway_wide.is_open);
    let strangers = platform.find(|table| table.text("unauthorized_dm_behavior"));
    let strangers = strangers.or_else(|| gateway_wide.strangers.clone());
    match platform.find(|table| table.text("dm_policy")).as_deref().map(Direct::of) {
        Some(Some(policy)) => policy,
        Some(None) => {
            let key = format!("{}.dm_policy", platform.name);
            notes.add(&key, "is not known", "direct chats are switched off: set dm_policy");
            Direct::Disabled
        }
        None if is_open => Direct::Open,
        None => match strangers.as_deref() {
            Some("pair") => Direct::Pairing,
            // With a list, others are ignored; without one they are given a code.
            None if has_no_list => Direct::Pairing,
            _ => Direct::Allowlist,
        },
    }
}

/// The groups that differ, and whether others reach the agent as well. Everybody may write in `open`.
fn groups(platform: &mut PlatformSettings<'_, '_>, name: &str, open: Vec<String>) -> (Vec<Group>, bool) {
    let mut list = |kind: &str| {
        let (suffix, key) = (format!("{kind}_{name}").to_ascii_uppercase(), format!("{kind}_{name}"));
        platform.list(&suffix, &key).filter(|ids| !ids.is_empty())
    };
    let open: Vec<_> = open.into_iter().chain(list("group_allowed").unwrap_or_default()).collect();
    let (allowed, free, ignored) = (list("allowed"), list("free_response"), list("ignored").unwrap_or_default());
    let free = free.unwrap_or_default();
    let ids: BTreeSet<_> = open.iter().chain(allowed.iter().flatten()).chain(&free).chain(&ignored).collect();
    let group = |id: &String| Group {
        id: id.clone(),
        key: format!("{}.{name}[{id}]", platform.name),
        is_enabled: allowed.as_ref().is_none_or(|allowed| allowed.contains(id)) && !ignored.contains(id),
        needs_mention: free.contains(id).then_some(false),
        senders: if open.contains(id) { Senders::Everyone } else { Senders::AsElsewhere },
    };
    (ids.into_iter().map(group).collect(), allowed.is_none())
}
