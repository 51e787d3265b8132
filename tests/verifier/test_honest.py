"""Honest work in a workspace: it counts, and hardly ever is a person asked. `test_room.py` has a case for every day."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from raymond.machine.events import GateEnded
from running import Ran, Room
from verifier.projects import isolated

FILES = {
    ".gitignore": "__pycache__/\n.pytest_cache/\nenv/\n",
    "Makefile": "test:\n\tpython -m pytest -q tests\n",
    "pyproject.toml": '[project]\nname = "calc"\nversion = "1"\ndependencies = []\n',
    "requirements.txt": "",
    "install.sh": 'for name in $(cat requirements.txt); do mkdir -p "env/lib/$name"; done\n',
    "calc/__init__.py": "",
    "calc/core.py": "def add(a, b):\n    return 0\n\n\ndef show():\n    return 'calc 1'\n",
    "calc/old.py": "x = 1\n",
    "tests/conftest.py": "import pytest\n\n\n@pytest.fixture\ndef two():\n    return 2\n",
    "tests/test_add.py": "from calc.core import add\n\n\ndef test_add(two):\n    assert add(1, two) == 3\n",
    "tests/test_old.py": "from calc.old import x\n\n\ndef test_old():\n    assert x == 1\n",
    "tests/test_show.py": "from calc.core import show\n\n\ndef test_show():\n"
    "    assert show() == open('tests/snapshots/show.txt').read()\n",
    "tests/snapshots/show.txt": "calc 1",
}
FIX = "sed -i 's/return 0/return a + b/' calc/core.py"
GIT = "git config user.name x; git config user.email x@x"
NEW_TEST = "printf 'from calc.core import add\\ndef test_more(): assert add(2, 2) == 4\\n' > tests/test_more.py"

CHANGES: dict[str, str] = {
    "a plain fix": "true",
    "a dependency, with its lock file": "sed -i 's/dependencies = ../dependencies = [\"click\"]/' pyproject.toml; echo click==8 > requirements.lock",
    "a package.json and its lock file": "echo '{\"dependencies\": {\"a\": \"1\"}}' > package.json; echo '{}' > package-lock.json",
    "a moved test": "mkdir tests/unit; git mv tests/test_add.py tests/unit/test_add.py",
    "a new fixture, and a test that needs it": "printf '\\n\\n@pytest.fixture\\ndef six():\\n    return 6\\n' >> tests/conftest.py; printf 'from calc.core import add\\ndef test_six(six): assert add(3, 3) == six\\n' > tests/test_six.py",
    "a formatter over everything": "for file in $(git ls-files '*.py'); do printf '\\n# formatted\\n' >> $file; done",
    "generated code and its generator": "printf 'print(\"y = 2\")\\n' > generate.py; python generate.py > calc/made.py",
    "a renamed package": "git mv calc sums; sed -i 's/calc\\./sums./' tests/*.py; sed -i 's/\"calc\"/\"sums\"/' pyproject.toml",
    "a snapshot, as asked": "sed -i 's/calc 1/calc 2/' calc/core.py tests/snapshots/show.txt",
    "300 files": "mkdir calc/many; for n in $(seq 300); do echo \"x = $n\" > calc/many/m$n.py; done",
    "a marker, and settings of coverage": "printf '[tool.pytest.ini_options]\\nmarkers = [\"slow\"]\\n[tool.coverage.run]\\nbranch = true\\n' >> pyproject.toml",
    "a script of npm": "echo '{\"scripts\": {\"start\": \"node x\"}}' > package.json",
    "an old module, removed with its test, as asked": "git rm -q calc/old.py tests/test_old.py",
    "a rule in .gitignore, and what it hides": "echo reports/ >> .gitignore; mkdir reports; echo x > reports/a",
    "a first conftest, for a new test": "mkdir tests/new; printf 'import pytest\\n@pytest.fixture\\ndef ten(): return 10\\n' > tests/new/conftest.py; printf 'def test_ten(ten): assert ten == 10\\n' > tests/new/test_ten.py",
    "another specification, and its test, as asked": "sed -i 's/== 3/== 4/' tests/test_add.py; sed -i 's/a + b/a + b + 1/' calc/core.py",
    "files of other tools": "mkdir -p .github/workflows .claude/skills/x; echo 'on: push' > .github/workflows/ci.yml; echo '*.sh text eol=lf' > .gitattributes; echo 'repos: []' > .pre-commit-config.yaml; echo 'FROM scratch' > Dockerfile; echo 'services: {}' > compose.yaml; echo 'Be kind.' > CLAUDE.md; echo x > .claude/skills/x/SKILL.md",
    "a new version and target": "sed -i 's/version = \"1\"/version = \"2\"/' pyproject.toml; printf 'clean:\\n\\trm -rf build\\n' >> Makefile",
    "test data that looks like secrets, and a large one": "printf 'TOKEN = \"AKIA%s\"\\ndef test_token(): assert TOKEN\\n' IOSFODNN7EXAMPLE > tests/test_token.py; mkdir tests/data; printf -- '-----BEGIN PRIVATE KEY-----\\nMIIB\\n-----END PRIVATE KEY-----\\n' > tests/data/key.pem; head -c 3M /dev/urandom > tests/data/asset",
    "something installed, and a server that goes on": "mkdir -p env/lib/more; echo x > env/lib/more/x; (sleep 1000 > /dev/null 2>&1 &)",
    "an identity, a tag, a fetch and a worktree": f"{GIT}; git tag v2; git fetch -q . HEAD; git worktree add -q /tmp/other HEAD; git worktree remove --force /tmp/other",
    "a merge": f"{GIT}; git checkout -q -b side; echo x > side; git add -A; git commit -qm side; git checkout -q -; git merge -q side",
    "a stash and a branch": f"{GIT}; git stash -q; git checkout -q -b x; git stash pop -q",
    "a package of tests": "touch tests/__init__.py",
    "a module called like one of Python": "echo 'x = 1' > calc/platform.py; echo 'x = 1' > statistics.py",
    "commits that are rebased": f"{GIT}; for n in 1 2; do echo $n > f$n; git add -A; git commit -qm $n; done; git rebase -q HEAD~1",
    "a test with parameters": "printf 'import pytest\\nfrom calc.core import add\\n\\n\\n@pytest.mark.parametrize(\"a\", [1, 2])\\ndef test_add(a):\\n    assert add(a, 2) == a + 2\\n' > tests/test_add.py",
    "a new test": NEW_TEST,
}  # fmt: skip
MAY = {
    "a snapshot, as asked": ["tests/snapshots/**"],
    "an old module, removed with its test, as asked": ["tests/test_old.py"],
    "another specification, and its test, as asked": ["tests/test_add.py"],
}
"""What the item says that it may change."""
ASKED = ("a renamed package",)
"""Where a person has to decide."""


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Room]:
    with isolated(tmp_path, {**FILES, "env/pyvenv.cfg": ""}) as room:
        yield room


def work(room: Room, *items: tuple[str, Sequence[str]]) -> Ran:
    """Let agents do one thing after the other in a workspace, each checked; with each, what it may change."""
    flow = {"workflow.yaml": "setup: sh install.sh\n"}
    replies = ""
    for number, (script, may) in enumerate(items):
        name = f"S{number}" if number else "START"
        then = f"<goto>S{number + 1}</goto>" if number + 1 < len(items) else "<result>x</result>"
        flow[f"{name}.sh"] = f"{script}\necho '<goto>W{number}</goto>'\n"
        head = f"gate: make test\ngate_tries: 0\ngate_reruns: 0\nunseal: {json.dumps(list(may))}\n"
        flow[f"W{number}.md"] = f"---\n{head}---\nDone? {then}\n"
        replies += f"W{number}: {then}\n"
    return room.command({**flow, "replies.yaml": replies}, "--workspace", "isolated")


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_honest_work_counts(project: Room, change: str) -> None:
    ran = work(project, (f"{FIX}; {CHANGES[change]}", MAY.get(change, ())))
    [gate] = ran.all(GateEnded)
    assert gate.verdict == ("review" if change in ASKED else "passed"), f"{gate.reason}\n{ran.err}"


def test_hardly_any_of_it_needs_a_person() -> None:
    assert len(ASKED) < len(CHANGES) / 10


NIGHT = (
    ("a test that the code fails", "printf 'from calc.core import half\\n\\n\\ndef test_half():\\n    assert half(4) == 2\\n' > tests/test_half.py; printf '\\n\\ndef half(a):\\n    return a // 2\\n' >> calc/core.py; " + FIX),
    ("the code of another", "sed -i 's/a \\/\\/ 2/a \\/ 2/' calc/core.py"),
    ("a dependency", "echo left >> requirements.txt; sed -i 's/dependencies = ../dependencies = [\"left\"]/' pyproject.toml"),
    ("its use", "printf 'import os\\n\\n\\ndef test_left():\\n    assert os.path.isdir(\"env/lib/left\")\\n' > tests/test_left.py"),
    ("a snapshot", "sed -i 's/calc 1/calc 2/' calc/core.py tests/snapshots/show.txt"),
    ("a moved test", "mkdir tests/unit; mv tests/test_half.py tests/unit/test_half.py"),
    ("a new conftest", "printf 'import pytest\\n\\n\\n@pytest.fixture\\ndef four():\\n    return 4\\n' > tests/unit/conftest.py"),
    ("a test that uses it", "printf 'from calc.core import half\\n\\n\\ndef test_four(four):\\n    assert half(four) == 2\\n' > tests/unit/test_four.py"),
    ("a moved module", "git mv calc/core.py calc/sums.py; sed -i 's/calc\\.core/calc.sums/' tests/*.py tests/unit/*.py"),
    ("an old module, removed with its test", "git rm -q calc/old.py tests/test_old.py"),
)  # fmt: skip


@pytest.mark.slow
def test_a_night_of_ten_items_that_depend_on_each_other_asks_nobody(project: Room) -> None:
    may = {"a snapshot": ["tests/snapshots/**"], "an old module, removed with its test": ["tests/test_old.py"]}
    ran = work(project, *((script, may.get(what, ())) for what, script in NIGHT))
    gates = [(what, gate.verdict, gate.reason) for (what, _), gate in zip(NIGHT, ran.all(GateEnded), strict=False)]
    assert [verdict for _, verdict, _ in gates] == ["passed"] * len(NIGHT), gates
    assert ran.code == 0
