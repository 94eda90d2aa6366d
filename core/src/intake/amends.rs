//! What an event changes that is stored already. A store calls this in the transaction that accepts the event.

use crate::model::{EventKind, Heard, InboundEvent, TurnId, Voice};

/// What an event changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changes<'a> {
    /// Nothing: it is stored, and opens its turn.
    Nothing,
    /// The id of its chat, to this one.
    Chat(&'a str),
    /// The question that answered this turn: a pick.
    Pick(TurnId),
    /// The question that answered this turn: its time is over.
    Expiry(TurnId),
    /// An earlier event with the same key but for the revision: an edit or a deletion.
    Earlier,
    /// The reactions to the answer of ours in this message.
    Reactions {
        /// The platform's id of the message.
        message: &'a str,
        /// The new reaction of the sender; empty if they took one back.
        emoji: &'a str,
        /// The one that they took back, where the platform tells it.
        removed: Option<&'a str>,
    },
    /// Everybody's reactions to the answer of ours in this message: they are gone.
    AllReactions {
        /// The platform's id of the message.
        message: &'a str,
        /// Only those with this emoji.
        emoji: Option<&'a str>,
    },
}

impl<'a> Changes<'a> {
    /// What an event changes. A pick or an expiry changes its question only if it `brings_turn`: a turn that it may open.
    pub fn of(event: &'a InboundEvent, brings_turn: bool) -> Self {
        match &event.kind {
            EventKind::Moved { chat } => Self::Chat(chat.as_str()),
            EventKind::Choice { turn } if brings_turn => Self::Pick(*turn),
            EventKind::Expired { turn } if brings_turn => Self::Expiry(*turn),
            EventKind::Reaction { message, emoji, removed } => {
                Self::Reactions { message, emoji, removed: removed.as_deref() }
            }
            EventKind::ReactionsRemoved { message, emoji } => Self::AllReactions { message, emoji: emoji.as_deref() },
            _ if event.amends.is_some() => Self::Earlier,
            _ => Self::Nothing,
        }
    }
}

/// The latest turn that an event with the same key but for the revision opened or changed.
#[derive(Clone, Debug)]
pub struct EarlierTurn {
    /// Its event, as it was changed last.
    pub event: InboundEvent,
    /// Whether a command answers it.
    pub is_command: bool,
    /// Whether it waits for its run.
    pub is_waiting: bool,
    /// See [`Obligation::is_put_off`](crate::Obligation::is_put_off).
    pub is_put_off: bool,
}

/// What an edit or a deletion does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Amendment {
    /// Nothing: only its key is stored. The turn runs already, has ended, or never was.
    Nothing,
    /// It opens the turn that it brings.
    OpensTurn,
    /// It changes the earlier turn, whose event becomes this one.
    Changes(Box<InboundEvent>),
}

/// What an event that [changes an earlier one](Changes::Earlier) does.
pub fn amendment(earlier: Option<&EarlierTurn>, later: &InboundEvent, brings_turn: bool) -> Amendment {
    match earlier.filter(|earlier| may_be_amended(earlier, later)) {
        None => Amendment::Nothing,
        Some(_) if brings_turn => Amendment::OpensTurn,
        Some(earlier) => Amendment::Changes(Box::new(amended(&earlier.event, later))),
    }
}

fn may_be_amended(earlier: &EarlierTurn, later: &InboundEvent) -> bool {
    let EarlierTurn { event, is_command, is_waiting, is_put_off } = earlier;
    let is_withdrawn = later.is_withdrawn();
    // The platform decides who may delete a message.
    let is_senders = is_withdrawn || event.sender.id == later.sender.id;
    // The chat may have got another id since its words were awaited.
    let is_here = event.conversation.chat == later.conversation.chat || later.is_heard();
    let is_later = later.revision >= event.revision;
    // What was picked stays, although the words that picked it are edited.
    let is_of_a_pick = matches!(event.kind, EventKind::Choice { .. }) && !is_withdrawn;
    let is_still_owed = *is_waiting || (*is_put_off && is_withdrawn);
    // Another node may have stored the words already.
    let awaits_it = !later.is_heard() || event.awaits_words();
    // Changes of a command never reach the agent, whether the command was executed or not.
    is_senders && is_here && is_later && is_still_owed && awaits_it && !is_command && !is_of_a_pick
}

/// The event of a waiting turn after `later` amended it.
fn amended(earlier: &InboundEvent, later: &InboundEvent) -> InboundEvent {
    let mut amended = InboundEvent { revision: later.revision, raw: later.raw.clone(), ..earlier.clone() };
    if later.is_withdrawn() {
        amended.amends = later.amends;
        return amended;
    }
    amended.text.clone_from(&later.text);
    if !later.attachments.is_empty() {
        amended.attachments.clone_from(&later.attachments);
        amended.voice = later.voice;
    }
    if later.is_heard() {
        amended.voice = later.voice;
        // What was said may pick from a question.
        amended.kind = later.kind.clone();
        amended.heard_by.clone_from(&later.heard_by);
        amended.said.clone_from(&later.said);
        amended.quoted.clone_from(&later.quoted);
    } else if earlier.voice.is_some_and(|voice| voice.heard != Heard::NotTried) {
        // The words are written down once more, below the new caption.
        amended.voice = amended.voice.map(|voice| Voice { heard: Heard::Awaited, why: None, ..voice });
    }
    amended
}

#[cfg(test)]
mod tests {
    use rejoinder_guard::{Attachment, Timestamp};

    use super::*;
    use crate::model::{Amends, ChannelId, ChatKind, ConversationRef, Sender, SenderKind};

    const NOW: Timestamp = Timestamp::from_millis(0);

    fn said(text: &str) -> InboundEvent {
        let chat = ConversationRef::new(ChannelId::new("test", "main"), "a");
        let ann = Sender { id: "ann".to_owned(), name: None, username: None, kind: SenderKind::Person };
        let event = InboundEvent::new(chat, ChatKind::Direct, "1".to_owned(), ann, NOW);
        InboundEvent { text: text.to_owned(), ..event }
    }

    fn edit(revision: i64) -> InboundEvent {
        InboundEvent { revision, amends: Some(Amends::Replaces), ..said("better") }
    }

    fn deletion() -> InboundEvent {
        InboundEvent { revision: 9, amends: Some(Amends::Withdraws), ..said("") }
    }

    fn waiting(event: InboundEvent) -> EarlierTurn {
        EarlierTurn { event, is_command: false, is_waiting: true, is_put_off: false }
    }

    fn changed(earlier: &EarlierTurn, later: &InboundEvent) -> Option<InboundEvent> {
        match amendment(Some(earlier), later, false) {
            Amendment::Changes(event) => Some(*event),
            Amendment::Nothing | Amendment::OpensTurn => None,
        }
    }

    #[test]
    fn an_edit_replaces_the_text_of_a_turn_that_waits() {
        let image = Attachment { name: "a.png".to_owned(), media_type: "image/png".to_owned(), url: String::new() };
        let earlier = waiting(InboundEvent { revision: 3, attachments: vec![image.clone()], ..said("good") });

        let event = changed(&earlier, &edit(5)).expect("it is changed");
        assert_eq!((event.revision, &*event.text, event.attachments), (5, "better", vec![image]));
        assert!(changed(&earlier, &edit(3)).is_some());
        assert!(changed(&earlier, &edit(2)).is_none(), "it is older than the stored edit");
        assert!(changed(&EarlierTurn { is_waiting: false, ..earlier }, &edit(5)).is_none(), "the agent has read it");
        assert_eq!(amendment(None, &edit(5), true), Amendment::Nothing);
    }

    #[test]
    fn an_edit_of_the_caption_leaves_a_voice_note_and_another_file_takes_its_place() {
        let file = Attachment { name: "a".to_owned(), media_type: "audio/ogg".to_owned(), url: String::new() };
        let (voice, files) = (Some(Voice::lasting(Some(3.0))), vec![file]);
        let earlier = waiting(InboundEvent { attachments: files.clone(), voice, ..said("good") });

        assert_eq!(changed(&earlier, &edit(5)).and_then(|event| event.voice), voice);
        let music = InboundEvent { attachments: files, ..edit(5) };
        assert_eq!(changed(&earlier, &music).map(|event| event.voice), Some(None));
    }

    #[test]
    fn a_voice_note_that_awaits_its_words_gets_them_once() {
        let spoken = |heard| Some(Voice { heard, ..Voice::lasting(Some(3.0)) });
        let awaits = waiting(InboundEvent { revision: 5, voice: spoken(Heard::Awaited), ..said("") });
        let words = InboundEvent { voice: spoken(Heard::Words), ..edit(6) };
        let failed = InboundEvent { text: String::new(), voice: spoken(Heard::Failed), ..edit(6) };

        let heard = changed(&awaits, &words).expect("it is changed");
        assert_eq!((&*heard.text, heard.voice, heard.is_heard()), ("better", spoken(Heard::Words), false));
        let kind = EventKind::Choice { turn: TurnId::new(NOW) };
        let pick = InboundEvent { kind: kind.clone(), said: Some("the better one".to_owned()), ..words.clone() };
        let picked = changed(&awaits, &pick).expect("it is changed");
        assert_eq!((picked.kind, picked.said), (kind, pick.said));
        assert_eq!(changed(&awaits, &failed).and_then(|event| event.voice), failed.voice);
        let old = ConversationRef { chat: "old".into(), ..words.conversation.clone() };
        let moved = changed(&awaits, &InboundEvent { conversation: old, ..words.clone() });
        assert_eq!(moved.as_ref(), Some(&heard), "its chat has moved meanwhile");
        assert!(changed(&waiting(heard.clone()), &words).is_none(), "another node was faster");
        assert!(changed(&awaits, &InboundEvent { revision: 4, ..words }).is_none(), "the caption was edited meanwhile");
        assert_eq!(changed(&waiting(heard), &edit(9)).map(|event| event.voice), Some(spoken(Heard::Awaited)));
    }

    #[test]
    fn a_deletion_marks_a_turn_that_is_not_answered_yet() {
        let earlier = waiting(said("good"));

        let event = changed(&earlier, &deletion()).expect("it is changed");
        assert!(event.is_withdrawn());
        assert_eq!(event.text, "good", "the operator can still read the text");
        let put_off = EarlierTurn { is_waiting: false, is_put_off: true, ..earlier };
        assert!(changed(&put_off, &deletion()).is_some());
        assert!(changed(&put_off, &edit(9)).is_none(), "the agent has read it");
    }

    #[test]
    fn only_the_sender_edits_a_message_and_only_in_its_chat() {
        let earlier = waiting(said("good"));
        let by_another = |mut event: InboundEvent| {
            "bob".clone_into(&mut event.sender.id);
            event
        };
        let elsewhere =
            InboundEvent { conversation: ConversationRef::new(ChannelId::new("test", "main"), "b"), ..edit(5) };

        assert!(changed(&earlier, &by_another(edit(5))).is_none());
        assert!(changed(&earlier, &by_another(deletion())).is_some(), "the platform decides who may delete");
        assert!(changed(&earlier, &elsewhere).is_none());
    }

    #[test]
    fn commands_and_picks_are_not_edited() {
        let command = EarlierTurn { is_command: true, ..waiting(said("/help")) };
        let kind = EventKind::Choice { turn: TurnId::new(NOW) };
        let pick = waiting(InboundEvent { kind, ..said("Yes") });

        assert!(changed(&command, &edit(5)).is_none() && changed(&command, &deletion()).is_none());
        assert!(changed(&pick, &edit(5)).is_none());
        assert!(changed(&pick, &deletion()).is_some());
    }

    #[test]
    fn an_edit_to_a_command_opens_its_turn_if_the_earlier_one_waits() {
        let earlier = waiting(said("good"));

        assert_eq!(amendment(Some(&earlier), &edit(5), true), Amendment::OpensTurn);
        let running = EarlierTurn { is_waiting: false, ..earlier };
        assert_eq!(amendment(Some(&running), &edit(5), true), Amendment::Nothing);
    }

    #[test]
    fn a_pick_without_a_turn_changes_no_question() {
        let turn = TurnId::new(NOW);
        let of = |kind: EventKind, brings_turn| {
            let event = InboundEvent { kind, ..said("Yes") };
            Changes::of(&event, brings_turn) == Changes::Nothing
        };

        assert!(!of(EventKind::Choice { turn }, true) && !of(EventKind::Expired { turn }, true));
        assert!(of(EventKind::Choice { turn }, false) && of(EventKind::Expired { turn }, false));
        assert!(!of(EventKind::Moved { chat: "b".to_owned() }, false));
        assert_eq!(Changes::of(&edit(5), false), Changes::Earlier);
    }
}
