//! The web chat page and its socket.
