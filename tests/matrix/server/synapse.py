"""Run Synapse until its standard input ends, which also happens when the test's process is killed."""

import os
import sys
import threading


def ends_with_its_input() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


def main() -> None:
    threading.Thread(target=ends_with_its_input, daemon=True).start()
    from synapse.app.homeserver import main as run

    run()


main()
