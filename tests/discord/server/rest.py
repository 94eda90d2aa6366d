"""The REST API: authorization, faults, rate limits, and then the route."""

from __future__ import annotations

import asyncio
import io
import json
import sys
import time
import traceback
from collections import deque
from typing import Any

from aiohttp import web
from simcord.backend.errors import BackendError
from simcord.http.router import RouteNotImplemented, UnsupportedField

from . import wire
from .faults import Fault, Faults, cut
from .limits import Limits, ban, limited
from .routes import Routes
from .world import World

#: How many calls are kept.
_KEPT = 100_000
#: The most files of a message ("JSON Error Codes", 30015).
_MOST_FILES = 10
#: Routes whose path is their authorization.
_OPEN = ("/interactions/", "/webhooks/")


class Upload:
    """An uploaded file, in the form that SimCord reads."""

    def __init__(self, part: str, filename: str, data: bytes) -> None:
        """Wrap the file of the form's part ``part``."""
        self.part = part
        self.filename = filename
        self.size = len(data)
        self.fp = io.BytesIO(data)
        self.description: str | None = None


class Rest:
    """Answers ``/api/v10/...``."""

    def __init__(self, world: World, routes: Routes, faults: Faults) -> None:
        """Respond with ``routes``, except where ``faults`` interfere."""
        self._world = world
        self._routes = routes
        self._faults = faults
        self._started = time.monotonic()
        self._number = 0
        self.limits = Limits(world.settings)
        self.calls: deque[dict[str, Any]] = deque(maxlen=_KEPT)

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Respond to a call, and record it."""
        method, path = request.method, "/" + request.match_info["path"].rstrip("/")
        query = dict(request.query)
        call: dict[str, Any] = {"method": method, "path": path, "query": query, "body": None, "files": []}
        call.update(executed=False, fault=None, answered=True)
        self._keep(call)
        try:
            response = await self._answer(request, call)
        except BackendError as error:
            response = _error(error)
        call["status"] = response.status if call["answered"] else None
        if call["answered"]:
            self.limits.count(response.status)
        self._world.changes.happened()
        return response

    def _keep(self, call: dict[str, Any]) -> None:
        self._number += 1
        call["number"] = self._number
        call["at"] = round(time.monotonic() - self._started, 4)
        call["status"] = None
        if self._world.settings.keep_calls:
            self.calls.append(call)

    async def _answer(self, request: web.Request, call: dict[str, Any]) -> web.StreamResponse:
        method, path = call["method"], call["path"]
        if request.match_info["version"] != "10":
            raise BackendError(400, 50041, "Invalid API version")
        if self.limits.banned:
            return ban()
        text = "" if request.content_type.startswith("multipart/") else await request.text()
        fault = self._faults.take(method, path, text)
        if fault is not None:
            call["fault"] = fault.kind
            if fault.delay > 0:
                await asyncio.sleep(fault.delay)
            if fault.kind == "reset":
                return _cut(request, call)
        needs_token = not path.startswith(_OPEN) and path != "/gateway"
        if needs_token and request.headers.get("Authorization") != f"Bot {self._world.token}":
            raise BackendError(401, 0, "401: Unauthorized")
        if fault is not None and fault.kind == "rate_limit":
            return limited(float(fault.options["retry_after"]), fault.options.get("scope", "user"), method, path)
        headers, refusal = self.limits.take(method, path)
        if refusal is not None:
            return refusal
        body, files = await self._read(request)
        call["body"] = body
        call["files"] = [{"name": file.filename, "size": file.size} for file in files]
        response: web.StreamResponse | None = None
        if fault is None or fault.executed:
            response = self._execute(call, body, files, headers)
            if fault is not None and fault.pause > 0:
                self._world.changes.happened()
                await asyncio.sleep(fault.pause)
        if fault is not None and fault.kind != "delay":
            return await _spoil(request, call, fault)
        assert response is not None
        return response

    def _execute(
        self, call: dict[str, Any], body: Any, files: list[Upload], headers: dict[str, str]
    ) -> web.StreamResponse:
        method, path = call["method"], call["path"]
        try:
            answer = self._routes.call(method, path, call["query"], _copy(body), files)
        except (RouteNotImplemented, UnsupportedField) as error:
            print(f"the Discord server has no {method} {path} like this: {error}", file=sys.stderr, flush=True)
            raise
        except BackendError:
            raise
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            traceback.print_exc()
            raise BackendError(400, 50035, f"Invalid Form Body: {error}") from error
        call["executed"] = True
        if answer is None:
            return web.Response(status=204, headers=headers)
        return wire.answer(answer, headers=headers)

    async def _read(self, request: web.Request) -> tuple[Any, list[Upload]]:
        """Read a body: JSON, or a form with JSON and files."""
        if request.content_type.startswith("multipart/"):
            return await self._read_form(request)
        text = await request.text()
        if not text:
            return None, []
        try:
            return json.loads(text), []
        except ValueError as error:
            raise BackendError(400, 50109, "The request body contains invalid JSON.") from error

    async def _read_form(self, request: web.Request) -> tuple[Any, list[Upload]]:
        body: Any = {}
        files: list[Upload] = []
        async for part in await request.multipart():
            if part.name == "payload_json":
                body = json.loads(await part.text())
            elif part.filename is not None:
                data = bytes(await part.read(decode=True))
                files.append(Upload(part.name or "", part.filename, data))
                in_all = sum(file.size for file in files)
                if len(data) > self._world.settings.upload_limit or in_all > self._world.settings.request_limit:
                    raise BackendError(413, 40005, "Request entity too large")
        if len(files) > _MOST_FILES:
            raise BackendError(400, 30015, f"Maximum number of attachments in a message reached ({_MOST_FILES})")
        described = {f"files[{each.get('id')}]": each for each in (body or {}).get("attachments") or []}
        for file in files:
            description = described.get(file.part, {})
            file.filename = description.get("filename") or file.filename
            file.description = description.get("description")
        return body, files


def _copy(body: Any) -> Any:
    """Copy the parts of a body that a route may change, so that the record stays as sent."""
    if not isinstance(body, dict):
        return body
    copied = dict(body)
    if isinstance(copied.get("data"), dict):
        copied["data"] = dict(copied["data"])
    return copied


async def _spoil(request: web.Request, call: dict[str, Any], fault: Fault) -> web.StreamResponse:
    """End a call as the fault demands, whether it was executed or not."""
    if fault.kind == "error":
        status = int(fault.options["status"])
        if fault.options.get("html"):
            page = f"<html><title>{status}</title>cloudflare</html>"
            return web.Response(text=page, status=status, content_type="text/html")
        message = fault.options.get("message", f"{status}: injected")
        return wire.answer({"message": message, "code": int(fault.options.get("code", 0))}, status=status)
    if fault.kind == "hang":
        while request.transport is not None and not request.transport.is_closing():
            await asyncio.sleep(0.02)
    return _cut(request, call)


def _cut(request: web.Request, call: dict[str, Any]) -> web.StreamResponse:
    call["answered"] = False
    cut(request)
    return web.Response(status=500)


def _error(error: BackendError) -> web.Response:
    return wire.answer(error.to_json(), status=error.status)
