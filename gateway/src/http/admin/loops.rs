//! Open loops: what is owed to people, what they were asked, and what could not be delivered.

use rejoinder_core::{OpenLoop, open_loops, store::TurnFilter};

use super::prelude::*;
use crate::{problems::Causes, view::TurnItem};

query! {
    Filter {
        /// Only turns of this channel.
        #[param(max_length = 128)] channel: Option<String>,
        /// The largest number; 50 by default.
        #[param(minimum = 1, maximum = 200)] limit: Option<u32>,
    }
}

/// What is open, the most pressing first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LoopList {
    items: Vec<LoopItem>,
    /// How many there are in all, of the newest 500 of each kind.
    total: usize,
    /// Always null: there is only one page.
    #[schema(value_type = Option<String>)]
    next: Option<&'static str>,
}

item! {
    /// An open loop.
    LoopItem of (open: OpenLoop, causes: &Causes) {
        /// `late`: the person should have seen a signal by now. `deferred`: they were promised an answer. `open`: they wait.
        /// `asked`: they were asked a question within the last seven days, and have not answered. `failed`: what they were to be told
        /// is a dead letter.
        kind: &'static str = open.kind.as_str(),
        /// What is wrong that it waits for, for example `telegram.main cannot send`.
        #[serde(skip_serializing_if = "Option::is_none")] because: Option<String> = causes.of(open.kind, &open.turn),
        /// How pressing it is: a weight for the kind, times the minutes since the person asked.
        score: u64 = open.score,
        turn: TurnItem = TurnItem::of(open.turn),
    }
}

/// Lists what is owed to people, the questions that they have not answered, and what could not be delivered, the most pressing
/// first.
#[utoipa::path(get, path = "/loops", operation_id = "list_loops", params(Filter),
    responses((status = 200, description = "What is open", body = LoopList)))]
pub(super) async fn list(
    State(app): Shared,
    caller: Caller,
    Query(Filter { channel, limit }): Query<Filter>,
) -> Answer<LoopList> {
    let limit = paging::limit(limit)? as usize;
    let among = TurnFilter { channels: caller.channels(channel.as_deref()), ..TurnFilter::default() };
    let loops = open_loops(&*app.records.lists, &among, app.clock.now()).await?;
    let total = loops.len();
    let causes = app.problems.causes(app.probe.store_writes().await.is_err()).await;
    let items = loops.into_iter().take(limit).map(|open| LoopItem::of(open, &causes)).collect();
    Ok(Json(LoopList { items, total, next: None }))
}
