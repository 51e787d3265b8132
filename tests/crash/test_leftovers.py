"""What steps leave running stays while the run is driven and after its driver was killed, and is ended with it."""

import os
from pathlib import Path

import pytest

from crash import runs
from crash.torture import ID, Place, alive, until

SERVER = "setsid sleep 1000 > /dev/null 2>&1 & echo $! > server; echo '<goto>USE.sh</goto>'"
"""A script that leaves a server running."""
USE = "echo x >> uses; if [ ! -e open ]; then cat gate; fi; grep -q sleep /proc/$(cat server)/cmdline && echo '<result>it lives</result>'"
"""A script that waits at a gate, then looks for the server, which is no zombie."""


class Scene(Place):
    """A run whose first step leaves something running, and whose second one waits at a gate."""

    def reach(self, server: str = SERVER, use: str = USE, *options: str) -> None:
        """Start the run; it is at the gate."""
        os.mkfifo(self.room / "gate")
        flow = runs.workflow(self.room.parent / "flow", START_sh=server, USE_sh=use)
        self.command = self.start("run", str(flow), "--id", ID, *options)
        until(lambda: (self.room / "uses").exists() or self.command.ended, "the second step")

    def pid(self, name: str = "server") -> int:
        return int((self.room / name).read_text())


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_what_a_finished_step_left_running_is_there_after_a_crash(scene: Scene) -> None:
    scene.reach()
    scene.command.kill()
    (scene.room / "open").touch()

    done = scene.resume().wait()

    assert (done.code, done.out) == (0, "it lives\n"), done.err
    assert not alive(scene.pid())
    assert not scene.marked()
