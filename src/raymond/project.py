"""The `.raymond` folder: where everything of a project's runs is kept."""

import os
import re
from collections.abc import Iterator

from raymond.errors import JournalError, RunNotFound, UsageError

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
        """A file beside the journal: its state file, snapshot, lock or inbox."""
        return self.path("workflows", f"{id}.{ending}")

    def source(self, digest: str) -> str:
        """The snapshot of a workflow."""
        return self.path("sources", f"{digest}.zip")

    def folder(self, *parts: str) -> str:
        """A folder below the root, made if it is not there."""
        path = self.path(*parts)
        os.makedirs(path, 0o700, exist_ok=True)
        return path

    def ids(self) -> list[str]:
        """Every run, the one begun last first."""
        found = sorted(((entry.stat().st_mtime, entry.name) for entry in self._journals()), reverse=True)
        return [name.removesuffix(".jsonl") for _, name in found]

    def resolve(self, given: str) -> str:
        """The id that `given` is, or is the unique beginning of."""
        if not ID_FORM.fullmatch(given):
            raise UsageError(f"`{given}` is no id of a run", hint="an id has letters, digits, _ and - only")
        if os.path.exists(self.journal(given)):
            return given
        ids = self.ids()
        matches = [id for id in ids if id.startswith(given)]
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise UsageError(f"`{given}` is the beginning of {len(matches)} ids", hint=f"one of: {_some(matches)}")
        raise RunNotFound(f"there is no run `{given}` in {self.root}", hint=_similar(given, ids))

    def _journals(self) -> Iterator["os.DirEntry[str]"]:
        try:
            with os.scandir(self.path("workflows")) as entries:
                yield from (entry for entry in entries if entry.name.endswith(".jsonl") and entry.is_file())
        except FileNotFoundError:
            return


def private(path: str, flags: int) -> int:
    """An opener for files nobody else may read."""
    return os.open(path, flags, 0o600)


def find(cwd: str) -> Project | None:
    """The nearest `.raymond` from `cwd` upward; the folder with `.git` is the last one looked at."""
    for folder in _upward(cwd):
        path = os.path.join(folder, ".raymond")
        if os.path.isdir(path):
            return Project(path)
    return None


def make(cwd: str) -> Project:
    """The project of `cwd`, made beside `.git`, or here, when there is none."""
    found = find(cwd)
    if found:
        return found
    last = list(_upward(cwd))[-1]
    home = last if os.path.exists(os.path.join(last, ".git")) else cwd
    project = Project(os.path.join(home, ".raymond"))
    try:
        os.makedirs(project.path("workflows"), 0o700, exist_ok=True)
        os.chmod(project.root, 0o700)
        with open(project.path(".gitignore"), "w", encoding="utf-8") as file:
            file.write(_IGNORE)
    except OSError as error:
        raise JournalError(
            f"cannot make {project.root}: {error.strerror}",
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


def _some(ids: list[str]) -> str:
    return ", ".join(ids[:5]) + (", ..." if len(ids) > 5 else "")


def _similar(given: str, ids: list[str]) -> str:
    import difflib

    close = difflib.get_close_matches(given, ids, 3, 0.5)
    if close:
        return f"did you mean {_some(close)}?"
    return "`raymond list` shows the runs there are" if ids else "no run was started here yet: raymond run PATH"
