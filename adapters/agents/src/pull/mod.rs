//! Workers anywhere, which fetch turns over HTTP and post the answers: agents behind NAT, and fleets.
//!
//! | File | Contains |
//! | --- | --- |
//! | `agent` | the runtime |
//! | `command` | what a worker says about a run |
//! | `kept` | the lease of a run, as it is stored |
//! | `lease` | the number and the secret in the text of a lease (no I/O) |
//! | `leases` | which run waits and which one a worker has (no I/O) |
//! | `notices` | what workers are still to be told of sessions |
//! | `desk` | where runs wait for workers, and workers for runs |
//! | `elsewhere` | whether a lease that this node did not give is over |
//! | `caller` | which worker a request is from |
//! | `routes` | what workers send |
//! | `refusals` | what is recorded of an outcome that is not used |
//! | `sessions` | the same, of changes of sessions |
//! | `room` | bounds the memory of their bodies |
//! | `body` | reads the bodies of their requests (no I/O) |
//! | `schema`, `openapi` | the OpenAPI description |
//!
//! A run waits in a queue until a worker fetches it under a lease. A worker that is silent for the length of the lease has lost
//! the run, which is offered to another one first. What it sends later with the old lease changes nothing, and an outcome is noted
//! in the record of the turn. A run that ends otherwise, at a deadline or because the person cancels, ends its lease: the worker
//! hears of it when it renews.
//!
//! A lease is stored before its worker gets the turn. After a restart the core begins the run again: if it asks the same, the worker
//! has it still, with the old lease. A worker that asks before is told to ask again. Only what a worker has said of the answer is not
//! stored: with the first of it, the lease ends with the process.

mod agent;
mod body;
mod caller;
mod command;
mod desk;
mod elsewhere;
mod kept;
mod lease;
mod leases;
mod notices;
mod openapi;
mod purpose;
mod refusals;
mod room;
mod routes;
mod schema;
mod section;
mod sessions;

pub use self::{
    agent::{Pull, PullSettings},
    openapi::openapi,
    section::{PullSection, WorkerSection},
};
