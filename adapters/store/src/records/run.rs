//! Runs, and what their models were shown.

use rejoinder_core::{
    Cost, ModelInput, StoreError,
    store::{RunContent, RunRecord},
};

use super::columns::{Columns, records};
use crate::shared::stored::decompress;

records! {
    pub(crate) fn record(row) -> RunRecord {
        number, started_at, ended_at, end: ending, detail, usage, holder, member;
        handler: row.handler()?,
        cost: cost(row)?,
    }
}

pub(super) fn cost(row: &impl Columns) -> Result<Option<Cost>, StoreError> {
    let (micros, currency) = (row.value::<Option<i64>>("cost_micros")?, row.value("currency")?);
    let micros = micros.and_then(|micros| u64::try_from(micros).ok());
    Ok(micros.zip(currency).map(|(micros, currency)| Cost { micros, currency }))
}

/// What the model of a run was shown and did, with the run's number.
pub(crate) fn content(row: &impl Columns) -> Result<(u32, RunContent), StoreError> {
    let (settings, left_out) = (row.value("settings")?, row.value("left_out")?);
    let messages: Option<Vec<u8>> = row.value("messages")?;
    let messages = messages.map(|stored| decompress("messages", &stored)).transpose()?;
    let content = RunContent {
        input: messages.map(|messages| ModelInput { settings, messages, left_out }),
        tools: row.value::<Option<_>>("tools")?.unwrap_or_default(),
        tools_left_out: row.value("tools_left_out")?,
    };
    Ok((row.value("number")?, content))
}
