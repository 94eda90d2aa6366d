"""Start the server: ``python -m server [--port N]`` in tests/discord.

Prints one line of JSON with its URL and token once it listens, and ends with its standard input.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import sys
import threading

from aiohttp import web

from .control import Control
from .faults import Faults
from .gateway import Gateway
from .rest import Rest
from .routes import Routes
from .world import World

_LARGEST_BODY = 64 << 20


def application(base: str) -> tuple[web.Application, World]:
    """Assemble the server, to be served at ``base``."""
    world = World(base)
    gateway = Gateway(world, base.replace("http://", "ws://") + "/gateway")
    faults = Faults()
    rest = Rest(world, Routes(world, gateway), faults)
    control = Control(world, gateway, rest, faults)

    async def cdn(request: web.Request) -> web.Response:
        data = world.cdn.get("/" + request.match_info["path"])
        if data is None or "hm" not in request.query:
            return web.Response(status=404, text="This content is no longer available.")
        return web.Response(body=data, content_type="application/octet-stream")

    app = web.Application(client_max_size=_LARGEST_BODY)
    app.router.add_route("*", r"/api/v{version:\d+}/{path:.*}", rest.serve)
    app.router.add_get("/gateway", gateway.serve)
    app.router.add_get("/gateway/", gateway.serve)
    app.router.add_get("/cdn/{path:.*}", cdn)
    app.router.add_route("*", "/__sim/{what}", control.serve)
    return app, world


async def serve(port: int) -> None:
    """Serve until the process ends."""
    listener = socket.create_server(("127.0.0.1", port), backlog=1024)
    base = f"http://127.0.0.1:{listener.getsockname()[1]}"
    app, world = application(base)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.SockSite(runner, listener).start()
    print(json.dumps({"url": base, "token": world.token}), flush=True)
    await asyncio.Event().wait()


def _end_with_input() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


def main() -> None:
    """Read the arguments, and serve."""
    parser = argparse.ArgumentParser(prog="server", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; 0 picks a free one")
    arguments = parser.parse_args()
    threading.Thread(target=_end_with_input, daemon=True).start()
    asyncio.run(serve(arguments.port))


if __name__ == "__main__":
    main()
