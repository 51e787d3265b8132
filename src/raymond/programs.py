"""The agents' programs on this machine: found, their version, who pays, what they keep."""

import os
from collections.abc import Mapping

import msgspec
from msgspec import Struct

from raymond import process

CLAUDE = "claude"
OUTER = ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT")
"""What an outer Claude Code sets for its children; everything else is the user's."""


class Found(Struct, frozen=True):
    """What can be told of Claude Code on this machine without asking it anything that costs."""

    program: str
    """Its path; empty when it is not there."""
    version: str = ""
    payer: str = ""
    """Who pays for its turns; empty when nobody is logged in, as far as can be seen."""
    keeps_days: int = 30
    """Days after which it deletes conversations: a run that rests longer loses its memory."""


def find(environment: Mapping[str, str] = os.environ) -> Found:
    """Look for the program, its version and who is logged in."""
    path = process.program(CLAUDE)
    if not os.path.isabs(path):
        return Found("")
    folder = os.path.dirname(sessions(environment))
    return Found(path, _version(path), _payer(environment, folder), _keeps(folder))


def _payer(environment: Mapping[str, str], folder: str) -> str:
    if environment.get("ANTHROPIC_API_KEY"):
        return "the key in ANTHROPIC_API_KEY"
    for name in ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"):
        if environment.get(name):
            return f"the cloud account of {name}"
    if environment.get("CLAUDE_CODE_OAUTH_TOKEN"):
        return "the subscription of CLAUDE_CODE_OAUTH_TOKEN"
    credentials = os.path.join(folder, ".credentials.json")
    return f"the subscription logged in at {credentials}" if os.path.exists(credentials) else ""


def _keeps(folder: str) -> int:
    try:
        with open(os.path.join(folder, "settings.json"), "rb") as file:
            days = msgspec.json.decode(file.read()).get("cleanupPeriodDays", 30)
    except (OSError, msgspec.DecodeError, AttributeError):
        return 30
    return days if isinstance(days, int) else 30


def _version(path: str) -> str:
    reader, writer = os.pipe()
    try:
        env = {name: value for name, value in os.environb.items() if name.decode() not in OUTER}
        pid = process.spawn([path, "--version"], env, os.getcwd(), stdout=writer, stderr=writer)
    except OSError as error:
        os.close(reader)
        return f"cannot be started: {(error.strerror or '').lower()}"
    finally:
        os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read(4096).decode("utf-8", "replace").strip()
    os.waitpid(pid, 0)
    return said.partition("\n")[0] or "says no version"


def sessions(environment: Mapping[str, str] = os.environ) -> str:
    """Where Claude Code keeps conversations, a folder for each project."""
    home = environment.get("CLAUDE_CONFIG_DIR") or os.path.join(environment.get("HOME", ""), ".claude")
    return os.path.join(home, "projects")
