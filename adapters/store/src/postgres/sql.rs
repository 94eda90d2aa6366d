//! Parts of statements that reading and writing share.
//!
//! PostgreSQL may read a whole table once in place of looking for a few rows by an index. `offset 0` in an `exists` prevents that.

/// The columns of a [`StoredEvent`](crate::shared::stored::StoredEvent) in a `select`, from the table `e`.
macro_rules! event_columns {
    () => {
        "e.channel, e.chat, e.thread, e.external_id, e.revision, e.text, e.details, e.raw, e.received_at"
    };
}
pub(super) use event_columns;

/// Whether a turn is open or a run of it goes on, in a `where`. `$turn`: its id.
macro_rules! turn_goes_on {
    ($turn:literal) => {
        concat!(
            "exists (
                select 1 from turns as o where o.id = ",
            $turn,
            " and (o.ended_at is null or o.work is not null))"
        )
    };
}
pub(super) use turn_goes_on;

/// Whether a lease `$lease` is held, in a `where`.
macro_rules! lease_is_held {
    ($lease:literal) => {
        concat!("(", $lease, ".node is not null and ", $lease, ".until > clock_timestamp())")
    };
}
pub(super) use lease_is_held;

/// Whether nobody but its node may take a slot `$slot` that a turn has, in a `where`: the node lives, or the run that it has left is not
/// recovered yet.
macro_rules! slot_is_kept {
    ($slot:literal) => {
        concat!(
            "(exists (select 1 from living_nodes as n where n.id = ",
            $slot,
            ".node)
            or exists (select 1 from turns as r where r.id = ",
            $slot,
            ".turn_id and r.work = 'running' offset 0))"
        )
    };
}
pub(super) use slot_is_kept;
