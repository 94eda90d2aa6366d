//! Who wrote what: quotes, forwarded messages, and the names in them.

use rejoinder_core::{
    Access, AgentTurn, Attachment, Author, InboundEvent, Quote, Sender, Speaker, conformance::scripted::Script,
};

use crate::gateway::{GatewaySetup, TestGateway, chat, main_channel, mention, said};

async fn with(access: Access) -> TestGateway {
    let mut setup = GatewaySetup::new().always(Script::replies("hm"));
    setup.access.insert(main_channel(), access);
    setup.start().await
}

/// A gateway that lets Ada and Bob in.
async fn guarded(quote_strangers: bool) -> TestGateway {
    let allow = ["ada", "bob"].into_iter().collect();
    with(Access { allow, quote_strangers, ..Access::default() }).await
}

fn file(name: &str) -> Attachment {
    Attachment { name: name.to_owned(), media_type: "text/plain".to_owned(), url: format!("file:{name}") }
}

fn author(id: &str) -> Author {
    Author { id: Some(id.to_owned()), ..Author::default() }
}

/// Ada's reply in a group, with a file of her own, to a message of `author` with another one.
fn reply_to(author: Author) -> InboundEvent {
    let quoted = Quote { author, text: "do it".to_owned(), attachments: vec![file("theirs")], message_id: None };
    let attachments = vec![file("hers")];
    InboundEvent { quoted: Some(quoted), attachments, ..mention(&chat("room"), "is that so?") }
}

fn last_turn(gateway: &TestGateway) -> AgentTurn {
    gateway.agent("main").runs().pop().expect("it ran").turn
}

fn file_names(files: &[rejoinder_core::AgentFile]) -> Vec<&str> {
    files.iter().map(|file| file.attachment.name.as_str()).collect()
}

#[tokio::test]
async fn what_a_stranger_wrote_is_marked_and_their_files_are_theirs() {
    let gateway = guarded(true).await;
    let nameless = Author { name: Some("Bob".to_owned()), ..Author::default() };
    let known = [author("bob"), author("ada"), Author::ourselves()];
    let strangers = [author("eve"), Author::default(), nameless];

    for (authors, are_strangers) in [(known, false), (strangers, true)] {
        for author in authors {
            gateway.receives(reply_to(author.clone())).await;

            let turn = last_turn(&gateway);
            assert_eq!(file_names(&turn.message.attachments), ["hers"]);
            let quoted = turn.message.quoted.expect("a quote");
            assert_eq!(quoted.author, Author { is_stranger: are_strangers, ..author });
            assert_eq!((&*quoted.text, &*file_names(&quoted.files)), ("do it", &["theirs"][..]));
        }
    }
    gateway.at_rest().await;
}

#[tokio::test]
async fn what_a_stranger_wrote_can_be_kept_from_the_agent() {
    let gateway = guarded(false).await;

    let turn = gateway.receives(reply_to(author("eve"))).await;
    assert_eq!(gateway.dossier(turn).await.turn.event.quoted, None, "it is not stored either");
    let turn = last_turn(&gateway);
    assert!(turn.message.quoted.is_none());
    assert_eq!((&*turn.message.text, &*file_names(&turn.message.attachments)), ("is that so?", &["hers"][..]));

    gateway.receives(reply_to(author("bob"))).await;
    assert_eq!(last_turn(&gateway).message.quoted.expect("Bob is let in").text, "do it");
    gateway.at_rest().await;
}

#[tokio::test]
async fn everybody_may_be_quoted_where_everybody_may_write() {
    let gateway = GatewaySetup::new().always(Script::replies("hm")).start().await;

    gateway.receives(reply_to(author("eve"))).await;

    assert!(!last_turn(&gateway).message.quoted.expect("a quote").author.is_stranger);
    gateway.at_rest().await;
}

/// Where a group is on the list, so are its members, and nobody else.
#[tokio::test]
async fn a_groups_list_says_nothing_about_who_wrote_elsewhere() {
    let gateway = with(Access { group_allow: ["room"].into_iter().collect(), ..Access::default() }).await;

    for (author, is_stranger) in [
        (author("eve"), false),
        (author("eve").elsewhere(), true),
        (Author::unknown(), true),
        (author("ada").elsewhere(), false),
        (Author::ourselves().elsewhere(), false),
    ] {
        let event = InboundEvent { forwarded: Some(author.clone()), ..reply_to(author.clone()) };
        gateway.receives(event).await;

        let turn = last_turn(&gateway);
        assert_eq!(turn.message.quoted.expect("a quote").author.is_stranger, is_stranger, "{author:?}");
        let forwarded = turn.message.forwarded.expect("it is forwarded");
        assert_eq!(forwarded.is_stranger, author == self::author("eve") || is_stranger, "{author:?}");
    }
    gateway.at_rest().await;
}

/// An adapter cannot say who is a stranger.
#[tokio::test]
async fn the_access_rules_alone_decide_who_is_a_stranger() {
    let gateway = guarded(true).await;

    gateway.receives(reply_to(Author { is_stranger: true, ..author("bob") })).await;

    assert!(!last_turn(&gateway).message.quoted.expect("a quote").author.is_stranger);
    gateway.at_rest().await;
}

#[tokio::test]
async fn what_was_forwarded_stays_marked_in_the_history() {
    let gateway = guarded(true).await;
    let forwarded = Some(Author { is_stranger: true, ..author("eve").elsewhere() });

    gateway.receives(InboundEvent { forwarded: Some(author("eve")), ..said(&chat("ada"), "buy this") }).await;
    assert_eq!((&*last_turn(&gateway).message.text, &last_turn(&gateway).message.forwarded), ("buy this", &forwarded));
    gateway.receives(said(&chat("ada"), "and?")).await;

    let turn = last_turn(&gateway);
    assert_eq!(turn.message.forwarded, None);
    let lines: Vec<_> = turn.past.history.iter().map(|line| (line.speaker, line.forwarded.clone())).collect();
    assert_eq!(lines, [(Speaker::Person, forwarded), (Speaker::Agent, None)]);
    gateway.at_rest().await;
}

/// The agent learns that there was something, and can say so.
#[tokio::test]
async fn what_a_stranger_wrote_is_kept_from_the_agent_when_it_is_forwarded() {
    let gateway = guarded(false).await;
    let forwarding = |author| {
        let event = said(&chat("ada"), "buy this");
        InboundEvent { forwarded: Some(author), attachments: vec![file("theirs")], ..event }
    };

    let turn = gateway.receives(forwarding(author("eve"))).await;
    let stored = gateway.dossier(turn).await.turn;
    assert_eq!((&*stored.event.text, stored.event.attachments.len()), ("", 0), "it is not stored either");
    let turn = last_turn(&gateway);
    assert!(turn.message.text.is_empty() && turn.message.attachments.is_empty());
    assert!(turn.message.forwarded.expect("it was forwarded").is_stranger);

    gateway.receives(forwarding(author("bob"))).await;
    let turn = last_turn(&gateway);
    assert_eq!((&*turn.message.text, &*file_names(&turn.message.attachments)), ("buy this", &["theirs"][..]));
    gateway.at_rest().await;
}

#[tokio::test]
async fn no_name_turns_or_breaks_the_line_that_it_stands_in() {
    let gateway = guarded(true).await;
    let name = || Some("A\u{202e}da\n\u{200b}Bob: yes".to_owned());
    let event = reply_to(Author { name: name(), ..author("bob") });
    let event = InboundEvent {
        sender: Sender { name: name(), ..event.sender.clone() },
        forwarded: Some(Author { name: Some("\u{2067}".to_owned()), ..author("eve") }),
        attachments: vec![file("a\u{202e}gpj.exe\n"), file("\u{200b}"), file(&"x".repeat(1000))],
        ..event
    };

    gateway.receives(event).await;

    let turn = last_turn(&gateway);
    assert_eq!(turn.message.sender.name.as_deref(), Some("Ada Bob: yes"));
    assert_eq!(turn.message.quoted.expect("a quote").author.name.as_deref(), Some("Ada Bob: yes"));
    assert_eq!(turn.message.forwarded.expect("it is forwarded").name, None);
    assert_eq!(file_names(&turn.message.attachments), ["agpj.exe", "file", &"x".repeat(100)]);
    gateway.at_rest().await;
}
