"""Which commands may be run as checks, with --allow and --deny."""

import pytest

from raymond.loops.settings import Settings
from raymond.loops.source import refused

ALLOWED = [
    "pytest -q",
    "pytest -q 2>&1",
    "pytest -q > /dev/null",
    "pytest a && pytest b",
    "(pytest)",
    "pytest | pytest x",
]
NOT_ALLOWED = [
    "PATH=./evil:$PATH pytest -q",
    "PATH=./evil; pytest -q",
    "pytest -q > $HOME/.x",
    "pytest -q 2>> log",
    "pytest &> log",
    "> log",
    "pytest $(X=1 pytest)",
    "make",
]


@pytest.mark.parametrize("command", ALLOWED)
def test_what_fits_is_allowed(command: str) -> None:
    assert refused(command, Settings(allow=("pytest*",))) == ""


@pytest.mark.parametrize("command", NOT_ALLOWED)
def test_variables_and_files_have_to_be_allowed_too(command: str) -> None:
    assert refused(command, Settings(allow=("pytest*",))).endswith(" in its check matches no --allow")


@pytest.mark.parametrize(
    ("pattern", "command"),
    [("CI=1 pytest*", "CI=1 pytest -q"), ("pytest* > *.log", "pytest -q > a.log"), ("*", "A=1 make > log")],
)
def test_a_pattern_can_allow_them(pattern: str, command: str) -> None:
    assert refused(command, Settings(allow=(pattern,))) == ""


@pytest.mark.parametrize(
    "command",
    ["rm x", "env A=1 rm x", "command rm x", "exec rm x", "nohup rm x", "timeout 5 rm x", "/bin/rm x", "A=1 rm x"]
    + ["sh -c 'rm x'", 'bash -ec "true; /bin/rm x"', "timeout 5 env bash -c 'exec rm x'", "echo $(rm x)", "true | rm x"]
    + ["find . -exec rm {} +", "eval 'rm x'"],
)
def test_what_is_denied_is_denied_however_it_is_run(command: str) -> None:
    assert refused(command, Settings(deny=("rm *",))) == "its check matches --deny rm *"


def test_what_only_looks_like_it_is_not_denied() -> None:
    assert refused("echo rm x && ls rm", Settings(deny=("rm *",))) == ""


@pytest.mark.parametrize(
    "command",
    [
        "for PATH in evil:$PATH; do pytest -q; done",
        "pytest --version $(case a in a) touch pwn;; esac)",
        "select PATH in ./evil; do pytest; done <<< 1",
        "pytest ${x:-'}'$(touch pwn)}",
    ],
)
def test_what_allow_cannot_see_through_is_refused(command: str) -> None:
    assert refused(command, Settings(allow=("pytest*",))).endswith("--allow does not see: put it into a script")
    assert refused(command, Settings()) == ""
