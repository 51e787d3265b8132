"""A step of a loop: what its script finds in the environment, and the tags it ends with."""

import atexit
import contextlib
import json
import os
import sys
import time
from collections.abc import Iterable, Mapping
from functools import cached_property
from types import TracebackType
from typing import Any, NoReturn

from raymond.loops import settings
from raymond.loops.documents import Documents
from raymond.loops.git_calls import GitError
from raymond.loops.repository import Repository
from raymond.loops.settings import Settings
from raymond.store import project as projects
from raymond.store.run_folder import RunFolder
from raymond.system import files, git, leaving, stragglers
from raymond.system.files import make_private
from raymond.system.marks import MARK

TROUBLE = (GitError, OSError)
"""Git or the machine fails, which says nothing about the work of an agent."""
_WAITS = (1.0, 5.0)
"""Seconds until a step is tried again that had trouble."""
_TRIES = "RAYMOND_LOOP_TRIES"
_TOLD = ("results", "gate_result", "gate", "error")
"""What else a step is told about what was before it."""
FAILS = "Git or the machine fails"


class Step:
    """The script that runs now.

    If it has trouble, all of it is tried again, as after a kill; then a person is asked, and it is tried once more.
    Nothing else may follow: what an agent left has to be looked at before another one begins.
    """

    _given: str | None = None
    """What it was given before a person was asked."""
    number = 0
    """Which step of the run it is; 0 for one that nobody drives."""

    def __init__(self) -> None:
        sys.excepthook = self._failed
        environment = os.environ
        self._values = _left_out()
        self.id = environment["RAYMOND_WORKFLOW_ID"]
        self.agent = environment["RAYMOND_AGENT_ID"]
        self.key = environment["RAYMOND_STEP_KEY"]
        self._run_key, _, number = environment.get(MARK, "").rpartition(":")[2].rpartition("/")
        self.number = int(number or 0)
        self.visit = self._visit = int(environment.get("RAYMOND_VISIT", "1"))
        self.cwd = os.getcwd()
        self._recall()
        self.settings: Settings = settings.read(self.variable(settings.VARIABLE))
        self.top = git.top(self.cwd) or self.cwd
        self.documents = Documents(self.cwd, self.settings.docs, self.top, self.settings.owns_plans)

    def _recall(self) -> None:
        """Take what this step was given when it had trouble: a person has answered since, and that is its input now."""
        try:
            kept = json.loads(files.contents(self._trouble(self._visit)))
        except OSError:
            return
        self._given, self.key, self.visit = kept["input"], kept["key"], kept["visit"]
        self._values |= kept["values"]

    def _trouble(self, visit: int) -> str:
        return self.file(f"trouble-{self.agent}-{os.environ['RAYMOND_STATE']}-{visit}")

    def _failed(self, kind: type[BaseException], error: BaseException, where: TracebackType | None) -> None:
        if isinstance(error, TROUBLE):
            if not getattr(error, "lasts", False):
                self.again(error)
            with contextlib.suppress(OSError):
                self._ask(told(error))
                os._exit(0)
        sys.__excepthook__(kind, error, where)

    def _ask(self, why: str) -> None:
        values = {name: self.text(name) for name in _TOLD}
        kept = {"input": self.input, "key": self.key, "visit": self.visit, "values": values}
        files.replace(self._trouble(self._visit + 1), json.dumps(kept).encode(), durable=True)
        question = f"{FAILS}: {why}\nNothing is decided yet. Repair it, then answer `continue`.".replace("</", "< /")
        _write([tag("ask", question, {"next": os.environ["RAYMOND_STATE"]})])

    def again(self, error: Exception) -> None:
        """Begin this step anew after some trouble; returns when that was tried often enough."""
        tries = int(os.environ.get(_TRIES, "0"))
        if tries < len(_WAITS):
            print(f"trying again in {_WAITS[tries]:.0f} s: {told(error)}", file=sys.stderr, flush=True)
            time.sleep(_WAITS[tries])
            os.environ[_TRIES] = str(tries + 1)
            os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])

    @property
    def input(self) -> str:
        """What this visit was given."""
        if self._given is not None:
            return self._given
        with open(os.environ["RAYMOND_INPUT_FILE"], encoding="utf-8", errors="surrogateescape") as file:
            return file.read()

    def text(self, name: str) -> str:
        """A value that prompts would find under this name."""
        return self._values.get(name) or os.environ.get(f"RAYMOND_{name.upper()}", "")

    def variable(self, name: str) -> str:
        """A variable of the fork, or of the run."""
        return self._values.get(name) or os.environ.get(f"RAYMOND_VAR_{name}", "")

    @cached_property
    def folder(self) -> RunFolder:
        """Of the run, where no agent may write."""
        return projects.at(self.cwd).run(self.id)

    def file(self, name: str) -> str:
        """A file of the loop in the folder of the run."""
        path = self.folder.file("loop")
        make_private(path)
        return os.path.join(path, name)

    def end_stragglers(self, since: int) -> None:
        """End what the steps after number `since` left running: it could still write when its work was looked at."""
        if self.number:
            stragglers.end(self._run_key, self.folder.noted, lambda step: since < step < self.number)

    @property
    def is_repository(self) -> bool:
        """Whether the directory is in a repository."""
        return bool(git.top(self.cwd))

    @cached_property
    def repository(self) -> Repository:
        """The repository of the directory."""
        return Repository(self.top, self.file("index"))


def _left_out() -> dict[str, str]:
    """The values that are too long for the environment."""
    path = os.environ.get("RAYMOND_VARS_FILE")
    if not path:
        return {}
    with open(path, encoding="utf-8") as file:
        values: dict[str, str] = json.load(file)
    return values


def tag(name: str, body: str, attributes: Mapping[str, Any] = {}) -> str:
    """A tag as it is written; its `input` arrives as it is here, whatever stands in it."""
    given = {key: str(value) for key, value in attributes.items() if value is not None}
    if "input" in given:
        given["input"] = _literal(given["input"])
    said = "".join(f' {key}="{_escaped(value)}"' for key, value in given.items())
    return f"<{name}{said}>{body}</{name}>"


def document(text: str) -> str:
    """JSON as the body of a tag: nothing in it can be taken for the end of one."""
    return text.replace("<", "\\u003c")


def end(*tags: str) -> NoReturn:
    """End the step with these tags; they count, whatever else was printed."""
    _write(tags)
    atexit.register(leaving.leave)
    sys.exit(0)


def _write(tags: Iterable[str]) -> None:
    with open(os.environ["RAYMOND_OUT"], "w", encoding="utf-8", errors="surrogatepass") as file:
        file.write("\n".join(tags))


def told(error: Exception) -> str:
    """What went wrong, and the way out."""
    if isinstance(error, OSError):
        what = (error.strerror or type(error).__name__).lower()
        return f"{error.filename}: {what}" if error.filename else what
    hint = getattr(error, "hint", "")
    return f"{error} ({hint})" if hint else str(error)


def _literal(text: str) -> str:
    """A text in which names between braces are not replaced: the braces themselves are what is replaced."""
    is_bound = f"RAYMOND_VAR_{settings.BRACES}" in os.environ or settings.BRACES in _left_out()
    return text.replace("{{", "{{" + settings.BRACES + "}}") if is_bound else text


def _escaped(value: str) -> str:
    return value.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
