"""Completion: what is offered, and that real shells take it as it is meant."""

import contextlib
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kept import Projects
from raymond import cli
from raymond.cli import completion, values
from raymond.cli.completion import SCRIPTS
from running import PATIENCE, Room

ASKS = {"START.sh": "echo '<ask next=\"END\">Which?</ask>'", "END.sh": "echo '<result>x</result>'"}
AWKWARD = "a $(touch pwned)'\";b"


@pytest.fixture
def projects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Projects:
    return Projects(tmp_path, monkeypatch)


def offers(*words: str) -> list[str]:
    return [
        str(item.value) if item.type == "plain" else item.type
        for item in completion.completions([*words[:-1]], words[-1])
    ]


# --- what is offered


def test_ids_are_those_the_command_can_act_on_here_and_else_elsewhere(projects: Projects) -> None:
    asks = {"status": "waiting", "agents": [{"status": "asking"}]}
    projects.keep("here", done="completed", stopped={"status": "stopped", "stop_kind": "stop"}, asks=asks)
    projects.keep("other", night="paused", nine="completed")
    assert sorted(offers("status", "")) == ["asks", "done", "stopped"]
    assert sorted(offers("resume", "")) == ["asks", "stopped"]
    assert offers("stop", "") == ["asks"]
    assert offers("answer", "") == ["asks"]
    assert offers("attach", "") == ["asks"]
    assert offers("wait", "") == []
    assert sorted(offers("logs", "ni")) == ["night", "nine"]
    assert offers("resume", "ni") == ["night"]
    assert offers("clean", "done", "st") == ["stopped"]
    assert offers("list", "--project", "o") == ["other"]


def test_commands_flags_choices_backends_and_workflows_are_offered(projects: Projects) -> None:
    Path("flow").mkdir()
    Path("flow/START.md").touch()
    Path("workflows/review").mkdir(parents=True)
    Path("workflows/review/1_START.sh").touch()
    Path("src").mkdir()
    assert offers("sta") == ["status", "start"]
    assert offers("nothing-like-it") == ["file"]
    assert offers("run", "--dry") == ["--dry-run"]
    assert offers("flow", "--dry") == ["--dry-run"]
    assert offers("list", "--status", "comp") == ["completed"]
    assert "claude" in offers("run", "--backend", "")
    assert offers("run", "") == ["flow", "workflows/review", "file"]
    assert offers("completion", "") == ["bash", "zsh", "fish"]
    assert offers("-C", "") == ["dir"]


def test_agents_and_states_are_those_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room = Room(tmp_path)
    room.drive(
        {"END.sh": ASKS["END.sh"], "ASK.sh": ASKS["START.sh"], "START.sh": "echo '<fork>ASK</fork><goto>ASK</goto>'"}
    )
    monkeypatch.setenv("RAYMOND_HOME", str(room.home))
    monkeypatch.chdir(room.path)
    assert sorted(offers("stop", "r", "--agent", "")) == ["main", "main_ask1"]
    assert sorted(offers("answer", "r", "main")) == ["main", "main_ask1"]
    assert offers("answer", "r", "main", "") == [], "an answer is a person's"
    assert sorted(offers("resume", "r", "--agent", "main", "--goto", "")) == ["ASK.sh", "END.sh", "START.sh"]


def test_the_run_that_is_on_the_line_counts_and_logs_reads_agents_that_have_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = Room(tmp_path)
    room.drive(
        {
            "START.sh": "echo '<fork file=\"a.py\">WORK</fork><wait>END</wait>'",
            "WORK.sh": "echo '<result>x</result>'",
            "END.sh": ASKS["START.sh"],
        }
    )
    monkeypatch.setenv("RAYMOND_HOME", str(room.home))
    monkeypatch.chdir(room.path)
    found = completion.completions(["logs", "r", "--agent"], "")
    assert [(one.value, one.help) for one in found] == [("main", "asking"), ("main_work1", "done (a.py)")]
    room.command({"START.sh": "echo '<result>x</result>'"}, id="s")
    assert sorted(offers("resume", "r", "--agent", "main", "--goto", "")) == ["END.sh", "START.sh", "WORK.sh"]
    assert offers("stop", "r", "--agent", "") == ["main"]


@pytest.mark.parametrize(
    "words", [["nope", "x", ""], ["stop", "nope", "--agent", ""], ["-C", "/nowhere", ""], ["status", "'"], []]
)
def test_what_cannot_be_completed_is_met_with_silence(
    projects: Projects, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], words: list[str]
) -> None:
    monkeypatch.setenv(cli.COMPLETE, "bash")
    try:
        assert cli.main(words) == 0
    finally:
        for timer in (signal.ITIMER_REAL, signal.ITIMER_PROF):
            signal.setitimer(timer, 0)
    assert capfd.readouterr().err == ""


def test_only_words_that_mean_the_same_quoted_or_not_are_printed() -> None:
    from click.shell_completion import CompletionItem

    for word in (
        "a b",
        "a$(x)",
        "a`x`",
        "a'b",
        'a"b',
        "a\nb",
        "a;b",
        "a&b",
        "a*b",
        "~a",
        "a\u202eb",
        "a\tb",
        "{a,b}",
        "",
    ):
        assert completion._line(CompletionItem(word), "") == ""
    assert completion._line(CompletionItem("über-1", help="x\ty\x1b"), "--id=") == "plain\t--id=über-1\tx\\ty\\x1b\n"
    assert [item.value for item in values.offer([("-rf", ""), ("=ls", ""), ("ok", "")], "")] == ["ok"]


def test_a_shell_that_is_not_supported_is_told_which_ones_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", "tcsh"]) == 2
    assert (
        capsys.readouterr().err == "error: there is no completion for `tcsh`\nhint: there is one for bash, zsh, fish\n"
    )


# --- real shells


class Shell:
    """An interactive shell in a terminal, where keys are typed."""

    def __init__(self, room: Room, *argv: str, **environment: str) -> None:
        self._seen = b""
        pid, self._terminal = pty.fork()
        if not pid:
            os.chdir(room.path)
            os.execvpe(argv[0], argv, {**room.environment, "TERM": "dumb", "PS1": "> ", **environment})
        self._pid = pid

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def sees(self, text: str) -> str:
        """Wait until it has shown a text; all since the last one."""
        deadline = time.monotonic() + PATIENCE
        while text.encode() not in self._seen:
            assert time.monotonic() < deadline, f"no {text!r} in {self._seen!r}"
            if select.select([self._terminal], [], [], 0.1)[0]:
                self._seen += os.read(self._terminal, 4096)
        before, _, self._seen = self._seen.partition(text.encode())
        return before.decode("utf-8", "replace")

    def close(self) -> None:
        os.close(self._terminal)
        with contextlib.suppress(OSError):
            os.kill(self._pid, 9)
        os.waitpid(self._pid, 0)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Room]:
    """A room with a run, awkward names, and a program `raymond` of a checkout that must not be started."""
    path = f"{Path(sys.executable).parent}:.:{os.environ['PATH']}"
    room = Room(tmp_path, PATH=path)
    room.drive(ASKS, id="nightly-1")
    for name in (AWKWARD, "plain-flow"):
        (room.path / name).mkdir()
        (room.path / name / "START.sh").write_text("echo '<result>x</result>'")
    (room.path / "raymond").write_text("#!/bin/sh\ntouch started-the-wrong-one\n")
    (room.path / "raymond").chmod(0o755)
    yield room
    room.clear()


def needs(shell: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(shell) is None, reason=f"{shell} is not installed")


INTERACTIVE = {
    "bash": (("bash", "--norc", "--noprofile", "-i"), "bind 'set enable-bracketed-paste off'\n"),
    "zsh": (("zsh", "-f", "-i"), "autoload -Uz compinit; compinit -u -D; bindkey -e; unsetopt beep\n"),
}


@pytest.mark.slow
@pytest.mark.parametrize("shell", [pytest.param(name, marks=needs(name)) for name in INTERACTIVE])
def test_a_tab_completes_and_quotes_in_a_real_shell(place: Room, shell: str) -> None:
    argv, prepare = INTERACTIVE[shell]
    live = Shell(place, *argv)
    try:
        live.type(f"{prepare}source <(raymond completion {shell}); echo rea''dy\n")
        live.sees("ready")
        for typed, whole in (
            ("raymond status ni\t", "[raymond][status][nightly-1]"),
            ("raymond answer nightly-1 ma\t", "[raymond][answer][nightly-1][main]"),
            ("./raymond stop ni\t", "[./raymond][stop][nightly-1]"),
            ("raymond run a\t", f"[raymond][run][{AWKWARD}" + ("/]" if shell == "bash" else "")),
        ):
            live.type(typed)
            live.sees(typed.rstrip("\t").rpartition(" ")[2][:2])
            # What was completed becomes the words of a harmless command.
            live.type("\x01printf '[%s]' \x05; echo; echo rea''dy\n")
            assert whole in live.sees("ready").replace("\r", "")
    finally:
        live.close()
    assert not (place.path / "started-the-wrong-one").exists()
    assert not (place.path / "pwned").exists()


@pytest.mark.slow
@needs("fish")
def test_fish_offers_runs_agents_and_files(place: Room) -> None:
    asked = ("raymond status ni", "raymond answer nightly-1 ", "raymond run pl", "raymond list --status comp")
    script = "; ".join(["raymond completion fish | source", *(f"complete -C '{line}'; echo ===" for line in asked)])
    done = subprocess.run(
        ["fish", "--no-config", "-c", script],
        cwd=place.path,
        env=place.environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.stderr == ""
    found = [[line.split("\t")[0] for line in part.split("\n") if line] for part in done.stdout.split("===\n")[:-1]]
    assert found[:2] == [["nightly-1"], ["main"]]
    assert {word.rstrip("/") for word in found[2]} == {"plain-flow"}
    assert found[3] == ["completed"]
    assert not (place.path / "started-the-wrong-one").exists()


def test_no_script_starts_a_program_by_the_name_that_was_typed() -> None:
    assert all("$1" not in script and "/*" in script for script in SCRIPTS.values())
