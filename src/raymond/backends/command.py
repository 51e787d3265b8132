"""Any program as a backend: the prompt on stdin, the answer on stdout, success by its exit code.

In config.toml: `[backends.NAME] command = ["my-agent", "--id", "{new}"]`, and where the program can continue a
conversation, `resume` or `branch` with `{session}`.
"""

from typing import Any

from raymond import amounts
from raymond.backends import Abilities, Command, Found, Observation, Reply, Setup, Trouble, Turn
from raymond.errors import UsageError
from raymond.machine.inputs import Spending
from raymond.patterns import regex
from raymond.system import programs

_TEMPLATES = ("command", "resume", "branch")
_KEYS = (*_TEMPLATES, "cost")
_NAMES = ("new", "session", "model", "effort")
_OPTIONAL = ("{model}", "{effort}")
_PLACE = regex(r"\{([a-z]+)\}")
_EXAMPLES = {
    "command": '["my-agent", "--id", "{new}"]',
    "resume": '["my-agent", "--resume", "{session}"]',
    "branch": '["my-agent", "--branch", "{session}", "--id", "{new}"]',
}
_MOST = 64 << 20
"""Bytes of an answer, which is held whole."""
_TOO_LONG = "the program answered with more than 64 MiB"
_WITH_ITS_END = '"$@"; code=$?; printf "\\n%s %s\\n" "$0" "$code"; exit "$code"'
"""Writes the exit code to the spool, so that a whole answer can be told from half of one after a restart."""


class CommandBackend:
    """Runs the user's own program, one process for each turn."""

    paid = True

    def __init__(self, setup: Setup) -> None:
        self.name = setup.name
        self._templates = _templates(setup)
        cost = setup.options.get("cost")
        self._cost = None if cost is None else _cost(setup.name, cost)
        remembers = "resume" in self._templates or "branch" in self._templates
        named = _says(self._templates["command"], "new")
        self.can = Abilities(
            branches="branch" in self._templates,
            continues=remembers,
            takes_session_ids=named,
            unpriced=self._cost is None,
        )

    def look(self) -> Found:
        """Only whether it is installed: what a project names is not started just to be asked."""
        path, problem = programs.locate(self._templates["command"][0])
        hint = f"install it, or change [backends.{self.name}] in config.toml" if problem else ""
        return Found(program=path, problem=problem, payer="whoever that program charges", hint=hint)

    def command(self, turn: Turn) -> Command:
        """The template that fits, filled in."""
        template = self._templates["command"]
        if turn.base and self.can.continues:
            template = self._templates.get("branch") or self._templates["resume"]
        values = {"new": turn.session, "session": turn.base, "model": turn.model, "effort": turn.effort}
        argv: list[str] = []
        for part in template:
            if part in _OPTIONAL and not values[part[1:-1]]:
                # The flag before it goes too: the program has its own default.
                del argv[-1 if len(argv) > 1 and argv[-1].startswith("-") else len(argv) :]
            else:
                argv.append(_PLACE.sub(lambda place: values.get(place[1], place[0]), part))
        return Command(["/bin/sh", "-c", _WITH_ITS_END, _mark(turn), *argv], program=argv[0])

    def reader(self, turn: Turn) -> "TextReader":
        """Everything it prints is the answer."""
        in_place = bool(turn.base) and "branch" not in self._templates
        session = (turn.base if in_place else turn.session) if self.can.continues else ""
        spent = turn.unpriced() if self._cost is None else Spending(cost=self._cost)
        return TextReader(_mark(turn), session, spent)

    def recall(self, turn: Turn) -> Reply | None:
        """It keeps nothing to recall."""
        return None


class TextReader:
    """Reads plain text up to the line that says how the program ended."""

    tool = ""

    def __init__(self, mark: str, session: str, spent: Spending) -> None:
        self.ending: Reply | Trouble | None = None
        self._mark = mark.encode() + b" "
        self._session = session
        self._spent = spent
        self._lines: list[bytes] = []
        self._room = _MOST

    def feed(self, line: bytes) -> list[Observation]:
        """Take one line of the answer, or its end."""
        if line.startswith(self._mark) and line[len(self._mark) :].isdigit():
            self._end(int(line[len(self._mark) :]))
        else:
            self._room -= len(line) + 1
            if self._room < 0:
                self._lines.clear()
                self.ending = self.ending or Trouble(kind="crash", error=_TOO_LONG, spent=self.spent())
            else:
                self._lines.append(line)
        return [Observation("life")]

    def _end(self, code: int) -> None:
        text = b"\n".join(self._lines).decode("utf-8", "replace").strip()
        # Why it failed is on its stderr, which is complete when the process has ended.
        if code == 0 and text and not self.ending:
            self.ending = Reply(text=text, session=self._session, spent=self._spent)

    def close(self, exit_code: int | None, errors: str) -> Reply | Trouble:
        """No answer: what its stderr says last."""
        if self.ending:
            return self.ending
        how = f"ended with {_code(exit_code)}" if exit_code else "answered nothing"
        last = errors.strip().rpartition("\n")[2][-300:]
        return Trouble(kind="crash", error=f"the program {how}" + (f": {last}" if last else ""), spent=self.spent())

    def spent(self) -> Spending:
        """The cost that was set for a turn, or an estimate: the program reports none."""
        return self._spent


def _code(code: int) -> str:
    """A shell reports a signal as 128 plus its number, or is ended by it too."""
    number = -code if code < 0 else code - 128 if code > 128 else 0
    return f"signal {number}" if 0 < number < 65 else f"exit code {code}"


def _mark(turn: Turn) -> str:
    return f"raymond-{turn.session}"


def _templates(setup: Setup) -> dict[str, list[str]]:
    where = f"[backends.{setup.name}]"
    for key in setup.options:
        if key not in _KEYS:
            raise UsageError(f"{where}: there is no key `{key}`", hint=f"there are: {', '.join(_KEYS)}")
    found = {key: _template(where, key, setup.options[key]) for key in _TEMPLATES if key in setup.options}
    if "command" not in found:
        raise UsageError(f"{where} has no `command`", hint='command = ["my-agent", "--print"]')
    for key in ("resume", "branch"):
        if key in found and not _says(found[key], "session"):
            raise UsageError(f"{where}: `{key}` does not contain {{session}}", hint=f"{key} = {_EXAMPLES[key]}")
    for key in ("command", "branch"):
        if len(found) > 1 and key in found and not _says(found[key], "new"):
            raise UsageError(
                f"{where}: `{key}` does not contain {{new}}, the id to continue from later",
                hint=f"{key} = {_EXAMPLES[key]}",
            )
    return found


def _says(template: list[str], name: str) -> bool:
    return any(f"{{{name}}}" in part for part in template)


def _template(where: str, key: str, value: Any) -> list[str]:
    if not isinstance(value, list) or not value or not all(isinstance(part, str) and part for part in value):
        raise UsageError(f"{where}: `{key}` must be a list of texts", hint=f'{key} = ["my-agent", "--print"]')
    if "/" in value[0] and not value[0].startswith("/"):
        raise UsageError(
            f"{where}: `{key}` starts {value[0]}, which depends on where an agent works",
            hint="write its full path, or put it on the PATH",
        )
    for name in (name for part in value for name in _PLACE.findall(part)):
        if name not in _NAMES:
            names = ", ".join(f"{{{one}}}" for one in _NAMES)
            raise UsageError(
                f"{where}: `{key}` contains {{{name}}}, which is not a placeholder", hint=f"there are: {names}"
            )
    return value


def _cost(name: str, value: Any) -> float:
    try:
        return amounts.dollars(value if isinstance(value, int | float) else None)
    except ValueError as error:
        raise UsageError(f"[backends.{name}]: `cost` must be {error}", hint="cost = 0.02") from None
