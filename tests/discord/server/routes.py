"""The routes that SimCord lacks or implements differently from Discord."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from simcord.backend import errors, permissions, serializers
from simcord.backend.access import channel_accessible
from simcord.backend.errors import BackendError
from simcord.backend.models import Channel, Message
from simcord.enums import ChannelType, MessageType
from simcord.http import _helpers, router
from simcord.http import routes as simcord_routes  # importing registers SimCord's own
from simcord.http.router import RequestContext
from simcord.http.routes.messages import _send_permissions

from . import people, wire
from .gateway import Gateway, application_flags
from .world import World

__all__ = ["Routes", "simcord_routes"]

Handler = Callable[[World, RequestContext], Any]
_OWN: list[tuple[str, re.Pattern[str], Handler]] = []

_COMMAND_NAME = re.compile(r"[-_'\w]{1,32}")
_LONGEST_MESSAGE = 2000
_LONGEST_NONCE = 25
_MOST_COMMANDS = 100


def _route(method: str, template: str) -> Callable[[Handler], Handler]:
    compiled = re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", template))

    def register(handler: Handler) -> Handler:
        _OWN.append((method, compiled, handler))
        return handler

    return register


class Routes:
    """Finds the handler of a call."""

    def __init__(self, world: World, gateway: Gateway) -> None:
        """Serve from ``world``."""
        self._world = world
        self._gateway = gateway

    def call(self, method: str, path: str, query: dict[str, str], body: Any, files: list[Any]) -> Any:
        """Execute a call and return the body of its response; ``None`` is no body.

        Raises :class:`BackendError` for an error that Discord responds with.
        """
        world = self._world
        if method == "GET" and path == "/gateway":
            return {"url": self._gateway.information()["url"]}
        if method == "GET" and path == "/gateway/bot":
            return self._gateway.information()
        for own, template, handler in _OWN:
            if own == method and (found := template.fullmatch(path)) is not None:
                context = RequestContext(
                    world, found.groupdict(), json=body, params=query, files=files, method=method, path=path
                )
                context.message_content_access = world.settings.message_content
                return handler(world, context)
        return router.dispatch(
            world,
            method,
            path,
            json=body,
            params=query,
            files=files,
            message_content_access=world.settings.message_content,
        )


@_route("POST", r"/channels/{channel_id}/messages")
def send_message(world: World, context: RequestContext) -> Any:
    """Send a message, unless one with the same nonce was sent recently."""
    channel = world.get_channel(context.int_arg("channel_id"))
    body = context.body()
    nonce = _nonce(body)
    _send_permissions(context, channel.id)
    _open_thread(world, channel)
    if channel.recipient_ids and not world.closed_dms.isdisjoint(channel.recipient_ids):
        raise errors.cannot_dm_bot()
    if nonce is not None and body.get("enforce_nonce") and (earlier := world.earlier(nonce)) is not None:
        return {**_helpers.message_response(context, earlier), "nonce": nonce}
    _check_content(body, context.files)
    _check_reference(world, channel.id, body)
    _clean_mentions(body)
    world.nonce_in_hand = nonce
    try:
        message = _helpers.bot_message(context, channel.id)
    finally:
        world.nonce_in_hand = None
    response = _helpers.message_response(context, message)
    if nonce is not None:
        world.remember(nonce, message)
        response["nonce"] = nonce
    return response


@_route("GET", r"/channels/{channel_id}/messages")
def history(world: World, context: RequestContext) -> Any:
    """List messages, newest first; with ``after``, the oldest ones after it."""
    channel_id = context.int_arg("channel_id")
    context.require_channel_permissions(channel_id)
    if not channel_accessible(world, channel_id, world.bot_user.id, history=True):
        return []
    limit = int(context.params.get("limit", 50))
    if not 1 <= limit <= 100:
        raise errors.invalid_form_body("limit: int value should be between 1 and 100")
    messages = sorted((m for m in world.messages[channel_id].values() if not m.is_ephemeral), key=lambda m: m.id)
    if "after" in context.params:
        after = int(context.params["after"])
        messages = [message for message in messages if message.id > after][:limit]
    elif "before" in context.params:
        before = int(context.params["before"])
        messages = [message for message in messages if message.id < before][-limit:]
    elif "around" in context.params:
        around = int(context.params["around"])
        older = [message for message in messages if message.id < around][-(limit // 2) :]
        messages = older + [message for message in messages if message.id >= around][: limit - len(older)]
    else:
        messages = messages[-limit:]
    return [_read(world, context, message) for message in reversed(messages)]


@_route("GET", r"/channels/{channel_id}/messages/{message_id}")
def read_message(world: World, context: RequestContext) -> Any:
    """Read one message."""
    channel_id, message_id = context.int_arg("channel_id"), context.int_arg("message_id")
    return _read(world, context, context.require_message(channel_id, message_id, "read_message_history"))


@_route("PATCH", r"/channels/{channel_id}/messages/{message_id}")
def edit_message(world: World, context: RequestContext) -> Any:
    """Edit one of the bot's own messages."""
    message = context.require_message(context.int_arg("channel_id"), context.int_arg("message_id"))
    if message.author_id != world.bot_user.id:
        raise errors.cannot_edit_other_user()
    _check_length(context.body())
    _clean_mentions(context.body())
    changes = _helpers.message_edit_changes(context, message)
    return _helpers.message_response(context, world.edit_message(message.channel_id, message.id, changes))


@_route("POST", r"/channels/{channel_id}/messages/{message_id}/threads")
def thread_from_message(world: World, context: RequestContext) -> Any:
    """Start a thread from a message, once."""
    channel = context.require_channel_permissions(context.int_arg("channel_id"), "create_public_threads")
    message = context.require_message(channel.id, context.int_arg("message_id"), "read_message_history")
    if channel.type not in (ChannelType.TEXT, ChannelType.NEWS):
        raise errors.cannot_execute_on_channel_type()
    if message.id in world.channels:
        raise BackendError(400, 160004, "A thread has already been created for this message")
    body = context.fields("name", "auto_archive_duration", ignore=("rate_limit_per_user",))
    if not 1 <= len(body["name"]) <= 100:
        raise errors.invalid_form_body(
            errors=_field("name", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
        )
    thread = people.start_thread(
        world, message, body["name"], world.bot_user.id, int(body.get("auto_archive_duration") or 1440)
    )
    return serializers.thread_payload(world, thread)


@_route("POST", r"/interactions/{interaction_id}/{token}/callback")
def answer_interaction(world: World, context: RequestContext) -> Any:
    """Set the first response to an interaction; its body is returned only on request."""
    data = context.body().get("data")
    if isinstance(data, dict):
        _check_length(data)
        _clean_mentions(data)
    response = _simcord(context)
    return response if context.params.get("with_response") in ("true", "1") else None


@_route("POST", r"/webhooks/{webhook_id}/{token}")
@_route("PATCH", r"/webhooks/{webhook_id}/{token}/messages/{message_id}")
def follow_up(world: World, context: RequestContext) -> Any:
    """Send or edit a message with an interaction's token."""
    _check_length(context.body())
    _clean_mentions(context.body())
    return _simcord(context)


@_route("GET", r"/applications/@me")
@_route("GET", r"/oauth2/applications/@me")
def application(world: World, context: RequestContext) -> Any:
    """Describe the application, including its privileged intents."""
    return {
        **router.dispatch(world, "GET", "/oauth2/applications/@me"),
        "flags": application_flags(world),
        "approximate_guild_count": len(world.guilds),
        "hook": True,
        "interactions_endpoint_url": None,
    }


@_route("GET", r"/guilds/{guild_id}")
def guild(world: World, context: RequestContext) -> Any:
    """Describe a guild that the bot is in."""
    found = world.get_guild(context.int_arg("guild_id"))
    if world.bot_user.id not in found.members:
        raise errors.missing_access()
    payload = world.guild_payload(found)
    for key in ("members", "channels", "threads", "presences", "voice_states", "joined_at", "large"):
        payload.pop(key, None)
    return payload


@_route("GET", r"/users/@me/guilds")
def guilds(world: World, context: RequestContext) -> Any:
    """List the guilds that the bot is in."""
    listed = router.dispatch(world, "GET", "/users/@me/guilds", params=context.params)
    bot = world.bot_user.id
    return [wire.partial_guild(each) for each in listed if bot in world.guilds[int(each["id"])].members]


@_route("PUT", r"/applications/{application_id}/commands")
@_route("PUT", r"/applications/{application_id}/guilds/{guild_id}/commands")
def replace_commands(world: World, context: RequestContext) -> Any:
    """Replace all commands of a scope."""
    scope = _scope(world, context)
    if not isinstance(context.json, list) or len(context.json) > _MOST_COMMANDS:
        raise errors.invalid_form_body()
    return [wire.command(each) for each in world.register_commands(scope, [_command(each) for each in context.json])]


@_route("POST", r"/applications/{application_id}/commands")
@_route("POST", r"/applications/{application_id}/guilds/{guild_id}/commands")
def add_command(world: World, context: RequestContext) -> Any:
    """Add a command, or replace the one with the same name."""
    scope = _scope(world, context)
    command = _command(context.body())
    key = (command["name"], command.get("type", 1))
    others = [
        {name: value for name, value in each.items() if name not in ("id", "application_id", "guild_id")}
        for other, each in world.commands.get(scope, {}).items()
        if other != key
    ]
    registered = world.register_commands(scope, [*others, command])
    return wire.command(registered[-1])


@_route("DELETE", r"/applications/{application_id}/commands/{command_id}")
@_route("DELETE", r"/applications/{application_id}/guilds/{guild_id}/commands/{command_id}")
def delete_command(world: World, context: RequestContext) -> Any:
    """Remove a command."""
    scope = world.commands.get(_scope(world, context), {})
    for key, command in scope.items():
        if command["id"] == context.args["command_id"]:
            del scope[key]
            return
    raise BackendError(404, 10063, "Unknown application command")


@_route("GET", r"/applications/{application_id}/commands")
@_route("GET", r"/applications/{application_id}/guilds/{guild_id}/commands")
def commands(world: World, context: RequestContext) -> Any:
    """List the commands of a scope."""
    return [wire.command(each) for each in world.commands.get(_scope(world, context), {}).values()]


def _simcord(context: RequestContext) -> Any:
    return router.dispatch(
        context.backend,
        context.method,
        context.path,
        json=context.json,
        params=context.params,
        files=context.files,
        message_content_access=context.message_content_access,
    )


def _scope(world: World, context: RequestContext) -> int | None:
    if int(context.args["application_id"]) != world.application_id:
        raise BackendError(403, 20012, "You are not authorized to perform this action on this application")
    guild_id = context.args.get("guild_id")
    if guild_id is None:
        return None
    found = world.get_guild(int(guild_id))
    if world.bot_user.id not in found.members:
        raise errors.missing_access()
    return found.id


def _command(given: Any) -> dict[str, Any]:
    """Validate a command as Discord does, and drop the fields that SimCord does not know."""
    name = given.get("name", "")
    if not _COMMAND_NAME.fullmatch(name) or name != name.lower():
        text = "Command name is invalid"
        raise errors.invalid_form_body(errors=_field("name", "APPLICATION_COMMAND_INVALID_NAME", text))
    if given.get("type", 1) == 1 and not 1 <= len(given.get("description", "")) <= 100:
        text = "Must be between 1 and 100 in length."
        raise errors.invalid_form_body(errors=_field("description", "BASE_TYPE_BAD_LENGTH", text))
    return _present({key: value for key, value in given.items() if key not in ("nsfw", "handler", "version", "id")})


def _open_thread(world: World, channel: Channel) -> None:
    """Unarchive a thread, as a message in it does, unless it is locked."""
    metadata = channel.thread_metadata
    if metadata is None or not metadata.archived:
        return
    moderates = world.compute_permissions(channel.guild_id or 0, world.bot_user.id, channel.id)
    if metadata.locked and not moderates & permissions.flag("manage_threads"):
        raise BackendError(400, 160005, "This thread is locked")
    people.archives(world, channel.id, archived=False, locked=metadata.locked)


def _present(given: Any) -> Any:
    """Drop nulls, which Discord treats as absent fields."""
    if isinstance(given, dict):
        return {key: _present(value) for key, value in given.items() if value is not None}
    return [_present(each) for each in given] if isinstance(given, list) else given


def _read(world: World, context: RequestContext, message: Message) -> dict[str, Any]:
    payload = _helpers.message_response(context, message, for_user=world.bot_user.id)
    if world.settings.nonce_in_history and message.id in world.nonces:
        payload["nonce"] = world.nonces[message.id]
    else:
        payload.pop("nonce", None)
    return payload


def _nonce(body: dict[str, Any]) -> str | int | None:
    nonce = body.get("nonce")
    if nonce is None or (isinstance(nonce, int) and not isinstance(nonce, bool)):
        return nonce
    if not isinstance(nonce, str) or len(nonce) > _LONGEST_NONCE:
        text = f"Must be {_LONGEST_NONCE} or fewer in length."
        raise errors.invalid_form_body(errors=_field("nonce", "NONCE_TYPE_TOO_LONG", text))
    return nonce


def _check_content(body: dict[str, Any], files: list[Any]) -> None:
    _check_length(body)
    content = body.get("content") or ""
    if (
        not content.strip()
        and not files
        and not any(body.get(key) for key in ("embeds", "components", "sticker_ids", "poll"))
    ):
        raise BackendError(400, 50006, "Cannot send an empty message")


def _check_length(body: dict[str, Any]) -> None:
    if len(body.get("content") or "") > _LONGEST_MESSAGE:
        text = f"Must be {_LONGEST_MESSAGE} or fewer in length."
        raise errors.invalid_form_body(errors=_field("content", "BASE_TYPE_MAX_LENGTH", text))


def _check_reference(world: World, channel_id: int, body: dict[str, Any]) -> None:
    """Reject a reply to a deleted message, or send it without the reference, as the client chooses."""
    reference = body.get("message_reference")
    if not isinstance(reference, dict):
        body.pop("message_reference", None)
        return
    reference = body["message_reference"] = {key: value for key, value in reference.items() if value is not None}
    if reference.get("type", 0) != 0 or "message_id" not in reference:
        return
    target = world.messages.get(channel_id, {}).get(int(reference["message_id"]))
    if target is not None and target.type not in (
        MessageType.DEFAULT,
        MessageType.REPLY,
        MessageType.CHAT_INPUT_COMMAND,
        MessageType.THREAD_STARTER_MESSAGE,
        MessageType.CONTEXT_MENU_COMMAND,
    ):
        text = "Cannot reply to a system message"
        raise errors.invalid_form_body(
            errors=_field("message_reference", "REPLIES_CANNOT_REPLY_TO_SYSTEM_MESSAGE", text)
        )
    if target is None:
        if reference.get("fail_if_not_exists", True):
            text = "Unknown message"
            raise errors.invalid_form_body(errors=_field("message_reference", "REPLIES_UNKNOWN_MESSAGE", text))
        del body["message_reference"]


def _clean_mentions(body: dict[str, Any]) -> None:
    """Drop nulls and empty id lists beside ``parse``: Discord accepts them, but SimCord does not."""
    mentions = body.get("allowed_mentions")
    if isinstance(mentions, dict):
        body["allowed_mentions"] = {
            key: value
            for key, value in mentions.items()
            if value is not None and not (key in ("users", "roles") and value == [])
        }


def _field(name: str, code: str, message: str) -> dict[str, Any]:
    return {name: {"_errors": [{"code": code, "message": message}]}}
