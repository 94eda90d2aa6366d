//! The values of rows that are written by a statement each, or by one for a whole batch: `$make!` is given them, after the `$first` ones,
//! in the order of the columns.

/// Of a delivery.
macro_rules! with_delivery {
    ($make:ident!($($first:expr),*), $record:ident) => {
        $make!(
            $($first,)*
            $record.id,
            $record.turn,
            $record.claim,
            $record.part,
            $record.parts,
            $record.conversation_id,
            $record.conversation.channel,
            $crate::shared::stored::name($record.class),
            $record.signal.as_str(),
            $crate::shared::stored::json(&$record.via),
            $crate::shared::stored::is_by_agent(&$record.via),
            $record.is_copy,
            $crate::shared::stored::json(&$record.action),
            $record.state.as_str(),
            $record.attempts,
            $record.next_attempt_at,
            $record.label.map(rejoinder_core::store::Label::as_str),
            $record.parked,
            $crate::shared::stored::json(&$record.message_ids),
            $record.error,
            $record.created_at,
            $record.retried_at,
            $record.delivered_at,
            $record.fetched_at,
        )
    };
}
pub(super) use with_delivery;

/// Of the change of a delivery.
macro_rules! with_delivery_change {
    ($make:ident!($($first:expr),*), $change:ident) => {
        $make!(
            $($first,)*
            $change.id,
            $change.state.as_str(),
            $change.attempts,
            $change.next_attempt_at,
            $change.label.map(rejoinder_core::store::Label::as_str),
            $change.parked,
            $change.action.as_ref().map($crate::shared::stored::json),
            $crate::shared::stored::json(&$change.message_ids),
            $change.error,
            $change.retried_at,
            $change.delivered_at,
            $change.copies,
            $change.resend_from,
        )
    };
}
pub(super) use with_delivery_change;

/// Of a line of a transcript.
macro_rules! with_line {
    ($make:ident!($($first:expr),*), $new:ident) => {
        $make!(
            $($first,)*
            $new.session,
            $new.seq,
            $new.turn,
            $crate::shared::stored::name($new.line.speaker),
            $new.line.author.as_ref().map($crate::shared::stored::json),
            $new.line.forwarded.as_ref().map($crate::shared::stored::json),
            $new.line.text,
            $new.line.at,
            $new.claim,
            $new.line.state == rejoinder_core::LineState::Stopped,
        )
    };
}
pub(super) use with_line;
