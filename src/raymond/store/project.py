"""The `.raymond` folder, which holds the runs of a project."""

import contextlib
import os
import re
from collections.abc import Iterator

from raymond.errors import JournalError, RunNotFound, UsageError
from raymond.system.files import make_private, private, trouble

_IGNORE = "*\n!.gitignore\n!config.toml\n"
ID_FORM = re.compile(r"[A-Za-z0-9_-]{1,100}")


class Project:
    """One `.raymond` folder and the paths in it."""

    def __init__(self, root: str) -> None:
        self.root = root

    def path(self, *parts: str) -> str:
        """A path below the folder."""
        return os.path.join(self.root, *parts)

    def journal(self, id: str) -> str:
        """The journal of a run."""
        return self.path("workflows", f"{id}.jsonl")

    def beside(self, id: str, ending: str) -> str:
        """A file next to the journal: its state file, snapshot, lock or inbox."""
        return self.path("workflows", f"{id}.{ending}")

    def source(self, digest: str) -> str:
        """The snapshot of a workflow."""
        return self.path("sources", f"{digest}.zip")

    def folder(self, *parts: str) -> str:
        """A folder below the root, created if it is missing."""
        path = self.path(*parts)
        try:
            make_private(path)
        except FileExistsError:
            raise _in_the_way(path) from None
        except OSError as error:
            raise trouble(path, error) from None
        return path

    def ids(self) -> list[str]:
        """The id of every run, the newest first."""
        found = sorted(((entry.stat().st_mtime, entry.name) for entry in self._journals()), reverse=True)
        return [name.removesuffix(".jsonl") for _, name in found]

    def resolve(self, given: str) -> str:
        """The id that equals `given`, or the only one that starts with it."""
        if not ID_FORM.fullmatch(given):
            raise UsageError(f"`{given}` is not a run id", hint="an id has letters, digits, _ and - only")
        if os.path.exists(self.journal(given)):
            return given
        ids = self.ids()
        matches = [id for id in ids if id.startswith(given)]
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise UsageError(f"`{given}` matches {len(matches)} runs", hint=f"one of: {_some(matches)}")
        raise RunNotFound(f"there is no run `{given}` in {self.root}", hint=_similar(given, ids))

    def _journals(self) -> Iterator["os.DirEntry[str]"]:
        try:
            with os.scandir(self.path("workflows")) as entries:
                yield from (entry for entry in entries if entry.name.endswith(".jsonl") and entry.is_file())
        except FileNotFoundError:
            return


def known() -> list[Project]:
    """Every project of this user that still exists, the newest first."""
    try:
        with open(_register(), encoding="utf-8", errors="surrogateescape") as file:
            roots = dict.fromkeys(reversed(file.read().splitlines()))
    except OSError:
        return []
    return [Project(root) for root in roots if os.path.isdir(root)]


def _remember(root: str) -> None:
    """Register the project for `list --all`; users without a home directory have no register."""
    with contextlib.suppress(OSError):
        path = _register()
        make_private(os.path.dirname(path))
        with open(path, "a", encoding="utf-8", errors="surrogateescape", opener=private) as file:
            file.write(f"{root}\n")


def _register() -> str:
    home = os.environ.get("HOME", "")
    base = os.environ.get("XDG_STATE_HOME") or (f"{home}/.local/state" if home else "/dev/null")
    return f"{base}/raymond/projects"


def find(cwd: str) -> Project | None:
    """The nearest `.raymond` from `cwd` upward; the folder with `.git` is the last one looked at."""
    for folder in _upward(cwd):
        path = os.path.join(folder, ".raymond")
        if os.path.isdir(path):
            return Project(path)
    return None


def place(cwd: str) -> Project:
    """The project of `cwd`, whether or not it exists yet."""
    found = find(cwd)
    if found:
        return found
    last = list(_upward(cwd))[-1]
    return Project(os.path.join(last if os.path.exists(os.path.join(last, ".git")) else cwd, ".raymond"))


def make(cwd: str) -> Project:
    """The project of `cwd`; if there is none, create it next to `.git`, or in `cwd`."""
    project = place(cwd)
    try:
        if not os.path.isdir(project.path("workflows")):
            make_private(project.path("workflows"))
            os.chmod(project.root, 0o700)
            _remember(project.root)
        if not os.path.exists(project.path(".gitignore")):
            with open(project.path(".gitignore"), "w", encoding="utf-8", opener=private) as file:
                file.write(_IGNORE)
    except OSError as error:
        for path in (project.root, project.path("workflows")):
            if os.path.lexists(path) and not os.path.isdir(path):
                raise _in_the_way(path) from None
        raise JournalError(
            f"cannot create {project.root}: {(error.strerror or str(error)).lower()}",
            path=project.root,
            hint="Raymond keeps its runs there: make the folder writable, or start somewhere else",
        ) from None
    return project


def _upward(cwd: str) -> Iterator[str]:
    folder = os.path.abspath(cwd)
    while True:
        yield folder
        above = os.path.dirname(folder)
        if above == folder or os.path.exists(os.path.join(folder, ".git")):
            return
        folder = above


def _in_the_way(path: str) -> JournalError:
    hint = "Raymond keeps its runs there: move the file away, or start somewhere else"
    return JournalError(f"{path} is a file where a folder should be", path=path, hint=hint)


def _some(ids: list[str]) -> str:
    return ", ".join(ids[:5]) + (", ..." if len(ids) > 5 else "")


def _similar(given: str, ids: list[str]) -> str:
    import difflib

    close = difflib.get_close_matches(given, ids, 3, 0.5)
    if close:
        return f"did you mean {' or '.join(f'`{id}`' for id in close)}?"
    return "`raymond list` shows the runs there are" if ids else "no run has been started here yet: raymond run PATH"
