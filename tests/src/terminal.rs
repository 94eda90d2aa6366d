//! A person at a terminal: a command of the binary behind a pseudo-terminal, and what stands on its screen.

use std::{
    fs::File,
    io::{Read, Write},
    num::NonZero,
    os::fd::OwnedFd,
    process::{Child, Command, ExitStatus},
    sync::{Arc, Mutex},
};

use rustix::{
    fs::{Mode, OFlags, open},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

use crate::eventually;

/// The size of the screen.
const ROWS: NonZero<u16> = NonZero::new(30).unwrap();
const COLUMNS: NonZero<u16> = NonZero::new(80).unwrap();

/// A command behind a terminal of 80 columns and 30 rows. It is killed on drop.
pub struct Terminal {
    keyboard: File,
    screen: Arc<Mutex<vt100::Parser>>,
    process: Child,
}

impl Terminal {
    /// Starts `command` in it.
    ///
    /// # Panics
    /// If there is no pseudo-terminal, or the command cannot be started.
    #[must_use]
    pub fn start(command: &mut Command) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
        grantpt(&ours).and_then(|()| unlockpt(&ours)).expect("it is unlocked");
        let size = Winsize { ws_row: ROWS.get(), ws_col: COLUMNS.get(), ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&ours, size).expect("it has a size");
        let name = ptsname(&ours, Vec::new()).expect("its name");
        let theirs = open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("its other end");
        let copy = |end: &OwnedFd| end.try_clone().expect("another descriptor");
        let process = command
            .env("TERM", "xterm-256color")
            .stdin(copy(&theirs))
            .stdout(copy(&theirs))
            .stderr(theirs)
            .spawn()
            .expect("the command starts");
        let screen = Arc::new(Mutex::new(vt100::Parser::new(ROWS, COLUMNS, 1000)));
        let (mut output, shown) = (File::from(copy(&ours)), Arc::clone(&screen));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // It ends with an error once the command has closed its end.
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                shown.lock().expect("no reader has panicked").process(&bytes[..count]);
            }
        });
        Self { keyboard: File::from(ours), screen, process }
    }

    /// Types these keys.
    ///
    /// # Panics
    /// If the terminal is closed.
    pub fn types(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("the keys are typed");
    }

    /// The rows of the screen, without the empty ones at its end.
    ///
    /// # Panics
    /// If the reader has panicked.
    #[must_use]
    pub fn screen(&self) -> String {
        let contents = self.screen.lock().expect("no reader has panicked").screen().contents();
        contents.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_end().to_owned()
    }

    /// Waits until the screen contains `text`, and returns the screen.
    ///
    /// # Panics
    /// If it does not in time.
    pub async fn shows(&self, text: &str) -> String {
        self.until(text, |screen| screen.contains(text)).await
    }

    /// Waits until this holds of the screen, and returns the screen.
    ///
    /// # Panics
    /// If it does not in time.
    pub async fn until(&self, about: &str, holds: impl Fn(&str) -> bool) -> String {
        let screen = || Some(self.screen()).filter(|screen| holds(screen));
        let waited = tokio::time::timeout(crate::PATIENCE, async {
            loop {
                if let Some(screen) = screen() {
                    return screen;
                }
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        });
        waited.await.unwrap_or_else(|_| panic!("the screen does not show: {about}\n{}", self.screen()))
    }

    /// Waits until the command has ended by itself.
    ///
    /// # Panics
    /// If it does not in time.
    pub async fn ends(&mut self) -> ExitStatus {
        eventually("the command ends", async || self.process.try_wait().expect("it is waited for")).await
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the screen:\n{}", self.screen());
        }
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
