//! What a button carries: the turn of its question, and the choice.

use rejoinder_core::TurnId;

/// The data of a button: the turn whose answer was the question, and the index of the choice; 45 bytes at most. Telegram
/// allows 64 bytes (<https://core.telegram.org/bots/api#inlinekeyboardbutton>), Discord 100 characters
/// (<https://discord.com/developers/docs/components/reference#button>).
#[must_use]
pub fn pick_data(turn: TurnId, index: usize) -> String {
    format!("pick:{turn}:{index}")
}

/// The turn and the index in the data of a button.
#[must_use]
pub fn picked(data: &str) -> Option<(TurnId, usize)> {
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
