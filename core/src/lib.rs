//! Types, ports and the path a turn takes.
