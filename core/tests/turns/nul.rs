//! The character U+0000, which PostgreSQL cannot store.

use rejoinder_core::{Accepted, Attachment, InboundEvent, Quote, Sender, conformance::scripted::Script};

use crate::gateway::{GatewaySetup, chat, said};

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

/// Without it, the id would be that of somebody else, and the key that of another event.
#[tokio::test]
async fn an_event_with_nul_in_an_id_is_refused() {
    let gateway = GatewaySetup::new().always(Script::replies("done")).start().await;
    let with = |change: fn(&mut InboundEvent)| {
        let mut event = said(&chat("ada"), "hello");
        change(&mut event);
        event
    };
    let damaged = [
        with(|event| event.external_id.push('\0')),
        with(|event| event.conversation = chat("ad\0a")),
        with(|event| event.message_id = Some("p\0".to_owned())),
        with(|event| event.sender = Sender { id: "ad\0a".to_owned(), ..event.sender.clone() }),
    ];
    let batch: Vec<_> = damaged.iter().cloned().chain([said(&chat("bob"), "hello")]).collect();

    let accepted = gateway.intake().accept_all(batch, Some(("updates", "5".to_owned()))).await;
    gateway.settle().await;

    let accepted = accepted.expect("it is accepted");
    assert!(accepted[..4].iter().all(|one| *one == Accepted::Refused), "{accepted:?}");
    assert!(matches!(accepted[4], Accepted::Turn(_)), "{accepted:?}");
    assert_eq!((gateway.visible(&chat("ada")).len(), gateway.visible(&chat("bob"))), (0, vec!["done".to_owned()]));
    let mut whole = damaged[0].clone();
    whole.external_id.retain(|one| one != '\0');
    gateway.receives(whole).await;
    assert_eq!(gateway.visible(&chat("ada")), ["done"], "its key is not known");
    gateway.at_rest().await;
}
