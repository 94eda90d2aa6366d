//! Values of the core as values of PostgreSQL, and statements with them.

use std::sync::Arc;

use rejoinder_core::{
    ApprovalId, ChannelId, ConversationId, DeliveryId, EventId, PersonId, ScheduleId, SessionId, Timestamp, TurnId,
};
use sqlx::{
    Encode, Postgres, Type,
    postgres::{PgArguments, PgHasArrayType},
    query::Query,
};
use uuid::Uuid;

/// A statement with its values.
pub(super) type Statement<'q> = Query<'q, Postgres, PgArguments>;

/// A statement: its text, and the values of `$1`, `$2` …, which are taken by reference.
macro_rules! statement {
    ($sql:expr $(, $value:expr)* $(,)?) => {
        sqlx::query($sql)$(.bind($crate::postgres::values::Bound::bound(&$value)))*
    };
}
pub(super) use statement;

/// A statement that inserts a row of these columns: `column`, or `column: value`. A literal after them says what happens on a conflict,
/// or what is returned.
macro_rules! insert_into {
    (@value $column:ident) => { $column };
    (@value $column:ident $value:expr) => { $value };
    ($table:ident { $($column:ident $(: $value:expr)?),* $(,)? }) => {
        insert_into!($table { $($column $(: $value)?),* }, "")
    };
    ($table:ident { $($column:ident $(: $value:expr)?),* $(,)? }, $rest:literal) => {
        $crate::postgres::values::statement!(
            sqlx::AssertSqlSafe($crate::postgres::values::insert(
                stringify!($table),
                &[$(stringify!($column)),*],
                $rest,
            )),
            $(insert_into!(@value $column $($value)?)),*
        )
    };
}
pub(super) use insert_into;

/// The text of a statement that inserts a row.
pub(super) fn insert(table: &str, columns: &[&str], rest: &str) -> String {
    let marks: Vec<String> = (1..=columns.len()).map(|number| format!("${number}")).collect();
    format!("insert into {table} ({}) values ({}) {rest}", columns.join(", "), marks.join(", "))
}

/// A value that a statement takes. Numbers are `bigint`, times milliseconds, ids `uuid`, and JSON is text: where its column is `jsonb`,
/// the statement says `$1::jsonb`.
pub(super) trait Bound {
    type As<'a>: Encode<'a, Postgres> + Type<Postgres> + 'a
    where
        Self: 'a;

    fn bound(&self) -> Self::As<'_>;
}

impl<T: Bound + ?Sized> Bound for &T {
    type As<'a>
        = T::As<'a>
    where
        Self: 'a;

    fn bound(&self) -> Self::As<'_> {
        (**self).bound()
    }
}

impl<T: Bound> Bound for Option<T> {
    type As<'a>
        = Option<T::As<'a>>
    where
        Self: 'a;

    fn bound(&self) -> Self::As<'_> {
        self.as_ref().map(Bound::bound)
    }
}

/// Types that are bound as `$as`, which `$made` makes of a reference to one.
macro_rules! bound {
    ($as:ty = $made:expr; $($type:ty),*) => {
        $(impl Bound for $type {
            type As<'a> = $as;

            fn bound(&self) -> $as {
                $made(self)
            }
        })*
    };
}

bound!(i64 = |value: &_| *value; i64);
bound!(i64 = |value: &_| i64::from(*value); u8, u16, i32, u32);
bound!(i64 = |value: &_| i64::try_from(*value).unwrap_or(i64::MAX); u64, usize);
bound!(i64 = |value: &Timestamp| value.as_millis(); Timestamp);
bound!(bool = |value: &_| *value; bool);
bound!(Uuid = |value: &_| *value; Uuid);
bound!(Uuid = |value: &_| Self::as_uuid(*value);
    ApprovalId, ConversationId, DeliveryId, EventId, PersonId, ScheduleId, SessionId, TurnId);

/// Types that are bound as a reference into them.
macro_rules! bound_by_reference {
    ($($type:ty => $as:ty = $made:expr),* $(,)?) => {
        $(impl Bound for $type {
            type As<'a> = &'a $as;

            fn bound(&self) -> &$as {
                $made(self)
            }
        })*
    };
}

bound_by_reference!(
    str => str = |value| value,
    String => str = String::as_str,
    Arc<str> => str = AsRef::as_ref,
    Box<str> => str = AsRef::as_ref,
    ChannelId => str = ChannelId::as_str,
    [u8; 32] => [u8] = <[u8; 32]>::as_slice,
);

/// A list of values, as an array.
#[derive(Debug)]
pub(super) struct List<T>(pub(super) Vec<T>);

impl<T: PgHasArrayType + Type<Postgres> + for<'q> Encode<'q, Postgres>> Bound for List<T> {
    type As<'a>
        = &'a [T]
    where
        Self: 'a;

    fn bound(&self) -> &[T] {
        &self.0
    }
}

/// Bytes, as `bytea`.
#[derive(Debug)]
pub(super) struct Bytes<'v>(pub(super) &'v [u8]);

impl Bound for Bytes<'_> {
    type As<'a>
        = &'a [u8]
    where
        Self: 'a;

    fn bound(&self) -> &[u8] {
        self.0
    }
}
