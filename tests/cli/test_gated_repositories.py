"""Gates in repositories of every kind, and in none: honest work passes there, and an edited check is reviewed."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from raymond.machine.events import AgentPaused, GateEnded, SealEnded
from raymond.store.home import Home
from raymond.store.project import Project
from running import Ran, Room

pytestmark = pytest.mark.slow

ME = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
COMMIT = "git add -A; git commit -qm done"
PROJECT = """mkdir tests; echo wrong > answer.txt
echo 'grep -q right answer.txt || { echo expected right; exit 1; }' > tests/check.sh
"""
REPOSITORY = f"{PROJECT}git init -qb main .; git add -A; git commit -qm base\n"
CONFLICT = f"""{REPOSITORY}git checkout -qb other; echo other > answer.txt; git commit -qam other
git checkout -q main; echo mine > answer.txt; git commit -qam mine
"""
OTHER = f"mkdir ../other; cd ../other; {REPOSITORY}echo more > more; git add -A; git commit -qm more; cd ../room\n"
SUBMODULE = f"""{OTHER}git init -qb main .
git -c protocol.file.allow=always submodule --quiet add "$PWD/../other" lib; git commit -qm base
"""
LFS = f"""{REPOSITORY}mkdir tests/data; echo '*.bin filter=lfs diff=lfs merge=lfs -text' > .gitattributes
printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:%064d\\nsize 12345\\n' 0 > tests/data/a.bin
git add -A; git commit -qm large
git config filter.lfs.clean 'git-lfs clean -- %f'; git config filter.lfs.smudge 'git-lfs smudge -- %f'
git config filter.lfs.process 'git-lfs filter-process'; git config filter.lfs.required true
"""
PLACES = {
    "no-repository": PROJECT,
    "bare": f"git init -q --bare .; {PROJECT}",
    "shallow": f'{OTHER}git clone -q --depth 1 "file://$PWD/../other" .',
    "submodules": SUBMODULE,
    "lfs": LFS,
    "merge": f"{CONFLICT}! git merge -q other",
    "rebase": f"{CONFLICT}! git rebase -q other",
}
KEEPS = {
    "no-repository": "",
    "bare": "",
    "lfs": "",
    "rebase": "git add -A; git -c core.editor=true rebase --continue",
}
"""How an agent keeps its work where it is not by a simple commit."""


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = Room(tmp_path)
    room.environment.update(ME)
    room.settings(f'[backends.mine]\ncommand = ["bash", "{tmp_path}/agent"]\ncost = 0.01\n')
    yield room
    room.clear()


def bash(room: Room, script: str) -> None:
    done = subprocess.run(
        ["bash", "-ec", script], cwd=room.path, env=room.environment, check=False, capture_output=True
    )
    assert done.returncode == 0, done.stderr


def gated(room: Room, does: str, check: str = "sh tests/check.sh") -> Ran:
    """A run whose agent does this in its directory."""
    Path(room.environment["HOME"], "../agent").write_text(
        f"cat > /dev/null; set -e; {{ {does}\n}} >&2; echo '<result>done</result>'\n"
    )
    policy = f"gate: {check}\ngate_reruns: 0\ngate_tries: 0"
    files = {
        "START.md": f"---\n{policy}\n---\nAnswer, then <result>done</result>.\n",
        "workflow.yaml": "backend: mine\n",
    }
    return room.command(files)


def passed(ran: Ran) -> GateEnded:
    """The gate of honest work, of which nothing is said."""
    assert (ran.code, ran.out) == (0, "done\n"), ran.err
    [found] = ran.all(GateEnded)
    assert (found.verdict, found.reason, found.changes) == ("passed", "", [])
    return found


def reviewed(ran: Ran, path: str, check: str = "sh tests/check.sh") -> GateEnded:
    """The gate of an edited check, which a person has to see."""
    assert (ran.code, ran.out) == (3, ""), ran.err
    [found] = ran.all(GateEnded)
    reason = f"green only with the agent's {path}: as sealed, `{check}` ended with exit code 1"
    assert (found.verdict, found.reason, found.changes) == ("review", reason, [f"changed {path}"])
    assert [event.reason for event in ran.all(AgentPaused)] == [reason]
    return found


@pytest.mark.parametrize("kind", [kind for kind in PLACES if kind != "submodules"])
def test_honest_work_passes(room: Room, kind: str) -> None:
    bash(room, PLACES[kind])
    found = passed(gated(room, f"echo right > answer.txt; {KEEPS.get(kind, COMMIT) or 'true'}"))
    assert len(found.tree) == 40
    assert len(found.commit) == (0 if kind in ("no-repository", "bare") else 40)


@pytest.mark.parametrize("kind", [kind for kind in PLACES if kind != "submodules"])
def test_an_edited_check_is_reviewed(room: Room, kind: str) -> None:
    bash(room, PLACES[kind])
    reviewed(gated(room, "echo true > tests/check.sh"), "tests/check.sh")
    assert (room.path / "tests" / "check.sh").read_text() == "true\n", "the agent's work is left as it is"


@pytest.mark.parametrize("keeps", ["true", COMMIT, f"{COMMIT}; cd ..; {COMMIT}"], ids=["edited", "committed", "twice"])
def test_the_files_of_a_submodule_are_sealed(room: Room, keeps: str) -> None:
    bash(room, SUBMODULE)
    check = "cd lib && sh tests/check.sh"
    reviewed(gated(room, f"cd lib; echo true > tests/check.sh; {keeps}", check), "lib/tests/check.sh", check)


@pytest.mark.parametrize("keeps", ["true", COMMIT, f"{COMMIT}; cd ..; {COMMIT}"], ids=["edited", "committed", "twice"])
def test_honest_work_in_a_submodule_passes(room: Room, keeps: str) -> None:
    bash(room, SUBMODULE)
    passed(gated(room, f"cd lib; echo right > answer.txt; {keeps}", "cd lib && sh tests/check.sh"))


@pytest.mark.parametrize("does", ["echo right > answer.txt; git commit -qam done", "echo true > tests/check.sh"])
def test_a_run_inside_of_a_submodule_has_that_as_its_repository(room: Room, does: str) -> None:
    bash(room, SUBMODULE)
    room.path = room.path / "lib"
    room.project = Project(Home(str(room.home)), str(room.path))
    head = (room.path.parent / ".git/modules/lib/refs/heads/main").read_text().strip()
    ran = gated(room, does)
    _ = passed(ran) if "right" in does else reviewed(ran, "tests/check.sh")
    [sealed] = ran.all(SealEnded)
    assert sealed.commit == head


def test_a_pointer_of_lfs_among_the_tests_is_sealed_as_it_is(room: Room) -> None:
    """No filter runs: none is installed here, and git would fail without it."""
    bash(room, LFS)
    check = "grep -q 'size 1$' tests/data/a.bin"
    reviewed(gated(room, "echo size 1 > tests/data/a.bin", check), "tests/data/a.bin", check)


def test_a_test_in_conflict_is_for_a_person_when_an_agent_has_merged_it(room: Room) -> None:
    bash(room, REPOSITORY)
    change = "sed -i '1i# {0}' tests/check.sh; git commit -qam {0}"
    bash(room, f"git checkout -qb other; {change.format('other')}; git checkout -q main; {change.format('mine')}")
    bash(room, "! git merge -q other")
    ran = gated(room, f"sed -i '/^[<=>]/d' tests/check.sh; echo right > answer.txt; {COMMIT}")
    assert ran.code == 3, ran.err
    [found] = ran.all(GateEnded)
    assert (found.verdict, found.changes) == ("review", ["changed tests/check.sh"])
    assert "  | -<<<<<<< HEAD\n" in room.raymond("review", "r").stdout


@pytest.mark.parametrize(
    "does", ["git fetch -q --unshallow", "git fetch -q --depth 1 && git reset -q --soft origin/main"]
)
def test_a_shallow_history_may_grow(room: Room, does: str) -> None:
    bash(room, PLACES["shallow"])
    passed(gated(room, f"echo right > answer.txt; {does}; {COMMIT}"))


def test_an_interrupted_rebase_may_be_given_up(room: Room) -> None:
    bash(room, PLACES["rebase"])
    passed(gated(room, f"git rebase --abort; echo right > answer.txt; {COMMIT}"))


@pytest.mark.parametrize("does", ["echo right > answer.txt", "echo true > tests/check.sh"], ids=["honest", "edited"])
def test_no_git_program_is_needed(room: Room, does: str) -> None:
    """A repository, but nobody who could be asked about it: it is sealed without what only git knows."""
    bash(room, REPOSITORY)
    room.environment["PATH"] = _without_git(room.path.parent / "bin")
    ran = gated(room, does)
    found = passed(ran) if "right" in does else reviewed(ran, "tests/check.sh")
    assert (len(found.commit), found.tree) == (40, "")


def _without_git(folder: Path) -> str:
    """A PATH with every program of this machine but git."""
    folder.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for name in os.listdir(place) if os.path.isdir(place) else ():
            if name != "git" and not os.path.lexists(folder / name):
                (folder / name).symlink_to(os.path.join(place, name))
    return str(folder)
