"""The state behind the REST API, the Gateway and the control API."""

from __future__ import annotations

import datetime
import hashlib
import secrets
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from simcord._clock import Clock
from simcord.backend import Backend, serializers
from simcord.backend.access import channel_accessible
from simcord.backend.cdn import CdnStore
from simcord.backend.models import Guild, Interaction, Message

from . import wire
from .changes import Changes
from .settings import Settings

#: SUPPRESS_EMBEDS, the flag of a message without link previews.
SUPPRESS_EMBEDS = 1 << 2
#: HAS_THREAD, the flag of a message that a thread was started from.
HAS_THREAD = 1 << 5


class WallClock(Clock):
    """The time of day with an offset that a test sets."""

    def now(self) -> datetime.datetime:
        """Return the shifted time of day."""
        return datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=self.elapsed)


class Cdn(CdnStore):
    """Files at URLs of this server that look like those of Discord's CDN."""

    def __init__(self, base: str) -> None:
        """Serve files below ``base``."""
        super().__init__()
        self._base = base

    def store_attachment(
        self, attachment_id: int, channel_id: int, filename: str, data: bytes, description: str | None
    ) -> dict[str, Any]:
        """Store a file, and return its attachment object."""
        stored = super().store_attachment(attachment_id, channel_id, filename, data, description)
        path = f"/attachments/{channel_id}/{attachment_id}/{filename}"
        self._blobs[path] = self._blobs.pop(stored["url"])
        # Discord signs these URLs with query parameters.
        signature = hashlib.sha256(path.encode()).hexdigest()
        stored["url"] = stored["proxy_url"] = f"{self._base}{path}?ex=7fffffff&is=0&hm={signature}"
        if description is None:
            del stored["description"]
        return stored


@dataclass
class Sent:
    """A message that was sent with a nonce."""

    message: Message
    #: ``time.monotonic()`` plus the test's clock offset.
    at: float


class World(Backend):
    """SimCord's backend, with the additions of this server."""

    def __init__(self, base: str) -> None:
        """Create an empty Discord with one application, served at ``base``."""
        self.changes = Changes()
        self.settings = Settings()
        #: The nonce of the message that is being created.
        self.nonce_in_hand: str | int | None = None
        #: Earlier messages by nonce, for ``enforce_nonce``.
        self.sent: dict[str, Sent] = {}
        #: Nonces by message.
        self.nonces: dict[int, str | int] = {}
        #: All texts that an edited message has had.
        self.versions: dict[int, list[str]] = {}
        #: How often the bot has sent a typing notice, by channel.
        self.typing: dict[int, int] = {}
        #: Users who accept no direct messages.
        self.closed_dms: set[int] = set()
        super().__init__(clock=WallClock())
        self.base = base
        self.token = f"{secrets.token_urlsafe(18)}.test.{secrets.token_urlsafe(24)}"
        self.cdn = Cdn(f"{base}/cdn")
        # SimCord keeps all traffic; this server keeps a bounded record of its own.
        self.http_requests = deque(maxlen=0)  # type: ignore[assignment]
        self.transcript = deque(maxlen=0)  # type: ignore[assignment]

    @property
    def now(self) -> float:
        """Monotonic seconds with the test's clock offset."""
        return time.monotonic() + self.clock.elapsed

    def emit(self, event: str, payload: Mapping[str, Any]) -> None:
        """Send an event to all sessions, if the bot may see it."""
        if not self._reaches(event, payload):
            return
        if event == "MESSAGE_CREATE" and self.nonce_in_hand is not None:
            payload = {**payload, "nonce": self.nonce_in_hand}
        elif event in ("GUILD_CREATE", "GUILD_UPDATE"):
            payload = wire.guild(payload)
        elif event == "TYPING_START" and payload["user_id"] == str(self.bot_user.id):
            channel = int(payload["channel_id"])
            self.typing[channel] = self.typing.get(channel, 0) + 1
            payload = {**payload, "timestamp": int(self.clock.now().timestamp())}
        for listener in tuple(self.subscribers):
            listener(event, payload)

    def _reaches(self, event: str, payload: Mapping[str, Any]) -> bool:
        if event in ("GUILD_DELETE", "INTERACTION_CREATE"):
            return True
        guild = self.guilds.get(int(payload.get("guild_id") or 0))
        if guild is not None and self.bot_user.id not in guild.members:
            return False
        channel_id = payload.get("channel_id")
        return channel_id is None or channel_accessible(self, int(channel_id), self.bot_user.id)

    def edit_message(self, channel_id: int, message_id: int, fields: dict[str, Any]) -> Message:
        """Change a message, and keep its earlier texts."""
        before = self.get_message(channel_id, message_id).content
        message = super().edit_message(channel_id, message_id, fields)
        if message.content != before:
            self.versions.setdefault(message.id, [before]).append(message.content)
        return message

    def new_interaction(self, type: int, channel_id: int, user_id: int, guild_id: int | None) -> Interaction:
        """Create an interaction with the lifetimes of the settings."""
        record = super().new_interaction(type, channel_id, user_id, guild_id)
        record.expires_at = self.iso_after(self.settings.interaction_lifetime)
        record.initial_response_deadline = self.iso_after(self.settings.interaction_deadline)
        return record

    def guild_payload(self, guild: Guild) -> dict[str, Any]:
        """Describe a guild as GUILD_CREATE does."""
        ours = guild.members.get(self.bot_user.id)
        payload = wire.guild(serializers.guild_create_payload(self, guild))
        return {**payload, "joined_at": ours.joined_at} if ours else payload

    def earlier(self, nonce: str | int) -> Message | None:
        """Find the message that was sent with ``nonce`` within the window."""
        sent = self.sent.get(str(nonce))
        if sent is None or self.now - sent.at > self.settings.nonce_window:
            return None
        return sent.message

    def remember(self, nonce: str | int, message: Message) -> None:
        """Remember that ``message`` was sent with ``nonce``."""
        self.sent[str(nonce)] = Sent(message, self.now)
        self.nonces[message.id] = nonce
