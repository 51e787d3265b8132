"""Processes that belong together are found together, and ended together."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from raymond.system import process_tree, processes
from raymond.system.stragglers import end_all
from running import alive, until

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="there is no /proc")

FAMILY = """
sleep 1000 & echo $! > "$1/child"
setsid sh -c 'trap "" TERM; echo $$ > "$0/daemon"; while :; do sleep 0.05; done' "$1" &
(sleep 1000 & echo $! > "$1/orphan")
echo > "$1/ready"; wait
"""
"""A child, one in a session of its own that does not end when asked to, and one whose parent has ended."""


@pytest.fixture
def leader(tmp_path: Path) -> Iterator[int]:
    process = subprocess.Popen(["sh", "-c", FAMILY, "sh", str(tmp_path)], start_new_session=True)
    until(lambda: (tmp_path / "ready").exists() and (tmp_path / "daemon").exists(), "the family")
    until(lambda: all(pid_of(tmp_path, name) for name in ("child", "daemon", "orphan")), "their pids")
    yield process.pid
    for name in ("child", "daemon", "orphan"):
        if alive(pid_of(tmp_path, name)):
            os.kill(pid_of(tmp_path, name), 9)
    process.kill()
    process.wait()


def pid_of(path: Path, name: str) -> int:
    return int((path / name).read_text() or 0)


def test_what_a_process_started_and_its_session_belong_to_it(leader: int, tmp_path: Path) -> None:
    child, daemon, orphan = (pid_of(tmp_path, name) for name in ("child", "daemon", "orphan"))
    assert process_tree.relatives([leader]) >= {leader, child, daemon, orphan}
    assert orphan not in process_tree.relatives([leader], sessions=False)
    assert daemon in process_tree.relatives([leader], sessions=False)
    assert leader not in process_tree.relatives([child]), "a session that another process leads is not its own"
    assert os.getpid() not in process_tree.relatives([os.getpid()])


def test_a_line_of_children_is_followed_to_its_end_as_fast_as_it_can_be(leader: int, tmp_path: Path) -> None:
    child, daemon, orphan = (pid_of(tmp_path, name) for name in ("child", "daemon", "orphan"))
    found = list(process_tree.descent([leader]))
    assert found[0] == leader
    assert {child, daemon} < set(found)
    assert orphan not in found
    assert leader in process_tree.children()


def test_a_session_that_has_lost_its_leader_is_one(leader: int, tmp_path: Path) -> None:
    child, orphan = pid_of(tmp_path, "child"), pid_of(tmp_path, "orphan")
    os.kill(leader, 9)
    os.waitpid(leader, 0)
    assert process_tree.relatives([child]) == {child, orphan}


def test_one_that_was_found_by_its_parent_is_ended_although_that_has_gone_first(
    leader: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "GRACE", 0.2)
    daemon = pid_of(tmp_path, "daemon")
    assert daemon in end_all(lambda: dict.fromkeys(process_tree.relatives([leader]), 1))
    until(lambda: not alive(daemon), "the end of the daemon")
