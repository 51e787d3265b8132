"""A machine that gives no namespaces to anybody: whoever changes what is sealed needs a person, and nothing is lost."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from raymond.machine.events import GateEnded
from running import PATIENCE, Ran, Room

pytestmark = pytest.mark.slow

NONE = "for name in user mnt; do echo 0 > /proc/sys/user/max_${name}_namespaces || exit 99; done"
WITHOUT = ("unshare", "-U", "-r", "sh", "-c", f'{NONE}; exec "$@"', "sh")
"""A user namespace in which no other can be made."""
CHECK = "grep -q right answer.txt || { echo expected right; exit 1; }\n"
EDIT = "echo true > tests/check.sh; echo mine > notes"


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    if not shutil.which("unshare") or subprocess.run([*WITHOUT, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine has no user namespace in which others can be forbidden")
    assert subprocess.run([*WITHOUT, "unshare", "-m", "true"], check=False, capture_output=True).returncode != 0
    room = Room(tmp_path)
    (room.path / "tests").mkdir()
    (room.path / "tests" / "check.sh").write_text(CHECK)
    (room.path / "answer.txt").write_text("wrong\n")
    (room.path / "Makefile").write_text("test:\n\tsh tests/check.sh\n")
    room.settings(f'[backends.mine]\ncommand = ["bash", "{tmp_path}/agent"]\ncost = 0.01\n')
    yield room
    room.clear()


def gated(room: Room, check: str, does: str) -> Ran:
    """A run whose agent does this; after it the tree is as the agent left it."""
    (room.path.parent / "agent").write_text(f"cat > /dev/null; {does}\necho '<result>done</result>'\n")
    policy = f"gate: {check}\ngate_reruns: 0\ngate_tries: 0"
    files = {
        "START.md": f"---\n{policy}\n---\nAnswer, then <result>done</result>.\n",
        "workflow.yaml": "backend: mine\n",
    }
    argv = [*WITHOUT, sys.executable, "-m", "raymond", "run", room.flow(files), "--id", "r"]
    done = subprocess.run(
        argv,
        cwd=room.path,
        env=room.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert not [*(room.folder() / "seals").glob("*.twin")]
    return Ran(room, "r", done.returncode, done.stdout, done.stderr)


def is_left(room: Room) -> None:
    """The tree has what the agent and the project put there, and nothing else."""
    found = {str(path.relative_to(room.path)): path.read_text() for path in room.path.rglob("*") if path.is_file()}
    made = {name: text for name, text in found.items() if not name.startswith(".raymond/")}
    assert made.keys() == {"tests/check.sh", "answer.txt", "Makefile", "notes"}
    assert (made["tests/check.sh"], made["answer.txt"], made["notes"]) == ("true\n", "wrong\n", "mine\n")


def test_an_edited_check_waits_for_a_person(room: Room) -> None:
    ran = gated(room, "make test", EDIT)
    assert (ran.code, ran.out) == (3, ""), ran.err
    [found] = ran.all(GateEnded)
    assert (found.verdict, found.changes, found.twin) == ("not comparable", ["changed tests/check.sh"], "")
    assert found.reason.startswith("the check could not be repeated with the sealed files: ")
    is_left(room)


def test_work_that_leaves_the_check_alone_passes(room: Room) -> None:
    ran = gated(room, "make test", "echo right > answer.txt")
    assert (ran.code, ran.out) == (0, "done\n"), ran.err
    assert [one.verdict for one in ran.all(GateEnded)] == ["passed"]
