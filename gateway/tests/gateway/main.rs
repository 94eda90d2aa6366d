//! Tests of a gateway in this process, with real HTTP and a real database.

mod admin;
mod agents;
mod asked;
#[cfg(feature = "discord")]
mod discord;
mod doctor;
mod doors;
mod files;
mod health;
mod hooks;
#[cfg(feature = "telegram")]
mod initiative;
mod life;
#[cfg(feature = "telegram")]
mod people;
mod support;
mod surface;
#[cfg(feature = "telegram")]
mod telegram;
