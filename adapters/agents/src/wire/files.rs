//! The files beside an answer, and why some are left out. The answer is sent all the same.

use rejoinder_core::Attachment;
use serde_json::Value;

use super::answer::File;
use crate::{
    attachments::{MAX_FILES, attachment, in_one_line},
    file_kind::essence,
};

/// Those that can be sent, and those that cannot.
#[derive(Debug, Default)]
pub(super) struct CheckedFiles {
    files: Vec<Attachment>,
    /// Their names, and why.
    left_out: Vec<(String, String)>,
}

impl CheckedFiles {
    /// Reads the key `files` of an object.
    pub(super) fn read(listed: Value) -> Self {
        let mut checked = Self::default();
        match listed {
            Value::Array(files) => files.into_iter().for_each(|file| checked.add(file)),
            _ => checked.leave_out("files".to_owned(), "`files` must be a list"),
        }
        checked
    }

    fn add(&mut self, file: Value) {
        let Ok(File { name, media_type, data, url }) = serde_json::from_value(file) else {
            return self.leave_out("?".to_owned(), "a file needs a `name`, and `data` or a `url`, as texts");
        };
        // A parameter is no part of the type here.
        let media_type = media_type.map(|media_type| essence(&media_type)).filter(|media_type| !media_type.is_empty());
        let data = data.map(|data| in_one_line(&data));
        match attachment(name.clone(), media_type, data, url) {
            Ok(file) => self.files.push(file),
            Err(why) => self.leave_out(name, &why),
        }
    }

    fn leave_out(&mut self, name: String, why: &str) {
        if self.left_out.len() < MAX_FILES {
            self.left_out.push((name, why.to_owned()));
        }
    }

    /// Adds those that can be sent to the files that the answer has already, as far as it may have more.
    pub(super) fn join(&mut self, answer: &mut Vec<Attachment>) {
        let room = MAX_FILES.saturating_sub(answer.len()).min(self.files.len());
        let too_many = self.files.split_off(room);
        answer.append(&mut self.files);
        for file in too_many {
            self.leave_out(file.name, &format!("an answer has at most {MAX_FILES} files"));
        }
    }

    /// Leaves out all of them.
    pub(super) fn leave_out_all(&mut self, why: &str) {
        for file in std::mem::take(&mut self.files) {
            self.leave_out(file.name, why);
        }
    }

    /// The names of those that cannot be sent, and why.
    pub(super) fn left_out(&self) -> &[(String, String)] {
        &self.left_out
    }

    pub(super) fn into_left_out(self) -> Vec<(String, String)> {
        self.left_out
    }
}
