"""The scripted backend: answers prompts from `replies.yaml`, with no account and no model.

`scripted` answers in this process, for speed; `scripted-program` starts `raymond.testing.fake_claude` for
every turn, which speaks Claude's stream-json, so that everything that can happen to a real program really happens.
"""

import os
import sys

import msgspec
from msgspec import Struct

from raymond.backends import Abilities, Command, Delayed, Found, Observation, Reply, Trouble, Turn
from raymond.backends.claude_stream import StreamReader, tool_line
from raymond.backends.replies import Replies, Scripted
from raymond.machine.failures import REPORTED
from raymond.machine.inputs import Spending
from raymond.system.files import contents, make_private, replace

_PROGRAM = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "testing", "fake_claude.py")
_CAN = Abilities(branches=True, continues=True, takes_session_ids=True, caps_cost=True, recalls=True)


class Session(Struct, frozen=True, kw_only=True):
    """One turn of a conversation; `base` is the turn before it."""

    base: str = ""
    prompt: str
    reply: str
    cost: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0


class ScriptedBackend:
    """Answers in this process."""

    name = "scripted"
    paid = False
    can = _CAN

    def __init__(self, replies: Replies | None, sessions: str) -> None:
        self._replies = replies
        self._sessions = sessions

    def answer(self, turn: Turn) -> Delayed:
        """What the replies say to this state, visit and try."""
        reply = self._replies.find(turn) if self._replies else None
        if reply is None:
            return Delayed(ending=Trouble(kind="setup", error=_missing(turn, self._replies is None)))
        tools = [Observation("tool", tool_line(str(tool.get("name", "?")), tool.get("input"))) for tool in reply.tools]
        tools += [Observation("denied", tool, (tool,)) for tool in reply.denied]
        return Delayed(delay=reply.delay, observations=tools, writes=reply.writes, ending=_ending(reply, turn))

    def finish(self, turn: Turn, answer: Delayed) -> None:
        """Keep the conversation."""
        if isinstance(answer.ending, Reply):
            keep(self._sessions, turn.session, turn.base, turn.prompt, answer.ending)
        elif answer.ending and answer.ending.kind == "cap":
            said = Reply(text="", session=turn.session, spent=answer.ending.spent)
            keep(self._sessions, turn.session, turn.base, turn.prompt, said)

    def recall(self, turn: Turn) -> Reply | None:
        """The reply in the session of this turn."""
        return recall(self._sessions, turn)


class ScriptedProgram:
    """Starts a program for each turn, as a real backend does."""

    name = "scripted-program"
    paid = True
    can = _CAN

    def __init__(self, replies: Replies | None, sessions: str) -> None:
        self._replies = replies
        self._sessions = sessions

    def command(self, turn: Turn) -> Command:
        """The program, with the reply it should give next to its prompt."""
        reply = self._replies.find(turn) if self._replies else None
        if reply is None:
            reply = Scripted(fail="setup", error=_missing(turn, self._replies is None))
        path = os.path.join(turn.spool, "reply.json")
        argv = [sys.executable, "-I", _PROGRAM, "--sessions", self._sessions, "--reply", path]
        argv += ["--task-folder", turn.task_folder] if turn.task_folder else []
        argv += ["-p", "--output-format", "stream-json", "--verbose", "--session-id", turn.session]
        argv += ["--model", turn.model] if turn.model else []
        argv += ["--effort", turn.effort] if turn.effort else []
        argv += ["--max-budget-usd", f"{turn.cap:.4f}"] if turn.cap else []
        if turn.base:
            argv += ["--resume", turn.base, "--fork-session"]
        if turn.isolated:
            make_private(self._sessions)  # only what is there can be shown inside
        folders = {self._sessions: self._sessions} if turn.isolated else {}
        return Command(argv, files={"reply.json": msgspec.json.encode(reply)}, folders=folders)

    def reader(self, turn: Turn) -> StreamReader:
        """The lines are Claude's."""
        return StreamReader(turn)

    def look(self) -> Found:
        """It is a part of Raymond."""
        return Found(program=sys.executable, payer="nobody")

    def recall(self, turn: Turn) -> Reply | None:
        """The reply in the session of this turn."""
        return recall(self._sessions, turn)


def _ending(reply: Scripted, turn: Turn) -> Reply | Trouble | None:
    spent = Spending(cost=reply.cost, tokens_in=reply.tokens_in, tokens_out=reply.tokens_out)
    if reply.silent:
        return None
    if reply.fail:
        error = reply.error or f"scripted failure: {reply.fail}"
        kind = next(kind for kind in REPORTED if kind == reply.fail)
        return Trouble(kind=kind, error=error, retry_after=reply.retry_after, only_model=reply.only_model, spent=spent)
    if reply.capped and 0 < turn.cap < reply.cost:
        spent = Spending(cost=turn.cap, tokens_in=reply.tokens_in, tokens_out=reply.tokens_out)
        return Trouble(kind="cap", error="scripted failure: the cap", session=turn.session, spent=spent)
    return Reply(text=reply.text, session=turn.session, spent=spent)


def _missing(turn: Turn, none_at_all: bool) -> str:
    where = "there is no replies.yaml" if none_at_all else "replies.yaml has no reply"
    tries = f", try {turn.tries + 1}" if turn.tries else ""
    return f"{where} for {turn.state}, visit {turn.visit}{tries} (agent {turn.agent})"


def keep(folder: str, session: str, base: str, prompt: str, reply: Reply) -> None:
    """Write one turn of a conversation."""
    make_private(folder)
    spent = reply.spent
    turn = Session(
        base=base,
        prompt=prompt,
        reply=reply.text,
        cost=spent.cost,
        tokens_in=spent.tokens_in,
        tokens_out=spent.tokens_out,
    )
    replace(os.path.join(folder, f"{session}.json"), msgspec.json.encode(turn))


def _load(folder: str, session: str) -> Session | None:
    try:
        return msgspec.json.decode(contents(os.path.join(folder, f"{session}.json")), type=Session)
    except (OSError, msgspec.DecodeError, RecursionError):
        return None


def recall(folder: str, turn: Turn) -> Reply | None:
    """The reply that the session of `turn` ends with, if it answers the same prompt."""
    said = _load(folder, turn.session)
    if not said or said.prompt != turn.prompt:
        return None
    spent = Spending(cost=said.cost, tokens_in=said.tokens_in, tokens_out=said.tokens_out)
    return Reply(text=said.reply, session=turn.session, spent=spent)


def conversation(folder: str, session: str) -> list[Session]:
    """Everything a session could see, the oldest turn first."""
    turns: list[Session] = []
    while session:
        turn = _load(folder, session)
        if not turn:
            break
        turns.append(turn)
        session = turn.base
    return turns[::-1]
