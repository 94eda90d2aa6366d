//! The search in what was said.

use rejoinder_core::{
    Speaker,
    store::{FoundLine, SearchFilter, SearchQuery},
};

use super::prelude::*;
use crate::view::AddressItem;

/// The largest number of characters of a query.
const LONGEST: usize = 256;

query! {
    Filter {
        /// The words that a line contains, all of them. The last one may be the beginning of a word. Words in quotation marks
        /// follow each other.
        #[param(min_length = 1, max_length = 256)] q: String,
        /// Only lines of this channel, for example `telegram.main`.
        #[param(max_length = 256)] channel: Option<String>,
        /// Only lines of the conversation with this id.
        #[param(format = "uuid")] conversation: Option<String>,
        /// Only lines before this one: the `next` of the previous page.
        #[param(minimum = 1)] before: Option<i64>,
        /// The largest number of lines; 50 by default.
        #[param(minimum = 1, maximum = 200)] limit: Option<u32>,
    }
}

impl Filter {
    fn read(self, caller: &Caller) -> Result<SearchFilter, ApiError> {
        if self.q.chars().count() > LONGEST {
            return Err(ApiError::BadRequest(format!("`q` must have at most {LONGEST} characters")));
        }
        let no_word = || ApiError::BadRequest("`q` must have a word of letters or digits to search for".to_owned());
        Ok(SearchFilter {
            query: SearchQuery::parse(&self.q).ok_or_else(no_word)?,
            channels: caller.channels(self.channel.as_deref()),
            conversations: paging::id("conversation", "a conversation id", self.conversation)?.map(|id| vec![id]),
            session: None,
            before: self.before,
            limit: paging::limit(self.limit)?,
        })
    }
}

page! {
    /// A page of lines, newest first.
    SearchResult of FoundItem
}

item! {
    /// A line that was found.
    pub(crate) FoundItem of (line: FoundLine) {
        #[schema(format = "uuid")] turn_id: String = line.turn.to_string(),
        #[serde(flatten)] address: AddressItem = AddressItem::of(&line.conversation, line.conversation_id),
        /// When the message was received, or the answer was claimed.
        #[schema(format = DateTime)] at: String = rfc3339(line.at),
        /// Who said it: `person`, `agent`, or `gateway` (a fallback, or the answer to a command).
        speaker: &'static str = match line.speaker {
            Speaker::Person => "person",
            Speaker::Agent => "agent",
            Speaker::Gateway => "gateway",
        },
        /// The person's name or the agent's, if it is known.
        name: Option<String> = line.name,
        /// About 200 characters around the first word that was found.
        excerpt: String = line.excerpt,
    }
}

/// Searches what people wrote and what was answered, newest first: the lines of turns that ended at least a moment ago.
#[utoipa::path(get, path = "/search", operation_id = "search", params(Filter),
    responses((status = 200, description = "A page of lines", body = SearchResult)))]
pub(super) async fn list(State(app): Shared, caller: Caller, Query(filter): Query<Filter>) -> Answer<SearchResult> {
    let filter = filter.read(&caller)?;
    let limit = filter.limit;
    let mut found = app.records.search.search(&SearchFilter { limit: limit + 1, ..filter }).await?;
    let next = paging::cut(&mut found, limit, |line| line.position.to_string());
    Ok(Json(SearchResult { items: found.into_iter().map(FoundItem::of).collect(), next }))
}
