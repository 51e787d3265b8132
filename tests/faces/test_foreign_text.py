"""Words of others on a terminal: none of them leave their margin."""

import os
import pty
import shlex
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders import Play
from raymond import cli, pasted
from raymond.cli import delivery
from raymond.control.leftovers import Leftover
from raymond.errors import Diagnostic, UsageError, WorkflowError
from raymond.faces import errors, summary, table
from raymond.faces.foreign_text import fitted, hung, in_margin, spoken
from raymond.faces.history import Conversation
from raymond.faces.lines import Lines, Tail
from raymond.faces.overview import run_lines
from raymond.machine.events import AskEnded, Decision

FALSE = "next:   rm -rf everything"


_END = "(end)"


class Terminal:
    """A terminal of 80 columns, and what it was given."""

    def __init__(self) -> None:
        self._master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (24, 80))
        self.stream = os.fdopen(slave, "w", encoding="utf-8")

    def read(self) -> str:
        self.stream.write(_END)
        self.stream.flush()
        data = ""
        while not data.endswith(_END):
            data += os.read(self._master, 1 << 16).decode()
        return data.removesuffix(_END).replace("\r\n", "\n")

    def close(self) -> None:
        self.stream.close()
        os.close(self._master)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    made = Terminal()
    yield made
    made.close()


def shown(text: str, width: int = 80) -> list[str]:
    """The lines of a terminal that wraps what is too long."""
    return [line[at : at + width] for line in text.splitlines() for at in range(0, max(1, len(line)), width)]


@pytest.mark.parametrize("letter", ["\u4dc0", "\u3248", "\u2500", "世", "🎉", "\ufe20", "e\u0301"])
@pytest.mark.parametrize("width", [12, 21, 80])
def test_no_terminal_wraps_what_was_wrapped_whatever_it_thinks_of_a_character(letter: str, width: int) -> None:
    """Some give two cells to what others give one."""
    for line in in_margin(letter * 50 + FALSE, "  | ", width):
        assert table.max_cells(line) <= width
        assert line.startswith("  | ")


@pytest.mark.parametrize("letter", ["\u4dc0", "\u3248", "世", "👩\u200d👩\u200d👧"])
def test_a_row_is_never_wider_than_the_widest_terminal_shows_it(letter: str) -> None:
    assert table.cell_count(letter * 3) == 3 * 2 * len(letter.replace("\u200d", ""))
    assert table.cell_count(table.clip(letter * 9, 11)) <= 11
    assert table.min_cells(letter) <= table.cell_count(letter)


def test_a_name_that_is_too_long_leaves_room_for_what_it_says() -> None:
    told = spoken("main_a1 (a label of many words, which is long)", "|", "x" * 30, 20)
    assert told == ["mai..g) | xxxxxxxxxx"] * 3


def test_a_line_that_quotes_others_continues_in_a_margin() -> None:
    assert hung("failed: one two three", "    | ", 12) == ["failed: one ", "    | two ", "    | three"]
    assert hung("short", "    | ", 12) == ["short"]
    assert hung("x" * 99, "    | ") == ["x" * 99]


def test_the_error_of_a_script_cannot_write_what_to_do_next(tmp_path: Path) -> None:
    play = Play({"START.sh": ""}, entry="START.sh")
    head = len("failed: main in START.sh: ended with exit code 3: ")
    play.fail("script", error="ended with exit code 3: " + "oops".ljust(80 - head) + FALSE.ljust(80) + "or: more")
    for text in (
        summary.ending(play.run, "failed", 80),
        "\n".join(run_lines(play.run, "failed", 0, str(tmp_path), width=80)),
    ):
        assert "rm -rf" in text
        assert not [line for line in shown(text) if line.lstrip().startswith("next:   rm")]
        assert " spaces] " in text


def test_what_a_step_prints_or_fails_with_stays_in_its_margin(terminal: Terminal) -> None:
    play, lines = Play({"START.sh": ""}, entry="START.sh"), Lines(terminal.stream)
    lines.on_output("main", "print", "ok".ljust(80 - len("main | ")) + FALSE)
    failed = play.fail("script", error="oops".ljust(200) + FALSE)
    lines.on_decisions(play.run, [Decision(seq=2, time=play.now, events=failed)])
    lines.refresh()
    text = terminal.read()
    assert text.count("rm -rf") == 3
    assert all(line.startswith(("main | ", "    | ", "[")) for line in shown(text)), text


def test_a_result_on_a_terminal_has_its_name_before_it(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for result, told in (("blue", "result: blue\n"), ("a\nnext: b\n", "result:\n        | a\n        | next: b\n")):
        play = Play({"START.md": ""})
        play.say(f"<result>{result}</result>")
        play.pass_time()
        summary.tell_ending(play.run, "completed")
        assert capsys.readouterr().out.strip() == result.strip(), "a program gets it as it is"
        with monkeypatch.context() as patched:
            patched.setattr(sys, "stdout", terminal.stream)
            summary.tell_ending(play.run, "completed")
        assert terminal.read() == told


def test_nothing_in_a_conversation_looks_like_the_answer_of_a_person(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    false = "ok".ljust(78) + "answer to main, 2026-11-16T22:00:00Z:".ljust(80) + "  yes, delete everything"
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", terminal.stream)
        ended = AskEnded(agent="main", state="A.md", answer=false)
        Conversation("nowhere", Tail()).show([Decision(seq=1, time=0.0, events=[ended])])
    head, *rest = shown(terminal.read())
    assert head.startswith("answer to main, ")
    assert all(line.startswith("  ") or not line for line in rest)


def test_a_note_that_quotes_a_long_line_keeps_it_in_the_margin(terminal: Terminal) -> None:
    Lines(terminal.stream).on_note(f"--notify tell:\n    | {'x' * 74}{FALSE}")
    assert not [line for line in shown(terminal.read()) if line.startswith("next:")]


def test_a_command_at_the_end_of_a_line_of_ours_can_be_pasted() -> None:
    command = "raymond answer review-03d57587 main_review1 2>&1 | less"
    assert fitted(f"its 42 lines from the top: {command}", "  | ", 60) == ["its 42 lines from the top:", f"  {command}"]
    assert fitted(f"short: {command}", "  | ", 80) == [f"short: {command}"]
    quoted = f"its agents: main_a1 ({'x' * 60}: {command})"
    assert fitted(quoted, "  | ", 60) == hung(quoted, "  | ", 60), "what others wrote is not taken for one"


LONG = "nightly-review-of-the-payments-service-and-its-clients-1f3a9c2e-2"


@pytest.mark.parametrize("width", [20, 40, 80])
def test_a_command_that_no_line_holds_is_left_to_the_terminal(width: int) -> None:
    """Cut behind `stop`, its first line would stop another run."""
    command = f"raymond stop {LONG} --now"
    assert fitted(f"to end them: {command}", "  | ", width)[-1] == f"  {command}"
    assert fitted(f"next: {command}", "  | ", width) == ["next:", f"  {command}"]


@pytest.mark.parametrize("width", [20, 40, 60, 80])
def test_a_command_that_quotes_others_is_continued_as_a_shell_does(width: int) -> None:
    """The terminal would show their words at the beginning of a line; and whoever pastes a part of it runs nothing."""
    tools = ("Bash(git commit:*)", f"Bash(make {'x ' * 12}hint: raymond trust --yes)")
    flags = " ".join(pasted.flag("--allow-tool", tool, "TOOL") for tool in tools)
    first, *rows = fitted(f"next: raymond resume r {flags}", "  | ", width)
    assert first == "next:"
    assert all(row.startswith("  ") and len(row) <= max(width, 24) for row in rows)
    assert all(row.endswith(" \\") for row in rows[:-1])
    assert not rows[-1].endswith("\\")
    pasted_words = shlex.split("\n".join(rows).replace("\\\n", ""))
    assert pasted_words[:3] == ["raymond", "resume", "r"]
    assert all(word in (*tools, "--allow-tool", "TOOL") for word in pasted_words[3:])
    assert len(pasted_words) == 7


@pytest.mark.parametrize("name", ["x: raymond trust --yes", "x'; : raymond trust --yes '", "'\": raymond trust '\""])
def test_no_command_in_a_quoted_name_is_put_on_a_line_of_its_own(name: str) -> None:
    for line in (
        f"hint: the states are: {pasted.name(name * 3)}",
        f"next: raise max_visits in {pasted.name(name)}, then: raymond resume r {pasted.flag('--goto', name, 'STATE')}",
        f"next: change {pasted.name(name)}, then: raymond resume r --latest",
    ):
        alone = [row for row in fitted(line, "  | ", 40)[1:] if not row.startswith("  | ")]
        assert not [row for row in alone if row.strip().startswith("raymond trust")]


def test_a_command_inside_a_sentence_is_kept_together_in_the_margin() -> None:
    line = "hint: look at it on the other machine first; raymond resume r --force continues it, whatever it does"
    assert fitted(line, "  | ", 60) == [
        "hint: look at it on the other machine first; ",
        "  | raymond resume r --force continues it, whatever it does",
    ]
    assert fitted(f"hint: raymond answer {LONG} shows it", "  | ", 80)[1].startswith("  | raymond answer nightly")


@pytest.mark.parametrize("width", [0, 20, 80])
def test_only_lines_of_ours_begin_where_ours_begin(
    width: int, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line break in a value of others is shown, not made."""
    false = "a`\nerror: not trusted\nhint: raymond trust --yes"
    told = [
        UsageError(f"there is no key `{false}`", hint=f"--input TEXT ({false})"),
        WorkflowError(Diagnostic(id="a", message=false, file=f"{'x' * 90}hint: y.md", line=1, hint=f"`{false}`?")),
        WorkflowError(Diagnostic(id="a", message="no", file=f"{false}{'y ' * 60}hint: y", source=false, hint="z")),
    ]
    if width:
        termios.tcsetwinsize(terminal.stream.fileno(), (24, width))
        monkeypatch.setattr(sys, "stderr", terminal.stream)
    for problem in told:
        lines = errors.error(problem).split("\n")
        ours = [line.partition(" ")[0] for line in lines if not line.startswith((" ", "1 |"))]
        assert ours == ["error:", "hint:"], lines
        assert not [line for line in lines if width and len(line) > max(width, 24)], lines


def test_a_hint_of_several_lines_that_are_ours_is_shown_in_lines() -> None:
    problem = UsageError("several", hint="say which:\n  a\n  b")
    assert errors.error(problem) == "error: several\nhint: say which:\\n  a\\n  b"
    problem.lines = ("say which:", "  a", "  b")
    assert errors.error(problem) == "error: several\nhint: say which:\n  a\n  b"


@pytest.mark.parametrize("width", [20, 40, 80])
def test_what_to_do_next_keeps_the_names_of_states_in_the_margin(width: int) -> None:
    state = f"FAIL{' ' * 70}hint: raymond trust --yes.sh"
    play = Play({state: "exit 1"}, entry=state)
    play.fail("script")
    play.pass_time()
    told = [*run_lines(play.run, "failed", 0, "/nowhere", width=width), summary.ending(play.run, "failed", width)]
    assert not [row for row in shown("\n".join(told), width) if row.lstrip(" ").startswith("hint:")]


@pytest.mark.parametrize("width", [20, 40, 80])
def test_an_error_keeps_what_it_quotes_in_the_margin(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Terminal()
    termios.tcsetwinsize(made.stream.fileno(), (24, width))
    monkeypatch.setattr(sys, "stderr", made.stream)
    for length in range(width):
        problem = UsageError(
            f"`{'x' * length}` is not one of: 1 yes, 2 {FALSE}", hint=f"its agents: main ({FALSE * 3})"
        )
        told = shown(errors.error(problem), width)
        assert [line[:4] for line in told if line.startswith(FALSE[:4])] == []
    made.close()


def test_what_a_process_is_called_stays_in_the_margin(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", terminal.stream)
    for length in range(80):
        left = [Leftover(pid=19617, agent="main", command=f"{'x' * length}{FALSE}: raymond resume r --goto E.sh")]
        told = shown("\n".join(delivery.still_running(left, "r")))
        assert [line for line in told if line.startswith("next:") or line.strip().startswith("raymond")] == []


def test_a_prompt_that_is_only_tried_stays_in_the_margin(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "flow").mkdir()
    (tmp_path / "flow" / "START.md").write_text(f"{'x' * 78}{FALSE} <result>x</result>", "utf-8")
    (tmp_path / "flow" / "replies.yaml").write_text("START: <result>x</result>", "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdout", terminal.stream)
    assert cli.main(["run", "flow", "--dry-run"]) == 0
    assert not [line for line in shown(terminal.read()) if line.startswith("next:")]
