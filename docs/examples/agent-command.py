#!/usr/bin/env python3
"""An agent for `kind = "command"`: command = ["python3", "agent-command.py"]."""
import json, sys

turn = json.load(sys.stdin)


def say(what):
    print(json.dumps(what), flush=True)


say({"text": f"You said: {turn['text']}"})
if turn["attachments"]:
    say({"tool": {"name": "count_files", "result": len(turn["attachments"])}})
    say({"text": f" (with {len(turn['attachments'])} files)"})
say({"end": True})
