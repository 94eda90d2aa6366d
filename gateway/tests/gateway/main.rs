//! The gateway in this process, over real HTTP and a real database.

mod admin;
#[cfg(feature = "discord")]
mod discord;
mod doctor;
mod health;
mod life;
mod support;
mod surface;
#[cfg(feature = "telegram")]
mod telegram;
