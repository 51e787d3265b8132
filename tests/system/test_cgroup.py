"""What a process in a cgroup of its own starts is found there, whatever it makes of itself, also when that process is dead."""

import json
import os
import subprocess
import sys
import textwrap
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from hopping import command as hopper_command
from raymond.system import cgroup
from raymond.system.cgroup import Cgroups
from raymond.system.stragglers import end_all
from running import until

pytestmark = [
    pytest.mark.skipif(not cgroup.delegated(), reason="no cgroup is delegated to this process"),
    pytest.mark.slow,
]
AWAY = "import subprocess; subprocess.run(['sh', '-c', '(setsid env -i sleep 1000 >/dev/null 2>&1 & echo $!)'], start_new_session=True)"
"""Start a process without environment, in a session of its own, whose parent has ended."""
ENTER = "cgroups.enter('r', orphans.below)"


class Driver:
    """A process that makes a cgroup, and what it has said."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.file = folder / "cgroups"
        self._process: subprocess.Popen[str] | None = None

    def start(self, *lines: str, before: str = "") -> "Driver":
        """Do these lines, then wait; `before` is done by a shell that then becomes the process."""
        code = f"""
        import json, os, sys
        from raymond.system import cgroup
        from raymond.system.cgroup import Cgroups
        from raymond.system.stragglers import Orphans
        orphans, cgroups = Orphans(), Cgroups({str(self.file)!r})
        """
        whole = "\n".join([textwrap.dedent(code), *lines, "print('ready', flush=True)", "sys.stdin.read()"])
        argv = ["sh", "-c", f'{before}\nexec "$@"', "sh", sys.executable, "-c", whole]
        self._process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self._process.stdout
        self.said = [line.strip() for line in iter(self._process.stdout.readline, "ready\n") if line]
        return self

    @property
    def group(self) -> str:
        """The one that it made last."""
        return self.file.read_text().splitlines()[-1].split(" ", 2)[2]

    def kill(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()

    def found(self) -> set[int]:
        return Cgroups(str(self.file)).left()


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Driver]:
    made = Driver(tmp_path)
    yield made
    made.kill()
    for pid in made.found():
        os.kill(pid, 9)
    until(lambda: not made.found(), "the end of all")
    Cgroups(str(made.file)).tidy()


@pytest.fixture
def foreign() -> Iterator[Path]:
    """A cgroup that somebody else has made."""
    made = Path(cgroup.current(), f"foreign-{uuid.uuid4().hex}")
    made.mkdir()
    yield made
    until(lambda: not list(cgroup.members(str(made))), "its end")
    for inner in made.glob("raymond-*"):
        inner.rmdir()
    made.rmdir()


def test_what_hides_from_everything_else_is_found_when_its_driver_is_dead(driver: Driver) -> None:
    driver.start(ENTER, AWAY)
    driver.kill()
    assert driver.found() == set(map(int, driver.said))
    assert len(driver.said) == 1


def test_what_was_started_before_is_taken_along(driver: Driver) -> None:
    driver.start(AWAY, ENTER)
    driver.kill()
    assert driver.found() == set(map(int, driver.said))


def test_what_is_in_a_cgroup_below_is_found(driver: Driver) -> None:
    driver.start(ENTER, AWAY)
    below = Path(driver.group, "below")
    below.mkdir()
    (below / "cgroup.procs").write_text(driver.said[0])
    driver.kill()
    assert driver.found() == set(map(int, driver.said))


def test_what_shares_the_session_of_the_driver_is_not_a_step(driver: Driver) -> None:
    """It delivers a notification, perhaps."""
    driver.start(ENTER, "import subprocess; print(subprocess.Popen(['sleep', '1000'], stdout=2).pid)")
    driver.kill()
    (pid,) = map(int, driver.said)
    assert list(cgroup.members(driver.group)) == [pid]
    assert driver.found() == set()
    os.kill(pid, 9)
    until(lambda: not list(cgroup.members(driver.group)), "its end")


def test_a_driver_that_leaves_comes_back_and_leaves_nothing(driver: Driver) -> None:
    driver.start("before = cgroup.current()", ENTER, "print(cgroup.current())", "cgroups.leave()", "print(before)")
    group, before = driver.said
    assert os.path.dirname(group) == before
    assert not os.path.exists(group)
    assert not driver.file.exists()


@pytest.fixture
def hopping(tmp_path: Path) -> Iterator[str]:
    """Lines that start a process which keeps starting itself anew, and wait until it does; it ends with the test."""
    stop = tmp_path / "stop"
    argv = ["sh", "-c", '"$@" >/dev/null 2>&1 &', "sh", *hopper_command(stop, 0.0005)]
    yield f"""
import subprocess, time
subprocess.run({argv!r}, start_new_session=True)
while not os.path.exists({f"{stop}.hops"!r}): time.sleep(0.001)
"""
    stop.touch()


def test_what_keeps_starting_itself_anew_is_killed_when_its_driver_leaves(driver: Driver, hopping: str) -> None:
    driver.start(ENTER, hopping, "print(cgroup.current())", "cgroups.leave()")
    assert not os.path.exists(driver.said[0]), "one that is not empty cannot be removed"
    assert not driver.file.exists()


def test_a_driver_that_leaves_spares_steps_that_go_on(driver: Driver) -> None:
    start = "step = subprocess.Popen(['sh', '-c', 'setsid sleep 1000 & wait'], stdout=2, start_new_session=True)"
    ready = "while len(list(cgroup.members(cgroup.current()))) < 3: pass"
    driver.start(ENTER, "import subprocess", start, ready, "cgroups.leave([step.pid])", "print(step.pid)")
    assert len(driver.found()) == 2
    assert int(driver.said[0]) in driver.found()
    assert "frozen 0" in Path(driver.group, "cgroup.events").read_text()


def test_what_keeps_starting_itself_anew_stands_still_while_it_is_looked_for(driver: Driver, hopping: str) -> None:
    driver.start(ENTER, hopping)
    driver.kill()
    cgroups = Cgroups(str(driver.file))
    with cgroups.still():
        first = cgroups.left()
        assert first
        assert cgroups.left() == first
    end_all(lambda: dict.fromkeys(cgroups.left(), 0), cgroups.still)
    cgroups.tidy()
    assert not driver.file.exists()


def test_one_that_is_not_empty_is_kept_and_found_by_the_next_driver(driver: Driver) -> None:
    driver.start(ENTER, AWAY)
    pid, first = int(driver.said[0]), driver.group
    driver.kill()
    driver.start(ENTER, AWAY, "print(json.dumps(list(cgroups.left())))", "cgroups.leave(orphans.below())")
    assert json.loads(driver.said[1]) == [pid], "not what is in its own: that is its own to end"
    second = driver.group
    assert first != second
    assert driver.found() == {pid, int(driver.said[0])}
    os.kill(pid, 9)
    until(lambda: pid not in driver.found(), "the end of the first")
    Cgroups(str(driver.file)).tidy()
    assert not os.path.exists(first)
    assert driver.group == second


def test_a_cgroup_inside_another_of_ours_is_ended_with_it_and_not_the_other_way_round(
    driver: Driver, tmp_path: Path
) -> None:
    inner = tmp_path / "inner"
    driver.start(ENTER, f"inner = Cgroups({str(inner)!r})", "inner.enter('i', lambda: [])", AWAY)
    own = inner.read_text().split()[2]
    driver.kill()
    assert os.path.dirname(own) == driver.group
    assert driver.found() == Cgroups(str(inner)).left() == set(map(int, driver.said))


def test_what_killed_drivers_have_left_empty_is_removed_by_the_next_one(driver: Driver, foreign: Path) -> None:
    os.setxattr(foreign, "user.delegate", b"1")
    left, new, other = (foreign / name for name in ("raymond-x-0123abcd", "raymond-y-0123abcd", "raymond-web"))
    for path in (left, new, other):
        path.mkdir()
    os.utime(left, (0, 0))
    os.utime(other, (0, 0))
    driver.start(ENTER, before=IN.format(foreign))
    assert [path.exists() for path in (left, new, other)] == [False, True, True]
    driver.kill()


NEST = """
os.chdir(PATH)
for _ in range(1100):
    os.mkdir("a")
    os.chdir("a")
"""
"""Make cgroups in each other, more of them than calls or the names of a path can be."""


def nested(group: str) -> None:
    done = subprocess.run([sys.executable, "-SIc", f"import os\nPATH = {group!r}{NEST}"], check=False)
    assert done.returncode == 0


def test_cgroups_in_each_other_are_looked_through_however_many_there_are(driver: Driver) -> None:
    driver.start(ENTER, AWAY)
    group = driver.group
    nested(group)
    driver.kill()
    assert driver.found() == set(map(int, driver.said))
    os.kill(int(driver.said[0]), 9)
    until(lambda: not driver.found(), "its end")
    Cgroups(str(driver.file)).tidy()
    assert not os.path.exists(group)


def test_what_somebody_has_nested_keeps_nobody_else_from_having_one(driver: Driver, foreign: Path) -> None:
    os.setxattr(foreign, "user.delegate", b"1")
    left = foreign / "raymond-x-0123abcd"
    left.mkdir()
    nested(str(left))
    os.utime(left, (0, 0))
    driver.start(ENTER, "print(cgroup.current())", before=IN.format(foreign))
    assert os.path.dirname(driver.said[0]) == str(foreign)
    assert not left.exists()
    driver.kill()


def copied(path: str, folder: Path) -> Path:
    """An ordinary folder that looks like a cgroup."""
    made = folder / os.path.basename(path)
    made.mkdir()
    (made / "cgroup.procs").write_bytes(Path(path, "cgroup.procs").read_bytes())
    return made


def linked(path: str, folder: Path) -> Path:
    """A path to a folder that is reached by more links to links than calls can be in each other."""
    (folder / "1500").symlink_to(os.path.dirname(path))
    for number in range(1500):
        (folder / str(number)).symlink_to(folder / str(number + 1))
    return folder / "0" / os.path.basename(path)


@pytest.mark.parametrize("word", ["boot", "session", "long", "form", "half", "outside", "way round", "null", "links"])
def test_a_line_that_is_damaged_or_of_an_earlier_boot_names_nothing(word: str, driver: Driver) -> None:
    driver.start(ENTER, AWAY)
    driver.kill()
    whole = driver.file.read_text()
    boot, session, path = whole.split()
    broken = {
        "boot": f"x{boot} {session} {path}",
        "session": f"{boot} x {path}",
        "form": f"{boot} {session} {os.path.dirname(path)}",
        "half": f"{boot} {session}",
        "long": f"{boot} {session.zfill(5000)} {path}",
        "outside": f"{boot} {session} {copied(path, driver.file.parent)}",
        "way round": f"{boot} {session} {os.path.dirname(path)}/./{os.path.basename(path)}",
        "null": f"{boot} {session} {os.path.dirname(path)}/\0/{os.path.basename(path)}",
        "links": f"{boot} {session} {cgroup.current()}/../../../..{linked(path, driver.file.parent)}",
    }
    driver.file.write_text(broken[word])
    assert driver.found() == set()
    driver.file.write_text(whole)
    assert driver.found()


def test_a_run_takes_none_for_its_own_that_has_another_name(driver: Driver) -> None:
    driver.start(ENTER, AWAY)
    driver.kill()
    assert Cgroups(str(driver.file), "r").left()
    assert not Cgroups(str(driver.file), "other").left()
    assert not Cgroups(str(driver.file), "r-2").left()


def test_what_is_no_number_among_members_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "cgroup.procs").write_text(f"abc\n7\n{'1' * 5000}\n")
    assert list(cgroup.members(str(tmp_path))) == [7]


IN = 'echo $$ > "{}/cgroup.procs"'


def test_a_cgroup_of_somebody_else_is_left_alone(driver: Driver, foreign: Path) -> None:
    driver.start(ENTER, "print(cgroup.current())", before=IN.format(foreign))
    assert driver.said == [str(foreign)]
    assert not driver.file.exists()
    driver.kill()


def test_one_that_systemd_has_handed_over_is_used(driver: Driver, foreign: Path) -> None:
    try:
        os.setxattr(foreign, "user.delegate", b"1")
    except OSError:
        os.setxattr(foreign, "trusted.delegate", b"1")
    driver.start(ENTER, "print(cgroup.current())", before=IN.format(foreign))
    assert os.path.dirname(driver.said[0]) == str(foreign)
    driver.kill()


def test_one_further_up_that_was_handed_over_says_nothing(driver: Driver, foreign: Path) -> None:
    """It is that of a whole session, and its owner is the systemd of the user."""
    os.setxattr(foreign, "user.delegate", b"1")
    below = foreign / "raymond.scope"
    below.mkdir()
    driver.start(ENTER, "print(cgroup.current())", before=IN.format(below))
    assert driver.said == [str(below)]
    driver.kill()
    until(lambda: not list(cgroup.members(str(below))), "its end")
    below.rmdir()


def test_a_cgroup_that_takes_no_processes_is_done_without(driver: Driver, foreign: Path) -> None:
    """Below one whose threads were divided up, a new cgroup cannot be used."""
    os.setxattr(foreign, "user.delegate", b"1")
    (foreign / "cgroup.type").write_text("threaded")
    driver.start(ENTER, "print(cgroup.current())", before=IN.format(foreign))
    assert driver.said == [str(foreign)]
    assert not driver.file.exists()
    assert not list(foreign.glob("raymond-*"))
    driver.kill()
