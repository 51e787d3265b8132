"""Which agent a process comes from: by names of processes above it, and by what agents tell what they start."""

import subprocess
import sys

import pytest

PROBE = "import os; from raymond.system import process_tree as t; print(t.agent_above(t.line(os.getpid())[:2], os.getpid()))"
"""Only itself and its parent: whoever runs these tests may be an agent."""


def found(name: str, *words: str, **environment: str) -> str:
    """What a process finds whose parent has this name and these arguments."""
    said = subprocess.run(
        ["bash", "-c", 'exec -a "$0" bash -c "$1; true" "$@"', name, f"'{sys.executable}' -c '{PROBE}'", *words],
        env={"PATH": "/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return said.stdout.strip()


@pytest.mark.parametrize(
    ("name", "agent"),
    [
        ("claude", "claude"),
        ("/opt/bin/codex", "codex"),
        ("/lib/claude-code/cli.js", "claude"),
        ("node /lib/node_modules/.bin/gemini --yolo", "gemini"),
        ("node /lib/codex.js exec", "codex"),
        ("node --no-warnings --enable-source-maps /lib/@anthropic-ai/claude-code/cli.js", "claude"),
        ("node --require ./x.js -- /lib/codex.js", "codex"),
        ("bun run /lib/opencode", "opencode"),
        ("python3.11 -I -X utf8 -m aider.main --yes", "aider"),
        ("python3 -m http.server claude", ""),
        ("node --no-warnings server.js claude", ""),
        ("bash", ""),
        ("claudette", ""),
        ("vim claude", ""),
        ("/home/me/codex/bin/python3 x.py", ""),
    ],
)
def test_an_agent_is_known_by_the_process_above(name: str, agent: str) -> None:
    assert found(name) == agent


def test_an_agent_is_known_by_what_it_tells() -> None:
    assert found("bash", CLAUDECODE="1") == "claude"
    assert found("bash", GEMINI_CLI="1") == "gemini"
