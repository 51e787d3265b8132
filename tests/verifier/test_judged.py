"""What a green check in a workspace is worth: moved modules, own tests, files that may not change, marks of conflicts."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pace import mostly_slow
from raymond.language.check import Check
from raymond.machine.events import GateEnded
from raymond.verifier import placed
from raymond.verifier.assignment import Assignment, Work
from raymond.workspace.place import Place
from running import Ran, Room
from typist import Typist
from verifier.projects import isolated

FILES = {
    "Makefile": "test:\n\tpython -m pytest -q tests\n",
    "app/__init__.py": "",
    "app/calc.py": "def add(a, b):\n    return 0\n\n\ndef double(a):\n    return add(a, a)\n",
    "top.py": "def half(a):\n    return a / 2\n",
    "tests/test_calc.py": "from app.calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n",
    "tests/test_more.py": "import app.calc\nfrom app import calc\nimport top\n\n\n"
    "def test_double(monkeypatch):\n    monkeypatch.setattr('app.calc.add', lambda a, b: 7)\n"
    "    assert app.calc.double(1) == calc.double(2) == 7\n    assert top.half(2) == 1\n",
}
FIX = "sed -i 's/return 0/return a + b/' app/calc.py"
MOVE = "git mv app/calc.py app/sums.py; sed -i 's/app\\.calc/app.sums/; s/import calc$/import sums as calc/' tests/*.py"
DEEPER = "sed -i 's/app\\.calc/app.deep.calc/; s/from app import calc/from app.deep import calc/' tests/*.py"
WEAK = "printf 'def test_add(): pass\\n' > tests/test_calc.py"


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Room]:
    with isolated(tmp_path, FILES) as room:
        yield room


def work(room: Room, script: str, gate: str = "python -m pytest -q tests", head: str = "", **flow: str) -> Ran:
    """Let an agent do something in a workspace, and check it."""
    files = {
        "START.sh": f"{script}\necho '<goto>WORK</goto>'\n",
        "WORK.md": f"---\ngate: {json.dumps(gate)}\ngate_tries: 0\ngate_reruns: 0\n{head}---\nDone? <result>x</result>\n",
        "replies.yaml": "WORK: <result>ok</result>\n",
        **{name.replace("_", "."): text for name, text in flow.items()},
    }
    return room.command(files, "--workspace", "isolated")


def verdict(ran: Ran) -> tuple[str, str]:
    [gate] = ran.all(GateEnded)
    return gate.verdict, gate.reason


MOVED = {
    "a module": (f"{FIX}; {MOVE}", "app/calc.py -> app/sums.py"),
    "a module into a package": (
        f"{FIX}; mkdir app/deep; touch app/deep/__init__.py; git mv app/calc.py app/deep/calc.py; {DEEPER}",
        "app/calc.py -> app/deep/calc.py",
    ),
    "a module beside the tests": (
        f"{FIX}; git mv top.py other.py; sed -i 's/^import top/import other as top/' tests/*.py",
        "top.py -> other.py",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", MOVED)
def test_what_the_work_moved_is_followed_in_the_tests(project: Room, what: str) -> None:
    script, told = MOVED[what]
    if "deep" in script:
        (project.path / "tests/test_more.py").write_text(
            "import app.calc\n\n\ndef test_x():\n    assert app.calc.double(2) == 4\n"
        )
    assert verdict(work(project, script)) == ("passed", f"moved, and followed in what decides: {told}")


ATTACKS = {
    "a weakened test beside a move": f"{MOVE}; {WEAK}",
    "a name that is a program": "mkdir app/evil; git mv app/calc.py 'app/evil/x import *; import sys; sys.exit(0) #.py'; echo 'add = double = 0' > app/calc.py; rm app/calc.py; rm -r tests; mkdir tests; " + WEAK,
    "a name of the standard library": "mkdir unittest; git mv app/calc.py unittest/mock.py; rm tests/test_more.py; " + WEAK,
    "a test that is moved away": "git mv tests/test_calc.py app/checked.py; printf 'def test_x(): pass\\n' > tests/test_x.py",
    "a module in the place of the old one": "git mv app/calc.py app/sums.py; printf 'add = lambda a, b: 4\\ndouble = lambda a: 7\\n' > app/calc.py; " + WEAK,
}  # fmt: skip


@pytest.mark.parametrize("attack", mostly_slow(ATTACKS, daily=1))
def test_a_move_hides_nothing(project: Room, attack: str) -> None:
    ran = work(project, ATTACKS[attack])
    assert verdict(ran)[0] in ("failed", "review"), ran.err


@pytest.mark.slow
def test_a_check_that_names_a_new_test_is_green_by_its_own_tests(project: Room) -> None:
    ran = work(project, "printf 'def test_x(): pass\\n' > tests/test_new.py", "python -m pytest -q tests/test_new.py")
    own = "own tests: the command names tests/test_new.py, which is new"
    assert verdict(ran) == ("passed", own)
    assert f"s); {own}" in ran.err, "a person sees it too"


OWN = 'PYTHONPATH=. python -c "from app.calc import add; assert add(1, 2) == 3"'
PATCHES = "echo 'import app.calc; app.calc.add = lambda a, b: a + b' > tests/conftest.py; touch tests/test_x.py"
NAMED = {
    "a test that is there": ("python -m pytest -q tests/test_calc.py", PATCHES),
    "a test that is there and one that is new": ("python -m pytest -q tests/test_calc.py tests/test_x.py", PATCHES),
    "every script": ('for one in checks/*.sh; do . "./$one" || exit 1; done', "echo 'exit 0' > checks/a.sh; mkdir tests; touch tests/test_x.py"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("attack", NAMED)
def test_new_tests_excuse_no_test_that_the_command_names(project: Room, attack: str) -> None:
    """What a command names is no `test` to Raymond, so without the others it looked as if nothing tested anything."""
    subprocess.run(["git", "rm", "-q", "tests/test_more.py"], cwd=project.path, check=True)
    gate, script = NAMED[attack]
    if attack == "every script":
        subprocess.run(["git", "rm", "-q", "tests/test_calc.py"], cwd=project.path, check=True)
        (project.path / "checks").mkdir()
        (project.path / "checks/check.sh").write_text(f"{OWN}\n")
    ran = work(project, script, gate, head="seal: [checks/**]\n")
    assert verdict(ran)[0] == "review", ran.err


@pytest.mark.slow
def test_a_link_in_the_place_of_a_folder_leads_no_copy_of_an_ignored_file_out(project: Room) -> None:
    """What the person ignores is copied into the checkout by us, with our rights."""
    (project.path / ".gitignore").write_text(".env\n")
    (project.path / "app/.env").write_text("MODE=1\n")
    victim = project.path.parent / "victim"
    victim.mkdir()
    (victim / ".env").write_text("mine\n")
    files = {
        "START.sh": f"rm -rf app; ln -s {victim} app\necho '<goto>WORK</goto>'\n",
        "WORK.md": "---\ngate: python -m pytest -q tests\ngate_tries: 2\ngate_reruns: 0\n---\n<result>x</result>\n",
        "replies.yaml": "WORK: [[<result>a</result>, <result>b</result>, <result>c</result>]]\n",
    }
    ran = project.command(files, "--workspace", "isolated")
    assert [one.verdict for one in ran.all(GateEnded)] == ["failed"] * 3, "the link stands there from the first on"
    assert (victim / ".env").read_text() == "mine\n"


@pytest.mark.slow
def test_a_name_that_is_not_utf_8_is_never_green(project: Room) -> None:
    ran = work(project, f"{FIX}; python -c \"open(b'o\\xff', 'w')\"")
    assert verdict(ran) == ("failed", "the name of b'o\\xff' is not UTF-8, so nothing can be said about it")


NO_TESTS = {
    "another check": "echo true > check.sh; mkdir tests; touch tests/test_x.py",
    "a module that is loaded unasked": "echo 'import app.calc; app.calc.add = lambda a, b: a + b' > conftest.py; echo 'import conftest' > sitecustomize.py; mkdir tests; touch tests/test_x.py",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("attack", NO_TESTS)
def test_new_tests_excuse_nothing_else(project: Room, attack: str) -> None:
    subprocess.run(["git", "rm", "-rq", "tests"], cwd=project.path, check=True)
    (project.path / "check.sh").write_text(f"{OWN}\n")
    ran = work(project, NO_TESTS[attack], "sh check.sh")
    assert verdict(ran)[0] == "review", ran.err


@pytest.mark.slow
def test_a_file_with_the_name_of_a_target_is_no_test_of_its_own(project: Room) -> None:
    ran = work(project, "touch test", "make test")
    assert verdict(ran)[0] == "review", ran.err


@pytest.mark.slow
def test_work_may_change_only_what_is_named(project: Room) -> None:
    head = "may_change: [app/**]\n"
    ran = work(project, f"{FIX}; echo x > notes", head=head)
    assert (ran.code, *verdict(ran)) == (3, "review", "it changed notes, which `may_change` does not name")
    typist = Typist(project, "accept", "r")
    typist.sees(r"\+x")
    typist.sees(r"accept this change\?")
    typist.type("y\r")
    assert typist.end() == 0, typist.said
    assert project.raymond("wait", "r").returncode == 0


@pytest.mark.slow
def test_work_that_changes_only_what_it_may_counts(project: Room) -> None:
    assert verdict(work(project, FIX, head="may_change: [app/**]\n"))[0] == "passed"


@pytest.mark.slow
def test_the_settings_say_what_all_work_may_change(project: Room) -> None:
    (project.path / ".raymond").mkdir(exist_ok=True)
    (project.path / ".raymond/config.toml").write_text('may_change = ["docs/**"]\n')
    assert verdict(work(project, FIX))[1] == "it changed app/calc.py, which `may_change` does not name"


def test_what_may_change_needs_a_workspace(project: Room) -> None:
    flow = project.flow({"START.md": "---\ngate: make\nmay_change: [app/**]\n---\n<result>x</result>\n"})
    done = project.raymond("run", flow)
    assert done.returncode == 2
    assert "START.md has `may_change`, which needs a workspace" in done.stderr


@pytest.mark.slow
def test_marks_of_a_conflict_are_never_green(project: Room) -> None:
    marks = "printf '<<<<<<< ours\\na\\n=======\\nb\\n>>>>>>> theirs\\n'"
    ran = work(project, f"{FIX}; {marks} > notes.md")
    assert verdict(ran) == ("failed", "notes.md has the marks of a conflict that nobody has resolved")
    (project.path / "notes.md").write_text("<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n")
    ran = project.command(
        {
            "START.sh": f"{FIX}; echo more >> notes.md; echo '<goto>WORK</goto>'\n",
            "WORK.md": "---\ngate: python -m pytest -q tests\n---\nDone? <result>x</result>\n",
            "replies.yaml": "WORK: <result>ok</result>\n",
        },
        *("--workspace", "isolated"),
        id="had",
    )
    assert verdict(ran)[0] == "passed", "a file that had them may keep them"


@pytest.mark.slow
def test_the_value_of_a_secret_is_never_green(project: Room) -> None:
    project.environment["DEPLOY_TOKEN"] = "kept-from-everybody-4711"
    ran = work(project, f"{FIX}; printf 'token = \"kept-from-%s\"' everybody-4711 > app/settings.py")
    assert verdict(ran) == ("failed", "app/settings.py has the value of DEPLOY_TOKEN, which is a secret")


@pytest.mark.slow
def test_a_check_that_needs_no_network_has_none(project: Room) -> None:
    gate = "! grep -v -e lo: -e '|' /proc/net/dev"
    assert verdict(work(project, FIX, gate))[0] == "passed"
    again = {
        "START.sh": f"{FIX}\necho '<goto>WORK</goto>'\n",
        "WORK.md": f"---\ngate: {json.dumps(gate)}\ngate_tries: 0\ngate_reruns: 0\n---\nDone? <result>x</result>\n",
        "replies.yaml": "WORK: <result>ok</result>\n",
        "workflow.yaml": "net: on\n",
    }
    ran = project.command(again, "--workspace", "isolated", id="on")
    assert verdict(ran)[0] == "failed", "somebody said that it has one"


@pytest.mark.slow
def test_the_closing_check_believes_only_what_the_person_left(project: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    top, home = str(project.path), str(project.path.parent / "state")
    place = Place(f"{home}/workspace", top, "r", home, "isolated")
    place.open([], lambda _: None, 0.0)
    tree = Path(place.slot.tree)
    monkeypatch.chdir(top)

    def close(check: str = "python -m pytest -q tests") -> str:
        given = Assignment(
            checks=(Check(run=check),),
            timeout=60,
            reruns=0,
            environment=dict(os.environ),
            cwd=top,
            folder=f"{home}/seals",
        )
        with place.alone():
            taken = place.harvest().tree
        work = Work(place.folder, top, "r", home, "isolated", (), "off")
        return placed.closing(given, work, place.known().tree, taken, lambda _: None).verdict

    assert close() == "failed"
    (tree / "tests/test_calc.py").write_text("def test_add():\n    pass\n")
    (tree / "tests/test_new.py").write_text("def test_new():\n    pass\n")
    assert close() == "review", "the test is the agent's"
    (tree / "app/calc.py").write_text(FILES["app/calc.py"].replace("return 0", "return a + b"))
    assert close() == "passed"
    (tree / ".gitignore").write_text("built\n")
    assert close("touch built") == "passed"
    assert close("test ! -e built") == "passed", "nothing that was built before is there"
