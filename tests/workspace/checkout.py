"""A project and its workspace, in this process: what an agent does to a tree is done to its files."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from raymond.workspace import apply as applying
from raymond.workspace.harvest import Harvest
from raymond.workspace.place import Place
from raymond.workspace.slot import Origin

IGNORED = ".env\nnode_modules/\n.venv/\ndist/\n*.log\n"


class Checkout:
    """The person's project at `path`; `tree` is where an agent works."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "project"
        self.path.mkdir()
        self.place = Place(str(folder / "place"), str(self.path), "r", str(folder / "raymond"), "isolated")
        self.tree = Path(self.place.slot.tree)

    def git(self, *args: str, given: bytes | None = None) -> str:
        done = subprocess.run(["git", *args], cwd=self.path, input=given, capture_output=True, check=False)
        assert done.returncode == 0, f"git {' '.join(args)}: {done.stderr.decode()}"
        return os.fsdecode(done.stdout)

    def begin(self, files: Mapping[str, str | bytes] = {}, *options: str) -> "Checkout":
        """Commit these files, and nothing else."""
        self.git("init", "-q", "-b", "main", *options)
        for path, text in {".gitignore": IGNORED, **files}.items():
            put(self.path / path, text)
        self.git("add", "-A")
        self.git("commit", "-qm", "first")
        return self

    def open(self, *carry: str) -> Origin:
        """Make the tree."""
        return self.place.open(list(carry), lambda text: None, 0.0)

    def harvest(self) -> Harvest:
        with self.place.alone():
            return self.place.harvest()

    def save(self) -> str:
        """Save what is in the tree under a reference of the project."""
        return self.place.save(self.harvest(), "work\n", 0.0)

    def taken(self) -> dict[str, str]:
        """Save what is in the tree: path -> how it differs from what the tree began with (A, M, D, T)."""
        tree = self.harvest().tree
        self.save()
        base = self.place.slot.base()
        assert base
        # Only what was saved is in the person's repository.
        name = "refs/raymond/r/tip" if tree != base.tree else base.commit
        assert self.git("rev-parse", f"{name}^{{tree}}").strip() == tree
        said = self.git("diff-tree", "-r", "-z", "--no-renames", "--name-status", base.commit, name).split("\0")
        return dict(zip(said[1::2], said[0::2], strict=False))

    def saved(self, path: str, name: str = "refs/raymond/r/tip") -> bytes:
        """The content of a file as it was saved."""
        return os.fsencode(self.git("cat-file", "blob", f"{name}:{path}"))

    def left_out(self) -> dict[str, str]:
        """What is not taken, and why."""
        return dict(self.harvest().left_out)

    def apply(self) -> applying.Done:
        """Bring what was saved home."""
        base = self.place.slot.base()
        assert base
        tip = self.git("rev-parse", "refs/raymond/r/tip").strip()
        return applying.apply(str(self.path), "r", base.commit, tip)


def put(path: Path, text: str | bytes, mode: int = 0o644) -> Path:
    """Write a file, and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    path.chmod(mode)
    return path
