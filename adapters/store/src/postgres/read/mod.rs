//! The traits of the port, one file for each noun: they find rows, and pass what is written to the writer.

mod agent_sessions;
mod conversations;
mod dead_letters;
mod deliveries;
mod files;
mod hints;
mod housekeeping;
mod keyring;
mod lists;
mod log;
mod log_lines;
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

use rejoinder_core::{ChannelId, PersonFilter, folded};
use sqlx::{Postgres, QueryBuilder};

use crate::shared::patterns::containing;

/// The condition that a turn `t`, with its conversation `c` and its event `e`, is of these people, or what others sent them.
fn push_person(sql: &mut QueryBuilder<Postgres>, person: &PersonFilter) {
    let (channels, ids): (Vec<_>, Vec<_>) =
        person.identities.iter().map(|identity| (identity.channel.as_str(), &*identity.id)).unzip();
    sql.push("((t.channel, t.person) in (select * from unnest(").push_bind(channels).push(", ").push_bind(ids);
    let (channels, chats): (Vec<_>, Vec<_>) =
        person.chats.iter().map(|chat| (chat.channel.as_str(), &*chat.chat)).unzip();
    sql.push(")) or (c.channel, c.chat) in (select * from unnest(").push_bind(channels).push(", ").push_bind(chats);
    sql.push("))");
    if let Some(name) = &person.name {
        sql.push(" or t.person = ").push_bind(&**name).push(" or c.chat = ").push_bind(&**name);
        push_sender(sql.push(" or "), "e", name);
        if person.with_received {
            push_received(sql, name);
        }
    }
    sql.push(")");
}

/// The condition that the sender of an event has this id, or a name with this part.
fn push_sender(sql: &mut QueryBuilder<Postgres>, event: &str, name: &str) {
    sql.push(format!("({event}.details #>> '{{sender,id}}' = ")).push_bind(name);
    // A caller without a name is listed so.
    if name == "caller" {
        sql.push(format!(" or {event}.details #>> '{{sender,kind}}' = 'unnamed'"));
    }
    for field in ["name", "username"] {
        // With this collation `ilike` ignores the case of ASCII letters only.
        sql.push(format!(" or ({event}.details #>> '{{sender,{field}}}') collate \"C\" ilike "));
        sql.push_bind(containing(name)).push(" escape '\\'");
    }
    sql.push(format!(" or {event}.sender_names like ")).push_bind(containing(&format!("\n{}\n", folded(name))));
    sql.push(" escape '\\')");
}

/// Among how many of a conversation's last turns those of a person are looked for.
const RECENT: i64 = 100;

/// The alternative that the gateway sent the turn, in a direct chat in which somebody of this name wrote lately.
fn push_received(sql: &mut QueryBuilder<Postgres>, name: &str) {
    sql.push(
        " or (e.details #>> '{sender,kind}' = 'operator' and exists (
        select 1 from (select event from turns where conversation_id = t.conversation_id order by seq desc limit ",
    );
    sql.push_bind(RECENT);
    sql.push(
        ") as l join events as w on w.seq = l.event
        where w.details ->> 'chat' = 'direct' and w.details #>> '{sender,kind}' is distinct from 'operator' and ",
    );
    push_sender(sql, "w", name);
    sql.push("))");
}

/// Channels as an array.
fn names(channels: &[ChannelId]) -> Vec<&str> {
    channels.iter().map(ChannelId::as_str).collect()
}
