//! The durable store, on sqlx: SQLite.
