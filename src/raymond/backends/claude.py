"""Claude Code: what to start for a turn, and where its sessions are."""

import contextlib
import glob
import os
from typing import Any

import msgspec

from raymond.backends import Command, Reply, Turn
from raymond.backends.stream import StreamReader
from raymond.core import Spending
from raymond.limits import UNKNOWN_TURN_COST
from raymond.programs import CLAUDE, OUTER, sessions

_ASKS = ("AskUserQuestion", "EnterPlanMode", "ExitPlanMode")
"""Tools that wait for a person, who is not there."""
_FIXED = ("-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages")


class Claude:
    """Runs `claude -p`, one process for each turn, each in a session of its own."""

    name = "claude"
    paid = True

    def __init__(self, *, program: str = CLAUDE, protected: list[str] | None = None) -> None:
        self._program = program
        self._protected = protected or []
        """Files that no agent may edit, absolute."""

    def command(self, turn: Turn) -> Command:
        """A branch of the conversation before, under an id of our own."""
        argv = [self._program, *_FIXED, "--session-id", turn.session]
        if turn.base:
            argv += ["--resume", turn.base, "--fork-session"]
        # Neither sticks reliably to a session: both are said every time.
        argv += ["--model", turn.model] if turn.model else []
        argv += ["--effort", turn.effort] if turn.effort else []
        argv += ["--max-budget-usd", f"{turn.cap:.4f}"] if turn.cap else []
        return Command([*argv, *self._rights(turn)], _environment(turn), OUTER)

    def _rights(self, turn: Turn) -> list[str]:
        denied = [*_ASKS, *turn.disallowed_tools, *(f"Edit(/{path})" for path in self._protected)]
        rights = ["--disallowedTools", ",".join(denied)]
        if turn.allowed_tools:
            rights += ["--allowedTools", ",".join(turn.allowed_tools)]
        if turn.skip_permissions:
            return ["--dangerously-skip-permissions", *rights]
        return ["--permission-mode", turn.permission_mode or "acceptEdits", *rights]

    def reader(self, turn: Turn) -> StreamReader:
        """Its stream-json."""
        return StreamReader(turn.session)

    def recall(self, turn: Turn) -> Reply | None:
        """The whole reply at the end of its session file; what it cost is not written there."""
        said = _last_message(_session(turn.session))
        # A branch begins as a copy: the last word may still be that of the conversation it came from.
        before = _session(turn.base) if turn.base else b""
        if not said or (turn.base and not before) or str(said.get("id")).encode() in before:
            return None
        spent = Spending(cost=UNKNOWN_TURN_COST, estimated=True)
        return Reply(text=_text(said), session=turn.session, spent=spent)


def _environment(turn: Turn) -> dict[str, str]:
    # A task in the background would keep the program alive after its result.
    own = {"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1"}
    if "CLAUDE_CODE_MAX_RETRIES" not in os.environ:
        own["CLAUDE_CODE_MAX_RETRIES"] = "2"
    if turn.skip_permissions and os.geteuid() == 0:
        own["IS_SANDBOX"] = "1"
    return own


def _session(id: str) -> bytes:
    """A conversation as the program wrote it down; nothing when it is not there."""
    for path in glob.glob(os.path.join(glob.escape(sessions()), "*", f"{id}.jsonl")):
        with contextlib.suppress(OSError), open(path, "rb") as file:
            return file.read()
    return b""


def _last_message(session: bytes) -> dict[str, Any] | None:
    """The last message, when it is the model's and ended its turn."""
    for raw in reversed(session.splitlines()):
        try:
            event: Any = msgspec.json.decode(raw)
        except msgspec.DecodeError:
            continue
        if not isinstance(event, dict) or event.get("type") not in ("assistant", "user"):
            continue
        message = event.get("message")
        ended = event["type"] == "assistant" and isinstance(message, dict) and message.get("stop_reason") == "end_turn"
        return message if ended else None
    return None


def _text(message: dict[str, Any]) -> str:
    blocks = message.get("content")
    texts = [block.get("text") for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []
    return "".join(text for text in texts if isinstance(text, str))
