"""The room of a check: what agents did is harvested, and checked in a checkout that none of them could write."""

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator

import msgspec

from raymond.digests import sha256
from raymond.errors import WorkspaceError
from raymond.language.ways import Way
from raymond.patterns import regex
from raymond.system import git
from raymond.system.files import contents, make_private, private, replace
from raymond.verifier import command, vouched
from raymond.verifier.assignment import Assignment, Noted, Told, Work
from raymond.verifier.command import Result
from raymond.verifier.environment import CACHES
from raymond.verifier.names import SKIPPED
from raymond.verifier.rules import rules_of
from raymond.verifier.vouched import Deciding, Entries
from raymond.workspace import checkout, home
from raymond.workspace.place import Place
from raymond.workspace.repository import Repository

_SOON = 0.02
_PATIENCE = 2.0
"""Seconds to wait for others in silence."""
_GREEN = "green"
_PATH = regex(r"/[^\s'\":,;()\[\]]+")
_SHOWN = 5


class Room:
    """The checkout of a run's checks."""

    def __init__(self, given: Assignment, work: Work) -> None:
        self._given = given
        self._work = work
        way: Way = "copy" if work.way == "copy" else "isolated"
        self._tree = Place(work.folder, work.top, work.run, work.raymond, way)
        self._checks = Place(work.folder, work.top, work.run, work.raymond, way, "check")
        self.repository = Repository(self._tree.slot.git, self._tree.slot.rules)
        self.base = self._tree.known()
        make_private(given.folder)
        self.files: list[str] = []
        """What is in the checkout."""
        self._plan = os.path.join(given.folder, f"{given.step}.plan")

    def harvest(self, tell: Callable[[Told], None]) -> str:
        """Take what is in the agents' tree now; its tree."""
        began, told = time.monotonic(), False
        while True:
            try:
                with self._tree.alone():
                    return self._tree.harvest().tree
            except WorkspaceError as error:
                if "still at work" not in str(error):
                    raise
                if not told and time.monotonic() > began + _PATIENCE:
                    tell(Noted("waiting until no other agent is at work in the tree"))
                    told = True
                time.sleep(_SOON)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """No other check of the run uses the checkout while the block runs."""
        make_private(self._work.folder)
        with open(f"{self._work.folder}/check.lock", "ab", opener=private) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def stand(self, tree: str) -> None:
        """Let the checkout hold this tree; products of the last check stay only if that was green."""
        marker = f"{self._checks.slot.path}/{_GREEN}"
        was_green = os.path.exists(marker)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(marker)
        files = checkout.follow(self._checks.slot, self._tree.slot, self.base, tree, keep=was_green)
        self.files = [path.decode() for path in files if _is_text(path)]
        self._checks.base = None
        self._checks.known()

    def keep_products(self) -> None:
        """The check was green: what it built may stay for the next one."""
        replace(f"{self._checks.slot.path}/{_GREEN}", b"")

    def changes(self, old: str, new: str) -> tuple[Entries, Entries]:
        """How two trees differ, in files whose names are text: what one has of them, and what the other has."""
        found = {path.decode(): pair for path, pair in self.repository.changes(old, new).items() if _is_text(path)}
        old_ones, new_ones = ({path: pair[at] for path, pair in found.items() if pair[at]} for at in (0, 1))
        return old_ones, new_ones

    def deciding(self, tree: str) -> Deciding:
        """What in this tree decides the checks. It is worked out once, with the tree in the checkout."""
        given, slot = self._given, self._checks.slot
        about = msgspec.json.encode([tree, given.cwd, given.checks, given.seal, given.unseal])
        path = f"{slot.path}/deciding-{sha256(about).hexdigest()[:32]}"
        with contextlib.suppress(FileNotFoundError):
            return msgspec.json.decode(contents(path), type=Deciding)
        self.stand(tree)
        rules = rules_of(
            slot.tree,
            self._checks.outside(given.cwd),
            [one.run for one in given.checks],
            path=given.environment.get("PATH", os.defpath),
            seal=given.seal,
            unseal=given.unseal,
            installed=self._work.top,
        )
        found = vouched.deciding(rules, self.files)
        replace(path, msgspec.json.encode(found))
        return found

    @property
    def _tried(self) -> str:
        about = msgspec.json.encode([self._given.cwd, self._given.checks])
        return f"{self._checks.slot.path}/tried-{sha256(about).hexdigest()[:32]}"

    @property
    def is_tried(self) -> bool:
        """Whether these checks ran in the checkout before anybody worked."""
        return os.path.exists(self._tried)

    def note_tried(self) -> None:
        """They did."""
        replace(self._tried, b"")

    def lacks(self, printed: str) -> Iterator[str]:
        """What the person's directory has and the checkout has not, with the line that would give it."""
        own = os.path.expanduser("~")
        for path in dict.fromkeys(_PATH.findall(printed)):
            if path.startswith(f"{own}/") and os.path.exists(path):
                folder = "/".join(path.removeprefix(f"{own}/").split("/")[:1])
                yield f"{path} is hidden: `lend: [~/{folder}]`"
        top, there = self._work.top, {*self.base.installed, *self.base.data}
        built = sorted(os.path.relpath(path, top) for path in git.ignored_folders(top))
        built = [path for path in built if path not in there and os.path.basename(path) not in SKIPPED]
        if built := [path for path in built if path in printed] or built:
            shown = ", ".join(built[:_SHOWN])
            yield f"not there: {shown} (let the check make it, or `carry: [{shown}]`)"

    def place(self, environment: dict[str, str]) -> tuple[command.Place, dict[str, str]]:
        """How commands run in the checkout, and with which environment."""
        # What tools remember is a product of the check like any other.
        raw = {os.fsencode(name): os.fsencode(value) for name, value in environment.items() if name not in CACHES}
        shown: dict[str, bool] = {}
        if self.base.way == "isolated":
            shown = home.lent(self._work.lend, raw)
            raw = home.environment(raw, self._work.lend, ())
        argv, cwd = self._checks.entered(
            [],
            way=self.base.way,
            cwd=self._given.cwd,
            name=self._name,
            environment=raw,
            shown=shown,
            net=self._work.net,
            aside=self._plan,
        )
        env = {os.fsdecode(name): os.fsdecode(value) for name, value in raw.items()}
        return command.Place(cwd=cwd, before=tuple(argv), after=self._check_entered), env

    @property
    def _name(self) -> str:
        return f"check-{self._given.step}"

    def _check_entered(self, result: Result) -> None:
        """OSError: a command could not enter the checkout."""
        if self.base.way == "isolated" and (error := self._checks.refusal(self._name, result.exit_code)):
            raise error

    def outside(self) -> str:
        """Where the directory of the checks is on this machine."""
        return self._checks.outside(self._given.cwd)


def _is_text(path: bytes) -> bool:
    """Whether a name is UTF-8, as that of every file that a check is known to load."""
    try:
        path.decode()
    except UnicodeDecodeError:
        return False
    return True
