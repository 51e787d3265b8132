"""A check of work in a workspace: cheats do not count, honest work does, and nobody is asked about it."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pace import mostly_slow
from raymond.machine.events import GateEnded, StepStarted
from running import Ran, Room, until
from typist import Typist
from verifier.projects import isolated

GATE = "make test"
FILES = {
    ".gitignore": "__pycache__/\n.pytest_cache/\nbuild/\n*.egg-info/\nnode_modules/\n.env\n",
    "Makefile": "test: build/ok\n\t. ./.env; python -m pytest -q tests\n\tnode_modules/.bin/lint\n"
    "\tsh ci/check.sh\n"
    "build/ok: calc/core.py\n\tmkdir -p build && grep -q documented calc/core.py && touch build/ok\n",
    "LICENSE": "Yours.\n",
    "ci/check.sh": '. "$(dirname "$0")/lib.sh"\nis_clean "LICENSE*"\n',
    "ci/lib.sh": 'is_clean() { test -z "$(git status --porcelain "$1")"; }\n',
    "cases/zero.py": "from calc import add\n\n\ndef test_zero():\n    assert add(0, 0) == 0\n",
    "calc/__init__.py": "from calc.core import add\n",
    "calc/core.py": "def add(a, b):\n    return 0\n",
    "tests/test_add.py": "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n",
    "pyproject.toml": '[project]\nname = "calc"\nversion = "1"\n',
}
IGNORED = {
    ".env": "export MODE=strict\n",
    "calc.egg-info/PKG-INFO": "Name: calc\nVersion: 1\n",
    "node_modules/.bin/lint": "#!/bin/sh\ngrep -q linted calc/core.py\n",
}
FIX = "printf 'def add(a, b):\\n    return a + b  # documented, linted\\n' > calc/core.py"
"""The work."""
PATCH = "import calc, calc.core\\ncalc.add = calc.core.add = lambda a, b: a + b\\n"
CHEATS = {
    "a weakened test": "echo 'def test_add(): pass' > tests/test_add.py; NOP",
    "nothing": "true",
    "a removed test": "rm tests/test_add.py; echo 'def test_x(): pass' > tests/test_x.py; NOP",
    "a new test that patches the code": f"printf '{PATCH}def test_x(): pass\\n' > tests/test_aa.py; NOP",
    "a new test that patches the runner": "printf 'import _pytest.python as p\\np.Function.runtest = lambda self: None\\ndef test_x(): pass\\n' > tests/test_aa.py; NOP",
    "a new conftest": f"printf '{PATCH}' > tests/conftest.py; NOP",
    "a conftest above the tests": f"printf '{PATCH}' > conftest.py; NOP",
    "settings of the runner": "printf '[pytest]\\naddopts = --co\\n' > pytest.ini; NOP",
    "settings in a manifest": "printf '[tool.pytest.ini_options]\\naddopts = \"--co\"\\n' >> pyproject.toml; NOP",
    "another recipe": "printf 'test:\\n\\ttrue\\n' > Makefile",
    "a recipe that comes first": "printf 'test:\\n\\ttrue\\n' > GNUmakefile",
    "what a script of the check sources": f"{FIX}; echo Mine. > LICENSE; echo 'is_clean() {{ true; }}' > ci/lib.sh",
    "what a linked test leads to": "printf 'def add(a, b):\\n    return 3  # documented, linted\\n' > calc/core.py; echo 'def test_zero(): pass' > cases/zero.py",
    "a file with the name of a target": "NOP; touch -d tomorrow test",
    "a module in the place of the runner": "mkdir pytest; echo 'print(1)' > pytest/__main__.py; touch pytest/__init__.py; NOP",
    "a module in the place of the runner that goes when it has run": "mkdir pytest; echo 'import os; os.unlink(\"pytest/__init__.py\")' > pytest/__main__.py; touch pytest/__init__.py; NOP",
    "a package in the place of the code": "mkdir tests/calc; echo 'add = lambda a, b: a + b' > tests/calc/__init__.py; NOP",
    "an entry point": "printf '[pytest11]\\nx = calc.patch\\n' > calc.egg-info/entry_points.txt; printf 'import calc, calc.core\\ncalc.add = calc.core.add = lambda a, b: a + b\\n' > calc/patch.py; NOP",
    "a forged product": f"{FIX}; sed -i s/documented,// calc/core.py; mkdir -p build; touch -d tomorrow build/ok",
    "an installed program": f"{FIX}; sed -i s/linted// calc/core.py; printf '#!/bin/sh\\ntrue\\n' > node_modules/.bin/lint",
    "a program in the home": "mkdir -p ~/.local/bin; printf '#!/bin/sh\\nexit 0\\n' > ~/.local/bin/python; chmod +x ~/.local/bin/python; NOP",
    "a program in a folder of the PATH": "mkdir bin; printf '#!/bin/sh\\nexit 0\\n' > bin/python; chmod +x bin/python; NOP",
    "an ignored file that is sourced": "echo 'python() { true; }' > .env; NOP",
    "a compiled module": "python -c \"import calc\"; python -c \"import py_compile; open('/tmp/x.py','w').write('def add(a, b):\\n    return a + b\\n'); py_compile.compile('/tmp/x.py', __import__('importlib.util').util.cache_from_source('calc/core.py'), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)\"; NOP",
    "a change that the index of git hides": f"{FIX}; echo Mine. > LICENSE; git update-index --assume-unchanged LICENSE",
    "a file that git is told to ignore": f"{FIX}; touch LICENSE.new; echo 'LICENSE.*' >> .git/info/exclude",
    "a setting of git that hides a file": f"{FIX}; touch LICENSE.new; git config status.showUntrackedFiles no",
    "a filter of git that hides a change": f"{FIX}; echo Stole. > LICENSE; echo 'LICENSE filter=x' > .git/info/attributes; git config filter.x.clean 'echo Yours.'",
    "a rewritten history": f"{FIX}; echo Mine. > LICENSE; git -c user.name=x -c user.email=x@x commit -qa --amend -m other",
    "a link in the place of the tests": "rm -r tests; mkdir other; echo 'def test_x(): pass' > other/test_x.py; ln -s other tests; NOP",
    "a file that make builds its recipe from": "printf 'test:\\n\\ttrue\\n' > Makefile.sh",
    "a link in the place of the runner": "mkdir other; touch other/__init__.py other/__main__.py; ln -s other pytest; NOP",
    "a process that goes on": "(while :; do cp tests/test_add.py /tmp/t; echo 'def test_add(): pass' > tests/test_add.py; sleep 0.01; done) > /dev/null 2>&1 & NOP",
}  # fmt: skip
NOP = "sed -i 's/return 0/return 0  # documented, linted/' calc/core.py"
"""Makes all of the check green but its tests."""


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Room]:
    with isolated(tmp_path, {**FILES, **IGNORED}, {"tests/test_zero.py": "../cases/zero.py"}) as room:
        room.environment["PATH"] = f"{room.path}/bin:{room.environment['PATH']}"
        yield room


def work(room: Room, script: str, *flags: str) -> Ran:
    """Let an agent do something in a workspace, and check it."""
    flow = {
        "START.sh": f"{script.replace('NOP', NOP)}\necho '<goto>WORK</goto>'\n",
        "WORK.md": f"---\ngate: {GATE}\ngate_tries: 0\ngate_reruns: 0\n---\nDone? <result>x</result>\n",
        "replies.yaml": "WORK: <result>ok</result>\n",
    }
    return room.command(flow, "--workspace", "isolated", *flags)


@pytest.mark.slow
@pytest.mark.parametrize("cheat", CHEATS)
def test_a_cheat_would_count_where_the_agent_works(project: Room, cheat: str) -> None:
    home = project.path.parent / "home"
    path = f"{home}/.local/bin:{project.environment['PATH']}"
    script = f"{CHEATS[cheat].replace('NOP', NOP)}\n{GATE}; code=$?; kill $! 2>&-; exit $code"
    done = subprocess.run(
        ["sh", "-c", script],
        cwd=project.path,
        env={**project.environment, "HOME": str(home), "PATH": path},
        capture_output=True,
        text=True,
    )
    assert (done.returncode == 0) == (cheat != "nothing"), done.stdout + done.stderr


@pytest.mark.parametrize("cheat", mostly_slow(CHEATS))
def test_a_cheat_does_not_count(project: Room, cheat: str) -> None:
    ran = work(project, CHEATS[cheat])
    [gate] = ran.all(GateEnded)
    assert gate.verdict in ("failed", "review"), ran.err
    assert ran.code in (1, 3)


def test_honest_work_counts_and_what_is_checked_is_what_is_saved(project: Room) -> None:
    """Other honest work is in `test_honest.py`."""
    ran = work(project, f"{FIX}; echo x > new")
    [gate] = ran.all(GateEnded)
    assert (gate.verdict, ran.code) == ("passed", 0), ran.err
    tip = subprocess.run(
        ["git", "rev-parse", "refs/raymond/r/tip^{tree}"], cwd=project.path, capture_output=True, text=True, check=True
    )
    assert gate.tree == tip.stdout.strip()


@pytest.mark.slow
def test_nothing_that_a_check_writes_is_work(project: Room) -> None:
    (project.path / "tests/test_add.py").write_text(
        "from calc import add\n\n\ndef test_add():\n    open('left', 'w').close()\n    assert add(1, 2) == 3\n"
    )
    ran = work(project, FIX)
    assert ran.all(GateEnded)[0].verdict == "passed"
    names = subprocess.run(
        ["git", "ls-tree", "-r", "--name-only", "refs/raymond/r/tip"], cwd=project.path, capture_output=True, text=True
    )
    assert "left" not in names.stdout.splitlines()
    assert not os.path.exists(project.path / "left")


def prompt(gate: str) -> dict[str, str]:
    text = f"---\ngate: {gate}\ngate_tries: 0\ngate_reruns: 0\n---\nDo it. <result>x</result>\n"
    return {"START.md": text, "replies.yaml": "START: {text: <result>ok</result>, writes: {new: x}}\n"}


@pytest.mark.slow
def test_a_check_that_its_checkout_lacks_something_for_is_refused_before_the_first_turn(project: Room) -> None:
    ran = project.command(prompt("cat node_modules/.bin/lint build/data"), "--workspace", "isolated")
    assert (ran.code, ran.run.turns) == (1, 1), "it is red here, too"
    (project.path / "build").mkdir()
    (project.path / "build/data").write_text("x")
    ran = project.command(prompt("cat node_modules/.bin/lint build/data"), "--workspace", "isolated", id="again")
    assert (ran.code, ran.run.turns) == (1, 0)
    why = "is green here, and red where it would run: not there: build (let the check make it, or `carry: [build]`)"
    assert f"{why}; then start a new run" in ran.err


@pytest.mark.slow
def test_a_gate_is_tried_where_a_run_would_run_it(project: Room) -> None:
    (project.path / "build").mkdir()
    (project.path / "build/data").write_text("x")
    flow = project.flow(prompt("cat build/data"))
    here = project.raymond("gate", flow)
    assert (here.returncode, here.stdout.splitlines()[-1]) == (0, "START.md: passed")
    there = project.raymond("gate", flow, "--workspace", "isolated")
    assert there.returncode == 6
    assert there.stdout.endswith("where it would run: not there: build (let the check make it, or `carry: [build]`)\n")
    for where in ("before anybody works, without a network", "before anybody works", "in your directory"):
        assert f"$ cat build/data ({where})\n" in there.stdout
    carried = project.flow({**prompt("cat build/data"), "workflow.yaml": "workspace: isolated\ncarry: [build]\n"})
    done = project.raymond("gate", carried)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "START.md: passed"), done.stdout
    assert project.raymond("run", carried, "--dry-run", "--run-gates").returncode == 0
    left = subprocess.run(["git", "for-each-ref", "refs/raymond"], cwd=project.path, capture_output=True, text=True)
    assert left.stdout == ""
    assert not list(Path(project.home).glob("gate-*"))


@pytest.mark.slow
def test_in_a_copy_a_check_has_a_copy_of_its_own(project: Room) -> None:
    flow = {
        "START.sh": f"{FIX}; mkdir -p build; touch -d tomorrow build/ok; echo '<goto>WORK</goto>'\n",
        "WORK.md": prompt(GATE)["START.md"],
        "replies.yaml": "WORK: <result>ok</result>\n",
    }
    ran = project.command(flow, "--workspace", "copy")
    assert (ran.code, ran.all(GateEnded)[0].verdict) == (0, "passed"), ran.err
    ran = project.command(
        {**flow, "START.sh": "NOP\necho '<goto>WORK</goto>'\n".replace("NOP", NOP)}, "--workspace", "copy", id="cheat"
    )
    assert (ran.code, ran.all(GateEnded)[0].verdict) == (1, "failed")


@pytest.mark.slow
def test_what_a_person_accepts_is_vouched_for_from_then_on(project: Room) -> None:
    weaker = "def test_add():\n    pass\n"
    flow = {
        "START.md": prompt(GATE)["START.md"].replace("<result>x</result>", "<goto>NEXT</goto>"),
        "NEXT.md": prompt(GATE)["START.md"],
        "replies.yaml": f"START: {{text: <goto>NEXT</goto>, writes: {{tests/test_add.py: {json.dumps(weaker)}, calc/core.py: '# documented, linted'}}}}\nNEXT: <result>ok</result>\n",
    }  # fmt: skip
    (project.path / "calc/__init__.py").write_text("")
    (project.path / "tests/test_zero.py").unlink()
    ran = project.command(flow, "--workspace", "isolated")
    [gate] = ran.all(GateEnded)
    assert (ran.code, gate.verdict, gate.changes) == (3, "review", ["changed tests/test_add.py"])
    typist = Typist(project, "accept", "r")
    typist.sees(r"accept this change\?")
    typist.type("y\r")
    assert typist.end() == 0, typist.said
    assert project.raymond("wait", "r").returncode == 0
    gates = [one for one in project.events("r") if isinstance(one, GateEnded)]
    assert [one.verdict for one in gates] == ["review", "passed", "passed"]
    assert gates[1].vouched != gate.seal
    assert gates[2].changes == []


@pytest.mark.slow
def test_a_gate_waits_until_no_other_agent_is_at_work_in_the_tree(project: Room) -> None:
    flow = {
        "START.sh": f"{FIX}; echo '<fork>SLOW</fork><goto>WORK</goto>'\n",
        "SLOW.sh": "while [ ! -e done ]; do sleep 0.05; done; echo '<result>slow</result>'\n",
        "WORK.md": prompt(GATE)["START.md"],
        "replies.yaml": "WORK: <result>ok</result>\n",
    }
    with project.start("run", project.flow(flow), "--id", "r", "--workspace", "isolated") as live:
        tree = project.folder() / "workspace/1/tree"
        live.sees("WORK.md")
        until(lambda: any(isinstance(one, StepStarted) and one.phase == "gate" for one in project.events("r")), "gate")
        (tree / "done").touch()
        live.process.wait(60)
    gates = [one for one in project.events("r") if isinstance(one, GateEnded)]
    assert [one.verdict for one in gates] == ["passed"]


@pytest.mark.slow
def test_what_a_check_lacks_is_named_with_no_more_than_the_line_that_gives_it(project: Room) -> None:
    tool = Path(project.environment["HOME"], ".config/tool")
    tool.mkdir(parents=True)
    (tool / "conf").write_text("x")
    project.environment["TOOL_TOKEN"] = "a-token-of-a-tool"
    (tool / "run").write_text("#!/bin/sh\n")
    (tool / "run").chmod(0o755)
    for gate, line in (
        ("~/.config/tool/run", f"{tool}/run is hidden: `lend: [~/.config/tool]`"),
        ("cat ~/.config/tool/conf", f"{tool}/conf is hidden: `lend: [~/.config/tool]`"),
        ('test -n "$TOOL_TOKEN"', "not there: TOOL_TOKEN (`lend: [TOOL_TOKEN]`)"),
    ):
        flow = project.flow({**prompt(gate), "workflow.yaml": "workspace: isolated\n"})
        done = project.raymond("gate", flow)
        assert (done.returncode, done.stdout.splitlines()[-1].endswith(line)) == (6, True), done.stdout
        lends = project.flow({**prompt(gate), "workflow.yaml": f"lend: [{line.rpartition('[')[2].strip(']`)')}]\n"})
        done = project.raymond("gate", lends, "--workspace", "isolated")
        assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "START.md: passed"), done.stdout


@pytest.mark.slow
def test_a_check_that_is_red_everywhere_says_what_its_place_lacks(project: Room) -> None:
    (project.path / "build").mkdir()
    (project.path / "build/price").write_text("12")
    ran = project.command(prompt("cat build/price; test -e done"), "--workspace", "isolated")
    assert (ran.code, ran.run.turns) == (1, 1)
    assert "main * it is red for another reason there: not there: build (let the check make it, or" in ran.err


@pytest.mark.slow
def test_what_is_lent_must_be_there(project: Room) -> None:
    for lend, why in (("~/nope", "~/nope does not exist"), ("NOPE_TOKEN", "the variable NOPE_TOKEN is not set")):
        flow = project.flow({**prompt("echo"), "workflow.yaml": f"lend: [{lend}]\n"})
        done = project.raymond("run", flow, "--workspace", "isolated", "--dry-run")
        assert (done.returncode, f"error: lend: {why}" in done.stderr) == (2, True), done.stderr
