//! Tests of an account with the real core and a real database, against a Synapse. The agent is scripted: it does what
//! the messages tell it.

mod checking;
mod encrypted;
mod intake;
mod limits;
mod outages;
mod rooms;
mod search;
mod sending;
mod session;
mod signing;
mod support;
mod trust;
