//! Webhooks: a turn over HTTP, for Siri Shortcuts and anything else that can POST.
