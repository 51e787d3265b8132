"""What a check only reads is the work; what it runs, or compares with, decides."""

import os
from pathlib import Path

import pytest

from raymond.verifier import commands
from verifier.desk import Desk

FILES = ("app.py", "run.sh", "strict.toml", "want.txt", "out.txt", "Makefile")


@pytest.mark.parametrize(
    ("command", "sealed"),
    [
        ("ruff check app.py", set()),
        ("ruff check --config strict.toml app.py", {"strict.toml"}),
        ("uv run mypy --strict app.py", set()),
        ("npx eslint app.py && sh run.sh", {"run.sh"}),
        ("python3 -m py_compile app.py", set()),
        ("python3 app.py", {"app.py"}),
        ("bash -n run.sh", set()),
        ("bash -n run.sh && bash run.sh", {"run.sh"}),
        ("bash run.sh -n", {"run.sh"}),
        ("grep -q right out.txt", set()),
        ("grep -q -f want.txt out.txt", {"want.txt"}),
        ("test -f out.txt", set()),
        ("[ -s out.txt ] && [ \"$(cat out.txt)\" = 1 ]", set()),
        ("diff want.txt out.txt", {"want.txt", "out.txt"}),
        ("cat want.txt | diff - out.txt", {"want.txt", "out.txt"}),
        ("A=1 shellcheck run.sh", set()),
        ("if grep -q x app.py; then exit 1; fi", set()),
    ],
)  # fmt: skip
def test_what_is_only_read_is_not_sealed(tmp_path: Path, command: str, sealed: set[str]) -> None:
    for name in FILES:
        (tmp_path / name).touch()
    assert commands.named([command], str(tmp_path), str(tmp_path)).files == sealed


def test_a_script_that_a_recipe_only_reads_is_not_sealed(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("lint:\n\t@shellcheck slug.sh\ntest:\n\tsh run.sh\n")
    for name in ("slug.sh", "run.sh"):
        (tmp_path / name).touch()
    assert commands.named(["make lint test"], str(tmp_path), str(tmp_path)).files == {"run.sh"}


@pytest.mark.slow
def test_the_file_that_the_task_is_about_may_be_named_by_its_check(tmp_path: Path) -> None:
    files = {"slug.sh": "echo wrong\n", "tests/run": "test $(sh slug.sh) = right\n"}
    found = Desk(tmp_path, files, "sh tests/run", "bash -n slug.sh").after("echo 'echo right' > slug.sh")
    assert (found.verdict, found.changes) == ("passed", ())


MAKEFILE = """\
CC ?= gcc
OBJECTS = calc.o main.o
TEST := build/t
PYTHON = python3 -B
.PHONY: test
test: $(TEST)
\t./$(TEST)
\t$(PYTHON) scripts/extra.py
$(TEST): calc.c tests/t.c lib/check_all.c
\t@$(CC) -o $@ $^
other: x.c
\tsh $<
"""


@pytest.mark.slow
def test_what_is_built_for_a_check_is_the_work_and_what_is_run_decides(tmp_path: Path) -> None:
    files = {
        "Makefile": MAKEFILE,
        "calc.c": "int twice(int x) { return x; }\n",
        "tests/t.c": "int twice(int); int all(void); int main(void) { return all() || twice(2) != 4; }\n",
        "lib/check_all.c": "int all(void) { return 0; }\n",
        "scripts/extra.py": "",
        ".gitignore": "build\n",
    }
    desk = Desk(tmp_path, files, "mkdir -p build && make test")
    assert sorted(desk.seal().entries) == ["Makefile", "lib/check_all.c", "scripts/extra.py", "tests/t.c"]
    found = desk.after("sed -i 's/return x/return x + x/' calc.c")
    assert (found.verdict, found.changes) == ("passed", ())
    found = desk.after("sed -i 's/x + x/x/' calc.c; echo 'int main(void) { return 0; }' > tests/t.c")
    assert (found.verdict, found.changes) == ("review", ("changed tests/t.c",))


@pytest.mark.parametrize("name", ["Makefile", "package.json", "pyproject.toml", "tests/test_a.py"])
def test_a_pipe_in_the_place_of_a_file_keeps_nobody_waiting(tmp_path: Path, name: str) -> None:
    desk = Desk(tmp_path, {"tests/test_b.py": "", "a": ""}, "make test")
    os.mkfifo(desk.tree / name)
    assert name not in desk.seal().entries


def test_variables_that_stand_for_themselves_have_an_end(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text(
        "A = $(A)$(A)$(A)\nB = $(A)" + "$(B)" * 1000 + "\ntest:\n\t$(B) sh run.sh $(B)\n"
    )
    (tmp_path / "run.sh").touch()
    assert commands.named(["make test"], str(tmp_path), str(tmp_path)).files == {"run.sh"}
