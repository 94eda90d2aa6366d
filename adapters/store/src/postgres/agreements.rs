//! What nodes agree on. All times are of the database's clock. Each call is one statement, which may be executed twice.

use std::time::Duration;

use async_trait::async_trait;
use rejoinder_core::{
    StoreError,
    store::{AgreementStore, AnswerUnderWay, Configuration},
};
use sqlx::postgres::PgRow;

use super::{store::PostgresStore, values::statement};
use crate::records::columns::{Columns, record};

#[async_trait]
impl AgreementStore for PostgresStore {
    async fn put_secret(&self, name: &str, made: &str) -> Result<String, StoreError> {
        let put = self.readers.one(statement!(PUT_SECRET, name, made), |row| row.value("value")).await?;
        put.ok_or_else(|| unanswered("a secret"))
    }

    async fn configuration(&self, digest: &[u8; 32]) -> Result<Option<Configuration>, StoreError> {
        let revision = self.readers.one(statement!(SET_CONFIGURATION, digest), |row| row.value("revision")).await?;
        let revision = revision.ok_or_else(|| unanswered("a configuration"))?;
        Ok(Some(Configuration { revision, digest: *digest }))
    }

    async fn latest_configuration(&self) -> Result<Option<Configuration>, StoreError> {
        let read = |row: &PgRow| Ok(record!(row => Configuration { revision, digest }));
        self.readers.one(statement!(LATEST_CONFIGURATION), read).await
    }

    async fn begin_answer(&self, answer: &AnswerUnderWay) -> Result<bool, StoreError> {
        let AnswerUnderWay { by, key, node, request } = answer;
        let begun = self.readers.rows(statement!(BEGIN_ANSWER, by, key, node.as_uuid(), request)).await?;
        Ok(!begun.is_empty())
    }

    async fn end_answer(&self, answer: &AnswerUnderWay) -> Result<(), StoreError> {
        let AnswerUnderWay { by, key, request, .. } = answer;
        self.readers.rows(statement!(END_ANSWER, by, key, request)).await.map(drop)
    }

    async fn count_minute(&self, who: &str, share: Duration, is_let_in: bool) -> Result<Option<Duration>, StoreError> {
        let count = statement!(COUNT_MINUTE, who, micros(share), is_let_in);
        let wait: Option<u64> = self.readers.one(count, |row| row.value("wait")).await?;
        let wait = wait.ok_or_else(|| unanswered("the use of a minute"))?;
        Ok((wait > 0).then(|| Duration::from_micros(wait)))
    }

    async fn uncount_minute(&self, who: &str, share: Duration) -> Result<(), StoreError> {
        self.readers.rows(statement!(UNCOUNT_MINUTE, who, micros(share))).await.map(drop)
    }
}

fn unanswered(what: &str) -> StoreError {
    StoreError::Failed(format!("a change of {what} was not answered"))
}

fn micros(share: Duration) -> u64 {
    u64::try_from(share.as_micros()).unwrap_or(u64::MAX)
}

/// What is there is changed to the same: so it is returned, also if another node has put it there meanwhile.
const PUT_SECRET: &str = "
    insert into secrets as s (name, value, at) values ($1, $2, clock_timestamp())
    on conflict (name) do update set name = s.name
    returning value";

/// The digests are those of the row as others have left it, whatever was there when the statement began.
const SET_CONFIGURATION: &str = "
    insert into configuration as c (id, digests) values (1, array[$1])
    on conflict (id) do update set digests =
        case when $1 = any(c.digests) then c.digests else array_append(c.digests, $1) end
    returning (
        select max(d.number) from unnest(c.digests) with ordinality as d (digest, number) where d.digest = $1) as revision";

const LATEST_CONFIGURATION: &str = "select revision, digests[revision] as digest from configuration";

/// No request takes ten minutes.
const BEGIN_ANSWER: &str = "
    insert into answers_under_way as a (by, key, node, request, at) values ($1, $2, $3, $4, clock_timestamp())
    on conflict (by, key) do update set node = excluded.node, request = excluded.request, at = excluded.at
        where a.node = excluded.node or a.at < clock_timestamp() - interval '10 minutes' or not exists (
            select 1 from living_nodes as n where n.id = a.node)
    returning request";

const END_ANSWER: &str = "delete from answers_under_way where by = $1 and key = $2 and request = $3";

/// Until when somebody's turns have used minutes with another one of the share `$2`: from now on at least, and no further ahead
/// than turns move it. `excluded.used_until` is the share from now on.
macro_rules! next {
    () => {
        "least(greatest(u.used_until + $2, excluded.used_until), excluded.used_until + 60000000)"
    };
}

/// How much of it is further ahead than a minute.
macro_rules! surplus {
    () => {
        concat!(next!(), " - (excluded.used_until - $2 + 60000000)")
    };
}

const COUNT_MINUTE: &str = concat!(
    "insert into minute_use as u (who, used_until, wait)
    values ($1, (extract(epoch from clock_timestamp()) * 1000000)::bigint + $2, 0)
    on conflict (who) do update set
        used_until = case when $3 or ",
    surplus!(),
    " <= 0 then ",
    next!(),
    " else u.used_until end,
        wait = case when $3 then 0 else greatest(",
    surplus!(),
    ", 0) end
    returning wait"
);

const UNCOUNT_MINUTE: &str = "update minute_use set used_until = used_until - $2 where who = $1";
