//! What a button carries: the turn of its question, and the choice.

use rejoinder_core::TurnId;

/// A button's `custom_id`: the turn whose answer was the question, and the index of the choice. Discord allows 100
/// characters (<https://discord.com/developers/docs/components/reference#button>); these are 45 at most.
pub(crate) fn pick_id(turn: TurnId, index: usize) -> String {
    format!("pick:{turn}:{index}")
}

/// The turn and the index in a button's `custom_id`.
pub(crate) fn picked(custom_id: &str) -> Option<(TurnId, usize)> {
    let (turn, index) = custom_id.strip_prefix("pick:")?.split_once(':')?;
    Some((turn.parse().ok()?, index.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use rejoinder_core::Timestamp;

    use super::*;

    #[test]
    fn a_button_carries_its_turn_and_its_place() {
        let turn = TurnId::new(Timestamp::from_millis(1_700_000_000_000));

        let id = pick_id(turn, 24);

        assert!(id.len() <= 100, "{id}");
        assert_eq!(picked(&id), Some((turn, 24)));
        assert_eq!(picked("pick:me"), None);
        assert_eq!(picked("else"), None);
    }
}
