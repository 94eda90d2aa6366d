//! What a button carries: the turn of its question, and the choice.

use rejoinder_core::TurnId;

/// A button's callback data: the turn whose answer was the question, and the index of the choice. Telegram allows 64
/// bytes (<https://core.telegram.org/bots/api#inlinekeyboardbutton>); these are 45 at most.
pub(crate) fn pick_data(turn: TurnId, index: usize) -> String {
    format!("pick:{turn}:{index}")
}

/// The turn and the index in a button's callback data.
pub(crate) fn picked(data: &str) -> Option<(TurnId, usize)> {
    let (turn, index) = data.strip_prefix("pick:")?.split_once(':')?;
    Some((turn.parse().ok()?, index.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use rejoinder_core::Timestamp;

    use super::*;

    #[test]
    fn a_button_carries_its_turn_and_its_place() {
        let turn = TurnId::new(Timestamp::from_millis(1_700_000_000_000));

        let data = pick_data(turn, 99);

        assert!(data.len() <= 64, "{data}");
        assert_eq!(picked(&data), Some((turn, 99)));
        assert_eq!(picked("pick:me"), None);
        assert_eq!(picked("else"), None);
    }
}
