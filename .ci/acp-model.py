"""Prints what the scripted model says to the agents that `.ci/acp` installs, for `tests/tests/telegram/real_acp.rs`.

Asked for a file, it calls the agent's tool for commands, whose name is different in each. Asked for a horse, it answers slowly.
"""

import json

TOOLS = {
    "run_shell_command": {"description": "Writes a file", "is_background": False},  # Gemini CLI and Qwen Code
    "Bash": {"description": "Writes a file"},  # Claude Code
    "bash": {"description": "Writes a file"},  # OpenCode
    "exec_command": {"sandbox_permissions": "require_escalated", "justification": "May I write a file?"},  # Codex
    "shell": {},  # Goose
}
COMMANDS = {
    "the first file": ("touch first", "The first file is there."),
    "the second file": ("touch second", "The second file is not there."),
    "the third file": ("touch begun; until [ -e go ]; do sleep 0.1; done; touch third", "The third file is there."),
    "the fourth file": ("touch fourth", "The fourth file is there."),
}
# The gateway says this to an agent that stops at a no.
NOT_ALLOWED = "was not allowed"


def says(text, **match):
    return {"match": match, "response": {"content": text}}


def calls(tool, command, **match):
    arguments = {"cmd" if tool == "exec_command" else "command": command, **TOOLS[tool]}
    return {"match": {"toolName": tool, **match}, "response": {"toolCalls": [{"name": tool, "arguments": arguments}]}}


ZEBRA = "The zebra is made of quartz."
# First: Goose adds a message to one before it that was not answered.
fixtures = [says(ZEBRA, userMessage="zebra-quartz"), says(COMMANDS["the second file"][1], userMessage=NOT_ALLOWED)]
for file, (command, end) in COMMANDS.items():
    fixtures += [calls(tool, command, userMessage=file, hasToolResult=False) for tool in TOOLS]
    fixtures.append(says(end, userMessage=file, hasToolResult=True))
slow = says("A horse has four legs, a mane and a tail, and it can sleep while it stands.", userMessage="a horse")
fixtures.append({**slow, "latency": 1000, "chunkSize": 20})
fixtures.append(says(ZEBRA))
print(json.dumps({"fixtures": fixtures}, indent=2))
