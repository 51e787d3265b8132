"""Crash order: a driver that is killed at any moment loses no work, and leaves nothing half done."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from running import until
from workspace.person import Person

pytestmark = pytest.mark.slow


@contextlib.contextmanager
def driving(person: Person, *args: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A command that is not waited for; it is ended after the block."""
    live = subprocess.Popen(
        [*person.before, sys.executable, "-m", "raymond", *args],
        cwd=person.project,
        env=person.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield live
    finally:
        live.kill()
        live.wait()


def test_a_step_that_outlives_its_driver_ends_as_it_would_have(person: Person) -> None:
    person.begin()
    flow = person.flow(
        "echo up > up; until [ -e go ]; do sleep 0.02; done; echo more > more; echo '<result>done</result>'"
    )
    with driving(person, "run", flow, "--id", "r", "--workspace", "isolated") as live:
        [up] = until(lambda: list(person.raymond_home.rglob("tree/up")), "the step")
        live.send_signal(signal.SIGKILL)
        live.wait()
    person.write(up.parent / "go")
    done = person.raymond("resume", "r")
    assert done.returncode == 0, done.stderr
    assert sorted(person.git("ls-tree", "--name-only", "refs/raymond/r/tip", "go", "more", "up").split()) == [
        "go",
        "more",
        "up",
    ]
    assert list(person.raymond_home.rglob("tree")) == []


@pytest.mark.parametrize("seed", range(5))
def test_a_run_that_is_killed_at_chance_moments_saves_its_work_once(anyone: Person, seed: int) -> None:
    person, chance = anyone, random.Random(seed)
    person.begin({f"d/f{n}": f"{n}\n" for n in range(200)}).furnish()
    person.write("README", "uncommitted\n")
    before = person.possessions()
    script = "echo 1 >> README; rm d/f1*; echo new > new; echo '<result>done</result>'"
    args = ["run", person.flow(script), "--id", "r", "--workspace", "isolated"]
    for _ in range(5):
        with driving(person, *args) as live:
            until_then = time.monotonic() + chance.uniform(0.2, 1.2)
            while live.poll() is None and time.monotonic() < until_then:
                os.sched_yield()
        if list(person.raymond_home.rglob("runs/r/journal.jsonl")):
            args = ["resume", "r"]
    done = person.raymond(*args)
    if "--workspace" not in args and done.returncode != 0:
        assert "completed" in person.raymond("status", "r").stdout + done.stderr
    # A step that was cut off is done again, on what it had done: the line may be there more than once.
    assert set(person.saved("README").splitlines()) == {"uncommitted", "1"}
    listed = person.git("ls-tree", "-r", "--name-only", "refs/raymond/r/tip").split()
    assert "new" in listed
    assert not [name for name in listed if name.startswith("d/f1")]
    person.git("fsck", "--strict")
    assert person.possessions() == before
    assert person.raymond("apply", "r").returncode == 0
    assert (person.project / "README").read_text("utf-8") == person.saved("README")
