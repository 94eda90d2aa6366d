//! What tests do to the rows of the database behind the gateway's back.

use rejoinder_core::TurnId;

use super::{TestGateway, is_on_postgres};

impl TestGateway {
    /// Makes the stored obligation of a turn unreadable, as a damaged file or another version may.
    pub(crate) async fn damage(&self, turn: TurnId) {
        let id = literal(turn);
        self.changes_rows(&format!("update turns set body = '{{\"owed\":7}}', version = version + 1 where id = {id}"))
            .await;
    }

    /// Makes the stored deliveries of a turn unreadable.
    pub(crate) async fn damage_deliveries(&self, turn: TurnId) {
        // PostgreSQL stores nothing there that is no JSON.
        let action = if is_on_postgres() { "{}" } else { "{" };
        let id = literal(turn);
        self.changes_rows(&format!("update deliveries set action = '{action}' where turn_id = {id}")).await;
    }

    /// Changes rows.
    pub(crate) async fn changes_rows(&self, sql: &str) {
        assert!(self.database.execute(sql).await > 0);
    }

    /// Ends a test that has damaged what `at_rest` would read.
    pub(crate) fn end_damaged(mut self) {
        self.was_at_rest = true;
    }
}

/// The id of a turn in a statement.
fn literal(turn: TurnId) -> String {
    if is_on_postgres() { format!("'{turn}'") } else { format!("unhex('{turn}', '-')") }
}
