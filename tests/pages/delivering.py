"""A machine on which the example of events is installed as its files say, in a home of its own."""

import os
import shutil
import sys
from pathlib import Path

from running import Room

EVENTS = Path(__file__).parents[2] / "examples" / "events"
RESULT = "bug: greeting: correct the typing error in the first line\n"
ADA = "/home/ada"
"""The home that the files name."""


class Machine(Room):
    """`~/.local/bin/raymond`, and a project with the workflow in it; commands are typed in the project."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        home = self.ada = Path(self.environment["HOME"])
        self.path.rmdir()
        (home / "project" / "workflows").mkdir(parents=True)
        self.path.symlink_to(home / "project")
        shutil.copytree(EVENTS / "workflow", home / "project" / "workflows" / "events")
        command = home / ".local" / "bin" / "raymond"
        command.parent.mkdir(parents=True)
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m raymond "$@"\n', "utf-8")
        command.chmod(0o755)
        self.searched = f"{command.parent}{os.pathsep}/usr/bin{os.pathsep}/bin"
        self.project = type(self.project)(self.project.home, str(home / "project"))

    def here(self, text: str) -> str:
        """A file of the example, with the home of this machine."""
        return text.replace(ADA, str(self.ada))

    @property
    def mark(self) -> dict[str, str]:
        """By which what is left running is found; nothing else of the environment of the tests."""
        return {"TEST_ROOM": self.environment["TEST_ROOM"]}

    def ended(self, key: str) -> tuple[int, str]:
        """How the run of a key ends."""
        done = self.raymond("wait", key)
        return done.returncode, done.stdout
