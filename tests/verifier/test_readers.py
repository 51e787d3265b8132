"""What a check only reads is the work; what it runs, or compares with, decides."""

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
    assert commands.paths([command], str(tmp_path), str(tmp_path)).files == sealed


def test_a_script_that_a_recipe_only_reads_is_not_sealed(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("lint:\n\t@shellcheck slug.sh\ntest:\n\tsh run.sh\n")
    for name in ("slug.sh", "run.sh"):
        (tmp_path / name).touch()
    assert commands.scripts([""], str(tmp_path)) == {"run.sh"}


@pytest.mark.slow
def test_the_file_that_the_task_is_about_may_be_named_by_its_check(tmp_path: Path) -> None:
    files = {"slug.sh": "echo wrong\n", "tests/run": "test $(sh slug.sh) = right\n"}
    found = Desk(tmp_path, files, "sh tests/run", "bash -n slug.sh").after("echo 'echo right' > slug.sh")
    assert (found.verdict, found.changes) == ("passed", ())
