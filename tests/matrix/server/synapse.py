"""Run Synapse until its standard input ends, which also happens when the test's process is killed."""

import os
import sys
import threading


def ends_with_its_input() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


def commits_without_waiting_for_the_disk() -> None:
    """No test outlives the power of the machine, and each message would wait for several flushes."""
    from synapse.storage.engines.sqlite import Sqlite3Engine

    opened = Sqlite3Engine.on_new_connection

    def on_new_connection(self: Sqlite3Engine, connection) -> None:
        opened(self, connection)
        connection.conn.execute("PRAGMA synchronous = OFF")

    Sqlite3Engine.on_new_connection = on_new_connection


def main() -> None:
    threading.Thread(target=ends_with_its_input, daemon=True).start()
    from synapse.app.homeserver import main as run

    commits_without_waiting_for_the_disk()
    run()


main()
