"""What Codex recorded of a conversation: its record file, its tokens, its home."""

import contextlib
import glob
import os
from collections.abc import Mapping
from typing import Any

from raymond.backends import Turn
from raymond.backends.agent_program import as_table, decode, number
from raymond.machine.inputs import Spending
from raymond.machine.prices import Tokens
from raymond.system.files import foreign
from raymond.workspace import home as workspace_home

_LONGEST = 1 << 28
"""Bytes of a record; the agent can write there, and what it writes is read into memory."""
_MOST = 1 << 24
"""Bytes of settings."""


class Record:
    """The last turn of a conversation, in the program's own file; empty when there is none."""

    def __init__(self, id: str, folder: str = "") -> None:
        self.model = ""
        self.used = Tokens()
        self.meter: tuple[int, ...] = ()
        self.text = ""
        self.replied = False
        self.prompts: list[str] = []
        """What the turn was asked, and what the program itself told the model in the user's place."""
        self.failure: object = None
        """What the program calls the error that ended the turn: a name, or a name with its details."""
        self.opens_at = 0.0
        """When the used-up windows of a subscription reopen."""
        for line in record_lines(id, folder):
            event = decode(line)
            self._note(event.get("type"), as_table(event.get("payload")))

    def _note(self, type: object, about: dict[str, Any]) -> None:
        match about.get("type") if type == "event_msg" else type:
            case "task_started":
                self.replied, self.failure, self.used, self.prompts = False, None, Tokens(), []
            case "response_item" if about.get("role") == "user":
                self.prompts.append(_text(about.get("content")))
            case "turn_context":
                self.model = str(about.get("model") or "")
            case "token_usage_record":
                fresh, cached, out = meter_of(as_table(about.get("turn_token_usage")))
                self.used = Tokens(input=fresh, cached=cached, output=out)
            case "token_count":
                self._count(as_table(about.get("info")), as_table(about.get("rate_limits")))
            case "task_complete":
                self.text = str(about.get("last_agent_message") or "")
                self.replied = not about.get("error")
                self.failure = as_table(about.get("error")).get("codex_error_info")
            case _:
                pass

    def _count(self, info: dict[str, Any], windows: dict[str, Any]) -> None:
        if "total_token_usage" in info:
            self.meter = meter_of(as_table(info["total_token_usage"]))
        both = [as_table(windows.get(name)) for name in ("primary", "secondary")]
        used_up = [one for one in both if number(one.get("used_percent")) >= 100]
        self.opens_at = max((number(one.get("resets_at")) for one in used_up), default=0.0)


def priced(turn: Turn, record: Record) -> Spending | None:
    """What a turn cost by the record; None when it does not mention tokens."""
    if record.used == Tokens():
        return None
    return turn.priced(record.used, model=turn.model or record.model, meter=record.meter)


def record_lines(id: str, folder: str = "") -> list[bytes]:
    """The record of a conversation in the folder of a run, or in the person's; nothing when there is none."""
    for names in _places(id, folder or home()):
        if folder:
            return workspace_home.content(folder, names, _LONGEST).splitlines()
        with contextlib.suppress(OSError):
            return foreign(os.path.join(home(), *names), _LONGEST).splitlines()
    return []


def _places(id: str, folder: str) -> list[list[str]]:
    """Where a folder has the record of a conversation: the names that lead there."""
    if not id:
        return []
    day, name = ("[0-9][0-9][0-9][0-9]", "[0-9][0-9]", "[0-9][0-9]"), f"rollout-[0-9]*-{glob.escape(id)}.jsonl"
    found = glob.glob(os.path.join(glob.escape(folder), "sessions", *day, name))
    return [os.path.relpath(path, folder).split("/") for path in found]


def copy(id: str, source: str, target: str) -> None:
    """Copy the record of a conversation to another folder, unless it is there."""
    if not _places(id, target):
        for names in _places(id, source)[:1]:
            workspace_home.bring(source, target, names, _LONGEST)


def fetch(id: str, folder: str) -> None:
    """Copy the record of a conversation of the person's to the folder of a run, with all that it branched from."""
    while id and not _places(id, folder):
        lines = record_lines(id)
        copy(id, os.path.realpath(home()), folder)
        id = str(as_table(decode(lines[0]).get("payload")).get("forked_from_id") or "") if lines else ""


def home(environment: Mapping[str, str] = os.environ) -> str:
    """Where Codex keeps its settings, its login and its conversations."""
    return environment.get("CODEX_HOME") or os.path.join(environment.get("HOME", ""), ".codex")


# --- small things


def read(path: str) -> bytes:
    with contextlib.suppress(OSError):
        return foreign(path, _MOST)
    return b""


def _text(blocks: object) -> str:
    tables = map(as_table, blocks if isinstance(blocks, list) else ())
    return "".join(str(block.get("text") or "") for block in tables)


def meter_of(usage: dict[str, Any]) -> tuple[int, int, int]:
    """Tokens read, how many of them were cached, and tokens written."""
    names = ("input_tokens", "cached_input_tokens", "output_tokens")
    read, cached, written = (int(number(usage.get(name))) for name in names)
    return read, cached, written
