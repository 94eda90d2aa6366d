//! Scheduled jobs: when, for whom, and what the agent is asked.

use jiff::{Timestamp, civil, tz::TimeZone};

use super::{
    draft::{Block, Draft, Names},
    notes::Notes,
};

/// When a job runs.
pub(super) enum When {
    At(Timestamp),
    /// In seconds.
    Every(u64),
    Cron(String),
}

/// A job of another gateway.
pub(super) struct Job {
    /// Where it stands there.
    pub(super) key: String,
    pub(super) name: String,
    /// `Err`: why that is not known.
    pub(super) when: Result<When, String>,
    pub(super) time_zone: Option<String>,
    /// The conversation, or why there is none.
    pub(super) to: Result<String, String>,
    /// Whether the agent's words go nowhere.
    pub(super) is_mute: bool,
    pub(super) prompt: Option<String>,
    /// Why it is not to run, if so.
    pub(super) off: Option<String>,
}

impl Job {
    /// Its section. `now` says whether its only time has passed.
    pub(super) fn block(self, names: &mut Names, now: Timestamp, notes: &mut Notes) -> Block {
        let mut block = Block::new(&["schedules", &names.unused(&self.name, "job")]);
        let mut open = self.off;
        match &self.when {
            Ok(When::At(at)) => {
                block.set("at", at.to_string());
                if *at <= now {
                    open.get_or_insert_with(|| "its time has passed".to_owned());
                }
            }
            Ok(When::Every(seconds)) => block.set("every", duration(*seconds)),
            Ok(When::Cron(cron)) => block.set("cron", cron.as_str()),
            Err(_) => block.leave_open("cron", "\"0 8 * * *\""),
        }
        if let Some(time_zone) = self.time_zone.filter(|_| matches!(self.when, Ok(When::Cron(_)))) {
            block.set("time_zone", time_zone);
        }
        match &self.to {
            Ok(to) => block.set("to", to.as_str()),
            Err(_) => block.leave_open("to", "\"telegram.main/42\""),
        }
        match &self.prompt {
            Some(prompt) => block.set("prompt", prompt.as_str()),
            None => block.leave_open("prompt", "\"Say in three sentences what is on today.\""),
        }
        if self.is_mute {
            block.set("words_to", "nowhere");
        }
        let no_prompt = || self.prompt.is_none().then(|| "it has no prompt".to_owned());
        if let Some(why) = open.or(self.when.err()).or(self.to.err()).or_else(no_prompt) {
            notes.add(&self.key, format!("does not run: {why}"), format!("complete [{}] in the file", block.name()));
            block.turn_off(why);
        }
        block
    }
}

/// A time in ISO 8601; in `zone` if it names none.
pub(super) fn time(text: &str, zone: &TimeZone) -> Option<Timestamp> {
    let local = || text.parse::<civil::DateTime>().ok()?.to_zoned(zone.clone()).ok();
    text.parse().ok().or_else(|| Some(local()?.timestamp()))
}

/// In the largest unit that leaves no rest.
fn duration(seconds: u64) -> String {
    let units = [(86_400, "d"), (3600, "h"), (60, "m")];
    let whole = units.into_iter().find(|(unit, _)| seconds > 0 && seconds.is_multiple_of(*unit));
    whole.map_or_else(|| format!("{seconds}s"), |(unit, name)| format!("{}{name}", seconds / unit))
}

/// The conversation to which a job's answer goes, or why it is not known. `to` is the chat in the other gateway's words:
/// `-100123`, `-100123:topic:7`, `channel:80351110224678912`, `room:!abc:example.org`.
///
/// Sources: openclaw/openclaw, `docs/automation/cron-jobs.md`; NousResearch/hermes-agent,
/// `website/docs/user-guide/features/cron.md` ("Delivery options").
pub(super) fn conversation(draft: &Draft, platform: &str, account: &str, to: &str) -> Result<String, String> {
    if !draft.has_channel(platform, account) {
        return Err(format!("its answer goes to {platform}, which was not taken over"));
    }
    let mut chat = to.trim();
    let prefixes = [platform, "tg", "group", "dm", "channel", "room"];
    while let Some((_, rest)) = chat.split_once(':').filter(|(prefix, _)| prefixes.contains(prefix)) {
        chat = rest;
    }
    let unknown = || Err(format!("its answer goes to `{to}`, which is not the id of a chat"));
    if platform == "matrix" {
        return if chat.starts_with('!') { Ok(format!("matrix.{account}/{chat}")) } else { unknown() };
    }
    let (chat, thread) = chat.split_once(':').map_or((chat, None), |(chat, thread)| (chat, Some(thread)));
    let thread = thread.map(|thread| thread.strip_prefix("topic:").unwrap_or(thread));
    let is_id = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_id(chat.strip_prefix('-').unwrap_or(chat)) || !thread.is_none_or(is_id) {
        return unknown();
    }
    Ok(match thread {
        Some(thread) => format!("{platform}.{account}/{chat}/{thread}"),
        None => format!("{platform}.{account}/{chat}"),
    })
}
