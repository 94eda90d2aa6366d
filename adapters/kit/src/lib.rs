//! Code that the channel adapters share.
//!
//! * [`Receiver`]: one run of a channel. It waits, reads cursors and stores events, and retries until the store answers.
//! * [`Health`]: when inbound was last proved, and what is wrong.
//! * [`WhileRunning`]: a value that exists only while the channel runs, for requests from outside.
//! * [`SentMessages`]: the channel's own latest messages, for reactions to them.
//! * [`pick_data`]: what the buttons of a question carry.
//! * [`created_at`]: when a delivery was created.
//! * [`calls`]: the errors of a platform API call without an answer, and the bytes of an answer.
//! * [`files`]: the bytes of a file that an agent sends.
//! * [`links`]: where the links of an answer lead.
//! * [`SignedPost`]: a signed POST per delivery, to a URL of the operator's.
//! * [`Table`]: a Markdown table as aligned columns of text.
//! * [`Problem`]: a rejection of an HTTP request, as an RFC 9457 document, for browsers as a [page](problem_pages), and for
//!   callers who [prefer text or sound](Format) as a [sentence](problem_in_words).
//! * [`asking`]: callers who ask over HTTP and wait for the answer.
//! * [`AnswerFile`]: the files of an answer in JSON, of which the stored ones are [links](with_links).
//! * [`read_body`]: a request's body, limited in size and time, and [`BodyRoom`]: the memory that its files take.
//! * [`data_url`]: files that callers send in URLs.
//! * [`multipart`]: files that callers send in forms.
//! * [`secret_headers`]: the headers that an operator adds to requests.
//! * [`uncached`]: answers that nothing between may keep.
//! * [`quoted`]: header values whose parts may be quoted.
//! * [`embedded`]: files for browsers, embedded in the binary.
//! * [`App`] and [`worker`]: pages that can be installed as apps.
//! * [`public_url`] and [`PublicAddresses`]: URLs that strangers choose.
//! * [`Tokens`]: the tokens that callers send.
//! * [`Peer`] and [`Guesses`]: who sends a request, and how often it may guess a secret.
//! * [`Place`]: the place of a request among those that its caller may have at once.
//!
//! The kit knows no platform, stores nothing on disk, and does not decide what an error of a platform means. Payloads,
//! the classification of errors and the Markdown of a platform belong to its adapter, however alike they look.
//!
//! Code moves here when a second adapter needs it for the same reason as the first.

#![warn(missing_docs)]

mod accept;
mod answer_files;
mod app;
pub mod asking;
mod body;
pub mod calls;
pub mod data_url;
mod embedded;
pub mod files;
mod guesses;
mod health;
pub mod links;
pub mod multipart;
mod pages;
mod peer;
mod pick;
mod place;
mod private;
mod problem;
mod public;
pub mod quoted;
mod receiver;
mod secret_headers;
mod sent;
mod signed_post;
mod table;
mod tokens;
mod uncached;
mod while_running;

pub use self::{
    accept::Format,
    answer_files::{AnswerFile, with_links},
    app::{App, WORKER, worker},
    body::{BodyRoom, body_too_large, files_too_large, read_body},
    embedded::{cached, embedded},
    guesses::{Guesses, REFUSED_REQUESTS, TooManyGuesses},
    health::Health,
    pages::{escaped, problem_in_words, problem_pages, push_escaped},
    peer::{Peer, Via, is_forwarded},
    pick::{pick_data, picked},
    place::{CountedRequest, LeftPlace, Place},
    private::{make_private, make_private_folder, private_file},
    problem::Problem,
    public::{PublicAddresses, public_url},
    receiver::{Receiver, RunEnd, ShuttingDown},
    secret_headers::secret_headers,
    sent::{SentMessage, SentMessages, created_at},
    signed_post::{SignedPost, retry_after, signing_key},
    table::{Alignment, Table},
    tokens::{Tokens, bearer, token_digest},
    uncached::uncached,
    while_running::{RunningGuard, WhileRunning},
};
