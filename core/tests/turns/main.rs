//! The path of a turn, whole: a real database, a scripted platform, scripted agents, and time that passes
//! when a test says so.
//!
//! To add a test: a function in the module of what it is about. [`TestGateway`](gateway::TestGateway)
//! checks the promise when it comes to rest, and insists on being asked.

mod absent;
mod access;
mod amends;
mod answers;
mod chaos;
mod choices;
mod commands;
mod crashes;
mod crowd;
mod deadlines;
mod deferrals;
mod deliveries;
mod drafts;
mod gateway;
mod life;
mod limits;
mod moves;
mod poison;
mod restarts;
mod rows;
mod store;
