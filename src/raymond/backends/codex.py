"""Codex: what to start for a turn, what its output means, and what it wrote down of a conversation.

Its output says in words why a turn failed; the record of the conversation, which is complete by then, names the error.
So the record decides, and the words only where it is silent.
"""

import contextlib
import glob
import os
import re
import shlex
import time
import tomllib
from collections.abc import Mapping
from typing import Any

from raymond.backends import Abilities, Command, Found, Observation, Reply, Setup, Trouble, Turn
from raymond.backends.claude_stream import tool_line
from raymond.backends.lines import decode, number
from raymond.machine.inputs import Spending
from raymond.machine.prices import Tokens
from raymond.system import programs

OUTER = (
    "CODEX_APPLY_PATCH_PRESERVE_LINE_ENDINGS",
    "CODEX_CI",
    "CODEX_MANAGED_BY_NPM",
    "CODEX_MANAGED_PACKAGE_ROOT",
    "CODEX_PERMISSION_PROFILE",
    "CODEX_SANDBOX",
    "CODEX_SANDBOX_NETWORK_DISABLED",
    "CODEX_SESSION_ID",
    "CODEX_THREAD_ID",
    "CODEX_TOOL_CALL_ID",
    "CODEX_VERSION",
)
"""What an outer Codex sets for its children; everything else is the user's."""
OLDEST = (0, 166)
"""The first version that is tried against what Raymond asks of it."""
_INSTALL = "install Codex, then start it once to log in; `--backend scripted` needs no account"
_LOG_IN = "run `codex login`, or set CODEX_API_KEY"
_FIXED = ("exec", "--json", "--skip-git-repo-check")
# Said as settings: `--disable` ends the program when it does not know the name.
_OFF = (
    "analytics.enabled",
    "features.apps",
    "features.plugins",
    "features.remote_plugin",
    # Without a network it would wait for ever, and look alive.
    "features.unbounded_connection_retries",
)
"""Nobody but the model is asked anything."""
_SKIP = "--dangerously-bypass-approvals-and-sandbox"
_SANDBOXES = {"": "workspace-write", "acceptEdits": "workspace-write"}
"""What a permission mode lets commands do; all others only let them read."""

_BY_NAME = {
    "bio_policy": "refusal",
    "context_window_exceeded": "context",
    "cyber_policy": "refusal",
    "http_connection_failed": "overload",
    "internal_server_error": "overload",
    "invalid_prompt": "refusal",
    "misalignment_policy_violation": "refusal",
    "model_not_found": "setup",
    "policy_capacity_unavailable": "overload",
    "rate_limit_exceeded": "overload",
    "response_stream_connection_failed": "overload",
    "response_stream_disconnected": "overload",
    "response_too_many_failed_attempts": "overload",
    "server_overloaded": "overload",
    "unauthorized": "auth",
}
"""What the record calls an error; it is `other` or missing for the rest."""
_BY_STATUS = {401: "auth", 402: "billing", 403: "auth", 404: "setup", 413: "context", 429: "overload"}
_BY_CODE = {
    "context_length_exceeded": "context",
    "insufficient_quota": "billing",
    "invalid_api_key": "auth",
    "model_not_found": "setup",
    "rate_limit_exceeded": "overload",
}
"""What the model's side calls a request it refused, handed on as it came."""
_BY_WORDS = (
    (re.compile("stream disconnected before completion|Connection failed|rate limit exceeded"), "overload"),
    (re.compile("Selected model is at capacity|We.re currently experiencing high demand"), "overload"),
    (re.compile("Codex ran out of room"), "context"),
    (re.compile("You.ve hit your usage limit"), "limit"),
    (re.compile("Quota exceeded|To use Codex with|Your workspace is out of|You hit your spend cap"), "billing"),
)
"""How the program's own sentences begin."""
_STATUS = re.compile(r"(?:unexpected status|exceeded retry limit, last status:) (\d{3})\b")
_AGAIN = re.compile(r"try again at (?:(\w{3}) (\d{1,2})[a-z]{2}, (\d{4}) )?(\d{1,2}:\d{2} [AP]M)")
_GONE = re.compile(r"^Error: .*(?:no rollout found|missing source rollout|Session not found)", re.MULTILINE)
"""What a branch is answered when its conversation, or one that it came from, is no longer there."""
_TOO_LONG = re.compile(r'"input_error_code":"input_too_large","max_chars":(\d+)')
_LIFE = [Observation("life")]


class Codex:
    """Runs `codex exec`, one process for each turn, each in a conversation of its own."""

    name = "codex"
    paid = True
    can = Abilities(branches=True, remembers=True, recalls=True, modes=True)

    def __init__(self, setup: Setup) -> None:
        self._program = str(setup.options.get("program", "codex"))

    def look(self) -> Found:
        """Look for the program, its version and who is logged in."""
        path, problem = programs.locate(self._program)
        if problem:
            return Found(program=path, problem=problem, hint=_INSTALL)
        version, problem = programs.checked(path, "Codex", OLDEST, OUTER)
        payer = _payer(os.environ)
        hint = "codex update" if problem else "" if payer else _LOG_IN
        return Found(program=path, problem=problem, version=version, payer=payer, hint=hint)

    def command(self, turn: Turn) -> Command:
        """A branch of the conversation before; its id is the program's own."""
        argv = [self._program, *_FIXED]
        for name in _OFF:
            argv += ["-c", f"{name}=false"]
        # A branch takes none of the three from its conversation: all are said every time.
        argv += ["-m", turn.model] if turn.model else []
        argv += ["-c", f"model_reasoning_effort={turn.effort}"] if turn.effort else []
        argv += _rights(turn)
        # Only here are all of these allowed: `fork` itself takes fewer.
        argv += ["fork", turn.base] if turn.base else []
        return Command([*argv, "-"], without=OUTER)

    def reader(self, turn: Turn) -> "CodexReader":
        """Its events."""
        return CodexReader(turn)

    def recall(self, turn: Turn) -> Reply | None:
        """The reply in the record of the conversation, and what it cost."""
        record = Record(turn.session)
        if not record.replied:
            return None
        return Reply(text=record.text, session=turn.session, spent=_priced(turn, record) or turn.unpriced())


def _rights(turn: Turn) -> list[str]:
    if turn.skip_permissions or turn.permission_mode == "bypassPermissions":
        return [_SKIP]
    return ["--sandbox", _SANDBOXES.get(turn.permission_mode, "read-only")]


# --- what it prints


class CodexReader:
    """Reads one turn; what the agent says never decides how it ended."""

    def __init__(self, turn: Turn) -> None:
        self.ending: Reply | Trouble | None = None
        self._turn = turn
        self._id = ""
        """The conversation, as the program calls it."""
        self._begun = False
        self._said = ""
        self._error = ""
        self._shown: dict[str, str] = {}
        """What each tool use is shown as."""
        self._running: dict[str, None] = {}

    @property
    def tool(self) -> str:
        """The tool that runs now; of several the one that was begun last."""
        return self._shown[next(reversed(self._running))] if self._running else ""

    def feed(self, line: bytes) -> list[Observation]:
        """Take one line; what is no event is life and nothing more."""
        event = decode(line)
        match event.get("type"):
            case "thread.started" if event.get("thread_id"):
                self._id = str(event["thread_id"])
                return [Observation("session", self._id)]
            case "turn.started":
                self._begun = True
            case "item.started" | "item.updated" | "item.completed":
                return self._observe(_table(event.get("item")), done=event["type"] == "item.completed")
            case "error":
                # Said of every attempt that broke: the turn may still go on, but this is no sign of it.
                self._error = str(event.get("message") or "")
                return []
            case "turn.completed":
                self._running.clear()
                self.ending = self._reply(_table(event.get("usage")))
            case "turn.failed":
                self._running.clear()
                self.ending = self._fail(str(_table(event.get("error")).get("message") or self._error))
            case _:
                pass
        return _LIFE

    def _observe(self, item: dict[str, Any], *, done: bool) -> list[Observation]:
        if item.get("type") == "agent_message" and done:
            self._said = str(item.get("text") or "")
            return [Observation("text", self._said)]
        line, id = _tool(item), str(item.get("id"))
        if not line:
            return _LIFE
        before = self._shown.get(id)
        self._shown[id] = line
        if done:
            self._running.pop(id, None)
        else:
            self._running[id] = None
        return _LIFE if before == line else [Observation("tool", line)]

    def _reply(self, usage: dict[str, Any]) -> Reply:
        meter = _meter(usage)
        # It counts over the whole conversation, and over the one that was branched from.
        fresh, cached, out = (
            max(0, now - then) for now, then in zip(meter, (*self._turn.meter, 0, 0, 0), strict=False)
        )
        model = self._turn.model or Record(self._id).model
        spent = self._turn.priced(Tokens(input=fresh, cached=cached, output=out), model=model, meter=meter)
        return Reply(text=self._said, session=self._id, spent=spent)

    def _fail(self, message: str) -> Trouble:
        record = Record(self._id)
        kind = _kind(record.failure, message)
        is_limit = kind == "limit"
        unknown = self._turn.unpriced() if self._said or self._shown else Spending()
        return Trouble(
            kind=kind,
            error=_error(message) + (f" ({_LOG_IN})" if kind == "auth" else ""),
            retry_at=(record.opens_at or _again(message, time.time())) if is_limit else 0.0,
            only_model=is_limit and "your usage limit for " in message,
            spent=_priced(self._turn, record) or unknown,
        )

    def close(self, exit_code: int | None, errors: str) -> Reply | Trouble:
        """Without a result: what cannot be begun is told from a crash."""
        if self.ending:
            return self.ending
        if self._turn.base and not self._id and _GONE.search(errors):
            return Trouble(kind="session", error=f"the conversation {self._turn.base} is gone")
        most = _TOO_LONG.search(errors)
        if most and not self._begun:
            error = f"the prompt has {len(self._turn.prompt)} characters; Codex takes at most {most[1]}"
            return Trouble(kind="setup", error=error)
        if self._error and exit_code is not None and exit_code > 0:
            return self._fail(self._error)
        last = errors.strip().rpartition("\n")[2][-300:]
        error = f"the program {_ended(exit_code)} without a result" + (f": {last}" if last else "")
        return Trouble(kind="crash", error=error, spent=self.spent())

    def spent(self) -> Spending:
        """Until the end says what it took, a turn that began is counted by an estimate."""
        if self.ending:
            return self.ending.spent
        return self._turn.unpriced() if self._begun else Spending()


def _tool(item: dict[str, Any]) -> str:
    """A tool use in one line; nothing when the item is none."""
    match item.get("type"):
        case "command_execution":
            return tool_line("Bash", {"command": _command(str(item.get("command") or ""))})
        case "file_change":
            changes = item.get("changes")
            paths = [str(_table(one).get("path")) for one in changes] if isinstance(changes, list) else []
            return " ".join(["Edit", *paths])
        case "mcp_tool_call":
            return tool_line(f"mcp__{item.get('server')}__{item.get('tool')}", item.get("arguments"))
        case "web_search":
            return tool_line("WebSearch", item).strip()
        case _:
            return ""


def _command(command: str) -> str:
    """What the model wants run, without the shell that the program wraps around it."""
    with contextlib.suppress(ValueError):
        words = shlex.split(command)
        if len(words) == 3 and words[1] in ("-lc", "-c"):
            return words[2]
    return command


def _ended(code: int | None) -> str:
    if code is None:
        return "ended"
    return f"ended with signal {-code}" if code < 0 else f"ended with exit code {code}"


# --- why it failed


def _kind(failure: object, message: str) -> str:
    """The class of a failure: by its name in the record, by a status, by a code, at last by the program's words."""
    name, about = next(iter(failure.items()), ("", {})) if isinstance(failure, dict) else (failure, {})
    if name == "usage_limit_exceeded":  # also said of a bill that is due, which no waiting pays
        return "limit" if "try again" in message.lower() else "billing"
    said = _STATUS.match(message)
    status = _table(about).get("http_status_code") or (int(said[1]) if said else 0)
    if isinstance(status, int) and status:
        return _BY_STATUS.get(status, "overload" if status >= 500 else "crash")
    for table, key in ((_BY_NAME, name), (_BY_CODE, _body(message).get("code"))):
        if isinstance(key, str) and key in table:
            return table[key]
    return next((kind for words, kind in _BY_WORDS if words.match(message)), "crash")


def _error(message: str) -> str:
    return str(_body(message).get("message") or message or "the program reported an error")[:2000]


def _body(message: str) -> dict[str, Any]:
    """What the model's side said of a request that it refused, when the program only hands it on."""
    return _table(decode(message.encode()).get("error"))


def _again(message: str, now: float) -> float:
    """When a usage limit ends, by the program's words: local time, cut to the minute, without a date for today."""
    said = _AGAIN.search(message)
    if not said:
        return 0.0
    month, day, year, clock = said.groups()
    date = f"{month} {day} {year}" if month else time.strftime("%b %d %Y", time.localtime(now))
    try:
        return time.mktime(time.strptime(f"{date} {clock}", "%b %d %Y %I:%M %p")) + 60
    except (ValueError, OverflowError):
        return 0.0


# --- what it wrote down


class Record:
    """The last turn of a conversation, in the program's own file; empty when there is none."""

    def __init__(self, id: str) -> None:
        self.model = ""
        self.used = Tokens()
        self.meter: tuple[int, ...] = ()
        self.text = ""
        self.replied = False
        self.failure: object = None
        """What the program calls the error that ended the turn: a name, or a name with its details."""
        self.opens_at = 0.0
        """When the windows of a subscription that are used up are open again."""
        for line in _lines(id):
            event = decode(line)
            self._note(event.get("type"), _table(event.get("payload")))

    def _note(self, type: object, about: dict[str, Any]) -> None:
        match about.get("type") if type == "event_msg" else type:
            case "task_started":
                self.replied, self.failure, self.used = False, None, Tokens()
            case "turn_context":
                self.model = str(about.get("model") or "")
            case "token_usage_record":
                fresh, cached, out = _meter(_table(about.get("turn_token_usage")))
                self.used = Tokens(input=fresh, cached=cached, output=out)
            case "token_count":
                self._count(_table(about.get("info")), _table(about.get("rate_limits")))
            case "task_complete":
                self.text = str(about.get("last_agent_message") or "")
                self.replied = not about.get("error")
                self.failure = _table(about.get("error")).get("codex_error_info")
            case _:
                pass

    def _count(self, info: dict[str, Any], windows: dict[str, Any]) -> None:
        if "total_token_usage" in info:
            self.meter = _meter(_table(info["total_token_usage"]))
        both = [_table(windows.get(name)) for name in ("primary", "secondary")]
        used_up = [one for one in both if number(one.get("used_percent")) >= 100]
        self.opens_at = max((number(one.get("resets_at")) for one in used_up), default=0.0)


def _priced(turn: Turn, record: Record) -> Spending | None:
    """What a turn cost by the record; None when it says nothing of tokens."""
    if record.used == Tokens():
        return None
    return turn.priced(record.used, model=turn.model or record.model, meter=record.meter)


def _lines(id: str) -> list[bytes]:
    if not id:
        return []
    for path in glob.glob(
        os.path.join(glob.escape(home()), "sessions", "*", "*", "*", f"rollout-*-{glob.escape(id)}.jsonl")
    ):
        with contextlib.suppress(OSError), open(path, "rb") as file:
            return file.read().splitlines()
    return []


# --- whose it is


def home(environment: Mapping[str, str] = os.environ) -> str:
    """Where Codex keeps its settings, its login and its conversations."""
    return environment.get("CODEX_HOME") or os.path.join(environment.get("HOME", ""), ".codex")


def _payer(environment: Mapping[str, str]) -> str:
    for name in (_key_of_provider(home(environment)), "CODEX_API_KEY"):
        if name and environment.get(name):
            return f"the key in {name}"
    if environment.get("CODEX_ACCESS_TOKEN"):
        return "the subscription of CODEX_ACCESS_TOKEN"
    path = os.path.join(home(environment), "auth.json")
    login = decode(_read(path))
    if login.get("tokens"):
        return f"the subscription logged in at {path}"
    return f"the key in {path}" if login.get("OPENAI_API_KEY") else ""


def _key_of_provider(folder: str) -> str:
    """The variable that holds the key of the model provider that the user's settings name."""
    try:
        settings = tomllib.loads(_read(os.path.join(folder, "config.toml")).decode("utf-8", "replace"))
    except tomllib.TOMLDecodeError:
        return ""
    providers = _table(settings.get("model_providers"))
    return str(_table(providers.get(str(settings.get("model_provider")))).get("env_key") or "")


# --- small things


def _read(path: str) -> bytes:
    with contextlib.suppress(OSError), open(path, "rb") as file:
        return file.read()
    return b""


def _table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _meter(usage: dict[str, Any]) -> tuple[int, int, int]:
    """Tokens read, those of them that the model had seen before, and tokens written."""
    names = ("input_tokens", "cached_input_tokens", "output_tokens")
    read, cached, written = (int(number(usage.get(name))) for name in names)
    return read, cached, written
