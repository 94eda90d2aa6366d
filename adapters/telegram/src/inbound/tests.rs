use rejoinder_core::{Amends, Attachment, Author, ConversationRef, Directed, Language, Quote, TurnId, Voice};
use rejoinder_kit::pick_data;
use rstest::rstest;
use serde_json::{Value, json};

use super::*;

const GROUP: i64 = -100_500;

fn me() -> BotProfile {
    BotProfile { id: 7, username: "our_bot".to_owned(), ..BotProfile::default() }
}

fn ada() -> Value {
    json!({"id": 42, "is_bot": false, "first_name": "Ada", "last_name": "L", "username": "ada_l"})
}

fn us() -> Value {
    json!({"id": 7, "is_bot": true, "first_name": "Bot", "username": "our_bot"})
}

fn private() -> Value {
    json!({"id": 42, "type": "private", "first_name": "Ada"})
}

fn group() -> Value {
    json!({"id": GROUP, "type": "supergroup", "title": "Friends"})
}

/// A message with `fields` added to the required ones.
fn message(chat: &Value, fields: &Value) -> Value {
    let mut message = json!({"message_id": 11, "date": 1_700_000_000, "from": ada(), "chat": chat});
    let message_fields = message.as_object_mut().expect("an object");
    message_fields.extend(fields.as_object().expect("an object").clone());
    message
}

fn read_with(sent: &OwnMessages, update: &Value) -> ReadUpdate {
    let (channel, me) = (ChannelId::new("telegram", "main"), me());
    let reader = Reader { channel: &channel, me: &me, sent, now: Timestamp::from_millis(5) };
    reader.read(&update.to_string())
}

fn read(update: &Value) -> ReadUpdate {
    read_with(&OwnMessages::default(), update)
}

/// The event of a new message.
fn message_event(chat: &Value, fields: &Value) -> InboundEvent {
    read(&json!({"update_id": 1, "message": message(chat, fields)})).event
}

fn conversation(chat: i64) -> ConversationRef {
    ConversationRef::new(ChannelId::new("telegram", "main"), &chat.to_string())
}

fn file(name: &str, media_type: &str, id: &str) -> Attachment {
    Attachment { name: name.to_owned(), media_type: media_type.to_owned(), url: format!("telegram:{id}") }
}

#[test]
fn a_private_message_is_for_us() {
    let update = json!({"update_id": 1, "message": message(&private(), &json!({"text": "hello"}))});

    let ReadUpdate { number, query, event, .. } = read(&update);

    assert_eq!((number, query), (Some(1), None));
    assert_eq!(event.conversation, conversation(42));
    assert_eq!((event.chat, event.directed), (ChatKind::Direct, Directed::DirectChat));
    assert_eq!((event.external_id.as_str(), event.revision), ("42:11", 0));
    assert_eq!(event.message_id.as_deref(), Some("11"));
    assert_eq!(
        event.sender,
        Sender {
            id: "42".to_owned(),
            name: Some("Ada L".to_owned()),
            username: Some("ada_l".to_owned()),
            kind: SenderKind::Person
        }
    );
    assert_eq!((event.text.as_str(), event.raw), ("hello", update.to_string()));
}

#[rstest]
#[case(json!({"text": "hello all"}), Directed::Ambient)]
#[case(json!({"text": "@our_bot hi", "entities": [{"type": "mention", "offset": 0, "length": 8}]}), Directed::Mention)]
#[case(json!({"photo": [{"file_id": "p"}], "caption": "@our_bot?",
    "caption_entities": [{"type": "mention", "offset": 0, "length": 8}]}), Directed::Mention)]
#[case(json!({"text": "/stop", "entities": [{"type": "bot_command", "offset": 0, "length": 5}]}), Directed::Command)]
#[case(json!({"text": "/stop@our_bot", "entities": [{"type": "bot_command", "offset": 0, "length": 13}]}),
    Directed::Command)]
#[case(json!({"text": "/stop@another", "entities": [{"type": "bot_command", "offset": 0, "length": 13}]}),
    Directed::Ambient)]
#[case(json!({"text": "why?", "reply_to_message": message(&group(), &json!({"from": us(), "text": "so"}))}),
    Directed::ReplyToUs)]
#[case(json!({"text": "why?", "reply_to_message": message(&group(), &json!({"text": "so"}))}), Directed::Ambient)]
fn in_a_group_it_depends_on_whom_it_is_for(#[case] fields: Value, #[case] expected: Directed) {
    let event = message_event(&group(), &fields);

    assert_eq!((event.chat, event.directed), (ChatKind::Group, expected));
}

#[test]
fn a_command_is_for_us_without_our_name_on_it() {
    let event = message_event(
        &group(),
        &json!({"text": "/stop@our_bot", "entities": [{"type": "bot_command", "offset": 0, "length": 13}]}),
    );

    assert_eq!(event.text, "/stop");
}

/// L2.
#[test]
fn a_topic_is_a_conversation_of_its_own_and_a_thread_of_replies_is_none() {
    let topic = |is_topic: bool| {
        let fields = json!({"text": "hi", "message_thread_id": 9, "is_topic_message": is_topic});
        message_event(&group(), &fields).conversation
    };

    assert_eq!(topic(true), conversation(GROUP).in_thread("9"));
    assert_eq!(topic(false), conversation(GROUP));
    let private_topic = json!({"text": "hi", "message_thread_id": 9, "is_topic_message": true});
    assert_eq!(message_event(&private(), &private_topic).conversation, conversation(42).in_thread("9"));
}

/// In a topic, Telegram marks a message without a reply as a reply to the topic's opening message.
#[test]
fn the_opening_of_a_topic_is_nothing_that_is_replied_to() {
    let opening = message(&group(), &json!({"from": us(), "forum_topic_created": {"name": "a", "icon_color": 1}}));
    let fields = json!({"text": "hi", "message_thread_id": 9, "is_topic_message": true, "reply_to_message": opening});

    let event = message_event(&group(), &fields);

    assert_eq!((event.directed, event.quoted), (Directed::Ambient, None));
}

#[test]
fn what_is_replied_to_is_given_along_with_its_files() {
    let replied_to = message(&private(), &json!({"photo": [{"file_id": "p"}], "caption": "my cat"}));

    let event = message_event(&private(), &json!({"text": "what is this?", "reply_to_message": replied_to}));

    let quoted = event.quoted.expect("a quote");
    assert_eq!((&*quoted.text, quoted.author), ("my cat", event.sender.into()));
    assert!(quoted.message_id.is_some());
    assert_eq!(quoted.attachments, [file("photo.jpg", "image/jpeg", "p")]);
    assert!(event.attachments.is_empty(), "they are not the sender's own");
}

fn eve() -> Value {
    json!({"id": 666, "is_bot": false, "first_name": "Eve", "username": "eve_x"})
}

fn author(id: &str, name: &str, username: Option<&str>, kind: SenderKind) -> Author {
    let (id, name, username) = (Some(id.to_owned()), Some(name.to_owned()), username.map(str::to_owned));
    Author { id, name, username, kind, ..Author::default() }
}

/// Telegram's kinds of origins, and who they name.
fn origins() -> [(Value, Author); 4] {
    let channel = json!({"id": -100_900, "type": "channel", "title": "News", "username": "news"});
    let group = json!({"id": -100_700, "type": "supergroup", "title": "Others"});
    [
        (
            json!({"type": "user", "date": 1, "sender_user": eve()}),
            author("666", "Eve", Some("eve_x"), SenderKind::Person).elsewhere(),
        ),
        (
            json!({"type": "hidden_user", "date": 1, "sender_user_name": "Ada"}),
            Author { name: Some("Ada".to_owned()), ..Author::unknown() },
        ),
        (
            json!({"type": "channel", "date": 1, "chat": channel, "message_id": 3, "author_signature": "Di"}),
            author("-100900", "Di", Some("news"), SenderKind::OtherAgent).elsewhere(),
        ),
        (
            json!({"type": "chat", "date": 1, "sender_chat": group}),
            author("-100700", "Others", None, SenderKind::Person).elsewhere(),
        ),
    ]
}

#[test]
fn who_wrote_a_forwarded_message_is_said() {
    for (origin, author) in origins() {
        let event = message_event(&private(), &json!({"text": "news", "forward_origin": origin}));

        assert_eq!((event.sender.id.as_str(), event.forwarded), ("42", Some(author)));
    }
    assert_eq!(message_event(&private(), &json!({"text": "news"})).forwarded, None);
}

#[test]
fn a_quote_names_who_wrote_it_first() {
    let quoted = |fields: Value| {
        let replied_to = message(&group(), &fields);
        message_event(&group(), &json!({"text": "so?", "reply_to_message": replied_to})).quoted.expect("a quote").author
    };

    assert_eq!(quoted(json!({"text": "x", "from": eve()})), author("666", "Eve", Some("eve_x"), SenderKind::Person));
    assert_eq!(quoted(json!({"text": "x", "from": us()})).kind, SenderKind::Ourselves);
    for (origin, author) in origins() {
        let fields = json!({
            "text": "so?", "quote": {"text": "part", "position": 0},
            "external_reply": {"origin": origin, "document": {"file_id": "x"}},
        });
        let elsewhere = Quote { author: author.clone(), text: "part".to_owned(), ..Quote::default() };
        assert_eq!(message_event(&group(), &fields).quoted, Some(elsewhere));
        assert_eq!(
            quoted(json!({"text": "x", "from": ada(), "forward_origin": origin})),
            author,
            "Ada only forwarded it"
        );
    }
}

#[test]
fn the_words_that_a_person_chose_are_what_is_quoted() {
    let replied_to = message(&private(), &json!({"text": "one two three"}));
    let fields = json!({"text": "why?", "reply_to_message": replied_to, "quote": {"text": "two", "position": 4}});

    assert_eq!(message_event(&private(), &fields).quoted.expect("a quote").text, "two");
}

#[test]
fn an_edit_is_a_revision_of_the_same_event() {
    let edited = message(&private(), &json!({"text": "hello!", "edit_date": 1_700_000_050}));

    let event = read(&json!({"update_id": 2, "edited_message": edited})).event;

    assert_eq!((event.external_id.as_str(), event.revision), ("42:11", 1_700_000_050));
    assert_eq!((event.amends, event.text.as_str()), (Some(Amends::Replaces), "hello!"));
}

#[test]
fn the_parts_of_an_album_are_messages_that_name_it() {
    let part = |id: i64, fields: &Value| {
        let mut part = message(&private(), fields);
        part["message_id"] = json!(id);
        part["media_group_id"] = json!("g1");
        part
    };
    let first = json!({"update_id": 1, "message": part(11, &json!({"photo": [{"file_id": "a"}], "caption": "cats"}))});
    let second = json!({"update_id": 2, "message": part(12, &json!({"photo": [{"file_id": "b"}]}))});

    let (first, second) = (read(&first).event, read(&second).event);

    assert_eq!((first.external_id.as_str(), second.external_id.as_str()), ("42:11", "42:12"));
    assert_eq!((first.part_of.as_deref(), second.part_of), (Some("42:g1"), first.part_of.clone()));
    assert!(first.more_within.is_some() && first.amends.is_none());
}

#[test]
fn an_edit_of_a_part_of_an_album_changes_that_part() {
    let edited =
        message(&private(), &json!({"media_group_id": "g1", "edit_date": 1_700_000_050, "photo": [{"file_id": "c"}]}));

    let event = read(&json!({"update_id": 3, "edited_message": edited})).event;

    assert_eq!((event.external_id.as_str(), event.amends), ("42:11", Some(Amends::Replaces)));
    assert_eq!(event.more_within, None);
}

/// If one part of an album in a group is directed at us, all parts are.
#[test]
fn an_album_is_directed_as_one() {
    let part = |id: i64, fields: &Value| {
        let mut part = message(&group(), fields);
        part["message_id"] = json!(id);
        part["media_group_id"] = json!("g1");
        read(&json!({"update_id": id, "message": part})).event
    };
    let mention = json!({"photo": [{"file_id": "b"}], "caption": "@our_bot?",
        "caption_entities": [{"type": "mention", "offset": 0, "length": 8}]});
    let mut events = [part(1, &json!({"photo": [{"file_id": "a"}]})), part(2, &mention)];
    let mut later = part(3, &json!({"photo": [{"file_id": "c"}]}));

    let albums = crate::receive::Albums::default();
    albums.share_direction(&mut events.iter_mut().collect::<Vec<_>>());
    albums.share_direction(&mut [&mut later]);

    assert!(events.iter().chain([&later]).all(|event| event.directed == Directed::Mention));
}

/// K3.
#[rstest]
#[case(json!({"photo": [{"file_id": "s", "width": 9, "height": 9}, {"file_id": "l", "width": 90, "height": 90}]}),
    file("photo.jpg", "image/jpeg", "l"))]
#[case(json!({"document": {"file_id": "d", "file_name": "a.pdf", "mime_type": "application/pdf"}}),
    file("a.pdf", "application/pdf", "d"))]
#[case(json!({"document": {"file_id": "d"}}), file("document", "application/octet-stream", "d"))]
#[case(json!({"voice": {"file_id": "v", "duration": 3, "mime_type": "audio/ogg"}}), file("voice.ogg", "audio/ogg", "v"))]
#[case(json!({"audio": {"file_id": "a", "duration": 3, "file_name": "song.mp3"}}),
    file("song.mp3", "audio/mpeg", "a"))]
#[case(json!({"video": {"file_id": "v", "duration": 3}}), file("video.mp4", "video/mp4", "v"))]
#[case(json!({"video_note": {"file_id": "n", "duration": 3, "length": 5}}), file("video.mp4", "video/mp4", "n"))]
#[case(json!({"animation": {"file_id": "g"}, "document": {"file_id": "g"}}), file("animation.mp4", "video/mp4", "g"))]
fn a_file_is_an_attachment(#[case] mut fields: Value, #[case] expected: Attachment) {
    fields["caption"] = json!("look");

    let event = message_event(&private(), &fields);

    assert_eq!(event.attachments, [expected]);
    assert_eq!((event.kind, event.text.as_str()), (EventKind::Message, "look"));
}

#[rstest]
#[case(json!({"voice": {"file_id": "v", "duration": 3, "mime_type": "audio/ogg"}}), Some(Voice::lasting(Some(3.0))))]
#[case(json!({"video_note": {"file_id": "n", "duration": 4, "length": 5}}), Some(Voice::lasting(Some(4.0))))]
#[case(json!({"voice": {"file_id": "v"}}), Some(Voice::lasting(None)))]
#[case::music(json!({"audio": {"file_id": "a", "duration": 3, "mime_type": "audio/ogg"}}), None)]
#[case::a_film(json!({"video": {"file_id": "v", "duration": 3}}), None)]
fn a_voice_note_is_told_from_music(#[case] fields: Value, #[case] voice: Option<Voice>) {
    let event = message_event(&private(), &fields);

    assert_eq!(event.voice, voice);
}

#[rstest]
#[case(json!({"sticker": {"file_id": "s", "emoji": "👍"}}), "👍")]
#[case(json!({"location": {"latitude": 52.5, "longitude": 13.25}}), "[location: 52.5, 13.25]")]
#[case(json!({"location": {"latitude": 1.0, "longitude": 2.0},
    "venue": {"location": {"latitude": 1.0, "longitude": 2.0}, "title": "Café", "address": "Main St 1"}}),
    "[venue: Café, Main St 1 (1, 2)]")]
#[case(json!({"contact": {"phone_number": "+49 1", "first_name": "Bob"}}), "[contact: Bob, +49 1]")]
#[case(json!({"dice": {"emoji": "🎲", "value": 4}}), "[🎲: 4]")]
#[case(json!({"poll": {"question": "Tea?", "options": [{"text": "yes"}, {"text": "no"}]}}), "[poll: Tea? yes / no]")]
fn what_is_neither_text_nor_file_has_words(#[case] fields: Value, #[case] expected: &str) {
    let event = message_event(&private(), &fields);

    assert_eq!((event.kind, event.text.as_str()), (EventKind::Message, expected));
}

/// O1.
#[rstest]
#[case(json!({"from": {"id": 8, "is_bot": true, "first_name": "Other"}}), SenderKind::OtherAgent)]
#[case(json!({"from": us()}), SenderKind::Ourselves)]
#[case(json!({"sender_chat": {"id": -100_900, "type": "channel", "title": "News"}}), SenderKind::OtherAgent)]
#[case(json!({"sender_chat": {"id": -100_900, "type": "channel"}, "is_automatic_forward": true}),
    SenderKind::OtherAgent)]
// An anonymous administrator of the group.
#[case(json!({"from": {"id": 1_087_968_824, "is_bot": true}, "sender_chat": group()}), SenderKind::Person)]
fn it_is_known_who_speaks(#[case] mut fields: Value, #[case] expected: SenderKind) {
    fields["text"] = json!("hello");

    assert_eq!(message_event(&group(), &fields).sender.kind, expected);
}

#[test]
fn a_post_of_a_channel_owes_nothing() {
    let chat = json!({"id": -100_900, "type": "channel", "title": "News"});
    let mut post = message(&chat, &json!({"text": "@our_bot", "sender_chat": chat}));
    post.as_object_mut().expect("an object").remove("from");
    let event = read(&json!({"update_id": 1, "channel_post": post})).event;

    assert_eq!((event.sender.kind, event.directed), (SenderKind::OtherAgent, Directed::Ambient));
}

#[test]
fn a_pressed_button_is_the_choice_that_stands_on_it() {
    let turn = TurnId::new(Timestamp::from_millis(9));
    let keyboard = json!({"inline_keyboard": [
        [{"text": "Tell me more", "callback_data": pick_data(turn, 0)}],
        [{"text": "Never mind", "callback_data": pick_data(turn, 1)}],
    ]});
    let question = message(&group(), &json!({"from": us(), "text": "Which?", "reply_markup": keyboard}));
    let pressed = |question: &Value| {
        json!({"update_id": 1, "callback_query": {"id": "q1", "from": ada(), "chat_instance": "1",
            "message": question, "data": pick_data(turn, 1)}})
    };

    let ReadUpdate { query, event, .. } = read(&pressed(&question));

    assert_eq!(query.as_deref(), Some("q1"));
    assert_eq!((event.kind, event.text.as_str()), (EventKind::Choice { turn }, "Never mind"));
    assert_eq!((event.external_id.as_str(), event.directed), ("callback:q1", Directed::ReplyToUs));
    assert_eq!((event.conversation, event.sender.id.as_str()), (conversation(GROUP), "42"));
    // Too old: the update lacks its text and buttons.
    let old = json!({"chat": group(), "message_id": 11, "date": 0});
    assert_eq!(read(&pressed(&old)).event.text, "2");
}

#[test]
fn a_button_that_is_not_ours_is_acknowledged_and_kept() {
    let query = json!({"id": "q2", "from": ada(), "chat_instance": "1", "data": "something else",
        "message": message(&private(), &json!({"from": us(), "text": "Which?"}))});

    let ReadUpdate { query, event, .. } = read(&json!({"update_id": 1, "callback_query": query}));

    assert_eq!((query.as_deref(), event.kind), (Some("q2"), EventKind::Other));
}

fn reacted(chat: &Value, old: &Value, new: &Value) -> Value {
    json!({"update_id": 1, "message_reaction": {"chat": chat, "message_id": 11, "user": ada(),
        "date": 1_700_000_000, "old_reaction": old, "new_reaction": new}})
}

#[test]
fn a_reaction_to_what_we_said_is_told_with_what_we_said() {
    let sent = OwnMessages::default();
    sent.note((GROUP, 11), "It will rain.", Some("9".into()));
    let thumb = json!([{"type": "emoji", "emoji": "👍"}]);

    let event = read_with(&sent, &reacted(&group(), &json!([]), &thumb)).event;
    let taken_back = read_with(&sent, &reacted(&group(), &thumb, &json!([]))).event;

    let reaction =
        |emoji: &str, removed| EventKind::Reaction { message: "11".to_owned(), emoji: emoji.to_owned(), removed };
    assert_eq!((event.kind, event.quoted), (reaction("👍", None), Some(Quote::of_ours("It will rain."))));
    assert_eq!(event.conversation, conversation(GROUP).in_thread("9"));
    assert_eq!(taken_back.kind, reaction("", Some("👍".to_owned())));
    assert_ne!(event.external_id, taken_back.external_id);
}

/// In a private chat as well, where a person may react to a message of their own.
#[test]
fn a_reaction_to_what_people_said_is_none_of_ours() {
    let thumb = json!([{"type": "emoji", "emoji": "👍"}]);

    for chat in [group(), private()] {
        assert_eq!(read(&reacted(&chat, &json!([]), &thumb)).event.kind, EventKind::Other, "{chat}");
    }
}

#[test]
fn a_group_that_moves_says_so_twice_and_is_one_event() {
    let old = json!({"id": -5, "type": "group", "title": "Friends"});
    let from = message_event(&old, &json!({"migrate_to_chat_id": GROUP}));
    let to = message_event(&group(), &json!({"migrate_from_chat_id": -5}));

    assert_eq!(from.kind, EventKind::Moved { chat: GROUP.to_string() });
    assert_eq!((&from.kind, &from.conversation, &from.external_id), (&to.kind, &to.conversation, &to.external_id));
    assert_eq!(from.conversation, conversation(-5));
}

/// E4.
#[rstest]
#[case(r#"{"update_id": 3, "of_another_year": {"chat": {"id": 5}, "text": "hello"}}"#, Some(3))]
#[case(r#"{"update_id": 3, "message": {"message_id": "eleven"}}"#, Some(3))]
#[case(
    r#"{"update_id": 3, "message": {"message_id": 1, "date": 1, "chat": {"id": 5, "type": "group"},
    "new_chat_members": []}}"#,
    Some(3)
)]
#[case(r#"{"update_id": 3, "my_chat_member": {"chat": {"id": 5, "type": "private"}}}"#, Some(3))]
#[case(r#"{"update_id": "three"}"#, None)]
#[case("[]", None)]
fn what_is_not_known_is_kept_and_skipped(#[case] raw: &str, #[case] number: Option<i64>) {
    let (channel, me, sent) = (ChannelId::new("telegram", "main"), me(), OwnMessages::default());
    let reader = Reader { channel: &channel, me: &me, sent: &sent, now: Timestamp::from_millis(5) };

    let read = reader.read(raw);

    assert_eq!(read.number, number);
    assert_eq!((read.event.kind, read.event.raw.as_str()), (EventKind::Other, raw));
    if number.is_some() {
        assert_eq!(read.event.external_id, "update:3");
    }
}

#[test]
fn a_message_with_things_of_another_year_is_answered_all_the_same() {
    let event = message_event(
        &private(),
        &json!({"text": "hello", "of_another_year": [1], "entities": [{"type": "new", "offset": 0, "length": 2, "x": 1}]}),
    );

    assert_eq!((event.kind, event.text.as_str()), (EventKind::Message, "hello"));
}

/// Of a message, a press and a reaction. What is no language is none.
#[test]
fn the_language_of_a_persons_app_is_read() {
    let from = |code: &Value| json!({"id": 42, "is_bot": false, "first_name": "Ada", "language_code": code});
    let language = |code: &Value| message_event(&private(), &json!({"from": from(code), "text": "hi"})).language;
    let german = Language::of("de");

    assert_eq!(language(&json!("de")), german);
    assert_eq!(language(&json!("pt-br")), Language::of("pt"));
    for rubbish in [json!(null), json!(""), json!("../../etc"), json!("x")] {
        assert_eq!(language(&rubbish), None, "{rubbish}");
    }
    let pressed = json!({"id": "q1", "from": from(&json!("de")), "chat_instance": "1",
        "data": pick_data(TurnId::new(Timestamp::from_millis(1)), 0), "message": message(&private(), &json!({}))});
    assert_eq!(read(&json!({"update_id": 1, "callback_query": pressed})).event.language, german);
    let nobody = json!({"sender_chat": group(), "from": us(), "text": "hi"});
    assert_eq!(message_event(&group(), &nobody).language, None, "an anonymous administrator");
}
