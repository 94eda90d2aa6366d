"""Gateway sessions, whose events are numbered, kept and replayed, and the connections that carry them."""

from __future__ import annotations

import asyncio
import copy
import json
import time
import uuid
import zlib
from collections import deque
from collections.abc import Mapping
from typing import Any

import discord
from aiohttp import web
from simcord import intents as gates

from .faults import cut
from .world import World

#: Payloads of at least this length are compressed if the client asked for it in IDENTIFY.
_WORTH_COMPRESSING = 1024


class Connection:
    """One WebSocket with an outgoing queue: payloads are sent in order, and senders do not wait."""

    def __init__(self, request: web.Request, socket: web.WebSocketResponse) -> None:
        """Start the task that writes the queue."""
        self._request = request
        self._socket = socket
        self._queue: asyncio.Queue[bytes | str | int] = asyncio.Queue()
        self._stream = zlib.compressobj() if request.query.get("compress") == "zlib-stream" else None
        #: Whether the client asked for compressed payloads in IDENTIFY.
        self.compress = False
        #: Whether heartbeats are acknowledged.
        self.acknowledges = True
        #: Whether events are sent.
        self.dispatches = True
        self.closed = False
        self._writer = asyncio.create_task(self._write())

    def send(self, payload: Mapping[str, Any]) -> None:
        """Queue a payload."""
        self.send_text(json.dumps(payload))

    def send_text(self, text: str) -> None:
        """Queue a payload that is text already."""
        if self._stream is not None:
            data = self._stream.compress(text.encode()) + self._stream.flush(zlib.Z_SYNC_FLUSH)
            self._queue.put_nowait(data)
        elif self.compress and len(text) >= _WORTH_COMPRESSING:
            self._queue.put_nowait(zlib.compress(text.encode()))
        else:
            self._queue.put_nowait(text)

    def close(self, code: int) -> None:
        """Close with ``code`` once everything queued is sent."""
        self.closed = True
        self._queue.put_nowait(code)

    def abort(self) -> None:
        """Cut the connection with a TCP reset."""
        self.ended()
        cut(self._request)

    def ended(self) -> None:
        """Stop writing, as the connection is gone."""
        self.closed = True
        self._writer.cancel()

    async def _write(self) -> None:
        while True:
            item = await self._queue.get()
            try:
                if isinstance(item, int):
                    await self._socket.close(code=item)
                    return
                if isinstance(item, bytes):
                    await self._socket.send_bytes(item)
                else:
                    await self._socket.send_str(item)
            except (ConnectionError, RuntimeError):
                self.closed = True
                return


class Session:
    """An identified client's session, which outlives its connections."""

    def __init__(self, world: World, intents: int) -> None:
        """Start a session without events."""
        self.id = uuid.uuid4().hex
        self.intents = discord.Intents._from_value(intents)
        self.connection: Connection | None = None
        #: When the last connection ended, in ``time.monotonic()``.
        self.left = 0.0
        self.sequence = 0
        self._world = world
        self._sent: deque[tuple[int, str]] = deque(maxlen=world.settings.replay_limit)

    def attach(self, connection: Connection) -> None:
        """Send through ``connection`` from now on."""
        self.connection = connection

    def detach(self, connection: Connection) -> None:
        """Forget a connection that has ended."""
        if self.connection is connection:
            self.connection = None
            self.left = time.monotonic()

    @property
    def expired(self) -> bool:
        """Whether the client has stayed away for longer than the session's lifetime."""
        alone = time.monotonic() - self.left
        return self.connection is None and alone > self._world.settings.session_lifetime

    def feed(self, event: str, payload: Mapping[str, Any]) -> None:
        """Send an event if the intents allow it."""
        gate = gates.required_intent(event, payload)
        if gate is not None and not getattr(self.intents, gate):
            return
        if event == "GUILD_CREATE":
            payload = dict(payload)
            gates.prune_guild_create(payload, self.intents, self._world.bot_user.id)
        if not self.intents.message_content:
            payload = self._censored(event, payload)
        self.dispatch(event, payload)

    def dispatch(self, event: str, payload: Any) -> None:
        """Number an event, keep it for a RESUME, and send it if there is a connection."""
        self.sequence += 1
        text = json.dumps({"op": 0, "t": event, "s": self.sequence, "d": payload})
        self._sent.append((self.sequence, text))
        if self.connection is not None and self.connection.dispatches:
            self.connection.send_text(text)

    def replay(self, after: int) -> bool:
        """Send the events after ``after`` again. Returns whether all of them were still kept."""
        if self.connection is None or (self._sent and self._sent[0][0] > after + 1):
            return False
        for sequence, text in self._sent:
            if sequence > after:
                self.connection.send_text(text)
        return True

    def _censored(self, event: str, payload: Mapping[str, Any]) -> Mapping[str, Any]:
        """Remove the content that a client without the MESSAGE_CONTENT intent may not read."""
        bot = self._world.bot_user.id
        if event in ("MESSAGE_CREATE", "MESSAGE_UPDATE"):
            payload = copy.deepcopy(dict(payload))
            gates.censor_message(payload, bot, backend=self._world)
        elif event == "INTERACTION_CREATE" and isinstance(payload.get("message"), dict):
            payload = copy.deepcopy(dict(payload))
            # The message with the pressed button is the bot's own.
            gates.censor_message(payload["message"], bot, backend=self._world, exempt_root=True)
        return payload
