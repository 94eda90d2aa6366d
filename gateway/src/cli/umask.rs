//! Who may read the files that commands create.

use rustix::{fs::Mode, process::umask};

/// What any command creates is for its user alone, libraries' files included.
pub(super) fn keep_private() {
    umask(Mode::RWXG | Mode::RWXO);
}

/// From now on, files that are created are readable for all.
pub(super) fn let_others_read() {
    umask(Mode::WGRP | Mode::WOTH);
}
