"""Rule 4: when a tree can be taken alone, all processes of the steps in it are gone, however they ended."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pace import mostly_slow
from raymond.errors import WorkspaceError
from raymond.system.processes import start_time
from running import until
from workspace.checkout import Checkout
from workspace.person import Person, daily

WAYS = {
    "in the background": "sleep 1000 &",
    "nohup": "nohup sleep 1000 >/dev/null 2>&1 &",
    "setsid": "setsid sleep 1000 >/dev/null 2>&1 </dev/null &",
    "twice forked": "(setsid sh -c 'sleep 1000 & disown 2>/dev/null; exit' &)",
    "deaf": "python3 -c 'import signal, time; [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 3, 15)]; time.sleep(1000)' &",
    "nested namespaces": "unshare -Urpf --mount-proc sleep 1000 2>/dev/null &",
}


def sleepers(person: Person) -> list[int]:
    """The processes of a step that would stay for long."""
    found = []
    for pid in person.processes():
        with contextlib.suppress(OSError):
            if b"1000" in Path("/proc", str(pid), "cmdline").read_bytes():
                found.append(pid)
    return found


@pytest.mark.parametrize("way", mostly_slow(WAYS))
@daily
def test_what_a_step_leaves_running_is_gone_when_it_has_ended(person: Person, way: str) -> None:
    person.begin()
    person.inside(f"{WAYS[way]}\necho started > started")
    assert sleepers(person) == []
    assert person.taken() == {"started": "A"}


@pytest.mark.parametrize("victim", ["the outer process", "the first process inside", "the command", "all at once"])
def test_after_a_kill_nothing_of_the_step_lives_when_the_tree_is_taken(person: Person, victim: str) -> None:
    person.begin()
    with started(person, "(setsid sleep 1000 &) ; echo up > up; sleep 1000") as outer:
        until(lambda: (person.tree / "up").exists(), "the step")
        init = int((next((person.slot / "inside").iterdir())).read_text("ascii").split()[0])
        assert sleepers(person)
        for pid in {
            "the outer process": [outer],
            "the first process inside": [init],
            "the command": [pid for pid in sleepers(person) if pid not in (outer, init)],
            "all at once": [outer, init, *sleepers(person)],
        }[victim]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        assert person.taken() == {"up": "A"}  # this takes the tree alone
        assert sleepers(person) == []


def test_a_tree_is_not_taken_while_the_first_process_of_a_step_ends(checkout: Checkout) -> None:
    checkout.begin().open()
    inside = Path(checkout.place.slot.inside, "1")
    with subprocess.Popen(["sleep", "1000"]) as sleeper:
        try:
            inside.write_text(f"{sleeper.pid} {start_time(sleeper.pid)}\n", "ascii")
            with pytest.raises(WorkspaceError):
                checkout.harvest()
        finally:
            sleeper.kill()
    assert checkout.taken() == {}
    assert not inside.exists()


def test_a_tree_with_a_step_in_it_is_not_harvested(person: Person) -> None:
    person.begin()
    with started(person, "echo up > up; sleep 1000"):
        until(lambda: (person.tree / "up").exists(), "the step")
        assert person.harvest() == {"refused": f"a step is still at work in {person.tree}"}


@contextlib.contextmanager
def started(person: Person, script: str) -> Iterator[int]:
    """A step that lasts: the pid of its outer process. Whatever is left is ended after the block."""
    person.make_tree()
    live = subprocess.Popen(
        [*person.before, *person.visiting(["/bin/sh", "-c", script])],
        cwd="/",
        env=person.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield until(lambda: next(iter(_children(live.pid)), 0), "the outer process")
    finally:
        for pid in person.processes():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        live.wait()


def _children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()]
    return []
