//! Against a server that is a script.
