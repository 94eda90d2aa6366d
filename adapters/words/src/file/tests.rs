use std::{os::unix::fs::PermissionsExt, sync::Arc};

use rejoinder_core::{ChannelId, ConversationRef, conformance::channel::text};
use tempfile::TempDir;

use super::*;

/// A data directory with a journal of one file.
struct Home {
    data: TempDir,
    journal: Arc<Journal>,
}

impl Home {
    fn new() -> Self {
        let data = tempfile::tempdir().expect("a directory");
        let pattern = Pattern::try_from("journal/today.md".to_owned()).expect("a pattern");
        let journal = Arc::new(Journal::new(data.path(), pattern, TimeZone::UTC));
        Self { data, journal }
    }

    fn path(&self) -> PathBuf {
        self.data.path().join("words/journal/today.md")
    }

    fn read(&self) -> String {
        fs::read_to_string(self.path()).unwrap_or_default()
    }

    async fn attempts(&self, delivery: &Delivery) -> Result<Receipt, DeliveryError> {
        let Ok(content) = crate::words(delivery) else { panic!("it has words") };
        Arc::clone(&self.journal).append(delivery, content).await
    }
}

fn says(words: &str) -> Delivery {
    let address = ConversationRef::new(ChannelId::new("words", "journal"), "telegram.main").in_thread("42");
    text(&address, words).build()
}

/// The same delivery, attempted again.
fn again(delivery: &Delivery) -> Delivery {
    let address = delivery.conversation();
    let again = rejoinder_core::conformance::channel::delivery(address, delivery.action().clone()).id(delivery.id());
    again.attempt(2).build()
}

#[tokio::test]
async fn words_are_appended_with_when_and_about_whom() {
    let home = Home::new();
    let (one, two) = (says("one\ntwo"), says("three"));

    for delivery in [&one, &two] {
        assert_eq!(home.attempts(delivery).await, Ok(Receipt::of(delivery.id().to_string())));
    }

    let read = home.read();
    let lines: Vec<&str> = read.lines().collect();
    assert_eq!([lines[1], lines[2], lines[3], lines[5]], ["one", "two", "", "three"]);
    assert!(lines[0].starts_with(&format!("<!-- {} ", one.id())), "{read}");
    assert!(lines[0].ends_with(" telegram.main/42 -->"), "{read}");
    let mode = |path: &Path| fs::metadata(path).expect("it exists").permissions().mode() & 0o777;
    assert_eq!((mode(&home.path()), mode(home.path().parent().expect("a folder"))), (0o600, 0o700));
}

/// D1. The process died after the write, and before its record.
#[tokio::test]
async fn what_was_written_is_not_written_again() {
    let home = Home::new();
    let delivery = says("once");
    home.attempts(&delivery).await.expect("it is written");
    home.attempts(&says("later")).await.expect("it is written");
    let before = home.read();

    home.attempts(&again(&delivery)).await.expect("it is there");

    assert_eq!(home.read(), before);
}

/// The machine lost power during the write.
#[tokio::test]
async fn a_part_at_the_end_is_replaced_by_the_whole() {
    let home = Home::new();
    let delivery = says("a long entry");
    home.attempts(&delivery).await.expect("it is written");
    let whole = home.read();
    fs::write(home.path(), &whole[..whole.len() - 6]).expect("it is cut");

    home.attempts(&again(&delivery)).await.expect("it is written");

    assert_eq!(home.read(), whole);
}

#[tokio::test]
async fn an_entry_begins_a_line_of_its_own() {
    let home = Home::new();
    fs::create_dir_all(home.path().parent().expect("a folder")).expect("it is made");
    fs::write(home.path(), "my own notes").expect("it is written");

    home.attempts(&says("hello")).await.expect("it is written");

    assert!(home.read().starts_with("my own notes\n<!-- "), "{}", home.read());
}

/// Nothing outside of the data directory is written.
#[tokio::test]
async fn a_link_is_not_followed() {
    let (home, elsewhere) = (Home::new(), tempfile::tempdir().expect("a directory"));
    fs::create_dir(home.data.path().join("words")).expect("it is made");
    std::os::unix::fs::symlink(elsewhere.path(), home.data.path().join("words/journal")).expect("it is made");

    let refused = home.attempts(&says("hello")).await;

    assert!(
        matches!(&refused, Err(DeliveryError::NotSent { detail, .. }) if detail.contains("symbolic link")),
        "{refused:?}"
    );
    assert_eq!(fs::read_dir(elsewhere.path()).expect("it is there").count(), 0);
}
