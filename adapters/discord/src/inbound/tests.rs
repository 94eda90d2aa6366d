use proptest::{collection::vec, prelude::*, sample::select};
use rejoinder_core::{Amends, Attachment, Author, Language, Quote, TurnId, Voice, conformance::growth::assert_linear};
use rejoinder_kit::pick_data;
use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::payload::{Channel, Role};

const US: &str = "7";

struct World {
    channel: ChannelId,
    options: DiscordSection,
    directory: Directory,
    sent: SentMessages<Snowflake>,
}

impl Default for World {
    fn default() -> Self {
        let world = Self {
            channel: ChannelId::new("discord", "main"),
            options: DiscordSection::default(),
            directory: Directory::default(),
            sent: SentMessages::default(),
        };
        world.learn(&json!({"id": "10", "type": 0, "guild_id": "1", "name": "general"}));
        world.learn(&json!({"id": "12", "type": 11, "guild_id": "1", "parent_id": "10", "owner_id": "7"}));
        let role: Role =
            serde_json::from_value(json!({"id": "20", "name": "Agents", "tags": {"bot_id": US}})).expect("a role");
        world.directory.learn_role(role, id(US));
        world
    }
}

impl World {
    fn learn(&self, channel: &Value) {
        let channel: Channel = serde_json::from_value(channel.clone()).expect("a channel");
        self.directory.learn(&channel, None);
    }

    fn read(&self, kind: &str, data: &Value) -> Option<ReadEvent> {
        let me = Identity { user: id(US), application: id("70") };
        let now = Timestamp::from_millis(1_700_000_000_000);
        Reader { channel: &self.channel, me, options: &self.options, directory: &self.directory, sent: &self.sent, now }
            .read(kind, &data.to_string(), 3)
    }

    fn event(&self, kind: &str, data: &Value) -> InboundEvent {
        self.read(kind, data).expect("an event").event
    }

    /// A message from Ada in the server's channel.
    fn message(&self, fields: Value) -> InboundEvent {
        self.event("MESSAGE_CREATE", &message(fields))
    }

    fn conversation(&self, chat: &str, thread: Option<&str>) -> ConversationRef {
        let conversation = ConversationRef::new(self.channel.clone(), chat);
        match thread {
            Some(thread) => conversation.in_thread(thread),
            None => conversation,
        }
    }
}

fn id(text: &str) -> Snowflake {
    Snowflake::parse(text).expect("an id")
}

fn with(mut base: Value, fields: Value) -> Value {
    let Value::Object(fields) = fields else { unreachable!("fields are an object") };
    base.as_object_mut().expect("an object").extend(fields);
    base
}

fn message(fields: Value) -> Value {
    let author = json!({"id": "42", "username": "ada_l", "global_name": "Ada"});
    let base =
        json!({"id": "100", "channel_id": "10", "guild_id": "1", "author": author, "type": 0, "content": "hello"});
    with(base, fields)
}

fn interaction(fields: Value) -> Value {
    let member = json!({"user": {"id": "42", "username": "ada_l"}, "roles": []});
    let base = json!({
        "id": "200", "application_id": "70", "token": "SECRET", "guild_id": "1", "channel_id": "10",
        "channel": {"id": "10", "type": 0}, "member": member,
    });
    with(base, fields)
}

#[test]
fn a_direct_chat_has_no_server() {
    let world = World::default();
    let direct = json!({"id": "100", "channel_id": "30", "author": {"id": "42", "username": "ada_l"}, "type": 0, "content": "hello"});

    let event = world.event("MESSAGE_CREATE", &direct);

    assert_eq!((event.chat, event.directed), (ChatKind::Direct, Directed::DirectChat));
    assert_eq!(event.conversation, world.conversation("30", None));
    assert_eq!((event.external_id.as_str(), event.revision), ("30:100", 0));
    assert_eq!(event.message_id.as_deref(), Some("100"));
    assert_eq!((event.sender.name.as_deref(), event.sender.username.as_deref()), (Some("ada_l"), Some("ada_l")));
}

#[rstest]
#[case(json!({"content": "<@7> hello", "mentions": [{"id": "7"}]}), Directed::Mention, "hello")]
#[case(json!({"content": "<@!7>, hello"}), Directed::Mention, "hello")]
#[case(json!({"content": "<@&20> hello", "mention_roles": ["20"]}), Directed::Mention, "@Agents hello")]
#[case(json!({"content": "<@&21> hello", "mention_roles": ["21"]}), Directed::Ambient, "<@&21> hello")]
#[case(json!({"content": "@everyone hello", "mention_everyone": true}), Directed::Ambient, "@everyone hello")]
#[case(json!({"content": "hello"}), Directed::Ambient, "hello")]
#[case(
    json!({"type": 19, "mentions": [{"id": "7"}], "referenced_message": {"id": "99", "channel_id": "10", "author": {"id": "7"}}}),
    Directed::ReplyToUs,
    "hello"
)]
#[case(
    json!({"type": 19, "referenced_message": {"id": "99", "channel_id": "10", "author": {"id": "43"}}}),
    Directed::Ambient,
    "hello"
)]
#[case(json!({"type": 19, "referenced_message": null}), Directed::Ambient, "hello")]
fn in_a_server_it_is_for_us_when_it_says_so(#[case] fields: Value, #[case] directed: Directed, #[case] text: &str) {
    let event = World::default().message(fields);

    assert_eq!((event.chat, event.directed), (ChatKind::Group, directed));
    assert_eq!(event.text, text);
}

#[test]
fn mentions_and_emoji_are_read_by_name() {
    let content = "<@43> in <#10>: <:wave:55> </ask:66> <t:1> <@99> a < b";
    let event = World::default().message(json!({"content": content, "mentions": [{"id": "43", "username": "bob"}]}));

    assert_eq!(event.text, "@bob in #general: :wave: /ask <t:1> <@99> a < b");
}

/// L2.
#[test]
fn a_thread_is_a_conversation_in_its_channel() {
    let world = World::default();

    assert_eq!(world.message(json!({"channel_id": "12"})).conversation, world.conversation("10", Some("12")));
    assert_eq!(world.message(json!({})).conversation, world.conversation("10", None));
}

#[test]
fn a_mention_may_be_the_beginning_of_a_thread() {
    let mut world = World::default();
    world.options.auto_thread = true;
    let mention = json!({"content": "<@7> hello"});

    assert_eq!(world.message(mention.clone()).conversation, world.conversation("10", Some("100")));
    assert_eq!(world.message(json!({})).conversation, world.conversation("10", None));
    let in_thread = world.message(with(mention, json!({"channel_id": "12"})));
    assert_eq!(in_thread.conversation, world.conversation("10", Some("12")));
    let later = world.message(json!({"channel_id": "12"}));
    assert_eq!(later.directed, Directed::ReplyToUs, "a message in our thread is for us");
}

/// O1.
#[test]
fn other_bots_and_webhooks_are_no_people() {
    let world = World::default();
    let bot = json!({"author": {"id": "43", "username": "Robot", "bot": true}});
    let webhook = json!({"author": {"id": "44", "username": "Hook", "bot": true}, "webhook_id": "44"});

    for fields in [bot, webhook] {
        assert_eq!(world.message(fields).sender.kind, SenderKind::OtherAgent);
    }
}

#[rstest]
#[case(json!({"author": {"id": "7", "bot": true}}))]
#[case(json!({"author": {"id": "70", "bot": true}, "webhook_id": "70"}))]
#[case(json!({"type": 7}))]
#[case(json!({"type": 18}))]
#[case(json!({"author": null}))]
fn what_nobody_said_becomes_nothing(#[case] fields: Value) {
    assert!(World::default().read("MESSAGE_CREATE", &message(fields)).is_none());
}

#[test]
fn an_edit_is_a_revision_and_a_preview_is_none() {
    let world = World::default();
    let edited = json!({"content": "hello!", "edited_timestamp": "2026-01-01T00:00:01.500000+00:00"});

    let event = world.event("MESSAGE_UPDATE", &message(edited));

    assert_eq!((event.external_id.as_str(), event.revision), ("10:100", 1_767_225_601_500));
    assert_eq!(event.amends, Some(Amends::Replaces));
    assert!(world.read("MESSAGE_UPDATE", &message(json!({"edited_timestamp": null}))).is_none());
}

/// K3.
#[test]
fn files_come_along_also_those_of_what_is_replied_to() {
    let file = |name: &str| json!({"id": "1", "filename": name, "content_type": "text/plain", "url": "https://cdn.discordapp.com/a"});
    let replied_to = json!({"id": "99", "channel_id": "10", "author": {"id": "43"}, "content": "look", "attachments": [file("b.txt")]});

    let event = World::default()
        .message(json!({"content": "", "type": 19, "attachments": [file("a.txt")], "referenced_message": replied_to}));

    let quoted = event.quoted.expect("a quote");
    let names = |files: &[Attachment]| files.iter().map(|file| file.name.clone()).collect::<Vec<_>>();
    assert_eq!((names(&event.attachments), names(&quoted.attachments)), (vec!["a.txt".into()], vec!["b.txt".into()]));
    assert_eq!((event.kind, &*quoted.text), (EventKind::Message, "look"));
}

#[rstest]
#[case(1 << 13, json!({"duration_secs": 2.6}), Some(Voice::lasting(Some(3.0))))]
#[case(1 << 13, json!({}), Some(Voice::lasting(None)))]
#[case::music(0, json!({"duration_secs": 2.6}), None)]
fn a_voice_message_is_told_from_music(#[case] flags: u64, #[case] fields: Value, #[case] voice: Option<Voice>) {
    let mut file = json!({"id": "1", "filename": "voice-message.ogg", "content_type": "audio/ogg", "url": "https://cdn.discordapp.com/a"});
    file.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());

    let event = World::default().message(json!({"content": "", "flags": flags, "attachments": [file]}));

    assert_eq!(event.voice, voice);
}

#[test]
fn a_quote_says_who_wrote_it() {
    let quoted = |fields: Value| {
        let mut replied_to = json!({"id": "99", "channel_id": "10", "content": "look"});
        replied_to.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
        let event = World::default().message(json!({"content": "so?", "type": 19, "referenced_message": replied_to}));
        event.quoted.expect("a quote").author
    };
    let author = |id: &str, name: &str, username: Option<&str>, kind| Author {
        id: Some(id.to_owned()),
        name: Some(name.to_owned()),
        username: username.map(str::to_owned),
        kind,
        ..Author::default()
    };
    let eve = json!({"id": "666", "username": "eve_x", "global_name": "Eve"});

    assert_eq!(quoted(json!({"author": eve})), author("666", "Eve", Some("eve_x"), SenderKind::Person));
    let hook = json!({"author": {"id": "44", "username": "ada_l", "bot": true}, "webhook_id": "44"});
    assert_eq!(quoted(hook), author("44", "ada_l", None, SenderKind::OtherAgent));
    assert_eq!(quoted(json!({"author": {"id": "7", "username": "us"}})).kind, SenderKind::Ourselves);
    let forward = json!({
        "author": eve, "content": "", "message_reference": {"type": 1},
        "message_snapshots": [{"message": {"content": "news"}}],
    });
    assert_eq!(quoted(forward), Author::unknown(), "Eve only forwarded it");
}

/// Discord does not say who wrote it first.
#[test]
fn what_is_forwarded_is_marked() {
    let file = json!({"id": "1", "filename": "a.txt", "url": "https://cdn.discordapp.com/a"});
    let forward = json!({
        "content": "", "message_reference": {"type": 1},
        "message_snapshots": [{"message": {"content": "news", "attachments": [file]}}],
    });

    let event = World::default().message(forward);

    assert_eq!((&*event.text, event.attachments.len(), event.forwarded), ("news", 1, Some(Author::unknown())));
    assert_eq!(World::default().message(json!({"content": "[forwarded] news"})).forwarded, None);
}

#[rstest]
#[case(json!({"content": "", "sticker_items": [{"id": "1", "name": "Wave"}]}), "[sticker: Wave]")]
#[case(
    json!({"content": "", "poll": {"question": {"text": "Tea?"}, "answers": [{"poll_media": {"text": "yes"}}, {"poll_media": {"text": "no"}}]}}),
    "[poll: Tea? yes / no]"
)]
fn what_is_no_text_is_said_in_words(#[case] fields: Value, #[case] text: &str) {
    assert_eq!(World::default().message(fields).text, text);
}

#[rstest]
#[case(json!({"content": ""}), true)]
#[case(json!({"content": "", "embeds": [{}]}), false)]
#[case(json!({"content": "", "mentions": [{"id": "7"}]}), false)]
#[case(json!({"content": "hello"}), false)]
fn words_that_are_hidden_are_noticed(#[case] fields: Value, #[case] is_hidden: bool) {
    let read = World::default().read("MESSAGE_CREATE", &message(fields)).expect("an event");

    assert_eq!(read.is_hidden, is_hidden);
}

/// E4.
#[test]
fn what_cannot_be_read_is_kept_without_its_secrets() {
    let world = World::default();

    let event =
        world.event("MESSAGE_CREATE", &json!({"id": "100", "channel_id": "10", "content": {"of": "another year"}}));
    assert_eq!((event.kind, event.external_id.as_str()), (EventKind::Other, "message_create:10:100"));
    let event = world.event("INTERACTION_CREATE", &json!({"id": "1", "token": "SECRET", "type": "?"}));
    assert!(!event.raw.contains("SECRET"), "{}", event.raw);
}

#[test]
fn a_question_is_a_command_and_its_token_is_kept_apart() {
    let world = World::default();
    let options = json!([{"name": "question", "type": 3, "value": "why?"}]);

    let read = world
        .read("INTERACTION_CREATE", &interaction(json!({"type": 2, "data": {"name": "ask", "options": options}})))
        .expect("an event");

    let event = &read.event;
    assert_eq!((event.text.as_str(), event.directed), ("why?", Directed::Command));
    assert_eq!(event.message_id.as_deref(), Some("interaction:200"));
    assert_eq!(event.message_id.as_deref().and_then(interaction_in), Some(id("200")));
    assert_eq!(event.conversation, world.conversation("10", None));
    assert!(!event.raw.contains("SECRET"), "{}", event.raw);
    let record = read.interaction.expect("an interaction");
    assert!(record.is_command && !record.is_private);
    assert_eq!(record.token, "SECRET");
}

#[test]
fn a_private_question_is_a_conversation_of_one_person() {
    let world = World::default();
    let options =
        json!([{"name": "question", "type": 3, "value": "why?"}, {"name": "private", "type": 5, "value": true}]);

    let read = world
        .read("INTERACTION_CREATE", &interaction(json!({"type": 2, "data": {"name": "ask", "options": options}})))
        .expect("an event");

    assert_eq!(private_to(&read.event.conversation), Some(id("42")));
    assert_eq!(private_to(&world.conversation("10", None)), None);
    assert_eq!(read.event.text, "why?");
    assert!(read.interaction.expect("an interaction").is_private);
}

#[test]
fn a_command_without_words_is_itself() {
    let event =
        World::default().event("INTERACTION_CREATE", &interaction(json!({"type": 2, "data": {"name": "stop"}})));

    assert_eq!((event.text.as_str(), event.directed), ("/stop", Directed::Command));
}

/// Discord tells it with interactions only.
#[test]
fn the_language_of_a_persons_app_is_read() {
    let world = World::default();
    let language = |locale: &str| {
        let command = json!({"type": 2, "data": {"name": "stop"}, "locale": locale});
        world.event("INTERACTION_CREATE", &interaction(command)).language
    };

    assert_eq!(language("es-419"), Language::of("es"));
    assert_eq!(language("de"), Language::of("de"));
    assert_eq!(language("what?"), None);
    assert_eq!(world.event("MESSAGE_CREATE", &message(json!({}))).language, None);
}

#[test]
fn a_pressed_button_is_a_choice() {
    let turn = TurnId::new(Timestamp::from_millis(1_700_000_000_000));
    let pick = pick_data(turn, 1);
    let components = json!([{"type": 1, "components": [{"type": 2, "custom_id": pick, "label": "Tell me more"}]}]);
    let fields = json!({
        "type": 3,
        "data": {"custom_id": pick, "component_type": 2},
        "message": {"id": "99", "channel_id": "10", "components": components},
    });

    let event = World::default().event("INTERACTION_CREATE", &interaction(fields));

    assert_eq!(event.kind, EventKind::Choice { turn });
    assert_eq!((event.text.as_str(), event.directed), ("Tell me more", Directed::ReplyToUs));
    assert_eq!(event.message_id.as_deref(), Some("99"));
}

#[test]
fn a_reaction_counts_when_it_is_on_what_we_said() {
    let world = World::default();
    let emoji = json!({"id": null, "name": "👍"});
    let member = json!({"user": {"id": "42", "username": "ada_l"}});
    let base = json!({"user_id": "42", "channel_id": "10", "guild_id": "1", "message_id": "99", "member": member, "emoji": emoji});
    let ours = with(base.clone(), json!({"message_author_id": "7"}));

    let event = world.event("MESSAGE_REACTION_ADD", &ours);
    let reaction =
        |emoji: &str, removed| EventKind::Reaction { message: "99".to_owned(), emoji: emoji.to_owned(), removed };
    assert_eq!(event.kind, reaction("👍", None));
    assert!(world.read("MESSAGE_REACTION_ADD", &base).is_none(), "a reaction to another's message");
    world.sent.note(id("99"), "yes", None);
    let event = world.event("MESSAGE_REACTION_REMOVE", &base);
    assert_eq!(event.kind, reaction("", Some("👍".to_owned())));
    assert_eq!(event.quoted, Some(Quote::of_ours("yes")));
}

#[test]
fn a_moderator_removes_everybodys_reactions() {
    let world = World::default();
    let all = json!({"channel_id": "12", "guild_id": "1", "message_id": "99"});
    let removed =
        |emoji: Option<&str>| EventKind::ReactionsRemoved { message: "99".to_owned(), emoji: emoji.map(str::to_owned) };

    let event = world.event("MESSAGE_REACTION_REMOVE_ALL", &all);
    assert_eq!((event.kind, event.conversation), (removed(None), world.conversation("10", Some("12"))));
    for (emoji, named) in [(json!({"id": null, "name": "👍"}), "👍"), (json!({"id": "5", "name": "party"}), ":party:")]
    {
        let event = world.event("MESSAGE_REACTION_REMOVE_EMOJI", &with(all.clone(), json!({"emoji": emoji})));
        assert_eq!(event.kind, removed(Some(named)));
    }
}

/// Pieces of what a person can write, and of what is not markup after all.
const PIECES: [&str; 20] = [
    "<",
    ">",
    "<@",
    "<@7>",
    "<@!7>",
    "<@&20>",
    "<#10>",
    "<:a:1>",
    "<a:b:2>",
    "</say:3>",
    "@",
    "!",
    ":",
    "/",
    " ",
    ",",
    "\n",
    "7",
    "99999999999999999999",
    "é",
];

proptest! {
    #[test]
    fn any_text_is_read(pieces in vec(select(&PIECES), 0..40)) {
        let content = pieces.concat();
        let event = World::default().read("MESSAGE_CREATE", &message(json!({ "content": content })));
        // Only a blank message is nothing.
        prop_assert!(event.is_some() || content.trim().is_empty());
    }
}

#[test]
fn a_long_text_costs_what_its_length_asks_for() {
    let world = World::default();
    assert_linear(&["<", "<@", "<@7", "<:a", "<@7>", ">", "<@99>", "@", " "], |content| {
        for content in [content.to_owned(), format!("{content}>")] {
            drop(world.read("MESSAGE_CREATE", &message(json!({ "content": content }))));
        }
    });
}
