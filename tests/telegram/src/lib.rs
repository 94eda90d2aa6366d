//! A Telegram Bot API server for tests.
