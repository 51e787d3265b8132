"""A gate that is tried, line by line: on a pipe, and on a terminal."""

import fcntl
import io
import os
import pty
import struct
import termios

from raymond.faces.trial import Trial
from raymond.verifier.assignment import Began, Ended, Found, Printed


def test_lines_stay_whole_however_they_are_printed() -> None:
    stream = io.StringIO()
    trial = Trial(stream)
    for told in (Began("make test"), Printed("a"), Printed("b\nc"), Printed("\n\nd"), Ended(1, 61.0)):
        trial.tell(told)
    for told in (Began("make test", again=1), Ended(None, 0.2)):
        trial.tell(told)
    trial.end("START.md", Found(verdict="timed out", reason="`make test` took longer than 1s"))
    trial.end("B.md", Found(verdict="passed", flaky=True))
    assert stream.getvalue() == (
        "$ make test\n  | ab\n  | c\n  | \n  | d\n  exit code 1 after 1m 1s\n"
        "$ make test (once more)\n  its time is over after 0s\n"
        "START.md: timed out: `make test` took longer than 1s\nB.md: passed (flaky: it was red the first time)\n"
    )


def test_a_line_without_an_end_is_not_held_for_ever() -> None:
    stream = io.StringIO()
    trial = Trial(stream)
    trial.tell(Printed("x" * 9000))
    assert stream.getvalue() == f"  | {'x' * 9000}\n"


def test_on_a_terminal_nothing_of_a_check_is_where_our_lines_begin() -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 20, 0, 0))
    with os.fdopen(theirs, "w", encoding="utf-8") as stream:
        trial = Trial(stream)
        trial.tell(Began("make test START.md: passed"))
        trial.tell(Printed("all fine START.md: passed\n\x1b[2J\r\n"))
        shown = os.read(ours, 4096).decode()
    os.close(ours)
    assert shown == (
        "$ make test \r\n  | START.md: passed\r\n  | all fine \r\n  | START.md: passed\r\n  | \\x1b[2J\r\n"
    )
