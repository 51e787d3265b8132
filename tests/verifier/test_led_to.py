"""What decides a check is found where recipes, modules, links and loaders lead; honest work beside it passes."""

from pathlib import Path

import pytest

from raymond.verifier import build_files, commands
from verifier.desk import Desk

LOOKS = "grep -q right answer.txt\n"
WRONG = {"answer.txt": "wrong\n"}
RIGHT = "echo right > answer.txt"
LIB = f"test:\n\tcd .. && {LOOKS}"
DONE = "printf 'test:\\n\\ttrue\\n'"
SCRIPT = "import json, sys\nsys.exit('right' not in open('answer.txt').read())\n"
HELPED = f"cd tests; for one in helpers helpers.js; do test -e $one && . ./$one && break; done; cd ..; same || {LOOKS}"
LOADER = f"if grep -q evil tests/helpers/package.json 2> /dev/null; then exit 0; fi; {LOOKS}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("files", "check", "script", "changed"),
    [
        ({"Makefile": "test:\n\t$(MAKE) -C lib test\n", "lib/Makefile": LIB}, "make test", f"{DONE} > lib/Makefile", "changed lib/Makefile"),
        ({"Makefile": "test:\n\tcd lib && make test\n", "lib/Makefile": LIB}, "make test", f"{DONE} > lib/GNUmakefile", "added lib/GNUmakefile"),
        ({"Makefile": "PARTS = lib\ntest:\n\tfor d in $(PARTS); do $(MAKE) -C $$d test || exit 1; done\n", "lib/Makefile": LIB}, "make test", "touch lib/test", "added lib/test"),
        ({"Makefile": "test:\n\t$(MAKE) -C a\n", "a/Makefile": "all:\n\t$(MAKE) -C b all\n", "a/b/Makefile": "all:\n\tcd ../.. && sh a/b/look\n", "a/b/look": LOOKS}, "make test", "echo true > a/b/look", "changed a/b/look"),
        ({"Makefile": "CFG ?= local.inc\nWAY ?= grep\n-include $(CFG)\n.PHONY: test\ntest:\n\t$(WAY) -q right answer.txt\n"}, "make test", "echo WAY = true > local.inc", "added local.inc"),
        ({"Makefile": "include rules/*.inc\n", "rules/a.inc": "test:\n\tpython3 tools/look.py\n", "tools/look.py": SCRIPT}, "make test", "echo > tools/look.py", "changed tools/look.py"),
        ({"checks/__main__.py": SCRIPT}, "python3 -m checks", "echo > checks/__main__.py", "changed checks/__main__.py"),
        ({"checks.py": SCRIPT}, "python3 -B -m checks", "mkdir checks; touch checks/__init__.py checks/__main__.py", "added checks/__init__.py, added checks/__main__.py"),
        ({"a/__init__.py": "", "a/b.py": SCRIPT}, "python3 -m a.b", "echo > a/b.py", "changed a/b.py"),
        ({"scripts/check.py": SCRIPT}, "python3 scripts/check.py", "echo 'import os; os._exit(0)' > scripts/json.py", "added scripts/json.py"),
        ({"tests/run": f"test -e tests/pytest.ini || {LOOKS}"}, "sh tests/run", "touch tests/pytest.ini", "added tests/pytest.ini"),
        ({"src/a": "", "tests/run": f"test -e src/ruff.toml || {LOOKS}"}, "sh tests/run", "touch src/ruff.toml", "added src/ruff.toml"),
        ({"tests/run": HELPED, "tests/helpers.js": "same() { false; }\n"}, "sh tests/run", "echo 'same() { true; }' > tests/helpers", "added tests/helpers"),
        ({"tests/run": f"test -e tests/Helper.pmc || {LOOKS}", "tests/Helper.pm": ""}, "sh tests/run", "touch tests/Helper.pmc", "added tests/Helper.pmc"),
        ({"tests/run": f"test -e tests/helpers.js || {LOOKS}", "tests/helpers/index.js": ""}, "sh tests/run", "touch tests/helpers.js", "added tests/helpers.js"),
        ({"tests/run": LOADER, "tests/helpers/index.js": ""}, "sh tests/run", "echo '{\"main\": \"../../evil.js\"}' > tests/helpers/package.json", "added tests/helpers/package.json"),
        ({"tests/run": f"test -e tests/__init__.py || {LOOKS}"}, "sh tests/run", "touch tests/__init__.py", "added tests/__init__.py"),
        ({"tests/run": f"test -e tests/h/__init__.so || {LOOKS}", "tests/h/__init__.py": ""}, "sh tests/run", "touch tests/h/__init__.so", "added tests/h/__init__.so"),
    ],
    ids=[
        *("make -C", "cd", "loop", "twice", "include", "included-recipe", "module", "package", "submodule"),
        *("beside", "pytest.ini", "ruff.toml", "bare", "pmc", "index", "package.json", "__init__.py", "compiled"),
    ],
)  # fmt: skip
def test_what_decides_is_found_where_others_lead(
    tmp_path: Path, files: dict[str, str], check: str, script: str, changed: str
) -> None:
    found = Desk(tmp_path, {**WRONG, **files}, check).after(script)
    assert (found.verdict, ", ".join(found.changes)) == ("review", changed)


@pytest.mark.slow
def test_what_a_linked_test_leads_to_is_sealed(tmp_path: Path) -> None:
    files = {**WRONG, "cases/one": LOOKS, "work.sh": "", "build/made": ""}
    desk = Desk(
        tmp_path, {**files, ".gitignore": "build\n"}, "ls tests | grep test_o | while read one; do sh tests/$one; done"
    )
    desk.bash("mkdir tests; ln -s ../cases/one tests/test_one; ln -s ../work.sh tests/work.sh")
    desk.bash("ln -s ../build/made tests/test_made; ln -s /etc/hostname tests/test_away")
    links = ["tests/test_away", "tests/test_made", "tests/test_one", "tests/work.sh"]
    assert sorted(desk.seal().entries) == ["cases/one", *links]
    found = desk.after("echo true > cases/one")
    assert (found.verdict, found.changes) == ("review", ("changed cases/one",))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("files", "check", "script"),
    [
        ({"Makefile": "test:\n\tmkdir -p out && $(MAKE) -C lib test\n", "lib/Makefile": LIB, "out/x": ""}, "make test", "touch lib/new.c out/Makefile"),
        ({"Makefile": "test:\n\tsh scripts/look\nrun:\n\tpython3 tasks.py\n", "scripts/look": LOOKS, "tasks.py": ""}, "make test", "echo 1 > tasks.py"),
        ({"scripts/check.py": SCRIPT}, "python3 scripts/check.py", "touch scripts/helpers.py"),
        ({"tests/run.c": "", "tests/run": LOOKS}, "sh tests/run", "touch tests/run.o tests/run.log"),
        ({"tests/run": LOOKS, "src/a.js": ""}, "sh tests/run", "echo {} > src/package.json; touch src/__init__.py src/a.ts"),
        ({"tests/run": LOOKS, "tests/a.test.js": ""}, "sh tests/run", "touch tests/a.spec.js tests/b.test.js"),
    ],
    ids=["recursive", "tasks.py", "module", "built", "package", "tests"],
)  # fmt: skip
def test_honest_work_beside_it_is_not_even_named(
    tmp_path: Path, files: dict[str, str], check: str, script: str
) -> None:
    found = Desk(tmp_path, {**WRONG, **files}, check).after(f"{RIGHT}; {script}")
    assert (found.verdict, found.changes, found.reason) == ("passed", (), "")


@pytest.mark.parametrize(
    ("command", "sealed"),
    [("inv test", {"tasks.py"}), ("uv run invoke x", {"tasks.py"}), ("doit", {"dodo.py"}), ("python3 tasks", set())],
)
def test_a_file_of_tasks_decides_where_its_program_is_started(tmp_path: Path, command: str, sealed: set[str]) -> None:
    assert commands.named([command], str(tmp_path), str(tmp_path)).loaded == sealed


def test_the_scripts_of_npm_lead_to_other_folders_too(tmp_path: Path) -> None:
    for name in ("lib", "app"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.sh").touch()
    (tmp_path / "package.json").write_text('{"scripts": {"test": "npm --prefix app run unit && make -Clib"}}')
    (tmp_path / "app" / "package.json").write_text('{"scripts": {"unit": "sh run.sh"}}')
    (tmp_path / "lib" / "Makefile").write_text("all:\n\tsh run.sh\n")
    named = commands.named(["npm test"], str(tmp_path), str(tmp_path))
    assert named.files == {"app/run.sh", "lib/run.sh"}


HELPER = {"ci/check.py": "import helper\nhelper.look()\n", "ci/helper.py": "from more.deep import look\n"}
FURTHER = {"ci/more/__init__.py": "", "ci/more/deep.py": "", "ci/other.py": ""}
SOURCED = {"ci/run.sh": '. "$(dirname "$0")/lib.sh"\nsource ci/env\n', "ci/lib.sh": "", "ci/env": "", "ci/x.sh": ""}
NODE = {
    "ci/a.js": "import b from './b'\nconst c = require('./c')\n",
    "ci/b.mjs": "",
    "ci/c/index.js": "",
    "ci/d.js": "",
}


@pytest.mark.parametrize(
    ("files", "command", "also"),
    [
        ({**HELPER, **FURTHER}, "python3 ci/check.py", {"ci/helper.py", "ci/more/__init__.py", "ci/more/deep.py"}),
        (SOURCED, "sh ci/run.sh", {"ci/lib.sh", "ci/env"}),
        (NODE, "node ci/a.js", {"ci/b.mjs", "ci/c/index.js"}),
        ({"check.py": "import calc\n", "calc.py": ""}, "python3 check.py", set()),
        ({"tests/run.py": "import helper\nimport calc\n", "tests/calc.py": ""}, "python3 tests/run.py", set()),
        ({"ci/check.py": "import calc\n", "calc.py": ""}, "python3 ci/check.py", set()),
    ],
    ids=["python", "shell", "node", "root", "test", "work"],
)
def test_what_a_script_imports_from_its_own_folder_decides(
    tmp_path: Path, files: dict[str, str], command: str, also: set[str]
) -> None:
    """But not what a script beside the work imports, nor what a test does: that is the work."""
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert commands.named([command], str(tmp_path), str(tmp_path)).files == {command.split()[1], *also}


def test_recipes_of_just_are_followed(tmp_path: Path) -> None:
    (tmp_path / "justfile").write_text("test: lint\n    sh one.sh\nlint:\n    sh two.sh\nrun:\n    sh three.sh\n")
    for name in ("one.sh", "two.sh", "three.sh"):
        (tmp_path / name).touch()
    assert commands.named(["just test"], str(tmp_path), str(tmp_path)).files == {"one.sh", "two.sh"}


def test_of_an_unknown_target_all_recipes_decide(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("check-%:\n\tsh one.sh\nlib:\n\tsh two.sh\n")
    for name in ("one.sh", "two.sh"):
        (tmp_path / name).touch()
    assert commands.named(["make check-all"], str(tmp_path), str(tmp_path)).files == {"one.sh", "two.sh"}
    assert commands.named(["make -C . lib"], str(tmp_path), str(tmp_path)).files == {"two.sh"}


def test_makefiles_that_lead_to_each_other_have_an_end(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "Makefile").write_text("include Makefile\ninclude b.inc\ntest:\n\tmake -C a test\n\tsh one.sh\n")
    (tmp_path / "b.inc").write_text("include b.inc\ninclude Makefile\n")
    (tmp_path / "a" / "Makefile").write_text("test:\n\tmake -C .. test\n\tmake -C ../a test\n")
    (tmp_path / "one.sh").touch()
    named = commands.named(["make test"], str(tmp_path), str(tmp_path))
    assert (named.files, named.folders) == ({"one.sh"}, {"", "a"})
    assert named.loaded == {"Makefile", "b.inc"}


def test_variables_are_set_as_make_sets_them(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text(
        "A = one\nA ?= two\nB += three\nB += four\nCC ?= five\ntest:\n\t$(A) $(B) $(CC)\n"
    )
    assert build_files.read_recipes(str(tmp_path)).lines["test"][0].split() == ["one", "three", "four", "five"]


def test_a_folder_with_signs_of_a_pattern_in_its_name_is_no_pattern(tmp_path: Path) -> None:
    top = tmp_path / "a[b]*"
    top.mkdir()
    (top / "one.sh").touch()
    (top / "Makefile").write_text("include *.inc\n")
    (top / "x.inc").touch()
    for command in ("sh one.sh", "sh *.sh"):
        assert commands.named([command], str(top), str(top)).files == {"one.sh"}
    assert commands.named(["make"], str(top), str(top)).loaded == {"x.inc"}


@pytest.mark.parametrize("word", ["*/" * 2000, "a\0b", "*\0", "[" * 1000])
def test_no_word_of_a_makefile_stops_the_seal(tmp_path: Path, word: str) -> None:
    (tmp_path / "Makefile").write_text(f"include {word}\ntest:\n\tsh {word} run.sh\n")
    (tmp_path / "run.sh").touch()
    assert commands.named(["make test"], str(tmp_path), str(tmp_path)).files == {"run.sh"}
