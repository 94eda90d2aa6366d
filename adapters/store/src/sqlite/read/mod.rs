//! The traits of the port, one file for each noun: they find rows, and pass what is written to the writer.

mod agent_sessions;
mod conversations;
mod dead_letters;
mod deliveries;
mod files;
mod hints;
mod housekeeping;
mod lists;
mod log;
mod log_lines;
mod nodes;
mod people;
mod pushes;
mod questions;
mod rows;
mod schedules;
mod search;
mod sessions;
mod stuck;
mod tokens;
mod turns;
mod views;
mod visitors;

use rejoinder_core::{ChannelId, PersonFilter};
use sqlx::{QueryBuilder, Sqlite};

use crate::shared::patterns::containing;

#[cfg(test)]
pub(super) use lists::list;

/// The condition that a turn `t`, with its obligation `o`, its conversation `c` and its event `e`, is of these people, or what
/// others sent them.
fn push_person(sql: &mut QueryBuilder<Sqlite>, person: &PersonFilter) {
    let pairs = |pairs: Vec<(&str, &str)>| serde_json::to_string(&pairs).expect("they are text");
    let identities = person.identities.iter().map(|identity| (identity.channel.as_str(), &*identity.id)).collect();
    let chats = person.chats.iter().map(|chat| (chat.channel.as_str(), &*chat.chat)).collect();
    sql.push("((t.channel, t.person) in (select value ->> 0, value ->> 1 from json_each(").push_bind(pairs(identities));
    sql.push(")) or (c.channel, c.chat) in (select value ->> 0, value ->> 1 from json_each(").push_bind(pairs(chats));
    sql.push("))");
    if let Some(name) = &person.name {
        sql.push(" or t.person = ").push_bind(name.clone()).push(" or c.chat = ").push_bind(name.clone());
        push_sender(sql.push(" or "), "e", name);
        if person.with_received {
            push_received(sql, name);
        }
    }
    sql.push(")");
}

/// The condition that the sender of an event has this id, or a name with this part.
fn push_sender(sql: &mut QueryBuilder<Sqlite>, event: &str, name: &str) {
    sql.push(format!("(json_extract({event}.details, '$.sender.id') = ")).push_bind(name);
    // A caller without a name is listed so.
    if name == "caller" {
        sql.push(format!(" or json_extract({event}.details, '$.sender.kind') = 'unnamed'"));
    }
    for field in ["name", "username"] {
        let field = format!("json_extract({event}.details, '$.sender.{field}')");
        sql.push(format!(" or {field} like ")).push_bind(containing(name));
        // `like` ignores the case of ASCII letters only.
        sql.push(format!(" escape '\\' or {field} = ")).push_bind(name).push(" collate folded");
    }
    sql.push(")");
}

/// Among how many of a conversation's last turns those of a person are looked for.
const RECENT: u32 = 100;

/// The alternative that the gateway sent the turn, in a direct chat in which somebody of this name wrote lately.
fn push_received(sql: &mut QueryBuilder<Sqlite>, name: &str) {
    sql.push(
        " or (json_extract(e.details, '$.sender.kind') = 'operator' and exists (
        select 1 from (select event from turns where conversation_id = t.conversation_id order by seq desc limit ",
    );
    sql.push_bind(RECENT);
    sql.push(
        ") as l cross join events as w on w.seq = l.event
        where json_extract(w.details, '$.chat') = 'direct'
            and json_extract(w.details, '$.sender.kind') is not 'operator' and ",
    );
    push_sender(sql, "w", name);
    sql.push("))");
}

/// Channels as JSON, for `json_each`.
fn names(channels: &[ChannelId]) -> String {
    serde_json::to_string(channels).expect("they are text")
}
