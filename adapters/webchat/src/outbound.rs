//! Shows ephemerals in the open pages: drafts and typing notices.
//!
//! Signals are not delivered here: the page reads their rows.

use rejoinder_core::{Action, DeliveryError, TurnId};

use crate::{
    format,
    protocol::ServerFrame,
    rooms::{Mailbox, Rooms},
};

/// Shows a draft or a typing notice in the pages that have the conversation `chat` open.
///
/// Succeeds even if no page is open: neither is a signal nor settles anything, and a page that opens later reads the
/// row. All other actions are `Unsupported`.
pub(crate) fn show(rooms: &Rooms, chat: &str, turn_id: TurnId, action: &Action) -> Result<(), DeliveryError> {
    match action {
        Action::Draft { text, steps, .. } => {
            let draft = || ServerFrame::Draft { turn_id, html: format::to_html(text), text, steps }.to_text();
            rooms.broadcast(chat, draft, |mailbox, draft| mailbox.put_draft(turn_id, draft));
            Ok(())
        }
        Action::Typing { on } => {
            let typing = || ServerFrame::Typing { turn_id, on: *on }.to_text();
            rooms.broadcast(chat, typing, Mailbox::put_typing);
            Ok(())
        }
        Action::Send { .. } => Err(unsupported("sending a message: the page reads its row")),
        Action::Edit { .. } => Err(unsupported("editing a message: the page reads its row")),
        Action::React { .. } => Err(unsupported("sending a reaction: the page reads its row")),
        Action::Mark { .. } => Err(unsupported("marking a message")),
        Action::Delete { .. } => Err(unsupported("deleting a message")),
    }
}

fn unsupported(what: &str) -> DeliveryError {
    DeliveryError::Unsupported(what.to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rejoinder_core::{ActivityState, Content, Timestamp, WorkStep};
    use rstest::rstest;

    use super::*;

    const CHAT: &str = "abcdefghijklmnopqrstuv";

    #[test]
    fn a_draft_reaches_the_open_page_as_html_and_as_markdown() {
        let rooms = Arc::new(Rooms::default());
        let handle = rooms.join(&CHAT.into()).expect("a free handle");
        let turn = TurnId::new(Timestamp::from_millis(1));
        let step = WorkStep { text: "reads".to_owned(), state: Some(ActivityState::Done) };

        show(
            &rooms,
            CHAT,
            turn,
            &Action::Draft { text: "*a*".to_owned(), steps: vec![step], message: None, reply_to: None },
        )
        .expect("shown");

        let pending = handle.take();
        assert_eq!(pending.drafts.len(), 1);
        assert!(pending.drafts[0].1.contains("<em>a</em>"));
        assert!(pending.drafts[0].1.contains(r#""text":"*a*","steps":[{"text":"reads","state":"done"}]"#));
    }

    #[test]
    fn a_draft_without_an_open_page_is_dropped() {
        let rooms = Rooms::default();
        let turn = TurnId::new(Timestamp::from_millis(1));

        assert_eq!(
            show(
                &rooms,
                CHAT,
                turn,
                &Action::Draft { text: "a".to_owned(), steps: vec![], message: None, reply_to: None }
            ),
            Ok(())
        );
        assert_eq!(show(&rooms, CHAT, turn, &Action::Typing { on: true }), Ok(()));
    }

    /// A5.
    #[rstest]
    #[case(Action::Send { content: Content::default(), reply_to: None })]
    #[case(Action::Edit { message: "1".to_owned(), content: Content::default(), reply_to: None })]
    #[case(Action::React { message: None, emoji: "👍".to_owned() })]
    #[case(Action::Delete { message: "1".to_owned() })]
    fn what_is_not_done_is_no_success(#[case] action: Action) {
        let turn = TurnId::new(Timestamp::from_millis(1));

        assert!(matches!(show(&Rooms::default(), CHAT, turn, &action), Err(DeliveryError::Unsupported(_))));
    }
}
