"""The room of a check: what agents did is harvested, and checked in a checkout that none of them could write."""

import contextlib
import fcntl
import json
import os
import stat
import time
from collections.abc import Callable, Iterator

import msgspec
from msgspec import Struct

from raymond.digests import sha256
from raymond.language.ways import Way
from raymond.patterns import regex
from raymond.redaction.values import is_named, parts
from raymond.system import git
from raymond.system.files import contents, make_private, private, replace
from raymond.text import has_conflict
from raymond.verifier import command, dependencies, vouched
from raymond.verifier.assignment import Assignment, Noted, Told, Work
from raymond.verifier.checks import CACHES
from raymond.verifier.command import Result
from raymond.verifier.decides import SKIPPED
from raymond.verifier.rules import rules_of
from raymond.verifier.vouched import Deciding, Entries
from raymond.workspace import checkout, home, plan
from raymond.workspace.place import Place
from raymond.workspace.repository import Repository
from raymond.workspace.slot import StillInside

_SOON = 0.02
_PATIENCE = 2.0
"""Seconds to wait for others in silence."""
_GREEN = "green"
_PATH = regex(r"/[^\s'\":,;()\[\]]+")
_SHOWN = 5
_TEXT = 8 << 20
"""Bytes of a file that is looked into."""


class Wanted(Struct, frozen=True):
    """Dependencies that are not those of the person's packages."""

    files: list[str]
    """Which name them."""
    tree: str
    """What they are installed from."""


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
        self._known: dict[tuple[str, str], dict[bytes, tuple[bytes, bytes]]] = {}
        """How trees differ, as far as somebody has asked."""
        self._digest = ""
        """Of the dependencies of what is checked; empty for those of the person's packages."""
        self._plan = os.path.join(given.folder, f"{given.step}.plan")

    def harvest(self, tell: Callable[[Told], None]) -> str:
        """Take what is in the agents' tree now; its tree."""
        began, told = time.monotonic(), False
        while True:
            try:
                with self._tree.alone():
                    return self._tree.harvest().tree
            except StillInside:
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
        if self.base.way == "copy" and self._copied != self._digest:
            checkout.place_again(self._checks.slot, self._tree.slot, self.base)
            self._note_copied("")
        was_green = os.path.exists(f"{self._checks.slot.path}/{_GREEN}")
        self.forget_products()
        files = checkout.follow(self._checks.slot, self._tree.slot, self.base, tree, keep=was_green)
        self.files = [path.decode() for path in files if _is_text(path)]

    @property
    def checkout(self) -> str:
        """Where the files are that a check finds."""
        return self._checks.slot.tree

    def changed(self, but: str) -> str:
        """The tree in the checkout, with what was changed in its files since it was put there, `but` for a folder."""
        return checkout.changed(self._checks.slot, self._tree.slot, but)

    def keep_products(self) -> None:
        """The check was green: what it built may stay for the next one."""
        replace(f"{self._checks.slot.path}/{_GREEN}", b"")

    @property
    def counted(self) -> str:
        """The work that counted last, as a tree; empty for none."""
        try:
            return contents(f"{self._checks.slot.path}/counted").decode()
        except FileNotFoundError:
            return ""

    def note_counted(self, tree: str) -> None:
        """This work counts."""
        replace(f"{self._checks.slot.path}/counted", tree.encode())

    def forget_products(self) -> None:
        """Nothing that was built before may stay."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{self._checks.slot.path}/{_GREEN}")

    def changes(self, old: str, new: str) -> tuple[Entries, Entries]:
        """How two trees differ, in files whose names are text: what one has of them, and what the other has."""
        found = {path.decode(): pair for path, pair in self._changes(old, new).items() if _is_text(path)}
        old_ones, new_ones = ({path: pair[at] for path, pair in found.items() if pair[at]} for at in (0, 1))
        return old_ones, new_ones

    def _changes(self, old: str, new: str) -> dict[bytes, tuple[bytes, bytes]]:
        if (old, new) not in self._known:
            self._known[old, new] = self.repository.changes(old, new)
        return self._known[old, new]

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

    def vouched(self, journaled: str) -> str:
        """The tree that was vouched for; what the journal says of it counts where the workspace says nothing."""
        return self.base.vouched or journaled or self.base.tree

    def unfit(self, tree: str) -> str:
        """Why a tree that was just put into the checkout can never be green; empty when it can."""
        old, new = self.changes(self.base.tree, tree)
        changes = self._changes(self.base.tree, tree)
        if odd := [path for path, (_, now) in changes.items() if now and not _is_text(path)]:
            return f"the name of {odd[0]!r} is not UTF-8, so nothing can be said about it"
        given = self._given.environment
        values = {part.encode(): name for name in given if is_named(name) for part in parts(given[name])}
        for path in new:
            text = path.encode() + b"\n" + self._text(path)
            markers = has_conflict(text)
            found = [name for value, name in values.items() if value in text]
            if not markers and not found:
                continue
            before = vouched.content(self.repository, old.get(path, b""))
            if markers and not has_conflict(before):
                return f"{path} has the marks of a conflict that nobody has resolved"
            for value, name in values.items():
                if value in text and value not in before:
                    return f"{path} has the value of {name}, which is a secret"
        return ""

    def _text(self, path: str) -> bytes:
        """What is in a file of the checkout, or where a link leads; nothing in what is too large for a text."""
        whole = f"{self._checks.slot.tree}/{path}"
        found = os.lstat(whole)
        if stat.S_ISLNK(found.st_mode):
            return os.readlink(os.fsencode(whole))
        return contents(whole) if stat.S_ISREG(found.st_mode) and found.st_size <= _TEXT else b""

    def named(self) -> Iterator[str]:
        """The paths that words of the commands could mean."""
        within = os.path.relpath(self._given.cwd, self.base.top)
        for check in self._given.checks:
            for word in check.run.split():
                yield os.path.normpath(os.path.join(within, word.strip("\"'").partition("::")[0]))

    def wanted(self, tree: str) -> Wanted | None:
        """The dependencies that a tree names, if the person's packages were made from others."""
        self._digest = ""
        if not self.base.installed:
            return None
        files, began = {}, self.base.began or self.base.tree
        for raw, (old, new) in self._changes(began, tree).items():
            path = os.fsdecode(raw)
            if new and dependencies.names_any(path):
                own, other = (vouched.content(self.repository, one) for one in (old, new))
                if dependencies.named(path, own) != dependencies.named(path, other):
                    files[path] = (old or new).split()[0], dependencies.taken_over(path, own, other)
        if not files:
            return None
        about = [self.setup, self.fingerprint(), sorted((path, said.hex()) for path, (_, said) in files.items())]
        self._digest = sha256(msgspec.json.encode(about)).hexdigest()[:32]
        lines = {path: self.repository.put(mode, said) for path, (mode, said) in files.items()}
        return Wanted(sorted(files), self.repository.changed(began, lines))

    def fingerprint(self) -> list[tuple[str, int]]:
        """What tells that somebody installed something in the person's checkout."""
        return dependencies.fingerprint(self.base.top, self.base.installed)

    @property
    def setup(self) -> str:
        """The command that installs dependencies; empty when nobody knows one."""
        return self._work.setup

    @property
    def _layer(self) -> str:
        """What was installed over the person's packages for this work."""
        return f"{self._work.folder}/layers/{self._digest}"

    @property
    def _copied(self) -> str:
        """What was installed last in a checkout that has packages of its own; empty for what the person has."""
        try:
            return contents(f"{self._checks.slot.path}/installed").decode()
        except FileNotFoundError:
            return ""

    def _note_copied(self, what: str) -> None:
        replace(f"{self._checks.slot.path}/installed", what.encode())

    @property
    def is_installed(self) -> bool:
        """Whether what the tree wants is there."""
        if self.base.way == "isolated":
            return os.path.exists(self._layer)
        return self._copied == self._digest and checkout.is_whole(self._checks.slot)

    def make_ready(self, wanted: Wanted) -> None:
        """Put what the packages are installed from into the checkout."""
        self.stand(wanted.tree)
        if self.base.way == "copy":
            self._note_copied("unfinished")

    def keep_installed(self) -> str:
        """What was just installed is used from now on; why it is not."""
        slot = self._checks.slot
        if self.base.way == "copy":
            self._note_copied(self._digest)
            return ""
        made = slot.upper(plan.INSTALLED)
        for path, leads in _links(made):
            folder = next(one for one in self.base.installed if path.startswith(f"{one}/"))
            target = os.path.normpath(os.path.join(os.path.dirname(path), leads))
            own = os.path.join(self.base.top, path)
            if not f"{target}/".startswith(f"{folder}/") and not (os.path.islink(own) and os.readlink(own) == leads):
                return f"`{self.setup}` links {path} to {leads}, which the work could change"
        make_private(os.path.dirname(self._layer))
        os.rename(made, self._layer)
        return ""

    @property
    def _tried(self) -> str:
        about = json.dumps([self._given.cwd, msgspec.to_builtins(self._given.checks)]).encode()  # not all is UTF-8
        return f"{self._checks.slot.path}/tried-{sha256(about).hexdigest()[:32]}"

    @property
    def is_tried(self) -> bool:
        """Whether these checks ran in the checkout before anybody worked."""
        return os.path.exists(self._tried)

    def note_tried(self, net: str) -> None:
        """They did, and what they need of the network."""
        replace(self._tried, net.encode())

    @property
    def net(self) -> str:
        """Whether checks have a network: as somebody said, or as it turned out."""
        if self._work.net:
            return self._work.net
        try:
            return contents(self._tried).decode()
        except FileNotFoundError:
            return "on"

    @property
    def may_be_offline(self) -> bool:
        """Whether checks may be tried without a network."""
        return self.base.way == "isolated" and not self._work.net

    def lacks(self, printed: str) -> list[str]:
        """What the person's directory has and the checkout has not, with the line that would give it."""
        found = []
        if self.base.way == "isolated":
            paths = dict.fromkeys(_PATH.findall(printed))
            hidden = [path for path in paths if os.path.exists(path) and plan.hides(self._plan, path)]
            found += [f"{path} is hidden: `lend: [{_shorter(path)}]`" for path in hidden[:_SHOWN]]
            if self._work.net == "off":
                found.append("it has no network: `net: on`")
        gone = self._removed()
        said = f"{printed} {' '.join(one.run for one in self._given.checks)}"
        named = [name for name in gone if name in said]
        top, there = self._work.top, {*self.base.installed, *self.base.data, ".raymond"}
        built = sorted(os.path.relpath(path, top) for path in git.ignored_folders(top))
        built = [path for path in built if path.split("/")[0] not in there and path not in there]
        built = [path for path in built if os.path.basename(path) not in SKIPPED]
        in_words = [path for path in built if path in printed]
        if in_words or not (found or named):
            found += _not_there(in_words or built, "let the check make it, or `carry: [{}]`")
        if named or not (found or in_words):
            found += _not_there(named or gone, "`lend: [{}]`")
        return found

    def _removed(self) -> list[str]:
        """The variables of the person's that a check does not have."""
        if self.base.way != "isolated":
            return []
        given = {os.fsencode(name): os.fsencode(value) for name, value in self._given.environment.items()}
        kept = home.environment(given, self._work.lend, ())
        return sorted(os.fsdecode(name) for name in given.keys() - kept.keys())

    def place(self, environment: dict[str, str], net: str = "") -> tuple[command.Place, dict[str, str]]:
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
            net=net or self.net,
            installed=self._layer if self._digest and os.path.exists(self._layer) else "",
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


def _not_there(names: list[str], remedy: str) -> list[str]:
    shown = ", ".join(names[:_SHOWN])
    return [f"not there: {shown} ({remedy.format(shown)})"] if names else []


def _shorter(path: str) -> str:
    """The folder that holds a file, as `lend:` takes it; the file itself where it lies right in the home."""
    own, folder = os.path.expanduser("~"), path if os.path.isdir(path) else os.path.dirname(path)
    folder = path if folder == own else folder
    return f"~/{os.path.relpath(folder, own)}" if folder.startswith(f"{own}/") else folder


def _links(folder: str) -> Iterator[tuple[str, str]]:
    """The symbolic links below a folder, each with where it leads."""
    for above, folders, files in os.walk(folder):
        for path in (os.path.join(above, name) for name in (*folders, *files)):
            if os.path.islink(path):
                yield os.path.relpath(path, folder), os.readlink(path)


def _is_text(path: bytes) -> bool:
    """Whether a name is UTF-8, as that of every file that a check is known to load."""
    try:
        path.decode()
    except UnicodeDecodeError:
        return False
    return True
