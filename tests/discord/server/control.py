"""The control API, ``/__sim/...``: the people's side, and faults. README.md lists it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web
from simcord.backend import errors
from simcord.backend.errors import BackendError

from . import people, view
from .conversing import converse
from .faults import Faults
from .gateway import Gateway
from .rest import Rest
from .world import World

Given = dict[str, Any]

#: The maximum wait of ``wait`` and ``slash``, in seconds.
_LONGEST_WAIT = 60.0


class Control:
    """Answers the control API."""

    def __init__(self, world: World, gateway: Gateway, rest: Rest, faults: Faults) -> None:
        """Control these objects."""
        self._world = world
        self._gateway = gateway
        self._rest = rest
        self._faults = faults
        self._changing: dict[str, Callable[[Given], Any | Awaitable[Any]]] = {
            "guild": self._guild,
            "channel": self._channel,
            "person": self._person,
            "crowd": self._crowd,
            "dm": self._dm,
            "join": self._join,
            "kick": self._kick,
            "delete_channel": self._delete_channel,
            "permissions": self._permissions,
            "close_dms": self._close_dms,
            "message": self._message,
            "flood": self._flood,
            "converse": lambda given: converse(world, given),
            "edit": self._edit,
            "delete": self._delete,
            "unfurl": self._unfurl,
            "react": self._react,
            "typing": self._typing,
            "thread": self._thread,
            "archive": self._archive,
            "slash": self._slash,
            "click": self._click,
            "fault": lambda given: {"fault": faults.add(given)},
            "lift": lambda given: faults.lift(given.get("fault")),
            "rate_limit": lambda given: rest.limits.lift() if given.get("lift") else rest.limits.add(given),
            "gateway": gateway.act,
            "settings": world.settings.change,
            "clock": self._clock,
            "token": self._token,
            "event": lambda given: gateway.tell(given["name"], given["data"]),
            "forget_calls": lambda given: rest.calls.clear(),
        }
        self._reading: dict[str, Callable[[Given], Any | Awaitable[Any]]] = {
            "info": self._information,
            "visible": self._visible,
            "calls": self._calls,
            "sessions": lambda given: gateway.state(),
            "interaction": self._interaction,
            "commands": self._commands,
            "wait": self._wait,
        }

    async def serve(self, request: web.Request) -> web.Response:
        """Answer one control call."""
        what = request.match_info["what"]
        table = self._changing if request.method == "POST" else self._reading
        if what not in table:
            return web.json_response({"error": f"there is no {request.method} {what}"}, status=404)
        try:
            given = dict(request.query)
            if request.can_read_body:
                given.update(await request.json())
            answer = table[what](given)
            if isinstance(answer, Awaitable):
                answer = await answer
        except KeyError as error:
            return web.json_response({"error": f"{what}: {error} is missing or unknown"}, status=400)
        except (ValueError, TypeError, BackendError, errors.SetupError) as error:
            return web.json_response({"error": f"{what}: {error}"}, status=400)
        if table is self._changing:
            self._world.changes.happened()
        return web.json_response({} if answer is None else answer)

    # ------------------------------------------------------------- places

    def _information(self, given: Given) -> Any:
        world = self._world
        return {
            "api_url": world.base,
            "gateway_url": self._gateway.information()["url"],
            "token": world.token,
            "application_id": str(world.application_id),
            "bot_id": str(world.bot_user.id),
            "invalid_requests": self._rest.limits.invalid,
        }

    def _guild(self, given: Given) -> Any:
        guild, bot_role = people.found_guild(self._world, given["name"])
        return {"guild_id": str(guild.id), "bot_role_id": str(bot_role)}

    def _channel(self, given: Given) -> Any:
        channel = people.open_channel(self._world, int(given["guild_id"]), given["name"], given.get("type", "text"))
        return {"channel_id": str(channel.id)}

    def _person(self, given: Given) -> Any:
        user = people.is_born(self._world, given["name"], bot=bool(given.get("bot")))
        return {"user_id": str(user.id), "username": user.name}

    def _crowd(self, given: Given) -> Any:
        world = self._world
        crowd = [people.is_born(world, f"Person {number}", bot=False) for number in range(int(given["people"]))]
        return [{"user_id": str(user.id), "channel_id": str(world.get_dm_channel(user.id).id)} for user in crowd]

    def _dm(self, given: Given) -> Any:
        return {"channel_id": str(self._world.get_dm_channel(int(given["user_id"])).id)}

    def _join(self, given: Given) -> Any:
        people.joins(self._world, int(given["user_id"]), int(given["guild_id"]))

    def _kick(self, given: Given) -> Any:
        people.kicks(self._world, int(given["guild_id"]))

    def _delete_channel(self, given: Given) -> Any:
        self._world.delete_channel(int(given["channel_id"]))

    def _permissions(self, given: Given) -> Any:
        people.permits(self._world, int(given["channel_id"]), given.get("allow", []), given.get("deny", []))

    def _close_dms(self, given: Given) -> Any:
        change = self._world.closed_dms.add if given.get("closed", True) else self._world.closed_dms.discard
        change(int(given["user_id"]))

    # ------------------------------------------------------------- people

    def _message(self, given: Given) -> Any:
        return view.message(self._world, people.says(self._world, given))

    def _flood(self, given: Given) -> Any:
        said = 0
        for each in given["from"]:
            for number in range(int(given.get("messages", 1))):
                people.says(self._world, {**each, "content": given["content"].replace("{}", str(number))})
                said += 1
        return {"said": said}

    def _edit(self, given: Given) -> Any:
        message = self._world.edit_message(
            int(given["channel_id"]), int(given["message_id"]), {"content": given["content"]}
        )
        return view.message(self._world, message)

    def _delete(self, given: Given) -> Any:
        self._world.delete_message(int(given["channel_id"]), int(given["message_id"]))

    def _unfurl(self, given: Given) -> Any:
        people.unfurls(self._world, int(given["channel_id"]), int(given["message_id"]))

    def _react(self, given: Given) -> Any:
        self._world.set_reaction(
            int(given["channel_id"]),
            int(given["message_id"]),
            given["emoji"],
            int(given["user_id"]),
            not given.get("remove", False),
        )

    def _typing(self, given: Given) -> Any:
        people.types(self._world, int(given["channel_id"]), int(given["user_id"]))

    def _thread(self, given: Given) -> Any:
        thread, message = people.opens_thread(self._world, given)
        return {"channel_id": str(thread.id), "message_id": None if message is None else str(message.id)}

    def _archive(self, given: Given) -> Any:
        archived, locked = bool(given.get("archived", True)), bool(given.get("locked", False))
        people.archives(self._world, int(given["channel_id"]), archived=archived, locked=locked)

    async def _slash(self, given: Given) -> Any:
        """Use a command, after waiting for its registration."""
        world = self._world
        channel = world.get_channel(int(given["channel_id"]))
        patience = world.now + min(float(given.get("within", 0)), _LONGEST_WAIT)
        while (command := people.command(world, given["name"], channel.guild_id)) is None:
            if (left := patience - world.now) <= 0:
                raise ValueError(f"there is no command /{given['name']}")
            await world.changes.after(world.changes.revision, left)
        record = people.uses(world, channel.id, int(given["user_id"]), command, given.get("options", {}))
        return view.interaction(world, record)

    def _click(self, given: Given) -> Any:
        record = people.clicks(
            self._world,
            int(given["channel_id"]),
            int(given["user_id"]),
            int(given["message_id"]),
            given["custom_id"],
        )
        return view.interaction(self._world, record)

    # ------------------------------------------------------------ network

    def _clock(self, given: Given) -> Any:
        self._world.advance_clock(float(given["advance"]))
        return {"now": self._world.now_iso()}

    def _token(self, given: Given) -> Any:
        """Reset the token, which invalidates the old one."""
        self._world.token = given.get("token") or self._world.token + "-reset"
        self._gateway.act({"do": "close", "code": 4004})
        return {"token": self._world.token}

    # --------------------------------------------------------------- view

    def _visible(self, given: Given) -> Any:
        viewer = given.get("viewer")
        channel_id = int(given["channel_id"])
        return {
            "messages": view.channel(self._world, channel_id, None if viewer is None else int(viewer)),
            "typing": self._world.typing.get(channel_id, 0),
        }

    def _calls(self, given: Given) -> Any:
        after = int(given.get("after", 0))
        return [call for call in self._rest.calls if call["number"] > after]

    def _interaction(self, given: Given) -> Any:
        return view.interaction(self._world, self._world.interactions[int(given["interaction_id"])])

    def _commands(self, given: Given) -> Any:
        guild_id = given.get("guild_id")
        registered = self._world.commands.get(None if guild_id is None else int(guild_id), {})
        return [command["name"] for command in registered.values()]

    async def _wait(self, given: Given) -> Any:
        seconds = min(float(given.get("seconds", 0)), _LONGEST_WAIT)
        return {"revision": await self._world.changes.after(int(given.get("after", -1)), seconds)}
