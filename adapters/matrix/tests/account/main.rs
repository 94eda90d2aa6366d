//! An account before a real core on a real database, against a Synapse. The agent is scripted, and does what it is
//! told.

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
