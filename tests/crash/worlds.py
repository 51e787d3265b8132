"""Everything in a folder as it was at some moment, to be put back as often as needed."""

import os
import shutil
import subprocess
from pathlib import Path


class Worlds:
    """The worlds of a folder: what these names in it stood for at each moment."""

    def __init__(self, folder: Path, *names: str) -> None:
        self._folder = folder
        self._names = names

    def keep(self, world: str) -> None:
        """Remember everything as it is now."""
        kept = self._folder / "worlds" / world
        kept.mkdir(parents=True)
        _copy([path for name in self._names if (path := self._folder / name).exists()], kept)

    def put_back(self, world: str) -> None:
        """Make everything as it was."""
        for name in self._names:
            _remove(self._folder / name)
        _copy(list((self._folder / "worlds" / world).iterdir()), self._folder)


def _copy(paths: list[Path], to: Path) -> None:
    # Unlike shutil, it keeps the links between snapshots: `clean` counts them.
    subprocess.run(["cp", "-a", "--", *map(str, paths), str(to)], check=True)


def _remove(path: Path) -> None:
    if not path.is_dir():
        return path.unlink(missing_ok=True)
    for folder, _, _ in os.walk(path):
        os.chmod(folder, 0o700)  # what is unpacked is read-only
    shutil.rmtree(path)
