//! The search in conversations whose ids the page has. It goes on beside what else the page says.

use std::sync::Arc;

use rejoinder_core::{
    ConversationRef, Intake, Speaker,
    store::{FoundLine, SearchQuery},
};
use tokio::sync::{Semaphore, mpsc};

use crate::{
    WebchatAdapter, inbound,
    protocol::{Hit, Problem, ServerFrame, rfc3339},
    reply::{Reply, refusal},
    visitor::Visitor,
};

/// How many searches of a chat go on at once: operators' lists use the same connections.
pub(crate) const AT_ONCE: usize = 2;

/// How many conversations are searched at once: more than the page has.
const MOST_CONVERSATIONS: usize = 256;

/// How many characters are searched for.
const LONGEST: usize = 256;

/// How many lines a page is told.
const MOST_LINES: u32 = 50;

/// The searches of a socket: one at a time.
pub(crate) struct Searches {
    chat: Arc<WebchatAdapter>,
    intake: Intake,
    visitor: Option<Visitor>,
    replies: mpsc::Sender<Reply>,
    going_on: Arc<Semaphore>,
}

/// What a page asks for.
pub(crate) struct Search {
    pub(crate) id: String,
    pub(crate) text: String,
    /// The secret ids of conversations.
    pub(crate) conversations: Vec<String>,
}

impl Searches {
    pub(crate) fn new(
        chat: Arc<WebchatAdapter>,
        intake: Intake,
        visitor: Option<Visitor>,
        replies: mpsc::Sender<Reply>,
    ) -> Self {
        Self { chat, intake, visitor, replies, going_on: Arc::new(Semaphore::new(1)) }
    }

    /// Begins a search, whose reply comes later. Returns one if it is not begun.
    pub(crate) fn begin(&self, search: Search) -> Option<Reply> {
        let context = self.chat.socket_context.get()?;
        let Ok(going_on) = Arc::clone(&self.going_on).try_acquire_owned() else {
            return Some(refusal(Some(&search.id), Problem::SEARCHING));
        };
        let (chat, intake, replies) = (Arc::clone(&self.chat), self.intake.clone(), self.replies.clone());
        let visitor = self.visitor.clone();
        // The store is asked to the end, also if the socket closes.
        context.sockets.spawn(async move {
            let _going_on = going_on;
            let reply = match found(&chat, &intake, visitor.as_ref(), &search).await {
                Ok((lines, more)) => Reply::plain(&ServerFrame::Found { id: &search.id, lines, more }),
                Err(problem) => refusal(Some(&search.id), problem),
            };
            let _ = replies.send(reply).await;
        });
        None
    }
}

/// The lines, and whether there are earlier ones.
async fn found(
    chat: &WebchatAdapter,
    intake: &Intake,
    visitor: Option<&Visitor>,
    search: &Search,
) -> Result<(Vec<Hit>, bool), Problem> {
    if search.text.chars().count() > LONGEST || search.conversations.len() > MOST_CONVERSATIONS {
        return Err(Problem::NOT_A_FRAME);
    }
    let at = |id: &String| inbound::conversation(&chat.channel, id, visitor);
    let conversations = search.conversations.iter().map(at).collect::<Result<Vec<ConversationRef>, _>>()?;
    let Some(query) = SearchQuery::parse(&search.text) else { return Ok((Vec::new(), false)) };
    let _permit = chat.searches.acquire().await;
    let lines = intake.search(&conversations, query, MOST_LINES + 1).await.map_err(|error| {
        tracing::warn!(channel = %chat.channel, %error, "could not search for a page");
        Problem::UNAVAILABLE
    })?;
    let more = lines.len() > MOST_LINES as usize;
    let hit = |line: FoundLine| {
        let place = conversations.iter().position(|address| *address == line.conversation)?;
        Some(Hit {
            conversation: search.conversations[place].clone(),
            turn_id: line.turn,
            at: rfc3339(line.at),
            speaker: line.speaker,
            agent: line.name.filter(|_| line.speaker == Speaker::Agent),
            excerpt: line.excerpt,
        })
    };
    Ok((lines.into_iter().take(MOST_LINES as usize).filter_map(hit).collect(), more))
}
