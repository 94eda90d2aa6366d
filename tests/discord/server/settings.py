"""What a test can change about how the server behaves."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass
class Settings:
    """The server's behaviour, at Discord's own values where Discord documents them."""

    #: Seconds in which the first answer to an interaction must come.
    interaction_deadline: float = 3.0
    #: Seconds for which an interaction's token works.
    interaction_lifetime: float = 15 * 60.0
    #: Seconds in which ``enforce_nonce`` finds the earlier message ("the past few minutes").
    nonce_window: float = 120.0
    #: Whether messages read back carry their nonce, which Discord does not promise.
    nonce_in_history: bool = False
    #: Seconds between the heartbeats that HELLO asks for.
    heartbeat_interval: float = 41.25
    #: Seconds for which a session without a connection can be resumed.
    session_lifetime: float = 120.0
    #: Events that a session keeps for a RESUME.
    replay_limit: int = 10_000
    #: Gateway commands that a connection may send in a minute.
    gateway_commands: int = 120
    #: What ``session_start_limit`` says of a day's identifies.
    identify_total: int = 1000
    #: The identifies that are left of them.
    identify_remaining: int = 1000
    #: Seconds until they are all there again.
    identify_reset_after: float = 24 * 60 * 60.0
    #: Seconds that must lie between two identifies (Discord: 5; here off, for fast tests).
    identify_interval: float = 0.0
    #: Whether the application may have the MESSAGE_CONTENT intent.
    message_content: bool = True
    #: Whether the application may have the GUILD_MEMBERS intent.
    members: bool = True
    #: Whether the application may have the GUILD_PRESENCES intent.
    presences: bool = True
    #: The largest file, in bytes.
    upload_limit: int = 25 << 20
    #: Invalid requests (401, 403, 429) in ten minutes after which the address is banned.
    invalid_limit: int = 10_000
    #: Requests a second for all routes together; 0 is no limit.
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
