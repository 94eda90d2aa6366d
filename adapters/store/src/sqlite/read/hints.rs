//! What nodes look at to follow each other. Here is one, and what its runs say so far stays in memory.

use std::{
    collections::BTreeMap,
    sync::{MutexGuard, PoisonError},
};

use async_trait::async_trait;
use rejoinder_core::{
    ChannelId, ConversationRef, StoreError, TurnId,
    store::{HintStore, RunText, Version},
};
use sqlx::sqlite::SqliteRow;

use super::{names, rows::all};
use crate::{records::columns::Columns, sqlite::store::SqliteStore};

#[async_trait]
impl HintStore for SqliteStore {
    async fn changed_turns(&self, turns: &[(TurnId, Version)]) -> Result<Vec<TurnId>, StoreError> {
        let sql = "
            select s.id from (select unhex(value ->> 0, '-') as id, value ->> 1 as version from json_each(?)) as s
                left join turns as t on t.id = s.id
            where t.version > s.version or t.id is null";
        let turns = serde_json::to_string(turns).expect("ids and numbers are text");
        all(&self.readers, sqlx::query(sql).bind(turns), |row| row.value("id")).await
    }

    async fn put_draft(&self, turn: TurnId, run: u32, text: Option<&str>) -> Result<(), StoreError> {
        let mut drafts = self.lock_drafts();
        let (last, said) = drafts.entry(turn).or_insert_with(|| (run, String::new()));
        match text {
            Some(text) if run >= *last => (*last, *said) = (run, text.to_owned()),
            None if run > *last => (*last, *said) = (run, String::new()),
            Some(_) | None => {}
        }
        Ok(())
    }

    async fn remove_draft(&self, turn: TurnId, run: u32) -> Result<(), StoreError> {
        let mut drafts = self.lock_drafts();
        if drafts.get(&turn).is_some_and(|(last, _)| *last <= run) {
            drafts.remove(&turn);
        }
        Ok(())
    }

    /// Its memory is that of the one node.
    async fn remove_old_drafts(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Those that changed long ago are among them.
    async fn drafts_on(&self, channels: &[ChannelId]) -> Result<Vec<TurnId>, StoreError> {
        let sql = "
            select t.id from json_each(?) as s cross join turns as t
            where t.id = unhex(s.value, '-') and t.channel in (select value from json_each(?))";
        let turns: Vec<TurnId> = self.lock_drafts().keys().copied().collect();
        let turns = serde_json::to_string(&turns).expect("ids are text");
        all(&self.readers, sqlx::query(sql).bind(turns).bind(names(channels)), |row| row.value("id")).await
    }

    async fn drafts(&self, turns: &[TurnId]) -> Result<Vec<RunText>, StoreError> {
        let sql = "
            select t.id as turn, e.channel, e.chat, e.thread
            from json_each(?) as s
                cross join turns as t on t.id = unhex(s.value, '-')
                cross join events as e on e.seq = t.event
            order by t.id";
        let turns = serde_json::to_string(turns).expect("ids are text");
        let address = |row: &SqliteRow| Ok((row.value("turn")?, row.conversation()?));
        let found: Vec<(TurnId, ConversationRef)> = all(&self.readers, sqlx::query(sql).bind(turns), address).await?;
        let drafts = self.lock_drafts();
        let said = |(turn, conversation): (TurnId, ConversationRef)| {
            let (run, text) = drafts.get(&turn)?;
            Some(RunText { turn, conversation, run: *run, text: text.clone() })
        };
        Ok(found.into_iter().filter_map(said).collect())
    }
}

impl SqliteStore {
    fn lock_drafts(&self) -> MutexGuard<'_, BTreeMap<TurnId, (u32, String)>> {
        self.drafts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
