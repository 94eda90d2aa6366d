//! The character U+0000, which PostgreSQL cannot store.

use rejoinder_core::{
    Accepted::{Kept, Refused},
    Attachment, Author, EventKind, InboundEvent, Quote, Sender,
    conformance::scripted::Script,
};

use crate::gateway::{GatewaySetup, chat, main_channel, said, secs};

#[tokio::test]
async fn texts_with_nul_are_stored_and_answered_without_it() {
    let script =
        Script::replies("do\u{0}ne").calling("se\u{0}arch", "{\"q\":\"\u{0}\"}", "tw\u{0}o").titling("Ca\u{0}ts");
    let gateway = GatewaySetup::new().always(script).start().await;
    let file = Attachment {
        name: "a\u{0}.png".to_owned(),
        media_type: "image/png".to_owned(),
        url: "https://example.org/a.png".to_owned(),
    };
    let event = InboundEvent {
        attachments: vec![file],
        quoted: Some(Quote { text: "be\u{0}fore".to_owned(), ..Quote::default() }),
        ..said(&chat("ada"), "he\u{0}llo")
    };

    let turn = gateway.receives(event).await;

    let asked = gateway.agent("main").runs().remove(0).turn.message;
    assert_eq!((&*asked.text, &*asked.attachments[0].attachment.name), ("hello", "a.png"));
    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    let dossier = gateway.dossier(turn).await;
    assert_eq!((&*dossier.turn.event.text, &*dossier.turn.event.raw), ("hello", "hello"));
    assert_eq!(dossier.contents[&1].tools[0].name, "search");
    let lines = gateway.store.transcript(dossier.turn.session, 10).await.expect("readable");
    assert_eq!(lines.last().map(|line| &*line.text), Some("done"));
    let stored = format!("{dossier:?} {lines:?}");
    assert!(!stored.contains("\\0"), "{stored}");
    gateway.at_rest().await;
}

/// The other ids say what it is about, and it is answered without them.
#[tokio::test]
async fn an_id_with_nul_that_an_event_can_do_without_is_left_out() {
    let gateway = GatewaySetup::new().always(Script::replies("done")).start().await;
    let id = || Some("a\0b".to_owned());
    let author = Author { id: id(), name: Some("Bob".to_owned()), username: id(), ..Author::default() };
    let event = said(&chat("ada"), "hello");
    let event = InboundEvent {
        message_id: id(),
        sender: Sender { username: id(), ..event.sender.clone() },
        quoted: Some(Quote { author, text: "before".to_owned(), message_id: id(), ..Quote::default() }),
        part_of: id(),
        more_within: Some(secs(1)),
        ..event
    };

    let turn = gateway.receives(event).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    let event = gateway.dossier(turn).await.turn.event;
    assert_eq!((&event.message_id, &event.sender.username, &event.part_of), (&None, &None, &None));
    let author = Author { name: Some("Bob".to_owned()), ..Author::default() };
    assert_eq!(event.quoted, Some(Quote { author, text: "before".to_owned(), ..Quote::default() }));
    gateway.at_rest().await;
}

/// Without it, the id would be that of somebody else, and the key that of another event. Strangers can send such events.
#[tokio::test]
async fn an_event_with_nul_in_its_key_address_or_sender_is_refused_and_costs_no_write() {
    let gateway = GatewaySetup::new().always(Script::replies("done")).start().await;
    let with = |change: fn(&mut InboundEvent)| {
        let mut event = said(&chat("ada"), "hello");
        change(&mut event);
        event
    };
    let damaged = [
        with(|event| event.external_id.push('\0')),
        with(|event| event.conversation = chat("ad\0a")),
        with(|event| event.conversation = chat("ada").in_thread("a\0b")),
        with(|event| event.sender = Sender { id: "ad\0a".to_owned(), ..event.sender.clone() }),
    ];
    let other = || InboundEvent { kind: EventKind::Other, ..said(&chat("bob"), "hello") };
    let [one, two, three, four] = damaged.clone();
    let batch = vec![one, other(), two, three, other(), four];
    let before = gateway.life.writes();

    let alone = gateway.intake().accept_all(damaged.to_vec(), None).await.expect("it is accepted");
    assert_eq!((alone, gateway.life.writes() - before), (vec![Refused; 4], 0));
    let accepted = gateway.intake().accept_all(batch, Some(("updates", "5".to_owned()))).await.expect("it is accepted");
    gateway.settle().await;

    assert_eq!(accepted, [Refused, Kept, Refused, Refused, Kept, Refused]);
    assert_eq!(gateway.life.writes() - before, 1, "of those that came with them");
    assert_eq!(gateway.store.cursor(&main_channel(), "updates").await.expect("readable").as_deref(), Some("5"));
    let mut whole = damaged[0].clone();
    whole.external_id.retain(|one| one != '\0');
    gateway.receives(whole).await;
    assert_eq!(gateway.visible(&chat("ada")), ["done"], "its key is not known");
    gateway.at_rest().await;
}

/// A cursor that cannot be stored does not keep its channel from going on.
#[tokio::test]
async fn a_cursor_with_nul_stays_where_it_was_and_the_events_are_answered() {
    let gateway = GatewaySetup::new().always(Script::replies("done")).start().await;
    let accept = async |events: Vec<InboundEvent>, name: &str, position: &str| {
        let accepted = gateway.intake().accept_all(events, Some((name, position.to_owned()))).await;
        gateway.settle().await;
        accepted.expect("it is accepted").len()
    };
    let stored = async || gateway.store.cursor(&main_channel(), "updates").await.expect("readable");
    assert_eq!(accept(vec![said(&chat("ada"), "one")], "updates", "1").await, 1);

    assert_eq!(accept(vec![said(&chat("ada"), "two"), said(&chat("ada"), "three")], "updates", "2\0").await, 2);
    assert_eq!(accept(vec![], "updates", "3\0").await, 0);
    assert_eq!(accept(vec![], "up\0dates", "3").await, 0);

    assert_eq!(gateway.visible(&chat("ada")), ["done"; 3]);
    assert_eq!(stored().await.as_deref(), Some("1"));
    accept(vec![], "updates", "4").await;
    assert_eq!(stored().await.as_deref(), Some("4"));
    gateway.at_rest().await;
}
