//! The channel suite: checks that every channel adapter must pass.
//!
//! An adapter's crate implements [`PlatformDouble`] for a double of its platform, and
//! [`channel_conformance!`](crate::channel_conformance) makes a test of each check. The crate's own tests build deliveries
//! with [`delivery`]. To add a check, write it here and list it in the macro.

mod accept_switch;
mod acknowledging;
mod double;
mod poison;
mod silence;

use std::{collections::HashSet, time::Duration};

use rejoinder_guard::{Attachment, SignalKind, Via};

pub use self::{
    acknowledging::nothing_is_acknowledged_before_it_is_accepted,
    double::{Expected, Fixture, PlatformDouble, PlatformFailure},
    poison::a_poison_event_costs_itself_only,
    silence::a_shutdown_does_not_wait_for_a_silent_platform,
};
use super::{clock::START, markdown::SEEN};
use crate::{
    model::{
        capabilities::{Receipts, Resend, Support, TextLimit, TextUnit},
        conversation::ConversationRef,
        delivery::{Action, Content, Delivery, DeliveryError, Receipt, Scope},
        event::{InboundEvent, SenderKind},
        ids::{DeliveryId, TurnId},
        stored_file::data_url,
    },
    shown::render,
};

/// Makes a test of each check of the channel suite. The argument is an expression whose value is a future of a new
/// [`PlatformDouble`](crate::conformance::channel::PlatformDouble).
#[macro_export]
macro_rules! channel_conformance {
    ($make:expr) => {
        $crate::channel_conformance! { $make =>
            fixtures_become_what_they_are
            our_own_messages_are_ignored
            the_same_payload_has_the_same_key
            capabilities_and_deliver_agree
            a_long_text_arrives_in_parts_and_in_order
            what_shows_something_is_shown
            files_arrive_with_their_caption
            a_caption_fits_as_declared
            a_limit_says_for_how_long
            a_lost_response_is_unknown
            what_is_refused_is_refused
            what_failed_was_not_sent
            credentials_that_are_refused_are_named
            nothing_is_acknowledged_before_it_is_accepted
            a_poison_event_costs_itself_only
            a_shutdown_does_not_wait_for_a_silent_platform
        }
    };
    ($make:expr => $($check:ident)*) => {
        $(
            #[tokio::test]
            async fn $check() {
                $crate::conformance::channel::$check(&$make.await).await;
            }
        )*
    };
}

/// A builder of deliveries. Only for tests: the outbox makes the real ones.
#[derive(Clone, Debug)]
pub struct DeliveryBuilder(Delivery);

/// Begins a delivery of `action` to `conversation`. By default it is the first attempt, and the only part of its signal.
#[must_use]
pub fn delivery(conversation: &ConversationRef, action: Action) -> DeliveryBuilder {
    let signal = match &action {
        Action::Send { .. } | Action::Edit { .. } => Some(SignalKind::Reply),
        Action::React { .. } => Some(SignalKind::Reaction),
        Action::Draft { .. } | Action::Typing { .. } | Action::Mark { .. } | Action::Delete { .. } => None,
    };
    DeliveryBuilder(Delivery {
        id: DeliveryId::new(START),
        conversation: conversation.clone(),
        turn: TurnId::new(START),
        part: 1,
        parts: 1,
        via: signal.map(|_| Via::Answer),
        signal,
        action,
        attempt: 1,
        is_overtaken: false,
        label: None,
    })
}

/// Begins a delivery that sends a text as a new message.
#[must_use]
pub fn text(conversation: &ConversationRef, text: &str) -> DeliveryBuilder {
    let content = Content { text: text.to_owned(), ..Content::default() };
    delivery(conversation, Action::Send { content, reply_to: None })
}

/// Begins a delivery that sends a long answer as a file, as the core makes it.
#[must_use]
pub fn answer_file(conversation: &ConversationRef, answer: &str) -> DeliveryBuilder {
    let content = Content {
        text: "It is in this file.".to_owned(),
        attachments: vec![render::answer_file(answer)],
        ..Content::default()
    };
    delivery(conversation, Action::Send { content, reply_to: None })
}

impl DeliveryBuilder {
    /// Sets the id, which is a new one by default.
    #[must_use]
    pub const fn id(mut self, id: DeliveryId) -> Self {
        self.0.id = id;
        self
    }

    /// Sets the turn, which is a new id by default.
    #[must_use]
    pub const fn turn(mut self, turn: TurnId) -> Self {
        self.0.turn = turn;
        self
    }

    /// Sets the signal that it carries and how that came to be.
    #[must_use]
    pub fn signal(mut self, signal: SignalKind, via: Via) -> Self {
        (self.0.signal, self.0.via) = (Some(signal), Some(via));
        self
    }

    /// Makes it part `part` of `parts`, counted from 1.
    #[must_use]
    pub const fn part(mut self, part: u32, parts: u32) -> Self {
        (self.0.part, self.0.parts) = (part, parts);
        self
    }

    /// Sets the number of the attempt, counted from 1.
    #[must_use]
    pub const fn attempt(mut self, attempt: u32) -> Self {
        self.0.attempt = attempt;
        self
    }

    /// Labels it as a possible second copy.
    #[must_use]
    pub fn labelled(mut self) -> Self {
        self.0.label = Some("(again)".to_owned());
        self
    }

    /// Returns the finished delivery.
    #[must_use]
    pub fn build(self) -> Delivery {
        self.0
    }
}

/// Every fixture is normalised to its expected event, which belongs to the adapter's channel and keeps the payload.
///
/// # Panics
/// When the check fails.
#[expect(clippy::unused_async, reason = "a check is awaited")]
pub async fn fixtures_become_what_they_are(double: &dyn PlatformDouble) {
    let bare = |event: &InboundEvent| InboundEvent { raw: String::new(), received_at: START, ..event.clone() };
    for fixture in double.fixtures() {
        let event = double.normalise(&fixture.payload);
        match fixture.expected {
            Expected::Event(expected) => {
                let event = event.unwrap_or_else(|| panic!("{}: there is no event", fixture.name));
                assert_eq!(bare(&event), bare(&expected), "{}", fixture.name);
                assert!(!event.raw.is_empty(), "{}: the payload is kept", fixture.name);
                assert_eq!(&event.conversation.channel, double.adapter().channel(), "{}", fixture.name);
            }
            Expected::OurOwn => {}
            Expected::Nothing => assert!(event.is_none(), "{}: {event:?}", fixture.name),
        }
    }
}

/// Our own message is ignored, or its event says that it is ours.
///
/// # Panics
/// When the check fails.
#[expect(clippy::unused_async, reason = "a check is awaited")]
pub async fn our_own_messages_are_ignored(double: &dyn PlatformDouble) {
    for fixture in double.fixtures() {
        if matches!(fixture.expected, Expected::OurOwn)
            && let Some(event) = double.normalise(&fixture.payload)
        {
            assert_eq!(event.sender.kind, SenderKind::Ourselves, "{}", fixture.name);
        }
    }
}

/// Normalising a payload twice gives the same key; different payloads have different keys.
///
/// # Panics
/// When the check fails.
#[expect(clippy::unused_async, reason = "a check is awaited")]
pub async fn the_same_payload_has_the_same_key(double: &dyn PlatformDouble) {
    let key = |payload: &str| double.normalise(payload).map(|event| (event.external_id, event.revision));
    let mut keys = HashSet::new();
    for fixture in double.fixtures() {
        let Some(first) = key(&fixture.payload) else { continue };
        assert!(!first.0.is_empty(), "{}: the key is empty", fixture.name);
        assert_eq!(Some(&first), key(&fixture.payload).as_ref(), "{}", fixture.name);
        assert!(keys.insert(first), "{}: another fixture has its key", fixture.name);
    }
}

/// What the capabilities exclude fails with [`DeliveryError::Unsupported`]; what they declare is done. No call succeeds
/// without effect.
///
/// # Panics
/// When the check fails.
pub async fn capabilities_and_deliver_agree(double: &dyn PlatformDouble) {
    let (adapter, conversation) = (double.adapter(), double.conversation());
    let capabilities = adapter.capabilities(&conversation);
    let by_platform = capabilities.receipts == Receipts::Platform;
    let content = |text: &str| Content { text: text.to_owned(), ..Content::default() };

    let sent = adapter.deliver(&text(&conversation, "first words").build()).await;
    if capabilities.receipts == Receipts::Row {
        assert!(matches!(sent, Err(DeliveryError::Unsupported(_))), "a row is not sent: {sent:?}");
    } else {
        let receipt = sent.expect("a text is sent");
        assert!(!receipt.message_id.is_empty(), "a receipt names its message");
        assert!(double.shown().await.iter().any(|shown| shown.contains("first words")), "the message is shown");
        let message = receipt.message_id;

        let edit = Action::Edit { message, content: content("second words"), reply_to: None };
        let edited = adapter.deliver(&delivery(&conversation, edit).build()).await;
        if agrees("edit", by_platform.then_some(capabilities.edit), &edited) {
            let shown = double.shown().await;
            assert!(shown.iter().any(|shown| shown.contains("second words")), "the edited text is shown");
            assert!(!shown.iter().any(|shown| shown.contains("first words")), "the earlier text is replaced");
        }

        let emoji = capabilities.allowed_reactions.as_ref().and_then(|allowed| allowed.first()).map_or("👍", |it| it);
        let react = Action::React { message: Some(double.incoming_message_id()), emoji: emoji.to_owned() };
        let reacted = adapter.deliver(&delivery(&conversation, react).build()).await;
        agrees("reactions", by_platform.then_some(capabilities.reactions), &reacted);
        for on in [true, false] {
            let mark = Action::Mark { message: double.incoming_message_id(), emoji: emoji.to_owned(), on };
            let marked = adapter.deliver(&delivery(&conversation, mark).build()).await;
            agrees("marks", by_platform.then_some(capabilities.reactions), &marked);
        }
    }
    let mut message = None;
    if capabilities.drafts_are_messages {
        let begun = adapter
            .deliver(&delivery(&conversation, Action::Send { content: content("half"), reply_to: None }).build())
            .await;
        message = Some(begun.expect("the first draft is a message").message_id);
    }
    let (text, reply_to) = ("half a sen".to_owned(), Some(double.incoming_message_id()));
    let draft = Action::Draft { text, steps: Vec::new(), message, reply_to };
    let drafted = adapter.deliver(&delivery(&conversation, draft).build()).await;
    agrees("drafts", Some(capabilities.drafts), &drafted);
    let typing = async |on| adapter.deliver(&delivery(&conversation, Action::Typing { on }).build()).await;
    agrees("typing", Some(capabilities.typing), &typing(true).await);
    let end = if capabilities.typing_ends_by_itself { Support::No } else { capabilities.typing };
    agrees("the end of typing", Some(end), &typing(false).await);
}

/// Checks a result against the declared support, if any. Returns whether the call succeeded.
fn agrees<T: std::fmt::Debug>(what: &str, support: Option<Support>, result: &Result<T, DeliveryError>) -> bool {
    match support {
        Some(Support::No) => {
            assert!(matches!(result, Err(DeliveryError::Unsupported(_))), "{what} is not supported: {result:?}");
        }
        Some(Support::Degraded | Support::Full) => assert!(result.is_ok(), "{what} is supported: {result:?}"),
        None => {}
    }
    result.is_ok()
}

/// A7. The adapter recognises text that renders to nothing; text that it calls visible is visible when sent.
///
/// # Panics
/// When the check fails.
pub async fn what_shows_something_is_shown(double: &dyn PlatformDouble) {
    let (adapter, conversation) = (double.adapter(), double.conversation());
    for blank in ["", " \n", "\u{200b}", "\u{fe0f}", "\u{e0020}"] {
        assert!(!adapter.shows_anything(blank), "{blank:?}");
    }
    for (markdown, visible) in [SEEN[0], SEEN[1], SEEN[10]] {
        assert!(adapter.shows_anything(markdown), "{markdown:?}");
        if adapter.capabilities(&conversation).receipts == Receipts::Platform {
            adapter.deliver(&text(&conversation, markdown).build()).await.expect("a text is sent");
            let shown = double.shown().await;
            assert!(shown.last().is_some_and(|shown| shown.contains(visible)), "{markdown:?}: {shown:?}");
        }
    }
}

/// A text that exceeds the limit is split into parts within the limit, which arrive in order. Code fences are closed in
/// every part.
///
/// # Panics
/// When the check fails.
pub async fn a_long_text_arrives_in_parts_and_in_order(double: &dyn PlatformDouble) {
    let (adapter, conversation) = (double.adapter(), double.conversation());
    let capabilities = adapter.capabilities(&conversation);
    let Some(limit) = capabilities.text_limit else {
        assert_eq!(adapter.parts("word ").len(), 1, "without a limit there is one part");
        return;
    };
    let words = || (0..limit.max).map(|number| format!("wörd{number}🎉 "));
    let plain: String = words().take(limit.max / 3).collect();
    let unbroken = "🎉".repeat(limit.max * 2);
    let fenced =
        format!("Look:\n\n```rust\n{}\n```\n\nThat is it.", words().take(limit.max / 3).collect::<Vec<_>>().join("\n"));
    for text in [&plain, &unbroken, &fenced] {
        let parts = adapter.parts(text);
        assert!(parts.len() > 1, "the text does not fit in one part");
        for part in &parts {
            assert!(!part.trim().is_empty(), "no part is empty");
            assert!(length(part, limit) <= limit.max, "a part of {} is too long", length(part, limit));
            assert_eq!(part.matches("```").count() % 2, 0, "a code fence is left open");
        }
    }
    let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
    assert_eq!(letters(&adapter.parts(&plain).concat()), letters(&plain), "nothing is lost");
    if capabilities.receipts == Receipts::Row {
        return;
    }

    let before = double.shown().await.len();
    let parts = adapter.parts(&plain);
    let count = u32::try_from(parts.len()).unwrap_or(u32::MAX);
    let mut ids = Vec::new();
    for (number, part) in (1..).zip(&parts) {
        let part = text(&conversation, part).part(number, count).build();
        ids.push(adapter.deliver(&part).await.expect("every part is sent").message_id);
    }
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len(), "every message has an id of its own");
    let shown = double.shown().await;
    let first_words = |text: &String| text.split_whitespace().next().map(str::to_owned);
    let expected: Vec<_> = parts.iter().map(first_words).collect();
    assert_eq!(shown[before..].iter().map(first_words).collect::<Vec<_>>(), expected, "in their order");
}

/// Sends pictures, each with bytes of its own, and a text as one message.
async fn send_pictures(double: &dyn PlatformDouble, count: usize, text: &str) -> Result<Receipt, DeliveryError> {
    let (adapter, conversation) = (double.adapter(), double.conversation());
    let picture = |number: usize| Attachment {
        name: format!("{number}.png"),
        media_type: "image/png".to_owned(),
        url: data_url("image/png", format!("picture {number}").as_bytes()),
    };
    let attachments: Vec<_> = (0..count).map(picture).collect();
    let has_albums = adapter.capabilities(&conversation).files_per_message > 1;
    assert!(!has_albums || attachments.iter().all(|file| adapter.album_of(file).is_some()), "pictures are an album");
    let content = Content { text: text.to_owned(), attachments, ..Content::default() };
    adapter.deliver(&delivery(&conversation, Action::Send { content, reply_to: None }).build()).await
}

/// K3. Where files are sent as such, as many as declared arrive as one message with their caption, and more are not accepted. Each
/// message of an album has an id of its own.
///
/// # Panics
/// When the check fails.
pub async fn files_arrive_with_their_caption(double: &dyn PlatformDouble) {
    let capabilities = double.adapter().capabilities(&double.conversation());
    if capabilities.receipts != Receipts::Platform || capabilities.attachments != Support::Full {
        return;
    }
    let most = capabilities.files_per_message;
    let has_caption = capabilities.caption_limit.is_some();
    for count in [1, most] {
        let caption = if has_caption { format!("caption of {count}") } else { String::new() };
        let before = double.shown().await.len();

        let receipt = send_pictures(double, count, &caption).await.expect("files are sent");

        let ids: HashSet<_> = receipt.ids().collect();
        assert_eq!(ids.len(), receipt.ids().count(), "every message has an id of its own: {receipt:?}");
        let shown = double.shown().await;
        assert_eq!(shown.len() - before, ids.len(), "the receipt names every message");
        let captions = shown[before..].iter().filter(|shown| shown.contains(&caption)).count();
        assert!(!has_caption || captions == 1, "the caption is shown once: {shown:?}");
    }
    let too_many = send_pictures(double, most + 1, "").await;
    assert!(matches!(too_many, Err(DeliveryError::Unsupported(_))), "{too_many:?}");
}

/// K7. A text that exceeds the limit of captions is no caption; a much shorter one is.
///
/// # Panics
/// When the check fails.
#[expect(clippy::unused_async, reason = "a check is awaited")]
pub async fn a_caption_fits_as_declared(double: &dyn PlatformDouble) {
    let adapter = double.adapter();
    let Some(limit) = adapter.capabilities(&double.conversation()).caption_limit else { return };
    let text = |length: usize| "word ".repeat(length / 5 + 1);
    assert!(adapter.fits_caption(&text(limit.max / 4)), "a short text is a caption");
    let is_whole = |text: &str| adapter.parts(text).len() == 1;
    let long = text(limit.max);
    assert!(!is_whole(&long) || !adapter.fits_caption(&long), "a text of {} is too long", length(&long, limit));
}

fn length(text: &str, limit: TextLimit) -> usize {
    match limit.unit {
        TextUnit::Bytes => text.len(),
        TextUnit::Utf16 => text.encode_utf16().count(),
        TextUnit::Chars => text.chars().count(),
    }
}

/// Sends a text while `failure` is set, and returns the error; `None` if the platform has no such failure.
async fn send_into_failure(double: &dyn PlatformDouble, failure: PlatformFailure) -> Option<(Delivery, DeliveryError)> {
    let (adapter, conversation) = (double.adapter(), double.conversation());
    if adapter.capabilities(&conversation).receipts == Receipts::Row || !double.fail_next(failure.clone()).await {
        return None;
    }
    let delivery = text(&conversation, "into failure").build();
    match adapter.deliver(&delivery).await {
        Ok(receipt) => panic!("{failure:?} gave a receipt: {receipt:?}"),
        Err(error) => Some((delivery, error)),
    }
}

/// A 429 gives [`DeliveryError::Limited`] with its wait and its scope.
///
/// # Panics
/// When the check fails.
pub async fn a_limit_says_for_how_long(double: &dyn PlatformDouble) {
    for scope in [Scope::Conversation, Scope::Account] {
        let failure = PlatformFailure::Limit { retry_after: Duration::from_secs(7), scope: scope.clone() };
        let Some((_, error)) = send_into_failure(double, failure).await else { continue };
        assert!(
            matches!(&error, DeliveryError::Limited { retry_after, scope: blocked, .. }
                if *retry_after >= Duration::from_secs(7) && *blocked == scope),
            "{error:?}"
        );
    }
}

/// A lost response gives [`DeliveryError::Unknown`]. Where a resend is idempotent, the message is then shown once.
///
/// # Panics
/// When the check fails.
pub async fn a_lost_response_is_unknown(double: &dyn PlatformDouble) {
    let (adapter, conversation) = (double.adapter(), double.conversation());
    let before = double.shown().await.len();
    let Some((mut delivery, error)) = send_into_failure(double, PlatformFailure::LoseResponse).await else { return };
    assert!(matches!(error, DeliveryError::Unknown(_)), "{error:?}");
    if adapter.capabilities(&conversation).resend == Resend::Idempotent {
        delivery.attempt = 2;
        adapter.deliver(&delivery).await.expect("it is sent again");
        assert_eq!(double.shown().await.len(), before + 1, "it is shown once");
    }
}

/// A permanent rejection gives [`DeliveryError::Refused`].
///
/// # Panics
/// When the check fails.
pub async fn what_is_refused_is_refused(double: &dyn PlatformDouble) {
    if let Some((_, error)) = send_into_failure(double, PlatformFailure::Refuse).await {
        assert!(matches!(error, DeliveryError::Refused(_)), "{error:?}");
    }
}

/// A failure that certainly had no effect gives [`DeliveryError::NotSent`].
///
/// # Panics
/// When the check fails.
pub async fn what_failed_was_not_sent(double: &dyn PlatformDouble) {
    if let Some((_, error)) = send_into_failure(double, PlatformFailure::Fail).await {
        assert!(matches!(error, DeliveryError::NotSent { .. }), "{error:?}");
    }
}

/// Rejected credentials give [`DeliveryError::Unauthorized`].
///
/// # Panics
/// When the check fails.
pub async fn credentials_that_are_refused_are_named(double: &dyn PlatformDouble) {
    if let Some((_, error)) = send_into_failure(double, PlatformFailure::Unauthorized).await {
        assert!(matches!(error, DeliveryError::Unauthorized(_)), "{error:?}");
    }
}
