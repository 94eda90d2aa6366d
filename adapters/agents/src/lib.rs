//! Agent runtimes: the front desk and OpenAI-compatible servers.
