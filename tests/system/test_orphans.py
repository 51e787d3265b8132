"""Processes whose parents have ended belong to whoever adopts them, and end with it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hopping import LINE, hopper
from raymond.system import process_tree
from raymond.system.processes import alive, start_time
from raymond.system.stragglers import Orphans
from running import until, zombie

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="there is no /proc")


@pytest.fixture
def orphans() -> Iterator[Orphans]:
    made = Orphans()
    yield made
    made.let_go()


def left(path: Path, script: str) -> int:
    """The pid of a process in a session of its own whose parent has ended."""
    out = path / "pid"
    subprocess.run(["sh", "-c", f"(setsid sh -c '{script}' >/dev/null 2>&1 &)", "sh", str(out)], check=True)
    until(lambda: out.exists() and out.read_text().endswith("\n"), "the orphan")
    pid = int(out.read_text())
    until(lambda: (found := process_tree.look(pid)) is not None and found.parent == os.getpid(), "its new parent")
    return pid


def says(path: Path, script: str) -> str:
    return f"{script.replace('SAY', f'echo $$ > {path}/pid')}"


def ended(pid: int, began: str) -> bool:
    return not alive(pid, began)


def test_an_orphan_is_ended_and_not_waited_for_any_longer(
    orphans: Orphans, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("raymond.system.stragglers.GRACE", 3600.0)
    pid = left(tmp_path, says(tmp_path, "SAY; exec sleep 600"))
    began = start_time(pid)
    assert orphans.end() == (1, 0)
    assert ended(pid, began)


def test_one_that_ignores_a_polite_signal_is_ended_and_what_it_leaves_behind_too(
    orphans: Orphans, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("raymond.system.stragglers.GRACE", 0.2)
    script = f'trap "" TERM; setsid sleep 600 & echo $! > {tmp_path}/child; SAY; while :; do sleep 600; done'
    pid = left(tmp_path, says(tmp_path, script))
    child = int((tmp_path / "child").read_text())
    began = start_time(pid), start_time(child)
    orphans.end()
    assert ended(pid, began[0])
    assert ended(child, began[1])


def test_a_deep_line_of_orphans_is_ended_as_a_whole(
    orphans: Orphans, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each one that is killed leaves another one behind."""
    monkeypatch.setattr("raymond.system.stragglers.GRACE", 0.2)
    deep = 'trap "" TERM; if [ $1 -gt 0 ]; then sh -c "$2" sh $(($1 - 1)) "$2"; else echo $$ > "$PID"; sleep 600; fi'
    env = {"DEEP": deep, "PID": str(tmp_path / "pid"), "PATH": os.environ["PATH"]}
    subprocess.run(["sh", "-c", '(setsid sh -c "$DEEP" sh 150 "$DEEP" >/dev/null 2>&1 &)'], env=env, check=True)
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().endswith("\n"), "the last of them")
    pid = int((tmp_path / "pid").read_text())
    line = [(one.pid, start_time(one.pid)) for one in process_tree.line(pid)]
    below = line[: [one for one, _ in line].index(os.getpid())]
    assert len(below) > 150
    count, remaining = orphans.end()
    assert (count >= len(below), remaining) == (True, 0)
    assert not any(alive(*one) for one in below)


STUBBORN = 'trap "" TERM; SAY; while :; do sleep 600; done'


def test_only_for_one_that_does_not_end_when_asked_to_more_is_done(
    orphans: Orphans, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("raymond.system.stragglers.GRACE", 0.05)
    done: list[str] = []
    left(tmp_path, says(tmp_path, STUBBORN))
    assert orphans.end(enclose=lambda: done.append("stubborn"))[1] == 0
    (tmp_path / "pid").unlink()
    monkeypatch.setattr("raymond.system.stragglers.GRACE", 3600.0)
    left(tmp_path, says(tmp_path, "SAY; exec sleep 600"))
    assert orphans.end(enclose=lambda: done.append("polite")) == (1, 0)
    assert done == ["stubborn"]


def test_what_is_left_when_nobody_wants_to_go_on_is_counted(
    orphans: Orphans, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("raymond.system.stragglers.GRACE", 0.05)
    pid = left(tmp_path, says(tmp_path, STUBBORN))
    remaining = orphans.end(goes_on=lambda seconds: seconds < 0)[1]
    assert remaining >= 1
    assert alive(pid, start_time(pid))
    assert orphans.end()[1] == 0
    assert process_tree.look(pid) is None


def test_children_of_our_own_session_and_those_that_were_there_before_go_on() -> None:
    with (
        subprocess.Popen(["cat"], stdin=subprocess.PIPE, start_new_session=True) as before,
        subprocess.Popen(["cat"], stdin=subprocess.PIPE) as ours,
    ):
        made = Orphans()
        made.end()
        assert (before.poll(), ours.poll()) == (None, None)
        made.let_go()
        assert before.stdin
        assert ours.stdin
        before.stdin.close()
        ours.stdin.close()


def renumbered(pid: int, began: str) -> int:
    """A child in a session of its own that has the number of one that is gone, and began later."""
    for _ in range(100):
        Path("/proc/sys/kernel/ns_last_pid").write_text(str(pid - 1))
        child = os.posix_spawn("/bin/sleep", ["sleep", "600"], {}, setsid=True)
        if child == pid and start_time(child) != began:
            return child
        os.kill(child, 9)
        os.waitpid(child, 0)
    pytest.skip("somebody else has got the number")


@pytest.mark.skipif(not os.access("/proc/sys/kernel/ns_last_pid", os.W_OK), reason="numbers cannot be chosen")
def test_one_that_has_the_number_of_one_that_was_there_before_is_ended() -> None:
    before = subprocess.Popen(["cat"], stdin=subprocess.PIPE, start_new_session=True)
    began = start_time(before.pid)
    made = Orphans()
    before.communicate()
    child = renumbered(before.pid, began)
    assert made.end() == (1, 0)
    assert process_tree.look(child) is None
    made.let_go()


def test_an_orphan_that_has_ended_is_reaped_and_a_watched_child_is_not(orphans: Orphans, tmp_path: Path) -> None:
    pid = left(tmp_path, says(tmp_path, f"SAY; until [ -e {tmp_path}/go ]; do sleep 0.01; done"))
    child = subprocess.Popen([sys.executable, "-SIc", ""], start_new_session=True)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    orphans.reap({child.pid})
    assert child.wait() == 0
    (tmp_path / "go").touch()

    def gone() -> bool:
        orphans.reap(set())
        return process_tree.look(pid) is None

    until(gone, "the end")


def test_a_child_of_somebody_else_keeps_no_orphan_from_being_reaped(orphans: Orphans, tmp_path: Path) -> None:
    helper = subprocess.Popen(["true"])
    until(lambda: zombie(helper.pid), "the end of the helper")
    pid = left(tmp_path, says(tmp_path, "SAY"))
    until(lambda: zombie(pid), "the end of the orphan")
    orphans.reap(set())
    assert process_tree.look(pid) is None
    assert helper.wait() == 0


def test_what_is_spared_is_not_ended(orphans: Orphans, tmp_path: Path) -> None:
    pid = left(tmp_path, says(tmp_path, "SAY; exec sleep 600"))
    assert orphans.end([pid]) == (0, 0)
    assert alive(pid, start_time(pid))
    assert orphans.end() == (1, 0)


def test_a_child_that_ended_before_keeps_nobody_from_being_reaped(tmp_path: Path) -> None:
    before = subprocess.Popen(["true"])
    os.waitid(os.P_PID, before.pid, os.WEXITED | os.WNOWAIT)
    made = Orphans()
    pid = left(tmp_path, says(tmp_path, f"SAY; until [ -e {tmp_path}/go ]; do sleep 0.01; done"))
    (tmp_path / "go").touch()

    def gone() -> bool:
        made.reap(set())
        return process_tree.look(pid) is None

    until(gone, "the end")
    made.let_go()
    before.wait()


@pytest.mark.slow
@pytest.mark.parametrize("gap", [0.0005, 0.0, 0.002, 0.005, 0.02])
def test_one_that_keeps_starting_itself_anew_is_ended(
    gap: float, orphans: Orphans, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is seen of it is gone when it is seen again."""
    monkeypatch.setattr("raymond.system.stragglers.GRACE", 0.1)
    with hopper(tmp_path / "stop", gap) as one:
        _, remaining = orphans.end()
        assert (remaining, one.is_gone(1.0)) == (0, True)


@pytest.mark.slow
@pytest.mark.parametrize("gap", [0.002, 0.0, 0.01])
def test_a_line_that_grows_at_its_end_is_ended(
    gap: float, orphans: Orphans, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is longer than what is killed in the time in which it grows, and only its end matters."""
    monkeypatch.setattr("raymond.system.stragglers.GRACE", 0.1)
    with hopper(tmp_path / "stop", gap, script=LINE) as one:
        _, remaining = orphans.end()
        assert (remaining, one.is_gone(1.0)) == (0, True)
