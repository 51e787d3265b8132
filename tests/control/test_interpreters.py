"""A script that nothing can run is refused before the first turn."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from raymond.control import interpreters
from raymond.errors import BackendError
from raymond.language import workflow
from raymond.system import processes

BASH = {"START.md": "Think. <goto>CHECK</goto>", "CHECK.sh": "echo '<result>x</result>'"}


@pytest.fixture(autouse=True)
def no_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    processes.program.cache_clear()
    monkeypatch.setenv("PATH", str(tmp_path))
    yield
    processes.program.cache_clear()


def test_a_script_without_its_interpreter_is_refused_like_a_prompt_without_its_program() -> None:
    with pytest.raises(BackendError) as caught:
        interpreters.check(workflow.build("flow", BASH))
    assert (str(caught.value), caught.value.hint, caught.value.exit_code) == (
        "CHECK.sh cannot run: there is no program `bash` on the PATH",
        "install bash",
        5,
    )


@pytest.mark.parametrize(
    "files",
    [
        {"START.md": "<result>x</result>", "CHECK.sh": "echo"},
        {"START.py": "print('<result>x</result>')"},
        {**BASH, "CHECK.py": "print('<result>x</result>')"},
        {"START.py": "", "workflow.yaml": "python: venv/bin/python"},
    ],
)
def test_only_what_is_reached_and_has_no_other_form_must_be_there(files: dict[str, str]) -> None:
    interpreters.check(workflow.build("flow", files))


def test_an_interpreter_that_is_there_is_found(tmp_path: Path) -> None:
    os.symlink("/bin/sh", tmp_path / "bash")
    interpreters.check(workflow.build("flow", BASH))
