//! Appends words to files.
//!
//! An entry begins with a line that holds the id of its delivery. So a delivery that is attempted again, because the process died
//! between the write and its record, finds what it has written. The day of the file is that of the delivery, not of the attempt.

use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use jiff::{Timestamp, tz::TimeZone};
use parking_lot::Mutex;
use rejoinder_core::{Attachment, Content, Delivery, DeliveryError, Receipt};
use rejoinder_kit::{files::is_on_the_web, make_private_folder, private_file};

use crate::{Pattern, WordsAdapter, about};

/// Several places may name one file: one entry is written at a time.
static WRITING: Mutex<()> = Mutex::new(());

#[derive(Debug)]
pub(crate) struct Journal {
    folder: PathBuf,
    pattern: Pattern,
    zone: TimeZone,
}

/// What is appended for a delivery.
struct Entry {
    /// The beginning of its first line.
    marker: String,
    text: String,
}

impl Journal {
    pub(crate) fn new(data_dir: &Path, pattern: Pattern, zone: TimeZone) -> Self {
        Self { folder: WordsAdapter::folder(data_dir), pattern, zone }
    }

    pub(crate) async fn append(
        self: Arc<Self>,
        delivery: &Delivery,
        content: &Content,
    ) -> Result<Receipt, DeliveryError> {
        let id = delivery.id();
        let at =
            id.as_uuid().get_timestamp().map(|at| at.to_unix()).and_then(|(seconds, nanos)| {
                Timestamp::new(i64::try_from(seconds).ok()?, i32::try_from(nanos).ok()?).ok()
            });
        let at = at.ok_or_else(|| DeliveryError::Unsupported("its id holds no time".to_owned()))?;
        let marker = format!("<!-- {id} ");
        let shown_at = at.to_zoned(self.zone.clone()).strftime("%Y-%m-%d %H:%M").to_string();
        let about = about(delivery.conversation()).replace("--", "- -");
        let text = format!("{marker}{shown_at} {about} -->\n{}\n\n", shown(content)?.trim_end());
        let (entry, may_be_there) = (Entry { marker, text }, delivery.attempt() > 1);
        let written = tokio::task::spawn_blocking(move || self.write(at, &entry, may_be_there)).await;
        let written = written.map_err(|error| DeliveryError::Unknown(error.to_string()))?;
        // Whether a part of it is there is found out by the next attempt.
        let failed = |error: io::Error| DeliveryError::NotSent { retry_after: None, detail: error.to_string() };
        written.map_err(failed).map(|()| Receipt::of(id.to_string()))
    }

    fn write(&self, at: Timestamp, entry: &Entry, may_be_there: bool) -> io::Result<()> {
        let path = self.pattern.path(at, &self.zone).ok_or_else(|| io::Error::other("the file has no name"))?;
        let _writing = WRITING.lock();
        let path = self.prepared(&path)?;
        let is_new = !path.exists();
        let mut file = private_file().read(true).append(true).create(true).open(&path)?;
        if may_be_there && !is_new && entry.is_in(&mut file)? {
            return file.sync_all();
        }
        let length = file.seek(SeekFrom::End(0))?;
        let text = if ends_a_line(&mut file, length)? { entry.text.clone() } else { format!("\n{}", entry.text) };
        if let Err(error) = file.write_all(text.as_bytes()).and_then(|()| file.sync_all()) {
            // A disk that is full may hold a part.
            let _ = file.set_len(length);
            return Err(error);
        }
        match path.parent().filter(|_| is_new) {
            Some(folder) => File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    }

    /// The path of a file below the folder, whose folders exist and which leads nowhere else.
    fn prepared(&self, path: &str) -> io::Result<PathBuf> {
        let mut whole = self.folder.clone();
        make_folder(&whole)?;
        let mut parts = path.split('/').peekable();
        while let Some(part) = parts.next() {
            whole.push(part);
            if parts.peek().is_some() {
                make_folder(&whole)?;
            } else if is_link(&whole) {
                return Err(leads_elsewhere(&whole));
            }
        }
        Ok(whole)
    }
}

impl Entry {
    /// Whether it is in a file, whole. A part at the end of the file, which a crash of the machine has left, is cut off.
    fn is_in(&self, file: &mut File) -> io::Result<bool> {
        file.seek(SeekFrom::Start(0))?;
        let (mut lines, mut line, mut position) = (BufReader::new(&*file), Vec::new(), 0_u64);
        loop {
            line.clear();
            let read = lines.read_until(b'\n', &mut line)?;
            if read == 0 {
                return Ok(false);
            }
            if line.starts_with(self.marker.as_bytes()) {
                break;
            }
            position += read as u64;
        }
        let mut there = Vec::new();
        file.seek(SeekFrom::Start(position))?;
        file.take(self.text.len() as u64).read_to_end(&mut there)?;
        if there == self.text.as_bytes() {
            return Ok(true);
        }
        if self.text.as_bytes().starts_with(&there) {
            file.set_len(position)?;
        }
        Ok(false)
    }
}

/// Whether a file is empty, or its last line has an end.
fn ends_a_line(file: &mut File, length: u64) -> io::Result<bool> {
    if length == 0 {
        return Ok(true);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

/// The text of a content. A file of the agent's is a link; one that it sends itself has no place here.
fn shown(content: &Content) -> Result<String, DeliveryError> {
    match &content.attachments[..] {
        [] => Ok(content.text.clone()),
        [Attachment { name, url, .. }] if is_on_the_web(url) => Ok(format!("[{name}]({url})")),
        [_] => Err(DeliveryError::Refused("the file of words holds no other files".to_owned())),
        _ => Err(DeliveryError::Unsupported("several files in one message".to_owned())),
    }
}

/// Makes a folder that only the owner may use, unless there is one.
fn make_folder(path: &Path) -> io::Result<()> {
    if is_link(path) {
        return Err(leads_elsewhere(path));
    }
    make_private_folder(path)
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink())
}

fn leads_elsewhere(path: &Path) -> io::Error {
    io::Error::other(format!("{} is a symbolic link: words are written below the data directory only", path.display()))
}

#[cfg(test)]
mod tests;
