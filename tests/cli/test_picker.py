"""A person on a terminal chooses one of several runs."""

import os
import pty
import sys
import threading
from pathlib import Path

import pytest

from raymond.cli import prompt
from raymond.control.naming import SeveralRuns
from raymond.control.runs import RunRow

ROWS = [
    RunRow(
        workflow_id=id, project=f"/home/ada/{id}", status="stopped", driven=False, reason="max_turns (2) was reached"
    )
    for id in ("one", "two", "three")
]


class Terminal:
    """The other end of stdin and stderr: types an answer whenever it is asked something."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._master, slave = pty.openpty()
        self._streams = [os.fdopen(os.dup(slave), "r"), os.fdopen(slave, "w", encoding="utf-8")]
        for name, stream in zip(("stdin", "stderr"), self._streams, strict=True):
            patch.setattr(sys, name, stream)
        self.shown = ""

    def types(self, *answers: bytes) -> None:
        """Answer the questions to come, each once it is shown; what is typed before that goes nowhere."""
        os.write(self._master, b"1\n")
        self._thread = threading.Thread(target=self._type, args=(answers,), daemon=True)
        self._thread.start()

    def _type(self, answers: tuple[bytes, ...]) -> None:
        shown = b""
        for number, answer in enumerate(answers, 1):
            while shown.count(b"> ") + shown.count(b"] ") < number:
                shown += os.read(self._master, 4096)
            os.write(self._master, answer)
        self.shown = shown.replace(b"\r", b"").decode("utf-8", "replace")

    def close(self) -> None:
        self._thread.join()
        for stream in self._streams:
            stream.close()
        os.close(self._master)


@pytest.fixture
def patch(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("COLUMNS", "80")
    return monkeypatch


def test_a_number_chooses_and_everything_else_asks_again(patch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(patch)
    assert prompt.can_ask_on_stderr()
    terminal.types(b"\n", b"4\n", b"two\n", b"0\n", b"\xb2\n", b"2\n")
    assert prompt.pick_run(SeveralRuns("3 runs match", ROWS)).workflow_id == "two"
    terminal.close()
    assert "3 runs match\n1  one    stopped  max_turns (2) was reached  /home/ada/one\n2  two " in terminal.shown
    assert "which one? 1-3 > " in terminal.shown
    assert terminal.shown.count("type a number from 1 to 3; Ctrl-C ends this") == 4


def test_the_end_of_the_input_chooses_nothing(patch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(patch)
    terminal.types(b"\x04")
    with pytest.raises(KeyboardInterrupt):
        prompt.pick_run(SeveralRuns("3 runs match", ROWS))
    terminal.close()


def test_only_yes_is_yes(patch: pytest.MonkeyPatch) -> None:
    for answers, agreed in (((b"\n", b"maybe\n", b"Yes\n"), True), ((b"n\n",), False)):
        terminal = Terminal(patch)
        terminal.types(*answers)
        assert prompt.agrees_on_stderr("stop all?") is agreed
        terminal.close()


def test_nobody_is_asked_without_a_terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    with (tmp_path / "empty").open() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert not prompt.can_ask_on_stderr()
