"""Settings of the server that a test can change."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass
class Settings:
    """The server's behaviour, with Discord's documented values as defaults."""

    #: Seconds for the first response to an interaction.
    interaction_deadline: float = 3.0
    #: Seconds for which an interaction's token works.
    interaction_lifetime: float = 15 * 60.0
    #: Seconds in which ``enforce_nonce`` finds the earlier message (Discord: "the past few minutes").
    nonce_window: float = 120.0
    #: Whether messages read back carry their nonce, which Discord does not promise.
    nonce_in_history: bool = False
    #: The heartbeat interval in HELLO, in seconds.
    heartbeat_interval: float = 41.25
    #: Seconds for which a session without a connection can be resumed.
    session_lifetime: float = 120.0
    #: How many events a session keeps for a RESUME.
    replay_limit: int = 10_000
    #: Gateway commands per connection and minute.
    gateway_commands: int = 120
    #: The daily number of identifies in ``session_start_limit``.
    identify_total: int = 1000
    #: The remaining identifies.
    identify_remaining: int = 1000
    #: Seconds until all identifies are available again.
    identify_reset_after: float = 24 * 60 * 60.0
    #: Minimum seconds between two identifies (Discord: 5; off here, for fast tests).
    identify_interval: float = 0.0
    #: Whether the application has the MESSAGE_CONTENT intent.
    message_content: bool = True
    #: Whether the application has the GUILD_MEMBERS intent.
    members: bool = True
    #: Whether the application has the GUILD_PRESENCES intent.
    presences: bool = True
    #: The largest file, in bytes ("Uploading Files": the default; more in a server with boosts).
    upload_limit: int = 10 << 20
    #: The most bytes of the files of a request ("Create Message").
    request_limit: int = 25 << 20
    #: Invalid requests (401, 403, 429) per ten minutes above which the address is banned.
    invalid_limit: int = 10_000
    #: Requests per second for all routes together; 0 is unlimited.
    global_limit: int = 0
    #: Whether REST calls are kept for ``/__sim/calls``.
    keep_calls: bool = True

    def change(self, changes: dict[str, Any]) -> dict[str, Any]:
        """Set the named values, and return all of them."""
        known = {field.name: field.type for field in fields(self)}
        for name, value in changes.items():
            if name not in known:
                raise ValueError(f"there is no setting `{name}`: there are {', '.join(sorted(known))}")
            setattr(self, name, type(getattr(self, name))(value))
        return asdict(self)
