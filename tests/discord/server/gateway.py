"""The Gateway: https://discord.com/developers/docs/events/gateway."""

from __future__ import annotations

import json
import time
from collections import deque
from typing import Any

from aiohttp import WSMsgType, web
from simcord.backend import serializers

from .sessions import Connection, Session
from .world import World

_KNOWN_INTENTS = (1 << 26) - 1
#: Privileged intents by the setting that grants them.
_PRIVILEGED = {"members": 1 << 1, "presences": 1 << 8, "message_content": 1 << 15}
#: Client close codes that end the session as well as the connection.
_ENDS_SESSION = (1000, 1001)
#: Server close codes that end the session.
_FATAL = (4004, 4007, 4009, 4010, 4011, 4012, 4013, 4014)


class Closing(Exception):
    """The connection must be closed with a code."""

    def __init__(self, code: int) -> None:
        """Close with ``code``."""
        super().__init__(code)
        self.code = code


class Gateway:
    """All sessions, and the WebSocket endpoint that serves them."""

    def __init__(self, world: World, url: str) -> None:
        """Serve at ``url``."""
        self._world = world
        self._url = url
        self.sessions: dict[str, Session] = {}
        self._connections: set[Connection] = set()
        self._identified: deque[float] = deque(maxlen=1)
        #: Whether new connections are refused.
        self.refuses = False
        self.counts = {"connections": 0, "identifies": 0, "resumes": 0, "resumes_refused": 0, "heartbeats": 0}
        #: The codes that clients have closed with; 1006 is a connection that ended without one.
        self.closed_with: list[int] = []
        #: The codes that the server closed with because of an error of a client.
        self.refused_with: list[int] = []
        #: The intents of the last IDENTIFY.
        self.intents = 0

    def information(self) -> dict[str, Any]:
        """Build the response to ``GET /gateway/bot``."""
        settings = self._world.settings
        return {
            "url": self._url,
            "shards": 1,
            "session_start_limit": {
                "total": settings.identify_total,
                "remaining": settings.identify_remaining,
                "reset_after": int(settings.identify_reset_after * 1000),
                "max_concurrency": 1,
            },
        }

    def state(self) -> dict[str, Any]:
        """Describe the sessions for the control API."""
        return {
            **self.counts,
            "connected": sum(session.connection is not None for session in self.sessions.values()),
            "sessions": len(self.sessions),
            "closed_with": self.closed_with,
            "refused_with": self.refused_with,
            "intents": self.intents,
        }

    def act(self, given: dict[str, Any]) -> None:
        """Perform an action of the control API on the connections."""
        match given["do"]:
            case "close":
                code = int(given["code"])
                for session in self._connected():
                    if code in _FATAL:
                        self._forget(session)
                    session.connection.close(code)
            case "abort":
                for connection in tuple(self._connections):
                    connection.abort()
            case "reconnect":
                self._send({"op": 7, "d": None, "s": None, "t": None})
            case "invalid":
                resumable = bool(given.get("resumable", False))
                connected = self._connected()
                self._send({"op": 9, "d": resumable, "s": None, "t": None})
                if not resumable:
                    for session in connected:
                        self._forget(session)
            case "forget":
                for session in tuple(self.sessions.values()):
                    self._forget(session)
            case "acknowledge":
                for connection in self._connections:
                    connection.acknowledges = bool(given["on"])
            case "dispatch":
                for connection in self._connections:
                    connection.dispatches = bool(given["on"])
            case "refuse":
                self.refuses = bool(given["on"])
            case other:
                raise ValueError(f"the Gateway cannot `{other}`")
        self._world.changes.happened()

    def tell(self, event: str, payload: Any) -> None:
        """Send any event to all sessions, unchecked."""
        for session in self.sessions.values():
            session.dispatch(event, payload)

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Serve one connection until it ends."""
        if self.refuses:
            return web.Response(status=503, text="no healthy upstream")
        socket = web.WebSocketResponse(max_msg_size=1 << 20)
        await socket.prepare(request)
        connection = Connection(request, socket)
        self._connections.add(connection)
        self.counts["connections"] += 1
        self._world.changes.happened()
        client = Client(self, self._world, connection)
        try:
            await client.converse(socket, request.query.get("v", "10"))
        except Closing as closing:
            self.refused_with.append(closing.code)
            if client.session is not None and closing.code in _FATAL:
                self._forget(client.session)
            connection.close(closing.code)
            # Queued payloads are sent before the close, which the client then answers.
            async for _ in socket:
                pass
        finally:
            self._connections.discard(connection)
            self._ended(client, connection, socket)
        return socket

    def _ended(self, client: Client, connection: Connection, socket: web.WebSocketResponse) -> None:
        by_server = connection.closed
        connection.ended()
        code = socket.close_code or 1006
        if not by_server:
            self.closed_with.append(code)
        if client.session is not None:
            client.session.detach(connection)
            if not by_server and code in _ENDS_SESSION:
                self._forget(client.session)
        self._world.changes.happened()

    def begin(self, connection: Connection, intents: int) -> Session:
        """Start a session, and send its initial events."""
        for session in tuple(self.sessions.values()):
            if session.expired:
                self._forget(session)
        world = self._world
        session = Session(world, intents)
        self.sessions[session.id] = session
        self.intents = intents
        self.counts["identifies"] += 1
        session.attach(connection)
        guilds = [guild for guild in world.guilds.values() if world.bot_user.id in guild.members]
        session.dispatch(
            "READY",
            {
                "v": 10,
                "user": serializers.user_payload(world.bot_user),
                "guilds": [{"id": str(guild.id), "unavailable": True} for guild in guilds],
                "session_id": session.id,
                "resume_gateway_url": self._url,
                "session_type": "normal",
                "shard": [0, 1],
                "application": {"id": str(world.application_id), "flags": application_flags(world)},
            },
        )
        for guild in guilds:
            session.feed("GUILD_CREATE", world.guild_payload(guild))
        world.subscribers.append(session.feed)
        world.changes.happened()
        return session

    def allow_identify(self) -> bool:
        """Count an IDENTIFY. Returns whether it may succeed now."""
        settings = self._world.settings
        now = time.monotonic()
        too_soon = bool(self._identified) and now - self._identified[0] < settings.identify_interval
        self._identified.append(now)
        if too_soon:
            return False
        if settings.identify_remaining <= 0:
            # Discord ends all sessions and resets the token in this case.
            raise Closing(4004)
        settings.identify_remaining -= 1
        return True

    def find(self, session_id: str) -> Session | None:
        """Find a session that can be resumed."""
        session = self.sessions.get(session_id)
        if session is not None and session.expired:
            self._forget(session)
            return None
        return session

    def _forget(self, session: Session) -> None:
        self.sessions.pop(session.id, None)
        if session.feed in self._world.subscribers:
            self._world.subscribers.remove(session.feed)

    def _connected(self) -> list[Session]:
        return [session for session in self.sessions.values() if session.connection is not None]

    def _send(self, payload: dict[str, Any]) -> None:
        for session in self._connected():
            session.connection.send(payload)


class Client:
    """The protocol of one connection, command by command."""

    def __init__(self, gateway: Gateway, world: World, connection: Connection) -> None:
        """Serve a client that has just connected."""
        self._gateway = gateway
        self._world = world
        self._connection = connection
        self._commands: deque[float] = deque()
        self.session: Session | None = None

    async def converse(self, socket: web.WebSocketResponse, version: str) -> None:
        """Send HELLO, then execute commands until the client disconnects."""
        interval = int(self._world.settings.heartbeat_interval * 1000)
        self._connection.send({"op": 10, "d": {"heartbeat_interval": interval}, "s": None, "t": None})
        if version != "10":
            raise Closing(4012)
        async for message in socket:
            if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
                return
            try:
                command = json.loads(message.data)
                operation, data = command["op"], command.get("d")
            except (ValueError, KeyError, TypeError) as error:
                raise Closing(4002) from error
            self._count()
            try:
                self._take(operation, data)
            except (KeyError, TypeError, ValueError) as error:
                raise Closing(4002) from error

    def _count(self) -> None:
        now = time.monotonic()
        self._commands.append(now)
        while self._commands[0] < now - 60.0:
            self._commands.popleft()
        if len(self._commands) > self._world.settings.gateway_commands:
            raise Closing(4008)

    def _take(self, operation: int, data: Any) -> None:
        match operation:
            case 1:
                self._gateway.counts["heartbeats"] += 1
                if self._connection.acknowledges:
                    self._connection.send({"op": 11, "d": None, "s": None, "t": None})
            case 2:
                self._identify(data)
            case 6:
                self._resume(data)
            case 3 | 4 | 8 if self.session is None:
                raise Closing(4003)
            case 3 | 4:
                pass
            case 8:
                self._members(data)
            case _:
                raise Closing(4001)

    def _identify(self, data: dict[str, Any]) -> None:
        if self.session is not None:
            raise Closing(4005)
        self._check_token(data)
        shard, of = data.get("shard") or (0, 1)
        if not 0 <= shard < of:
            raise Closing(4010)
        intents = int(data["intents"])
        if intents < 0 or intents & ~_KNOWN_INTENTS:
            raise Closing(4013)
        settings = self._world.settings
        if any(intents & flag and not getattr(settings, name) for name, flag in _PRIVILEGED.items()):
            raise Closing(4014)
        if not self._gateway.allow_identify():
            self._connection.send({"op": 9, "d": False, "s": None, "t": None})
            return
        self._connection.compress = bool(data.get("compress"))
        self.session = self._gateway.begin(self._connection, intents)

    def _resume(self, data: dict[str, Any]) -> None:
        if self.session is not None:
            raise Closing(4005)
        self._check_token(data)
        session = self._gateway.find(data["session_id"])
        sequence = int(data["seq"] or 0)
        if session is None:
            self._refuse()
            return
        if sequence > session.sequence:
            self.session = session
            raise Closing(4007)
        if session.connection is not None:
            # The client reconnected before the server noticed that its old connection ended.
            session.connection.close(4000)
        session.attach(self._connection)
        if not session.replay(sequence):
            session.detach(self._connection)
            self._refuse()
            return
        self.session = session
        session.dispatch("RESUMED", {})
        self._gateway.counts["resumes"] += 1
        self._world.changes.happened()

    def _refuse(self) -> None:
        self._gateway.counts["resumes_refused"] += 1
        self._connection.send({"op": 9, "d": False, "s": None, "t": None})

    def _check_token(self, data: dict[str, Any]) -> None:
        if data["token"].removeprefix("Bot ") != self._world.token:
            raise Closing(4004)

    def _members(self, data: dict[str, Any]) -> None:
        """Respond to REQUEST_GUILD_MEMBERS in one chunk."""
        world = self._world
        guild = world.guilds.get(int(data["guild_id"]))
        if guild is None or self.session is None:
            return
        wanted = data.get("user_ids")
        ids = {int(each) for each in ([wanted] if isinstance(wanted, str | int) else wanted or [])}
        prefix = (data.get("query") or "").lower()
        found = [
            member
            for member in guild.members.values()
            if (not ids or member.user_id in ids) and world.users[member.user_id].name.lower().startswith(prefix)
        ]
        chunk: dict[str, Any] = {
            "guild_id": str(guild.id),
            "members": [serializers.member_payload(world, guild, m) for m in found[: data.get("limit") or None]],
            "chunk_index": 0,
            "chunk_count": 1,
            "not_found": [str(each) for each in sorted(ids - guild.members.keys())],
        }
        if "nonce" in data:
            chunk["nonce"] = data["nonce"]
        self.session.dispatch("GUILD_MEMBERS_CHUNK", chunk)


def application_flags(world: World) -> int:
    """Encode the granted privileged intents as application flags (the limited kind)."""
    settings = world.settings
    return settings.presences << 13 | settings.members << 15 | settings.message_content << 19
