"""Fork a program for each connection: ``python -B fork.py MODULE`` in the folder of its package.

Imports the module once and prints the path of a Unix socket. A connection is the standard input and output of a child
that calls the module's ``main`` and ends with its input. This process ends with its own standard input.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import select
import signal
import socket
import struct
import sys
import tempfile
import traceback
from collections.abc import Callable


def serve(module: str, listener: socket.socket) -> None:
    """Fork until standard input ends."""
    run = importlib.import_module(module).main
    # No child copies memory only because its collector looks at it.
    gc.collect()
    gc.freeze()
    # The system reaps the children.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            become(run, connection)
        connection.close()


def become(run: Callable[[], None], connection: socket.socket) -> None:
    """Be the program, as if the client had started it. ``random`` gets a new seed by itself when a process forks."""
    status = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(connection.fileno(), 0)
        os.dup2(connection.fileno(), 1)
        write_errors_to_client(connection)
        connection.close()
        run()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        # What the server has registered for its own end does not run.
        os._exit(status)


def write_errors_to_client(connection: socket.socket) -> None:
    """Write to the standard error of the client, so that a test's output contains it."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    client, _, _ = struct.unpack("3i", credentials)
    # The client may have ended, or its standard error may be a socket, which cannot be opened.
    with contextlib.suppress(OSError):
        errors = os.open(f"/proc/{client}/fd/2", os.O_WRONLY | os.O_APPEND)
        os.dup2(errors, 2)
        os.close(errors)


def main() -> None:
    """Listen in a folder that only this user can read, and serve. Connections wait until the module is imported."""
    module = sys.argv.pop(1)
    # Not this file's folder.
    sys.path[0] = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="rejoinder-python-") as folder, socket.socket(socket.AF_UNIX) as listener:
        path = os.path.join(folder, module)
        listener.bind(path)
        listener.listen(128)
        print(path, flush=True)
        serve(module, listener)


main()
