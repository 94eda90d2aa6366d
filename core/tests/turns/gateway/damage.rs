//! The files of the database, and what tests do to them behind the gateway's back.

use std::path::PathBuf;

use rejoinder_core::TurnId;
use sqlx::{ConnectOptions, Connection, sqlite::SqliteConnectOptions};

use super::TestGateway;

impl TestGateway {
    /// Makes the stored obligation of a turn unreadable, as a damaged file or another version may.
    pub(crate) async fn damage(&self, turn: TurnId) {
        let mut connection = SqliteConnectOptions::new()
            .filename(self.database())
            .connect()
            .await
            .expect("the database opens once more");
        let damage =
            sqlx::query("update turns set body = '{\"owed\":7}', version = version + 1 where id = unhex(?, '-')");
        let damaged = damage.bind(turn.to_string()).execute(&mut connection).await.expect("it is written");
        assert_eq!(damaged.rows_affected(), 1);
        connection.close().await.expect("it closes");
    }

    /// The file of the database.
    pub(crate) fn database(&self) -> PathBuf {
        self.directory.path().join("rejoinder.db")
    }

    /// The files of the database with these bytes in them.
    pub(crate) fn files_with(&self, text: &str) -> Vec<PathBuf> {
        let files =
            std::fs::read_dir(self.directory.path()).expect("a directory").map(|file| file.expect("a file").path());
        let has_it = |file: &PathBuf| {
            let bytes = std::fs::read(file).expect("readable");
            bytes.windows(text.len()).any(|window| window == text.as_bytes())
        };
        files.filter(has_it).collect()
    }

    /// Makes the stored deliveries of a turn unreadable.
    pub(crate) async fn damage_deliveries(&self, turn: TurnId) {
        let mut connection = SqliteConnectOptions::new()
            .filename(self.database())
            .connect()
            .await
            .expect("the database opens once more");
        let damage = sqlx::query("update deliveries set action = '{' where turn_id = unhex(?, '-')");
        let damaged = damage.bind(turn.to_string()).execute(&mut connection).await.expect("it is written");
        assert!(damaged.rows_affected() > 0);
        connection.close().await.expect("it closes");
    }

    /// Changes rows behind the gateway's back.
    pub(crate) async fn changes_rows(&self, sql: &'static str) {
        let options = SqliteConnectOptions::new().filename(self.database());
        let mut connection = options.connect().await.expect("the database opens once more");
        let changed = sqlx::query(sql).execute(&mut connection).await.expect("it is written");
        assert!(changed.rows_affected() > 0);
        connection.close().await.expect("it closes");
    }

    /// Ends a test that has damaged what `at_rest` would read.
    pub(crate) fn end_damaged(mut self) {
        self.was_at_rest = true;
    }
}
