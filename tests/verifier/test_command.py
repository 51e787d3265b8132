"""A command of a gate: what makes it green or red, and that nothing of it is left running."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from raymond.language.check import Check
from raymond.verifier import command
from raymond.verifier.command import Result
from running import alive, until

ENV = {"PATH": os.environ["PATH"]}


def run(text: str, seconds: float = 60.0) -> Result:
    return command.run(Check(run=text), seconds, ENV, lambda _: None)


@pytest.mark.parametrize(
    ("check", "why"),
    [
        (Check(run="true"), ""),
        (Check(run="exit 2"), "ended with exit code 2"),
        (Check(run="exit 2", exit=2), ""),
        (Check(run="true", exit=2), "ended with exit code 0 instead of 2"),
        (Check(run="kill -9 $$"), "was ended by signal 9"),
        (Check(run="echo it is ok", contains="is ok"), ""),
        (Check(run="echo it is ok >&2", contains="is ok"), ""),
        (Check(run="echo no", contains="ok"), 'printed no "ok"'),
        (Check(run="echo ok; exit 1", contains="ok"), "ended with exit code 1"),
        (Check(run="printf 'a\nok 3\n'", matches=r"^ok \d$"), ""),
        (Check(run="echo no", matches="o{2}"), "printed nothing that matches /o{2}/"),
        (Check(run="echo ok", matches="(no)?ok"), ""),
        (Check(run="printf 'ü\xff ok'", matches="^ü. ok$"), ""),
    ],
)
def test_what_is_expected_makes_it_green(check: Check, why: str) -> None:
    result = command.run(check, 60.0, ENV, lambda _: None)
    assert command.why_red(check, result, 60.0) == why


def test_a_pattern_that_takes_for_ever_is_red() -> None:
    check = Check(run="true", matches="^(a+)+$")
    why = command.why_red(check, Result(exit_code=0, seconds=0.0, output="a" * 60 + "!"), 0.1)
    told = "printed something that /^(a+)+$/ takes longer than 0.1s to search: make the pattern simpler"
    assert why == told


def test_a_search_ends_itself_when_nobody_waits_for_it() -> None:
    searches = """if True:
        from raymond.language.check import Check
        from raymond.verifier import command
        result = command.Result(exit_code=0, seconds=0.0, output="a" * 60 + "!")
        command.why_red(Check(run="true", matches="^(a+)+$"), result, 1.0)
    """
    with subprocess.Popen([sys.executable, "-c", searches], start_new_session=True) as verifier:
        children = Path(f"/proc/{verifier.pid}/task/{verifier.pid}/children")
        until(lambda: bool(children.read_text().split()), "the search")
        [search] = map(int, children.read_text().split())
        verifier.kill()
    until(lambda: not alive(search), "the end of the search")


def test_it_reads_nothing_and_has_no_terminal() -> None:
    assert run("cat; test -t 0 || echo none; (exec 3< /dev/tty) 2> /dev/null || echo no tty").output == "none\nno tty\n"


@pytest.mark.slow
def test_one_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    result = run(f"trap '' TERM; sleep 600 & echo $! > {tmp_path}/pid; wait", seconds=0.3)
    assert result.timed_out
    assert command.why_red(Check(run="x"), result, 0.3) == "took longer than 0.3s"
    pid = int((tmp_path / "pid").read_text())
    until(lambda: not alive(pid), "the end of what it started")


def test_a_process_that_it_leaves_running_does_not_hold_it_up(tmp_path: Path) -> None:
    result = run(f"sleep 600 & echo $! > {tmp_path}/pid; echo done")
    assert (result.exit_code, result.output) == (0, "done\n")
    pid = int((tmp_path / "pid").read_text())
    until(lambda: not alive(pid), "the end of what it left running")


def test_a_flood_is_cut_and_its_end_is_kept() -> None:
    told: list[str] = []
    check = Check(run="head -c 40000000 /dev/zero | tr '\\0' x; echo; echo the end", contains="the end")
    result = command.run(check, 60.0, ENV, told.append)
    assert command.why_red(check, result, 60.0) == ""
    assert len(result.output) < 17 << 20
    text = "".join(told)
    assert len(text) < 5 << 20
    assert "characters are left out here]" in text
    assert text.endswith("the end\n")


def test_a_character_that_is_read_in_two_pieces_stays_one() -> None:
    told: list[str] = []
    result = command.run(
        Check(run="printf '\\342\\202'; sleep 0.1; printf '\\254'; printf '\\342'"), 60.0, ENV, told.append
    )
    assert result.output == "".join(told) == "€\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("no-such-program --all", "there is no program `no-such-program`"),
        ("CI=1 no-such-program", "there is no program `no-such-program`"),
        ("./missing.sh", "there is no program `./missing.sh`"),
        ("./plain.sh -v", "`./plain.sh` is not executable: chmod +x ./plain.sh"),
        ("./folder", "`./folder` is a directory"),
        ("./odd.sh", "`./odd.sh` needs /no/such/interpreter, which does not exist"),
        ("./fails.sh", ""),
        ("bash -c no-such-program", ""),
        ("exit 127", ""),
        ("true", ""),
    ],
)
def test_why_a_program_cannot_start_is_told(
    text: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    for name, line, mode in (
        ("plain", "", 0o644),
        ("odd", "#!/no/such/interpreter", 0o755),
        ("fails", "#!/bin/sh\nexit 126", 0o755),
    ):
        (tmp_path / f"{name}.sh").write_text(line)
        (tmp_path / f"{name}.sh").chmod(mode)
    assert command.cannot_start(Check(run=text), run(text), ENV) == why
