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
from typing import TYPE_CHECKING, Any, NoReturn

from raymond.errors import Error
from raymond.language.ways import Way
from raymond.loops import settings
from raymond.loops.branch import BASE, LEFT, VOUCHED, Branch, exclude
from raymond.loops.documents import Documents, Folder, Stored, stored
from raymond.loops.ledger import Opened, read_opened
from raymond.loops.settings import Settings
from raymond.store import project as projects
from raymond.store.project import Project
from raymond.store.run_folder import RunFolder
from raymond.system import files, git
from raymond.system.files import make_private
from raymond.system.stragglers import MARK
from raymond.workspace import tree as trees
from raymond.workspace.place import Place
from raymond.workspace.repository import Repository
from raymond.workspace.slot import Origin

if TYPE_CHECKING:
    from raymond.verifier.assignment import Work


TROUBLE = (Error, OSError)
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
    """Which step of the run it is; 0 for one without a driver."""

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

    @property
    def item(self) -> Opened:
        """The item of this agent."""
        return read_opened(self.variable("item"))

    @property
    def gate(self) -> dict[str, Any]:
        """How the check ended that ran last."""
        found: dict[str, Any] = json.loads(self.text("gate_result") or "{}")
        return found

    @cached_property
    def project(self) -> Project:
        """The project that the loop works on."""
        return projects.at(self.cwd)

    @cached_property
    def folder(self) -> RunFolder:
        """Of the run, where no agent may write."""
        return self.project.run(self.id)

    def file(self, name: str) -> str:
        """A file of the loop in the folder of the run."""
        path = self.folder.file("loop")
        make_private(path)
        return os.path.join(path, name)

    def end_stragglers(self, since: int) -> None:
        """End what the steps after number `since` left running: it could still write when its work was looked at."""
        if self.number:
            from raymond.system import stragglers  # an isolated step leaves none

            stragglers.end_stragglers(self._run_key, self.folder.noted, lambda step: since < step < self.number)

    # Where agents work, and what counts

    @cached_property
    def place(self) -> Place:
        """Where the agents of the loop work."""
        return place_of(self.project, self.id, self.settings)

    @cached_property
    def branch(self) -> Branch:
        """The branch of the loop."""
        repository = Repository(self.place.slot.git, self.place.slot.rules)
        return branch_of(self.project, self.id, self.settings, repository)

    @property
    def workspace(self) -> "Work | None":
        """The workspace whose work is checked; None where agents work in the checkout."""
        if self.place.way == "here" or not self.settings.commits_anything:
            return None
        from raymond.control.handle import RunHandle  # hardly any step needs it
        from raymond.verifier.assignment import Work

        place, start = self.place, RunHandle(self.project, self.id).start
        lend = tuple(start.lend)
        return Work(place.folder, place.top, place.run, place.raymond, place.way, lend, start.net, start.setup)

    @cached_property
    def documents(self) -> Documents:
        """The documents of the loop: as its branch has them, or as they are in the checkout of a loop without one."""
        return self.documents_at(self.branch.tip) if self.settings.commits_anything else self.checkout

    @cached_property
    def checkout(self) -> Folder:
        """The documents as they are in the person's checkout, where the state file is."""
        return Folder(self.cwd, self.settings.docs, self.top, self.settings.owned)

    def documents_at(self, commit: str) -> Stored:
        """The documents as a commit or a tree has them."""
        return stored(self.checkout, self.branch.repository, commit)

    def open_tree(self) -> None:
        """Make the tree that agents work in, if there is none, and let it hold the tip."""
        if not self.settings.commits_anything:
            return
        place, branch = self.place, self.branch
        branch.note()
        exclude(self.top, self.checkout.excluded())
        if not place.is_there:
            commit = branch.commit_of(BASE) if branch.is_here else branch.tip
            trees.make_of(
                place.slot,
                self.top,
                commit,
                branch.name,
                began=branch.commit_of(BASE),
                kept=self.checkout.kept,
                vouched=branch.commit_of(VOUCHED),
                carry=list(self.settings.carry),
                way=place.way,
                tell=tell,
            )
        self.follow()

    def follow(self, wanted: str = "") -> None:
        """Let the tree hold the tip, or this tree on top of it; what else is there is saved before."""
        place, branch = self.place, self.branch
        with place.alone():
            origin, taken = place.known(), place.harvest().left
            trees.follow(place.slot, origin, branch.tip, branch.vouched, wanted=wanted, taken=taken)
        branch.follow()
        if branch.is_here:
            branch.check_out()

    def subjects(self, origin: Origin) -> list[str]:
        """The subjects of the commits that an agent made itself; its git is asked where it works."""
        path = f"{self.place.slot.tree}/.git/refs/heads/{origin.branch}"
        try:
            if files.contents(path, 100).decode("ascii", "replace").strip() == origin.head:
                return []
        except OSError:
            pass  # it is packed, or the agent has removed it
        return self.place.said(["git", "log", "--format=%s", "-20", f"{origin.head}..HEAD"], self.cwd)


def place_of(project: Project, id: str, given: Settings) -> Place:
    """Where the agents of a loop work."""
    way: Way = "here" if given.way == "here" else "copy" if given.way == "copy" else "isolated"
    is_apart = given.internal and way == "copy"
    return Place(project.run(id).workspace, project.tree, id, project.home.path, way, saves=LEFT, is_apart=is_apart)


def branch_of(project: Project, id: str, given: Settings, repository: Repository) -> Branch:
    """The branch of a loop; trees of it are made in the repository."""
    lock = os.path.join(project.run(id).file("loop"), "branch.lock")
    return Branch(project.tree, id, given.branch, lock, repository, given.way == "here")


def tell(text: str) -> None:
    """Say something on the way."""
    print(text, file=sys.stderr, flush=True)


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
    atexit.register(leave)
    sys.exit(0)


def _write(tags: Iterable[str]) -> None:
    with open(os.environ["RAYMOND_OUT"], "w", encoding="utf-8", errors="surrogatepass") as file:
        file.write("\n".join(tags))


def told(error: Exception) -> str:
    """What went wrong, and the way out."""
    if isinstance(error, OSError):
        what = (error.strerror or type(error).__name__).lower()
        return f"{os.fsdecode(error.filename)}: {what}" if error.filename else what
    hint = getattr(error, "hint", "")
    return f"{error} ({hint})" if hint else str(error)


def _literal(text: str) -> str:
    """A text in which names between braces are not replaced: the braces themselves are what is replaced."""
    is_bound = f"RAYMOND_VAR_{settings.BRACES}" in os.environ or settings.BRACES in _left_out()
    return text.replace("{{", "{{" + settings.BRACES + "}}") if is_bound else text


def _escaped(value: str) -> str:
    return value.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")


def leave(code: int = 0) -> NoReturn:
    """End at once, with what was printed: to take down all that was loaded would be a tenth of a script's work."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
