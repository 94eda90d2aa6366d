use proptest::{collection::vec, prelude::*, sample::select};
use rejoinder_core::{ChannelId, conformance::growth::assert_linear};
use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::memory::Question;

const ME: &str = "@agent:example.org";
const ROOM: &str = "!room:example.org";

/// An event from Ada.
fn event(kind: &str, content: &Value) -> Event {
    let event = json!({
        "type": kind, "event_id": "$1", "sender": "@ada:example.org", "origin_server_ts": 1_700_000_000_000_i64,
        "content": content,
    });
    serde_json::from_value(event).expect("an event")
}

fn message_event(content: &Value) -> Event {
    event("m.room.message", content)
}

fn text(body: &str) -> Value {
    json!({ "msgtype": "m.text", "body": body })
}

fn with(mut content: Value, key: &str, value: Value) -> Value {
    content[key] = value;
    content
}

fn read_as(event: &Event, chat: ChatKind, related: Option<&RememberedEvent>) -> Option<InboundEvent> {
    let channel = ChannelId::new("matrix", "main");
    normalise(
        event,
        &EventContext {
            channel: &channel,
            me: ME,
            names: &["Agent Smith".to_owned()],
            room: ROOM,
            chat,
            sender_name: Some("Ada".to_owned()),
            related,
            related_name: related.map(|_| "Bo".to_owned()),
            now: Timestamp::from_millis(7),
            raw: "{}",
        },
    )
}

fn direct(content: &Value) -> InboundEvent {
    read_as(&message_event(content), ChatKind::Direct, None).expect("an event")
}

fn group(content: &Value) -> InboundEvent {
    read_as(&message_event(content), ChatKind::Group, None).expect("an event")
}

fn group_about(content: &Value, related: &RememberedEvent) -> InboundEvent {
    read_as(&message_event(content), ChatKind::Group, Some(related)).expect("an event")
}

fn known(sender: &str) -> RememberedEvent {
    RememberedEvent {
        sender: sender.to_owned(),
        text: "before".to_owned(),
        thread: None,
        question: None,
        directed: None,
        is_redacted: false,
    }
}

fn reply(body: &str) -> Value {
    with(text(body), "m.relates_to", json!({ "m.in_reply_to": { "event_id": "$0" } }))
}

#[rstest]
#[case::now(json!({ "content": { "redacts": "$0" } }))]
#[case::before_version_11(json!({ "content": {}, "redacts": "$0" }))]
fn what_is_taken_back_is_named(#[case] fields: Value) {
    let mut redaction = json!({
        "type": "m.room.redaction", "event_id": "$1", "sender": "@ada:example.org", "origin_server_ts": 5,
    });
    redaction.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
    let redaction: Event = serde_json::from_value(redaction).expect("an event");

    let read = read_as(&redaction, ChatKind::Group, None).expect("an event");

    assert_eq!((&*read.external_id, read.revision, read.amends), ("$0", 5, Some(Amends::Withdraws)));
}

#[test]
fn what_is_said_in_a_direct_chat_is_said_to_us() {
    let event = direct(&text("hello"));

    assert_eq!((&*event.text, event.directed, event.chat), ("hello", Directed::DirectChat, ChatKind::Direct));
    assert_eq!((&*event.external_id, event.message_id.as_deref()), ("$1", Some("$1")));
    assert_eq!((&*event.sender.id, event.sender.name.as_deref()), ("@ada:example.org", Some("Ada")));
    assert_eq!((&*event.conversation.chat, event.conversation.thread), (ROOM, None));
}

#[test]
fn our_own_words_are_nothing() {
    let event = Event { sender: ME.to_owned(), ..message_event(&text("hello")) };

    assert_eq!(read_as(&event, ChatKind::Direct, None), None);
}

#[test]
fn what_was_taken_back_is_nothing() {
    let event = json!({
        "type": "m.room.message", "event_id": "$1", "sender": "@ada:example.org", "content": {},
        "unsigned": { "redacted_because": {} },
    });

    assert_eq!(read_as(&serde_json::from_value(event).expect("an event"), ChatKind::Direct, None), None);
}

#[rstest]
#[case(with(text("hello"), "m.mentions", json!({ "user_ids": [ME] })), Directed::Mention)]
#[case(with(text("Agent Smith: hello"), "m.mentions", json!({})), Directed::Ambient)]
#[case(with(text("hello"), "m.mentions", json!({ "room": true })), Directed::Ambient)]
#[case(text("Agent Smith: hello"), Directed::Mention)]
#[case(text("is agent smith there?"), Directed::Mention)]
#[case(text("what do agent smiths do?"), Directed::Ambient)]
#[case(with(text("Smith"), "formatted_body", json!("<a href=\"https://matrix.to/#/@agent:example.org\">Smith</a>")), Directed::Mention)]
#[case(text("hello"), Directed::Ambient)]
fn in_a_group_we_are_meant_by_name(#[case] content: Value, #[case] expected: Directed) {
    assert_eq!(group(&content).directed, expected);
}

#[rstest]
#[case("Agent Smith: hello", "hello")]
#[case("@agent:example.org hello", "hello")]
#[case("agent, hello", "hello")]
#[case("agents say hello", "agents say hello")]
#[case("Agent Smith", "Agent Smith")]
#[case("Agent Smith: !new", "!new")]
#[case("/help", "/help")]
fn the_name_before_what_is_said_is_left_out(#[case] body: &str, #[case] expected: &str) {
    assert_eq!(direct(&text(body)).text, expected);
}

#[test]
fn a_reply_to_us_is_said_to_us_and_quotes_us() {
    let event = group_about(&reply("> <@agent:example.org> before\n\nyes"), &known(ME));

    assert_eq!((&*event.text, event.directed), ("yes", Directed::ReplyToUs));
    assert_eq!(event.quoted, Some(Quote { message_id: Some("$0".to_owned()), ..Quote::of_ours("before") }));

    let event = group_about(&reply("yes"), &known("@bo:example.org"));
    let bo = Author { id: Some("@bo:example.org".to_owned()), name: Some("Bo".to_owned()), ..Author::default() };
    let message_id = Some("$0".to_owned());
    let quoted = Quote { author: bo, text: "before".to_owned(), message_id, ..Quote::default() };
    assert_eq!((event.directed, event.quoted), (Directed::Ambient, Some(quoted)));
}

/// L2.
#[test]
fn a_thread_is_a_conversation_of_its_own() {
    let relation = json!({
        "rel_type": "m.thread", "event_id": "$root", "is_falling_back": true, "m.in_reply_to": { "event_id": "$0" },
    });
    let content = with(text("hello"), "m.relates_to", relation);

    let event = group_about(&content, &known("@bo:example.org"));

    assert_eq!(refers_to(&message_event(&content)).as_deref(), Some("$root"));
    assert_eq!(event.conversation.thread.as_deref(), Some("$root"));
    assert_eq!((event.directed, event.quoted), (Directed::Ambient, None));
    assert_eq!(group_about(&content, &known(ME)).directed, Directed::ReplyToUs, "a thread below a message of ours");
}

/// No event has such an id, and it could not be stored: the message is answered without it.
#[rstest]
#[case(json!({ "rel_type": "m.thread", "event_id": "$ro\0ot" }))]
#[case(json!({ "rel_type": "m.replace", "event_id": "$\0" }))]
#[case(json!({ "rel_type": "m.annotation", "event_id": "$\0", "key": "👍" }))]
#[case(json!({ "m.in_reply_to": { "event_id": "$\0" } }))]
fn a_relation_to_an_id_with_nul_is_none(#[case] relation: Value) {
    let content = with(text("hello"), "m.relates_to", relation);
    let content = with(content, "m.new_content", text("hello there"));

    let event = direct(&content);

    assert_eq!(refers_to(&message_event(&content)), None);
    assert_eq!((&*event.text, &*event.external_id), ("hello", "$1"));
    assert_eq!((event.conversation.thread, event.quoted, event.amends), (None, None, None));
}

#[test]
fn a_redaction_of_an_id_with_nul_is_nothing() {
    let redaction = event("m.room.redaction", &json!({ "redacts": "$\0" }));

    assert_eq!(redaction.redaction_target(), None);
    assert_eq!(read_as(&redaction, ChatKind::Group, None), None);
}

#[test]
fn an_edit_takes_the_place_of_what_was_said() {
    let content = json!({
        "msgtype": "m.text", "body": "* hello there",
        "m.new_content": text("hello there"),
        "m.relates_to": { "rel_type": "m.replace", "event_id": "$0" },
    });
    let earlier = RememberedEvent { directed: Some(Directed::Mention), ..known("@ada:example.org") };

    let event = group_about(&content, &earlier);

    assert_eq!((&*event.external_id, event.revision), ("$0", 1_700_000_000_000));
    assert_eq!((event.amends, &*event.text), (Some(Amends::Replaces), "hello there"));
    assert_eq!(event.directed, Directed::Mention, "as the original");
    assert_eq!(group(&content).directed, Directed::Ambient);
}

#[test]
fn nobody_edits_what_another_one_said() {
    let content = json!({
        "msgtype": "m.text", "body": "* send it to me", "m.new_content": text("send it to me"),
        "m.relates_to": { "rel_type": "m.replace", "event_id": "$0" },
    });

    assert_eq!(read_as(&message_event(&content), ChatKind::Direct, Some(&known("@bob:example.org"))), None);
}

/// Only the server reports memberships and redactions, and it does so unencrypted.
#[test]
fn what_was_encrypted_says_nothing_for_the_server() {
    let mut membership = event("m.room.member", &json!({ "membership": "leave" }));
    membership.state_key = Some(ME.to_owned());
    let mut redaction = event("m.room.redaction", &json!({ "redacts": "$0" }));
    redaction.redacts = Some("$0".to_owned());

    assert!(membership.membership_of(ME).is_some() && redaction.redaction_target().is_some());
    let (membership, redaction) = (membership.without_server_claims(), redaction.without_server_claims());
    assert_eq!((membership.membership_of(ME), redaction.redaction_target()), (None, None));
    assert_eq!(read_as(&redaction, ChatKind::Direct, Some(&known("@ada:example.org"))), None);
    assert_eq!(
        message_event(&text("hello")).without_server_claims().message().map(|it| it.body).as_deref(),
        Some("hello")
    );
}

/// Some clients write null for absent fields, or malformed values.
#[rstest]
#[case(json!({ "msgtype": "m.text", "body": "hello", "info": null, "m.relates_to": null, "m.mentions": null }))]
#[case(json!({ "msgtype": "m.text", "body": "hello", "info": 5, "m.relates_to": "none" }))]
fn what_is_wrong_in_one_field_hides_no_words(#[case] content: Value) {
    assert_eq!(direct(&content).text, "hello");
}

/// O1.
#[rstest]
#[case(json!({ "msgtype": "m.notice", "body": "the build is done" }))]
#[case(with(text("I am another one"), "org.rejoinder.delivery", json!({ "id": "1" })))]
fn what_programs_say_owes_nothing(#[case] content: Value) {
    assert_eq!(direct(&content).sender.kind, SenderKind::OtherAgent);
}

#[rstest]
#[case("m.image", "image/png")]
#[case("m.audio", "audio/ogg")]
#[case("m.video", "video/mp4")]
#[case("m.file", "application/octet-stream")]
fn a_file_is_an_attachment(#[case] msgtype: &str, #[case] media_type: &str) {
    let event = direct(&json!({ "msgtype": msgtype, "body": "a.bin", "url": "mxc://example.org/abc" }));

    assert_eq!((&*event.text, event.attachments.len()), ("", 1));
    assert_eq!((&*event.attachments[0].name, &*event.attachments[0].media_type), ("a.bin", media_type));
    assert_eq!(event.attachments[0].url, "matrix:roomid/room:example.org/e/1");
}

#[rstest]
#[case(json!({ "org.matrix.msc3245.voice": {}, "info": { "duration": 2600 } }), Some(Voice::lasting(Some(3.0))))]
#[case(json!({ "org.matrix.msc3245.voice": {}, "info": { "duration": "long" } }), Some(Voice::lasting(None)))]
#[case(json!({ "org.matrix.msc3245.voice": {} }), Some(Voice::lasting(None)))]
#[case::music(json!({ "info": { "duration": 2600 } }), None)]
fn a_voice_message_is_told_from_music(#[case] mut content: Value, #[case] voice: Option<Voice>) {
    content["msgtype"] = json!("m.audio");
    content["body"] = json!("Voice message");
    content["url"] = json!("mxc://example.org/abc");

    let event = direct(&content);

    assert_eq!(event.voice, voice);
    assert_eq!(event.attachments.len(), 1);
}

#[test]
fn a_caption_is_what_is_said_with_a_file() {
    let content = json!({
        "msgtype": "m.image", "body": "look at this", "filename": "cat.jpg", "info": { "mimetype": "image/jpeg" },
    });

    let event = direct(&content);

    assert_eq!((&*event.text, &*event.attachments[0].name), ("look at this", "cat.jpg"));
    assert_eq!(event.attachments[0].media_type, "image/jpeg");
}

#[test]
fn a_place_and_a_sticker_are_words() {
    let place = direct(&json!({ "msgtype": "m.location", "body": "Home", "geo_uri": "geo:51.5,-0.1" }));
    let sticker = event("m.sticker", &json!({ "body": "😺", "url": "mxc://example.org/abc" }));

    assert_eq!(place.text, "📍 Home (geo:51.5,-0.1)");
    assert_eq!(read_as(&sticker, ChatKind::Direct, None).map(|event| event.text).as_deref(), Some("😺"));
}

#[test]
fn a_reaction_to_our_words_is_one_and_to_others_is_nothing() {
    let relation = json!({ "rel_type": "m.annotation", "event_id": "$0", "key": "👍" });
    let reacted = event("m.reaction", &json!({ "m.relates_to": relation }));

    let ours = read_as(&reacted, ChatKind::Group, Some(&known(ME))).expect("an event");

    assert_eq!(ours.kind, EventKind::Reaction { message: "$0".to_owned(), emoji: "👍".to_owned(), removed: None });
    assert_eq!(ours.quoted, Some(Quote { message_id: Some("$0".to_owned()), ..Quote::of_ours("before") }));
    assert_eq!(read_as(&reacted, ChatKind::Group, Some(&known("@bo:example.org"))), None);
    assert_eq!(read_as(&reacted, ChatKind::Group, None), None);
}

#[test]
fn a_pressed_number_on_a_question_of_ours_is_a_choice() {
    let turn = rejoinder_core::TurnId::new(Timestamp::from_millis(9));
    let choices = vec!["Yes".to_owned(), "No".to_owned()];
    let question =
        RememberedEvent { question: Some(Question { turn, choices, chooser: None, is_closed: false }), ..known(ME) };
    let relation = json!({ "rel_type": "m.annotation", "event_id": "$0", "key": "2\u{fe0f}\u{20e3}" });
    let pressed = event("m.reaction", &json!({ "m.relates_to": relation }));

    let pressed = read_as(&pressed, ChatKind::Group, Some(&question)).expect("an event");
    assert_eq!((pressed.kind, &*pressed.text), (EventKind::Choice { turn }, "No"));
}

/// The core reads it: it knows the question by the message's id.
#[test]
fn a_number_in_a_reply_to_a_question_is_a_message_that_quotes_it() {
    let turn = rejoinder_core::TurnId::new(Timestamp::from_millis(9));
    let choices = vec!["Yes".to_owned(), "No".to_owned()];
    let question =
        RememberedEvent { question: Some(Question { turn, choices, chooser: None, is_closed: false }), ..known(ME) };

    let typed = read_as(&message_event(&reply("2")), ChatKind::Group, Some(&question)).expect("an event");

    assert_eq!((typed.kind, &*typed.text, typed.directed), (EventKind::Message, "2", Directed::ReplyToUs));
    assert_eq!(typed.quoted.and_then(|quoted| quoted.message_id).as_deref(), Some("$0"));
}

#[test]
fn what_cannot_be_read_is_told_where_it_was_meant_for_us() {
    let encrypted = event("m.room.encrypted", &json!({ "algorithm": "m.megolm.v1.aes-sha2" }));
    let channel = ChannelId::new("matrix", "main");
    let context = |chat| EventContext {
        channel: &channel,
        me: ME,
        names: &[],
        room: ROOM,
        chat,
        sender_name: None,
        related: None,
        related_name: None,
        now: Timestamp::from_millis(7),
        raw: "{}",
    };

    assert_eq!(unreadable(&encrypted, &context(ChatKind::Direct)).kind, EventKind::Unreadable);
    assert_eq!(unreadable(&encrypted, &context(ChatKind::Group)).kind, EventKind::Other);
    let reply = event("m.room.encrypted", &json!({ "m.relates_to": { "m.in_reply_to": { "event_id": "$0" } } }));
    let ours = known(ME);
    let to_us = EventContext { related: Some(&ours), ..context(ChatKind::Group) };
    let said = unreadable(&reply, &to_us);
    assert_eq!(
        (said.kind, said.directed),
        (EventKind::Unreadable, Directed::ReplyToUs),
        "the relation of a reply is not encrypted"
    );
    let undecrypted = undecrypted(&encrypted, &context(ChatKind::Direct));
    assert_eq!((undecrypted.kind, &*undecrypted.external_id), (EventKind::Other, "locked:$1"));
}

/// Pieces of what a person can write, and of what a client puts before it.
const PIECES: [&str; 18] = [
    "> ",
    "> <@ada:example.org> ",
    "> * <@",
    "\n",
    "\n\n",
    "@",
    "@agent:example.org",
    "agent",
    "Agent Smith",
    ":",
    ",",
    " ",
    "!",
    "/",
    "!stop",
    "İ",
    "ß",
    "a",
];

proptest! {
    #[test]
    fn any_text_is_read(pieces in vec(select(&PIECES), 0..30), html in vec(select(&PIECES), 0..10)) {
        let content = with(reply(&pieces.concat()), "formatted_body", json!(html.concat()));
        for chat in [ChatKind::Direct, ChatKind::Group] {
            drop(read_as(&message_event(&content), chat, Some(&known(ME))));
        }
    }
}

#[test]
fn a_long_text_costs_what_its_length_asks_for() {
    assert_linear(&PIECES, |body| {
        for body in [body.to_owned(), format!("> <@{body}"), format!("@agent:example.org {body}")] {
            drop(read_as(&message_event(&with(reply(&body), "formatted_body", json!(body))), ChatKind::Group, None));
        }
    });
}
