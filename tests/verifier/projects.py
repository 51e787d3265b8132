"""A project whose agents work in a workspace, with a check that runs pytest."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from raymond.workspace import ability
from running import Room

BARE_PYTEST = " ".join(f"-p no:{plugin.name}" for plugin in entry_points(group="pytest11"))
"""Options that keep pytest from importing what is installed beside it, which takes longer than a check does."""


@contextlib.contextmanager
def isolated(path: Path, files: Mapping[str, str], links: Mapping[str, str] = {}) -> Iterator[Room]:
    """A repository with these files and links in one commit; skipped where no step can be isolated."""
    room = Room(path, PYTEST_ADDOPTS=BARE_PYTEST)
    room.environment["PATH"] = f"{Path(sys.executable).parent}:{room.environment['PATH']}"
    if problem := ability.probe(str(path)).problem:
        pytest.skip(f"steps cannot be isolated here: {problem}")
    for name, text in files.items():
        file = room.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
        if "/.bin/" in name:
            file.chmod(0o755)
    for name, target in links.items():
        (room.path / name).symlink_to(target)
    for command in ("init -q -b main", "add -A", "-c user.name=me -c user.email=me@localhost commit -qm one"):
        subprocess.run(["git", *command.split()], cwd=room.path, env=room.environment, check=True)
    try:
        yield room
    finally:
        room.clear()
