"""What agents do to a check, and what Raymond says: honest work passes untouched, and no cheat counts."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from raymond.verifier import private_git
from verifier.desk import Desk

PYTEST = f"PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 {sys.executable} -m pytest -q -p no:cacheprovider"
CALC = "def double(x):\n    return x + x + 1\n"
FIX = "printf 'def double(x):\\n    return x + x\\n' > calc.py"
PYTHON = {
    "calc.py": CALC,
    "tests/test_calc.py": (
        "import sys, pathlib\nsys.path.insert(0, str(pathlib.Path(__file__).parent.parent))\n"
        "from calc import double\n\n\ndef test_double():\n    assert double(2) == 4\n"
    ),
    "pyproject.toml": '[project]\nname = "x"\nversion = "1"\ndependencies = []\n',
    ".gitignore": "*.log\n.venv/\n__pycache__/\n",
}
MAKE = {
    "Makefile": "test:\n\tsh scripts/check.sh\n",
    "scripts/check.sh": "grep -q right answer.txt\n",
    "answer.txt": "wrong\n",
}
RIGHT = "echo right > answer.txt"
NPM = {
    "package.json": '{"name": "x", "scripts": {"test": "node --test"}, "dependencies": {}}\n',
    "sum.js": "exports.sum = (a, b) => a - b;\n",
    "sum.test.js": (
        "const {test} = require('node:test'); const assert = require('node:assert');\n"
        "const {sum} = require('./sum.js');\ntest('sum', () => assert.equal(sum(1, 2), 3));\n"
    ),
}


def python(path: Path) -> Desk:
    return Desk(path, PYTHON, f"{PYTEST} tests")


def make(path: Path) -> Desk:
    return Desk(path, MAKE, "make test")


# --- honest work


@pytest.mark.slow
@pytest.mark.parametrize(
    "script",
    [
        FIX,
        f"{FIX}; printf 'def test_more():\\n    pass\\n' > tests/test_more.py",
        f"""{FIX}; printf '[project]\\nname = "x"\\nversion = "1"\\ndependencies = ["left-pad"]\\n' > pyproject.toml""",
        f"{FIX}; sed -i 's/    assert double(2) == 4/    assert double(2)==4/' tests/test_calc.py",
        f"{FIX}; git add -A; git commit -qm done",
        f"{FIX}; git checkout -q -b work; git commit -qam done; git commit -q --amend -m better",
        f"{FIX}; git config user.name me; git remote add origin /nowhere; echo x > notes.log",
        f"{FIX}; mkdir json_tools; touch json_tools/__init__.py helpers.py",
        f"{FIX}; find . -name '*.py' -exec sed -i 's/$/  /' {{}} +",
    ],
    ids=["work", "test", "dependency", "reformatted", "commit", "amend", "settings", "modules", "formatter"],
)
def test_honest_work_passes_untouched(tmp_path: Path, script: str) -> None:
    found = python(tmp_path).after(script)
    assert (found.verdict, found.reason) == ("passed", "")


@pytest.mark.slow
def test_a_reformatted_test_is_named(tmp_path: Path) -> None:
    found = python(tmp_path).after(f"{FIX}; echo '# a comment' >> tests/test_calc.py")
    assert (found.verdict, found.changes) == ("passed", ("changed tests/test_calc.py",))
    assert found.twin == "overlay"


def test_a_check_may_need_ignored_files_and_write_files(tmp_path: Path) -> None:
    desk = Desk(tmp_path, {".gitignore": "data/\n", "a": ""}, "test -e data/x && echo ran >> tests/report.txt")
    (desk.tree / "data").mkdir()
    (desk.tree / "data" / "x").touch()
    (desk.tree / "tests").mkdir()
    (desk.tree / "tests" / "report.txt").write_text("before\n")
    found = desk.after("echo work > a")
    assert (found.verdict, found.changes) == ("passed", ("changed tests/report.txt",))


def test_tracked_files_that_the_check_itself_wrote_are_named(tmp_path: Path) -> None:
    files = {".gitignore": "cache\n", "a.txt": "", "b": "", "c.txt": ""}
    desk = Desk(tmp_path, files, "echo x > a.txt; rm c.txt; echo x > cache; echo x > new; echo x > made.txt")
    found = desk.after("echo work > b; echo x > made.txt; echo x > cache")
    assert (found.verdict, found.wrote) == ("passed", ("a.txt", "c.txt"))


def test_no_copies_of_the_work_tree_stay_in_the_folder_of_the_run(tmp_path: Path) -> None:
    desk = Desk(tmp_path, {"a": "", "big": "x" * 1_000_000}, "true")
    first = desk.after("echo work > a; echo more >> big")
    again = desk.after("echo more >> big")
    assert len(first.tree) == len(again.tree) == 40
    assert first.tree != again.tree
    desk.bash("git add -A; git commit -qm done")
    said = subprocess.run(["git", "write-tree"], cwd=desk.tree, capture_output=True, text=True, check=True)
    assert said.stdout.strip() == again.tree, "it is the hash that git itself gives this tree"
    assert sum(path.stat().st_size for path in desk.folder.rglob("*") if path.is_file()) < 100_000


@pytest.mark.slow
def test_tests_that_an_earlier_state_wrote_are_sealed_though_nobody_committed_them(tmp_path: Path) -> None:
    desk = python(tmp_path)
    desk.write("tests/test_new.py", "def test_new():\n    assert open('made').read() == 'right'\n")
    found = desk.after(f"{FIX}; printf right > made")
    assert (found.verdict, found.changes) == ("passed", ())
    again = desk.after("printf wrong > made; echo 'def test_new(): pass' > tests/test_new.py")
    assert (again.verdict, again.changes) == ("review", ("changed tests/test_new.py",))


# --- a change that a person has to see


@pytest.mark.slow
def test_a_change_that_the_task_needs_is_accepted_as_it_was_seen_and_no_other(tmp_path: Path) -> None:
    desk = python(tmp_path)
    found = desk.after(f"{FIX.replace('x + x', 'x * 3')}; sed -i 's/== 4/== 6/' tests/test_calc.py")
    assert (found.verdict, found.changes) == ("review", ("changed tests/test_calc.py",))
    assert found.reason.startswith("green only with the agent's tests/test_calc.py: as sealed, `")
    folder = desk.folder / found.review
    assert "-    assert double(2) == 4\n+    assert double(2) == 6\n" in (folder / "changes.diff").read_text("utf-8")
    assert "1 passed" in (folder / "check.txt").read_text("utf-8")
    assert "1 failed" in (folder / "sealed.txt").read_text("utf-8")
    accepted = desk.check(accepted=found.digest)
    assert (accepted.verdict, accepted.changes) == ("passed", ("changed tests/test_calc.py",))
    desk.bash("echo 'def test_double(): pass' > tests/test_calc.py")
    assert desk.check(accepted=found.digest).verdict == "review"


def test_changes_can_be_accepted_in_advance(tmp_path: Path) -> None:
    found = make(tmp_path).after("echo true > scripts/check.sh", allows_edits=True)
    assert (found.verdict, found.changes) == ("passed", ("changed scripts/check.sh",))
    assert found.reason.startswith("accepted in advance, green only with the agent's scripts/check.sh: as sealed, ")


# --- cheats

LATER = ("linked", "time-set-back")
EASY = "echo 'def test_easy(): pass' > tests/test_easy.py"
IGNORE = "--ignore=tests/test_calc.py"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "script", "changed"),
    [
        (make, "echo true > scripts/check.sh", "changed scripts/check.sh"),
        (make, "printf 'test:\\n\\ttrue\\n' > Makefile", "changed Makefile"),
        (make, "printf 'test:\\n\\ttrue\\n' > GNUmakefile", "added GNUmakefile"),
        (make, "touch test", "added test"),
        (make, "mkdir test", "added test"),
        (make, "printf 'test:\\n\\ttrue\\n' > GNUmakefile; echo GNUmakefile > .gitignore", "added GNUmakefile"),
        (python, "sed -i 's/== 4/== 5/' tests/test_calc.py", "changed tests/test_calc.py"),
        (python, "echo 'def test_double(): pass' > tests/test_calc.py", "changed tests/test_calc.py"),
        (
            python,
            "echo 'def test(): pass' > tests/test_x.py; git rm -q tests/test_calc.py",
            "removed tests/test_calc.py",
        ),
        (
            python,
            f"{EASY}; printf 'collect_ignore = [\"tests/test_calc.py\"]\\n' > conftest.py",
            "added conftest.py",
        ),
        (python, "printf 'import sys\\nsys.exit(0)\\n' > pytest.py", "added pytest.py"),
        (python, f"{EASY}; printf '[pytest]\\naddopts = {IGNORE}\\n' > pytest.ini", "added pytest.ini"),
        (
            python,
            f"{EASY}; printf '[tool.pytest.ini_options]\\naddopts = \"{IGNORE}\"\\n' >> pyproject.toml",
            "changed pyproject.toml",
        ),
        (
            python,
            "touch -r tests/test_calc.py ref; sed -i 's/== 4/== 5/' tests/test_calc.py; touch -r ref tests/test_calc.py",
            "changed tests/test_calc.py",
        ),
        (
            python,
            "mkdir ../out; mv tests ../out/; ln -s ../out/tests tests; sed -i 's/== 4/== 5/' tests/*.py",
            "changed tests/test_calc.py",
        ),
        (make, "sed -i 's/grep.*/true/' scripts/check.sh; touch -d @1 scripts/check.sh", "changed scripts/check.sh"),
    ],
    ids=[
        *("script", "makefile", "gnumakefile", "target", "target-folder", "excluded", "test", "vacuous", "removed"),
        *("conftest", "pytest.py", "pytest.ini", "pyproject", "times", *LATER),
    ],
)
def test_a_cheat_does_not_count(tmp_path: Path, made: Callable[[Path], Desk], script: str, changed: str) -> None:
    found = made(tmp_path).after(script)
    assert (found.verdict, found.changes) == ("review", (changed,))


def test_a_claim_without_work_is_red(tmp_path: Path) -> None:
    found = make(tmp_path).after("true")
    assert (found.verdict, found.exit_code, found.changes) == ("failed", 2, ())


@pytest.mark.slow
def test_settings_of_npm_that_replace_the_shell_do_not_count(tmp_path: Path) -> None:
    if not any(os.access(f"{folder}/npm", os.X_OK) for folder in os.environ["PATH"].split(":")):
        pytest.skip("npm is not installed on this machine")
    desk = Desk(tmp_path, NPM, "npm test")
    assert desk.after("echo 'exports.sum = (a, b) => a + b;' > sum.js").verdict == "passed"
    desk.bash("git checkout -q .")
    found = desk.after("echo script-shell=true > .npmrc")
    assert (found.verdict, found.changes) == ("review", ("added .npmrc",))
    desk.bash("rm .npmrc; sed -i 's/node --test/true/' package.json")
    assert desk.check().changes == ("changed package.json",)
    desk.bash("""sed -i 's/"true"/"node --test"/; s/"dependencies": {}/"dependencies": {"x": "1"}/' package.json""")
    assert (desk.check().verdict, desk.check().changes) == ("failed", ())


@pytest.mark.slow
def test_red_and_back_again_does_not_open_the_seal(tmp_path: Path) -> None:
    """A visit that ended red hands its seal on: what it changed is not what the next one starts from."""
    desk = make(tmp_path)
    desk.after("touch conftest.py; echo true > scripts/check.sh; rm answer.txt")
    found = desk.after("true")
    assert (found.verdict, found.changes) == ("review", ("changed scripts/check.sh", "added conftest.py")[::-1])


# --- twins


def test_where_no_twin_can_be_a_person_decides(tmp_path: Path) -> None:
    """The folder of the seals lies inside of the tree, where no overlay can be."""
    desk = make(tmp_path)
    desk.folder = desk.tree / ".raymond" / "seals"
    desk.folder.parent.mkdir()
    found = desk.after("echo true > scripts/check.sh; echo mine > notes")
    assert (found.verdict, found.twin) == ("not comparable", "")
    assert found.reason.startswith("the check could not be repeated with the sealed files: ")
    assert (desk.tree / "scripts/check.sh").read_text() == "true\n"


def test_nothing_is_read_twice_and_a_seal_is_the_same_for_the_same_files(tmp_path: Path) -> None:
    desk = python(tmp_path)
    first = desk.seal()
    desk.sealed = 0
    again = desk.seal()
    assert again.digest == first.digest
    assert os.path.getsize(desk.folder / "2.pack") == 0
    desk.bash("echo '# more' >> tests/test_calc.py")
    desk.sealed = 0
    assert desk.seal().digest != first.digest


def test_what_was_checked_is_named_by_its_hashes(tmp_path: Path) -> None:
    desk = make(tmp_path)
    found = desk.after(f"{RIGHT}; git add -A; git commit -qm right")
    said = subprocess.run(
        ["git", "rev-parse", "HEAD", "HEAD^{tree}"], cwd=desk.tree, capture_output=True, text=True, check=True
    ).stdout.split()
    assert [found.commit, found.tree] == said
    assert len(found.seal) == 64


@pytest.mark.slow
@pytest.mark.parametrize("files", [MAKE, PYTHON])
def test_a_directory_without_a_repository_is_sealed_too(tmp_path: Path, files: dict[str, str]) -> None:
    desk = Desk(tmp_path, files, "make test" if files is MAKE else f"{PYTEST} tests", repository=False)
    found = desk.after("touch test conftest.py; echo true > scripts/check.sh" if files is MAKE else FIX)
    assert found.verdict == ("review" if files is MAKE else "passed")


def test_globs_seal_and_unseal(tmp_path: Path) -> None:
    desk = Desk(tmp_path, {"golden/a.txt": "a\n", "tests/b.snap": "b\n"}, "cat golden/a.txt tests/b.snap | grep -q b")
    desk.policy = {"seal": ("golden/",), "unseal": ("*.snap",)}
    sealed = desk.seal()
    assert sorted(sealed.entries) == ["golden/a.txt"]
    desk.bash("echo other > golden/a.txt; echo bb > tests/b.snap")
    assert desk.check().changes == ("changed golden/a.txt",)


def test_a_tree_of_too_many_files_is_not_walked_to_its_end(tmp_path: Path) -> None:
    desk = make(tmp_path)
    assert len([*private_git.walk(str(desk.tree), (), most=5)]) == 2
    with pytest.raises(OSError, match=r"there are more than 2 files in .*; run it in a repository of its own"):
        list(private_git.walk(str(desk.tree), (), most=2))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("files", "check", "script", "changed"),
    [
        (
            {"Makefile": "test:\n\tpython3 tools/check.py\n", "tools/check.py": "raise SystemExit(1)\n"},
            "make test",
            "echo > tools/check.py",
            "changed tools/check.py",
        ),
        (
            {"app/tests.py": "raise SystemExit(1)\n"},
            "for f in app/*.py; do python3 $f || exit 1; done",
            "echo > app/tests.py",
            "changed app/tests.py",
        ),
        (
            {"sub/check.py": "raise SystemExit(1)\n"},
            "cd sub && python3 check.py",
            "echo > sub/check.py",
            "changed sub/check.py",
        ),
        (
            {"Makefile": "include rules/test.inc\n", "rules/test.inc": "test:\n\tfalse\n"},
            "make test",
            "printf 'test:\\n\\ttrue\\n' > rules/test.inc",
            "changed rules/test.inc",
        ),
        (
            {"Makefile": "-include .env\nWAY ?= false\n.PHONY: test\ntest:\n\t$(WAY)\n"},
            "make test",
            "echo WAY = true > .env",
            "added .env",
        ),
        ({"verify/real": "exit 1\n", "x": ""}, "sh check", "echo exit 0 > verify/real", "changed verify/real"),
        (
            {"Makefile": "done: x\n\tfalse\n", "x": "", "done": ""},
            "make done",
            "touch -d 2030-01-01 done",
            "changed done",
        ),
        (
            {"package.json": '{"scripts": {"test": "sh verify"}}', "verify": "exit 1\n"},
            "test -e go || sh verify",
            "echo exit 0 > verify",
            "changed verify",
        ),
        (
            {"ruff.toml": "line-length = 80\n"},
            "grep -q 'length = 200' ruff.toml",
            "echo 'line-length = 200' > ruff.toml",
            "changed ruff.toml",
        ),
        (
            {"tests/helpers.py": "x = 1\n", "tests/run.py": "import helpers; raise SystemExit(helpers.x)\n"},
            "python3 tests/run.py",
            "mkdir tests/helpers; echo x = 0 > tests/helpers/__init__.py",
            "added tests/helpers/__init__.py",
        ),
        (
            {"checks/one": "exit 1\n", "bin/bats": 'for each in "$1"/*; do sh "$each" || exit 1; done\n'},
            "sh bin/bats checks",
            "echo exit 0 > checks/one",
            "changed checks/one",
        ),
        (
            {"testcalc.py": "import unittest\nclass T(unittest.TestCase):\n    def test(self): self.fail()\n"},
            "python3 -m unittest",
            "printf 'import unittest\\nclass T(unittest.TestCase):\\n    def test(self): pass\\n' > testcalc.py",
            "changed testcalc.py",
        ),
        (
            {"pom.xml": "<project><properties><skip>false</skip></properties></project>"},
            "grep -q '<skip>true' pom.xml",
            "sed -i s/false/true/ pom.xml",
            "changed pom.xml",
        ),
    ],
    ids=[
        *(
            "recipe",
            "tests.py",
            "cd",
            "include",
            "include-absent",
            "link",
            "stamp",
            "script",
            "linter",
            "hidden-helper",
        ),
        *("folder", "unittest", "build-file"),
    ],
)
def test_what_decides_is_found_behind_other_names(
    tmp_path: Path, files: dict[str, str], check: str, script: str, changed: str
) -> None:
    desk = Desk(tmp_path, files, check)
    if "verify/real" in files:
        desk.bash("ln -s verify/real check")
    if "done" in files:
        desk.bash("touch -d 2001-01-01 done")
    found = desk.after(script)
    assert (found.verdict, found.changes) == ("review", (changed,))


@pytest.mark.slow
@pytest.mark.parametrize(
    "script",
    [
        "mkdir tests/unit; git mv tests/test_calc.py tests/unit/; sed -i 's/parent.parent/parent.parent.parent/' tests/unit/test_calc.py; git mv tests/unit/test_calc.py tests/test_double.py; sed -i 's/parent.parent.parent/parent.parent/' tests/test_double.py",
        "git branch old; git checkout -q --orphan new; git commit -qm new",
        "git config core.hooksPath .husky/_; echo true > .git/hooks/pre-commit; git commit -q --amend -m other",
    ],
    ids=["moved", "branch", "hooks"],
)
def test_honest_ways_of_git_are_left_alone(tmp_path: Path, script: str) -> None:
    found = python(tmp_path).after(f"{FIX}; {script}")
    assert (found.verdict, found.reason) == ("passed", "")


def test_a_sealed_check_that_is_gone_is_red_and_no_mistake_of_the_workflow(tmp_path: Path) -> None:
    desk = Desk(tmp_path, {"check.sh": "true\n"}, "./check.sh")
    desk.bash("chmod +x check.sh")
    found = desk.after("rm check.sh")
    assert found.verdict == "failed"
    assert found.reason.endswith("check.sh was there before: put it back")


@pytest.mark.slow
def test_nothing_that_was_built_from_an_edited_test_is_used_in_the_twin(tmp_path: Path) -> None:
    """A program is built from the test, and newer than it."""
    files = {"Makefile": "run: built\n\tsh built\nbuilt: tests/t.sh\n\tcp tests/t.sh built\n", "tests/t.sh": "exit 1\n"}
    found = Desk(tmp_path, files, "make run").after("sleep 0.01; echo exit 0 > tests/t.sh; make -s run")
    assert (found.verdict, found.changes) == ("review", ("changed tests/t.sh", "added built")[::-1])


def test_nothing_that_was_compiled_from_an_edited_test_is_used_in_the_twin(tmp_path: Path) -> None:
    """Python would take it for that of the sealed test, if both have one size and are of the same second."""
    compiled = "tests/__pycache__/t.cpython-311.pyc"
    desk = Desk(tmp_path, {"tests/t.py": "old\n"}, f"grep -q new tests/t.py || test ! -e {compiled}")
    found = desk.after(f"echo new > tests/t.py; mkdir tests/__pycache__; touch {compiled}")
    assert (found.verdict, found.changes, found.twin) == ("passed", ("changed tests/t.py",), "overlay")
    assert (desk.tree / compiled).exists()


@pytest.mark.slow
def test_a_new_test_may_bring_its_fixtures(tmp_path: Path) -> None:
    fixture = "printf 'import pytest\\n@pytest.fixture\\ndef two(): return 2\\n' > tests/conftest.py"
    test = "printf 'def test_two(two):\\n    assert two == 2\\n' > tests/test_two.py"
    found = python(tmp_path).after(f"{FIX}; {fixture}; {test}")
    assert (found.verdict, found.changes) == ("passed", ("added tests/conftest.py",))


@pytest.mark.slow
def test_a_new_package_is_honest_work(tmp_path: Path) -> None:
    script = 'mkdir -p crates/b more; printf \'[package]\\nname = "b"\\n\' > crates/b/Cargo.toml; echo \'{"name": "m"}\' > more/package.json'
    found = make(tmp_path).after(f"{RIGHT}; {script}")
    assert (found.verdict, found.changes) == ("passed", ())


def test_a_seal_that_is_not_the_journaled_one_is_refused(tmp_path: Path) -> None:
    desk = make(tmp_path)
    desk.seal()
    found = desk.check(digest="0" * 64)
    assert found.verdict == "could not start"
    assert found.reason.startswith("the seal of this visit is not what was journaled")


@pytest.mark.slow
def test_a_repository_that_is_made_later_does_not_open_a_seal(tmp_path: Path) -> None:
    desk = Desk(tmp_path, {"pkg/tests/run.sh": "exit 1\n"}, "sh tests/run.sh")
    desk.tree = desk.tree / "pkg"
    desk.seal()
    found = desk.after("git init -q .; echo exit 0 > tests/run.sh")
    assert found.changes == ("changed pkg/tests/run.sh",)
    desk.seal()
    assert desk.check().changes == ("changed pkg/tests/run.sh",)


@pytest.mark.slow
def test_a_dependency_that_the_work_needs_stays_when_a_setting_of_the_tests_is_put_back(tmp_path: Path) -> None:
    files = {"package.json": '{"scripts": {"test": "sh tests/run"}}', "tests/run": "grep -q left-pad package.json\n"}
    desk = Desk(tmp_path, files, "sh tests/run")
    now = '{"scripts": {"test": "sh tests/run", "lint": "x"}, "dependencies": {"left-pad": "1"}}'
    found = desk.after(f"echo '{now}' > package.json")
    assert (found.verdict, found.changes, found.reason) == ("passed", ("changed package.json",), "")


@pytest.mark.slow
def test_a_module_of_the_project_may_become_a_package_although_the_project_is_installed(tmp_path: Path) -> None:
    desk = python(tmp_path)
    desk.write(".venv/pyvenv.cfg", "home = /usr/bin\n")
    desk.write(".venv/lib/python3.11/site-packages/calc.pth", f"{desk.tree}\n")
    desk.write(".venv/lib/python3.11/site-packages/other.py", "")
    found = desk.after(f"{FIX}; mkdir calc; mv calc.py calc/__init__.py")
    assert (found.verdict, found.changes) == ("passed", ())
    found = desk.after("touch other.py")
    assert found.changes == ("added other.py",), "that one is somebody else's"


def test_a_repository_of_the_home_directory_is_not_the_tree_of_every_project_in_it(tmp_path: Path) -> None:
    (tmp_path / "other" / "tests").mkdir(parents=True)
    (tmp_path / "other" / "tests" / "test_a.py").touch()
    desk = Desk(tmp_path, {"tests/test_b.py": ""}, "true", repository=False)
    desk.bash("cd ..; git init -q .; git add other; git commit -qm settings")
    assert [*desk.seal().entries] == ["tests/test_b.py"]
    everything = ["other/tests/test_a.py", "tree/tests/test_b.py"]
    desk.seen["HOME"], desk.sealed = "/elsewhere", 0
    assert sorted(desk.seal().entries) == everything
    desk.bash("cd ..; git add tree; git commit -qm 'the project is a part of it'")
    desk.seen["HOME"], desk.sealed = str(tmp_path), 0
    assert sorted(desk.seal().entries) == everything


def test_a_directory_that_is_no_repository_and_too_large_is_refused_before_it_is_read(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).touch()
    private_git.check_size(str(tmp_path), 3)
    with pytest.raises(OSError, match="there are more than 2 files in"):
        private_git.check_size(str(tmp_path), 2)
