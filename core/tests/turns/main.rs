//! Tests of the whole path of a turn, with a real database, a scripted platform, scripted agents, and a clock that the
//! test advances.
//!
//! To add a test, write a function in the module of its topic and end it with `at_rest`: there
//! [`TestGateway`](gateway::TestGateway) checks the promise.

mod absent;
mod access;
mod amends;
mod answers;
mod approvals;
mod backlog;
mod budgets;
mod chaos;
mod choices;
mod commands;
mod crashes;
mod crowd;
mod deadlines;
mod deferrals;
mod deliveries;
mod digests;
mod drafts;
mod elsewhere;
mod floods;
mod forgotten;
mod gateway;
mod handoffs;
mod homes;
mod initiative;
mod keys;
mod languages;
mod late;
mod life;
mod limits;
mod linking;
mod log;
mod marks;
mod memories;
mod moves;
mod news;
mod operations;
mod outages;
mod owners;
mod pairing;
mod parking;
mod poison;
mod questions;
mod queues;
mod quotes;
mod records;
mod reload;
mod restarts;
mod retention;
mod routing;
mod rows;
mod schedules;
mod searching;
mod seen;
mod sessions;
mod shares;
mod stops;
mod store;
mod texts;
mod triggers;
mod typing;
mod unreadable;
mod words;
