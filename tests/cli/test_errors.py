"""Mistakes as people meet them: what the real command says, where, the way out, its exit code, and that nothing is lost."""

import fcntl
import hashlib
import io
import os
import pty
import re
import shlex
import shutil
import socket
import stat
import struct
import subprocess
import sys
import termios
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from raymond.store import program_cache
from running import PATIENCE, Room, as_anyone

DONE = {"START.sh": "echo '<result>done</result>'"}
RAYMOND = (sys.executable, "-m", "raymond")
FORMS = "a workflow is a folder, a .zip, or one file that ends in .md .sh .py .ps1 .bat"


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = Room(tmp_path)
    # A project as it is after the first start, so that whatever else appears in it is seen.
    (room.path / ".raymond" / "workflows").mkdir(parents=True)
    (room.path / ".raymond" / ".gitignore").touch()
    room.project.make()
    yield room
    room.clear()


class Row:
    """One mistake: what there is, what is typed, and the answer."""

    def __init__(
        self,
        typed: str,
        said: str,
        *,
        code: int,
        flow: Mapping[str, str] | None = None,
        there: Callable[[Room], object] = lambda room: None,
        stdin: bytes = b"",
        obeys: bool = False,
    ) -> None:
        self.typed, self.said, self.code, self.flow, self.there, self.stdin = typed, said, code, flow, there, stdin
        self.obeys = obeys
        """The command has to be one that permissions hold for."""


def everything(room: Room) -> dict[str, tuple[int, bytes]]:
    """Every path of the project and the home with its kind, permissions and content; a last use is no record."""
    found = {}
    for path in (*room.path.rglob("*"), *room.home.rglob("*")):
        about = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(about.st_mode) and os.access(path, os.R_OK) else b""
        if path.name not in ("project.json", program_cache.VERDICTS_FILE):
            found[str(path)] = (about.st_mode, content)
    return found


def plainly(room: Room, text: str) -> str:
    for path, name in ((room.project.runs, "RUNS"), (room.home, "HOME"), (room.path, "PROJECT")):
        text = text.replace(str(path), name)
    return text


def check(room: Room, row: Row) -> None:
    if row.flow is not None:
        room.flow(row.flow, "room/flow")
    row.there(room)
    before = everything(room)
    done = subprocess.run(
        [*(as_anyone() if row.obeys else ()), *RAYMOND, *row.typed.split()],
        cwd=room.path,
        env=room.environment,
        input=row.stdin,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    said = dedent(row.said).lstrip("\n")
    assert (done.returncode, done.stdout, plainly(room, done.stderr.decode())) == (row.code, b"", said)
    assert everything(room) == before, "nothing was made, changed or lost"


# Workflows that cannot be started


def link(name: str, to: str) -> Callable[[Room], None]:
    return lambda room: (room.path / name).symlink_to(to)


def pipe(name: str) -> Callable[[Room], None]:
    return lambda room: os.mkfifo(room.path / name)


def listening(room: Room) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(room.path / "flow" / "TALK.md"))


def mode(name: str, bits: int) -> Callable[[Room], None]:
    return lambda room: (room.path / name).chmod(bits)


def content(name: str, data: bytes) -> Callable[[Room], None]:
    def write(room: Room) -> None:
        (room.path / name).write_bytes(data)

    return write


PATHS = {
    "a path that is not there": Row(
        "run nowhere",
        f"""
        error: there is no `nowhere`
         --> nowhere
        hint: {FORMS}
        """,
        code=2,
    ),
    "a path that is almost there": Row(
        "run flwo",
        """
        error: there is no `flwo`
         --> flwo
        hint: did you mean `flow`?
        """,
        code=2,
        flow=DONE,
    ),
    "a path alone that is not there": Row(
        "./nowhere",
        f"""
        error: there is no `./nowhere`
         --> ./nowhere
        hint: {FORMS}
        """,
        code=2,
    ),
    "an empty folder": Row(
        "run empty",
        """
        error: there is nothing in `empty`
         --> empty
        hint: add START.md
        """,
        code=6,
        there=lambda room: (room.path / "empty").mkdir(),
    ),
    "no entry": Row(
        "run flow",
        """
        error: there is no `1_START` or `START`, and there is more than one state
         --> flow
        hint: rename the one to begin with to START, or name it: flow/A.sh; the states are: A.sh, B.sh
        """,
        code=6,
        flow={"A.sh": "", "B.sh": ""},
    ),
    "two entries": Row(
        "run flow",
        """
        error: both `1_START.sh` and `START.sh` could start
         --> flow
        hint: keep one, or name the one to start: flow/1_START.sh
        """,
        code=6,
        flow={"START.sh": "", "1_START.sh": ""},
    ),
    "two entries that differ in their extension": Row(
        "run flow",
        """
        error: both `START.py` and `START.sh` could start
         --> flow
        hint: keep one, or name the one to start: flow/START.py
        """,
        code=6,
        flow={"START.sh": "", "START.py": ""},
    ),
    "a file that is not a workflow": Row(
        "run notes.txt",
        f"""
        error: `notes.txt` is not a workflow
         --> notes.txt
        hint: {FORMS}
        """,
        code=6,
        there=content("notes.txt", b"x"),
    ),
    "a link that leads nowhere": Row(
        "run link",
        """
        error: `link` is a broken link
         --> link
        hint: make `gone`, or remove the link
        """,
        code=2,
        there=link("link", "gone"),
    ),
    "a link in the workflow that leads nowhere": Row(
        "run flow",
        """
        error: `NEXT.md` is a broken link
         --> NEXT.md
        hint: remove it
        """,
        code=6,
        flow=DONE,
        there=link("flow/NEXT.md", "gone"),
    ),
    "a link that leads out of the workflow": Row(
        "run flow",
        """
        error: `NEXT.md` is a link that leads out of the workflow, to `/etc/passwd`
         --> NEXT.md
        hint: put a copy of it in the workflow
        """,
        code=6,
        flow=DONE,
        there=link("flow/NEXT.md", "/etc/passwd"),
    ),
    "a pipe in the workflow": Row(
        "run flow",
        """
        error: `TALK.md` is not a regular file
         --> TALK.md
        hint: move it out of the workflow
        """,
        code=6,
        flow=DONE,
        there=pipe("flow/TALK.md"),
    ),
    "a socket in the workflow": Row(
        "run flow",
        """
        error: `TALK.md` is not a regular file
         --> TALK.md
        hint: move it out of the workflow
        """,
        code=6,
        flow=DONE,
        there=listening,
    ),
    "a file that may not be read": Row(
        "run flow",
        """
        error: `SECRET.md` cannot be read: permission denied
         --> SECRET.md
        hint: make it readable, or move it away
        """,
        code=6,
        flow={**DONE, "SECRET.md": ""},
        there=mode("flow/SECRET.md", 0),
        obeys=True,
    ),
    "a folder that may not be read": Row(
        "run flow",
        """
        error: `flow` cannot be read: permission denied
         --> flow
        hint: make it readable, or move it away
        """,
        code=6,
        flow=DONE,
        there=mode("flow", 0),
        obeys=True,
    ),
    "a file in a folder that may not be searched": Row(
        "run flow/START.sh",
        """
        error: `flow/START.sh` cannot be read: permission denied
         --> flow/START.sh
        hint: make it readable, or move it away
        """,
        code=6,
        flow=DONE,
        there=mode("flow", 0),
        obeys=True,
    ),
    "a zip that may not be read": Row(
        "run flow.zip",
        """
        error: `flow.zip` cannot be read: permission denied
         --> flow.zip
        hint: make it readable, or move it away
        """,
        code=6,
        there=lambda room: [content("flow.zip", b"x")(room), mode("flow.zip", 0)(room)],
        obeys=True,
    ),
    "a name that a terminal would obey": Row(
        "run flow",
        """
        error: `a\\nb\\x1b[31m.md` is not allowed as a file name in a workflow
         --> PROJECT/flow
        hint: rename it
        """,
        code=6,
        flow=DONE,
        there=content("flow/a\nb\x1b[31m.md", b"x"),
    ),
}


# What stands in the files


def prompt(text: str, **more: str) -> dict[str, str]:
    return {"START.md": dedent(text).lstrip("\n"), "replies.yaml": "", **more}


FILES = {
    "a file that is not UTF-8": Row(
        "run flow",
        """
        error: byte 10 of `NEXT.md` is not UTF-8
         --> flow/NEXT.md:2:4
          |
        2 | caf\ufffd crème
          |    ^
        hint: save it as UTF-8
        """,
        code=6,
        flow=DONE,
        there=content("flow/NEXT.md", b"Order\ncaf\xe9 cr\xc3\xa8me\n"),
    ),
    "YAML with tabs": Row(
        "run flow",
        """
        error: YAML cannot be indented with tabs
         --> flow/START.md:3:1
          |
        3 | \t- {tag: result}
          | ^
        hint: use spaces
        """,
        code=6,
        flow={"START.md": "---\nallowed_transitions:\n\t- {tag: result}\n---\n"},
    ),
    "a mistake behind a tab": Row(
        "run flow",
        """
        error: `force_implicit` must be true or false
         --> flow/START.md:2:17
          |
        2 | force_implicit:\tyes
          |                \t^^^
        hint: write true or false
        """,
        code=6,
        flow={"START.md": "---\nforce_implicit:\tyes\n---\n"},
    ),
    "a letter that a terminal would obey": Row(
        "run flow",
        """
        error: the character U+001B is not allowed in YAML
         --> flow/START.md:2:8
          |
        2 | model: \ufffd[31mred
          |        ^
        hint: remove it
        """,
        code=6,
        flow={"START.md": "---\nmodel: \x1b[31mred\n---\n"},
    ),
    "a mistake behind wide letters": Row(
        "run flow",
        """
        error: there is no state `終了`
         --> flow/START.md:1:10
          |
        1 | 次へ <goto>終了</goto>
          |            ^^^^
        hint: the states are: START.md
        """,
        code=6,
        flow=prompt("次へ <goto>終了</goto>"),
    ),
    "a mistake in a very long line": Row(
        "run flow",
        f"""
        error: there is no state `NEXTT`
         --> flow/START.md:1:50007
          |
        1 | {"x" * 94}<goto>NEXTT</goto>{"y" * 88}
          | {" " * 100}^^^^^
        hint: did you mean `NEXT.md`?
        """,
        code=6,
        flow=prompt(f"{'x' * 50000}<goto>NEXTT</goto>{'y' * 50000}", **{"NEXT.md": ""}),
    ),
    "yes and no for true and false": Row(
        "run flow",
        """
        error: `force_implicit` must be true or false
         --> flow/START.md:2:17
          |
        2 | force_implicit: yes
          |                 ^^^
        hint: write true or false
        error: `in_place` must be true or false
         --> flow/START.md:3:11
          |
        3 | in_place: no
          |           ^^
        hint: write true or false
        """,
        code=6,
        flow=prompt("---\nforce_implicit: yes\nin_place: no\n---\n"),
    ),
    "a target that is not there": Row(
        "run flow",
        """
        error: there is no state `QUIT`
         --> flow/START.md:1:15
          |
        1 | Go on: `<goto>QUIT</goto>`
          |               ^^^^
        hint: the states are: REVIEW.md, START.md
        """,
        code=6,
        flow=prompt("Go on: `<goto>QUIT</goto>`\n", **{"REVIEW.md": ""}),
    ),
    "a script that is no Python": Row(
        "run flow",
        """
        error: not valid Python: '(' was never closed
         --> flow/START.py:2:6
          |
        2 | print("<result>"
          |      ^
        hint: `python3 -m py_compile` says the same
        """,
        code=6,
        flow={"START.py": 'name = 1\nprint("<result>"\n'},
    ),
    "a file to include that lies outside": Row(
        "run flow/START.sh",
        """
        error: `include` names `../secrets`, which leads out of its folder
         --> workflow.yaml
        hint: paths are relative to the folder of workflow.yaml
        """,
        code=6,
        flow={**DONE, "workflow.yaml": "include: ../secrets"},
    ),
}


# Zips


def zipped(contents: Mapping[str, bytes], name: str = "flow.zip") -> Callable[[Room], None]:
    return content(name, packed(contents))


def packed(contents: Mapping[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in contents.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return made.getvalue()


def damaged() -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("START.sh", "echo hello")
    return made.getvalue().replace(b"hello", b"hullo")


START = {"START.sh": b"echo '<result>done</result>'"}
ZIPS = {
    "a zip bomb": Row(
        "run flow.zip",
        """
        error: this zip unpacks to more than 100 times its size, like a zip bomb
         --> flow.zip
        hint: if you trust it, unpack it and run the folder
        """,
        code=6,
        there=zipped({**START, "lib/zeros": b"\0" * 5_000_000}),
    ),
    "a zip that was cut off": Row(
        "run flow.zip",
        """
        error: not a zip file, or it is damaged
         --> flow.zip
        hint: make it again
        """,
        code=6,
        there=content("flow.zip", packed(START)[:-30]),
    ),
    "a file that only says it is a zip": Row(
        "run flow.zip",
        """
        error: not a zip file, or it is damaged
         --> flow.zip
        hint: make it again
        """,
        code=6,
        there=content("flow.zip", b""),
    ),
    "a zip with a damaged file": Row(
        "run flow.zip",
        """
        error: `START.sh` is damaged in this zip
         --> flow.zip
        hint: make it again
        """,
        code=6,
        there=content("flow.zip", damaged()),
    ),
    "an empty zip": Row(
        "run flow.zip",
        """
        error: there is nothing in this zip
         --> flow.zip
        hint: add START.md
        """,
        code=6,
        there=zipped({}),
    ),
    "a zip that is not the one its name promises": Row(
        f"run flow-{'0' * 64}.zip",
        f"""
        error: the SHA-256 in the name of this zip does not match its content
         --> flow-{"0" * 64}.zip
        hint: get it again, or rename it: its SHA-256 is DIGEST
        """.replace("DIGEST", hashlib.sha256(packed(START)).hexdigest()),
        code=6,
        there=zipped(START, f"flow-{'0' * 64}.zip"),
    ),
}


# Names of runs, and what is kept of them


def begun(room: Room) -> None:
    room.drive(DONE, id="review-1f3a")


def kept(data: bytes) -> Callable[[Room], None]:
    """A run `r` whose journal has this content."""

    def put(room: Room) -> None:
        room.folder().mkdir()
        Path(room.project.run("r").journal).write_bytes(data)

    return put


def harmed(line: int) -> Callable[[Room], None]:
    """A run, one line of whose journal was damaged."""

    def harm(room: Room) -> None:
        begun(room)
        path = Path(room.project.run("review-1f3a").journal)
        lines = path.read_bytes().splitlines(keepends=True)
        lines[line - 1] = lines[line - 1].replace(b'"', b"'", 1)
        path.write_bytes(b"".join(lines))

    return harm


def in_the_way(room: Room) -> None:
    os.rmdir(room.project.home.sources)
    Path(room.project.home.sources).write_text("in the way")


def closed(room: Room) -> None:
    room.drive({"START.sh": "echo '<ask next=\"START\">well?</ask>'"}, id="review-1f3a")
    Path(room.project.run("review-1f3a").journal).chmod(0o400)


def unmade(room: Room) -> None:
    shutil.rmtree(room.home)
    room.home.parent.chmod(0o500)


def unwritable(room: Room) -> None:
    Path(room.project.runs).chmod(0o500)


FOLDER_JOURNAL = """
error: RUNS/r/journal.jsonl: is a directory
hint: this cannot be repaired: restore a copy of the file, or move its folder away
"""
EMPTY_JOURNAL = """
error: RUNS/r/journal.jsonl ends before its run begins
hint: nothing was run: delete RUNS/r, then `r` can be an id again
"""
LOST_BEGINNING = """
error: line 2 of RUNS/review-1f3a/journal.jsonl is damaged and good lines follow it
hint: this cannot be repaired: restore a copy of the file, or move its folder away
"""


def closed_journal(room: Room) -> None:
    kept(b"whatever\n")(room)
    Path(room.project.run("r").journal).chmod(0)


def folder_journal(room: Room) -> None:
    os.makedirs(room.project.run("r").journal)


RUNS = {
    "an id that is almost there": Row(
        "status reviw-1f3a",
        """
        error: there is no run `reviw-1f3a` here or in any other project
        hint: did you mean `review-1f3a`?
        """,
        code=2,
        there=begun,
    ),
    "an id that is not there": Row(
        "resume zzz",
        """
        error: there is no run `zzz` here or in any other project
        hint: `raymond list --all` shows the runs of all projects
        """,
        code=2,
        there=begun,
    ),
    "an id that leads elsewhere": Row(
        "resume ../runs/review-1f3a",
        """
        error: `../runs/review-1f3a` is not a run id
        hint: an id has letters, digits, _ and - only
        """,
        code=2,
        there=begun,
    ),
    "an id that a terminal would obey": Row(
        "status \x1b[31mred",
        """
        error: `\\x1b[31mred` is not a run id
        hint: an id has letters, digits, _ and - only
        """,
        code=2,
        there=begun,
    ),
    "an id that exists already": Row(
        "run flow --id review-1f3a",
        """
        error: run `review-1f3a` already exists
        hint: `raymond status review-1f3a` shows it; choose another --id
        """,
        code=2,
        flow=DONE,
        there=begun,
    ),
    "the status of a journal that is a folder": Row("status r", FOLDER_JOURNAL, code=1, there=folder_journal),
    "resuming a journal that is a folder": Row("resume r", FOLDER_JOURNAL, code=1, there=folder_journal),
    "stopping a journal that is a folder": Row("stop r", FOLDER_JOURNAL, code=1, there=folder_journal),
    "repairing a journal that is a folder": Row("doctor --repair r", FOLDER_JOURNAL, code=1, there=folder_journal),
    "the status of a journal that may not be read": Row(
        "status r",
        """
        error: RUNS/r/journal.jsonl: permission denied
        hint: chmod u+rw RUNS/r/journal.jsonl, as the user it belongs to; then the same command again
        """,
        code=1,
        there=closed_journal,
        obeys=True,
    ),
    "the status of an empty journal": Row("status r", EMPTY_JOURNAL, code=1, there=kept(b"")),
    "resuming an empty journal": Row("resume r", EMPTY_JOURNAL, code=1, there=kept(b"")),
    "answering an empty journal": Row("answer r yes", EMPTY_JOURNAL, code=1, there=kept(b"")),
    "repairing an empty journal": Row("doctor --repair r", EMPTY_JOURNAL, code=1, there=kept(b"")),
    "a journal that is none": Row(
        "resume r",
        """
        error: RUNS/r/journal.jsonl is not a journal of Raymond, or its first line is damaged
        hint: this cannot be repaired: restore a copy of the file, or move its folder away
        """,
        code=1,
        there=kept(b"no journal\n"),
    ),
    "a journal with a first line from elsewhere": Row(
        "resume r",
        """
        error: line 1 of RUNS/r/journal.jsonl has something that this version does not know (Expected `int`, got `str` - at `$.format`)
        hint: it was written by another version of Raymond: use that one; nothing was changed
        """,
        code=1,
        there=kept(b'{"format":"two","sum":"%08x"}\n' % zlib.crc32(b'{"format":"two"')),
    ),
    "a journal that is damaged": Row(
        "resume review-1f3a",
        """
        error: line 3 of RUNS/review-1f3a/journal.jsonl is damaged and good lines follow it
        hint: `raymond doctor --repair review-1f3a` keeps a copy, cuts the journal there and lists the lost steps
        """,
        code=1,
        there=harmed(3),
    ),
    "a journal whose beginning is damaged": Row("resume review-1f3a", LOST_BEGINNING, code=1, there=harmed(2)),
    "repairing a journal whose beginning is damaged": Row(
        "doctor --repair review-1f3a", LOST_BEGINNING, code=1, there=harmed(2)
    ),
    "a journal that may not be written": Row(
        "resume review-1f3a",
        """
        error: RUNS/review-1f3a/journal.jsonl: permission denied
        hint: chmod u+rw RUNS/review-1f3a/journal.jsonl, as the user it belongs to; then the same command again
        """,
        code=1,
        there=closed,
        obeys=True,
    ),
    "a place for runs that may not be written": Row(
        "run flow --id r",
        """
        error: RUNS/r/journal.jsonl: permission denied
        hint: no run was started: fix this, then start it again
        """,
        code=1,
        flow=DONE,
        there=unwritable,
        obeys=True,
    ),
    "a place for runs that cannot be made": Row(
        "run flow --id r",
        """
        error: runs cannot be kept in HOME/projects (RAYMOND_HOME): it cannot be created: permission denied
        hint: set RAYMOND_HOME to a folder of your own, outside of your projects
        """,
        code=2,
        flow=DONE,
        there=unmade,
        obeys=True,
    ),
    "a place for runs that is a file": Row(
        "run flow --id r",
        """
        error: runs cannot be kept in HOME/sources (RAYMOND_HOME): it is not a folder
        hint: set RAYMOND_HOME to a folder of your own, outside of your projects
        """,
        code=2,
        flow=DONE,
        there=in_the_way,
    ),
}


# What was typed

TYPED = {
    "a word that is almost a command": Row(
        "statsu",
        """
        error: there is no command or workflow `statsu`
        hint: did you mean `raymond status`?
        """,
        code=2,
    ),
    "a word that is no command": Row(
        "frobnicate",
        """
        error: there is no command or workflow `frobnicate`
        hint: raymond --help lists the commands
        """,
        code=2,
    ),
    "a setting without a key": Row(
        "run flow --set START",
        """
        error: `START` is not STATE.KEY=VALUE
        hint: --set REVIEW.md.max_visits=5
        """,
        code=2,
        flow=DONE,
    ),
    "a setting without a value": Row(
        "run flow --set START.retries",
        """
        error: `START.retries` is not STATE.KEY=VALUE
        hint: --set REVIEW.md.max_visits=5
        """,
        code=2,
        flow=DONE,
    ),
    "a setting that is no YAML": Row(
        "run flow --set START.retries=[1",
        """
        error: `[1` cannot be read as a value of retries
        hint: --set REVIEW.md.max_visits=5
        """,
        code=2,
        flow=DONE,
    ),
    "a setting of a key that does not exist": Row(
        "run flow --set START.retires=1",
        """
        error: there is no key `retires`
         --> --set START.retires=1
        hint: did you mean `retries`?
        """,
        code=6,
        flow=DONE,
    ),
    "a setting with a value of the wrong kind": Row(
        "run flow --set START.retries=true",
        """
        error: `retries` must be a whole number, 0 or more
         --> --set START.retries=true
        hint: retries: 3
        """,
        code=6,
        flow=DONE,
    ),
    "a setting of a state that is not there": Row(
        "run flow --set STRAT.retries=1",
        """
        error: there is no state `STRAT`
         --> --set STRAT
        hint: did you mean `START.sh`?
        """,
        code=6,
        flow=DONE,
    ),
    "a variable without a value": Row(
        "run flow --var colour",
        """
        error: `colour` is not a variable
        hint: --var name=value
        """,
        code=2,
        flow=DONE,
    ),
    "a variable without a name": Row(
        "run flow --var =red",
        """
        error: `=red` is not a variable
        hint: --var name=value
        """,
        code=2,
        flow=DONE,
    ),
    "a variable whose name is none": Row(
        "run flow --var a-b=red",
        """
        error: `a-b` cannot be the name of a variable
        hint: use letters, digits and _, and do not begin with a digit
        """,
        code=2,
        flow=DONE,
    ),
    "a backend that is not there": Row(
        "run flow --backend telepathy",
        """
        error: there is no backend `telepathy`
        hint: there are: scripted, scripted-program, claude, codex
        """,
        code=5,
        flow=DONE,
    ),
}

ROWS = {**PATHS, **FILES, **ZIPS, **RUNS, **TYPED}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_a_mistake_is_answered_with_its_place_and_the_way_out_and_nothing_is_lost(room: Room, row: Row) -> None:
    check(room, row)


NOWHERE = "cannot be read: no such file or directory\nhint: paths are relative to this directory"
NO_SENSE = {
    "a flag that does not exist": (
        "run flow --bugdet 1",
        "there is no flag `--bugdet`\nhint: did you mean `--budget`?",
    ),
    "a flag like no other": ("run flow --frobnicate", "there is no flag `--frobnicate`\nhint: raymond run --help"),
    "an argument that is missing": ("run", "PATH is missing\nhint: raymond run PATH"),
    "an argument too many": ("run flow more", "`more` is one argument too many\nhint: raymond run --help"),
    "an empty argument too many": ("list ''", "`''` is one argument too many\nhint: raymond list --help"),
    "a flag without its value": ("run flow --budget", "`--budget` needs a value\nhint: raymond run --help"),
    "a budget that is no number": (
        "run flow --budget much",
        "--budget: `much` is not a number of dollars, 0 or more\nhint: --budget 5",
    ),
    "a time that is no time": (
        "run flow --max-time long",
        "--max-time: `long` is not a duration, like 90s, 10m or 2h\nhint: --max-time 8h",
    ),
    "a time that is too long": (
        "run flow --timeout 400d",
        "--timeout: `400d` is not a duration of at most 366d, like 90s, 10m or 2h\nhint: --timeout 10m",
    ),
    "a root that is not there": (
        "run flow --root nowhere",
        "there is no directory `nowhere`\nhint: --root names one that agents may `cd` to",
    ),
    "a log file in a folder that is not there": (
        "run flow --log-file /nowhere/log.txt",
        "--log-file /nowhere/log.txt: no such file or directory\nhint: mkdir -p /nowhere",
    ),
    "a URL that nothing can be sent to": (
        "run flow --notify ftp://x",
        ("--notify ftp://x: ftp is not supported\nhint: give a command, or a URL that begins with https:// or http://"),
    ),
    "a command of other programs": (
        "lint flow",
        "there is no command or workflow `lint`\nhint: raymond run PATH --dry-run checks a workflow and starts nothing",
    ),
    "a time without its unit": (
        "clean --keep 30",
        "--keep: `30` is not a duration, like 90s, 10m or 2h\nhint: --keep 30d",
    ),
    "a word that starts nothing": (
        "new",
        (
            "there is no command or workflow `new`\n"
            "hint: a folder with a START.md in it is a workflow: raymond demo shows one, raymond run PATH runs it"
        ),
    ),
    "a count that is no whole number": (
        "run flow --max-iterations 1.5",
        "--max-iterations: `1.5` is not a whole number, 1 or more\nhint: raymond run --help",
    ),
    "a count below the first": (
        "logs r --tail 0",
        "--tail: `0` is not a whole number, 1 or more\nhint: raymond logs --help",
    ),
    "a count of none": (
        "run flow --max-parallel 0",
        "--max-parallel: `0` is not a whole number, 1 or more\nhint: raymond run --help",
    ),
    "a budget below nothing": (
        "run flow --budget -1",
        "--budget: `-1` is not a number of dollars, 0 or more\nhint: --budget 5",
    ),
    "a variable for the input": (
        "run flow --var input=1",
        "--var cannot set `input`, a built-in variable\nhint: --input TEXT",
    ),
    "a built-in variable": (
        "run flow --var state=1",
        "--var cannot set `state`, a built-in variable\nhint: choose another name",
    ),
    "an input that is not there": ("run flow --input @nowhere.txt", f"`nowhere.txt` {NOWHERE}"),
    "replies that are not there": ("run flow --replies nowhere.yaml", f"`nowhere.yaml` {NOWHERE}"),
    "an input that is not UTF-8": ("run flow --input -", "stdin is not UTF-8 (byte 4)\nhint: save it as UTF-8"),
}


@pytest.mark.parametrize(("typed", "said"), NO_SENSE.values(), ids=NO_SENSE)
def test_a_command_that_makes_no_sense_is_answered_with_what_is_wrong_and_starts_nothing(
    room: Room, typed: str, said: str
) -> None:
    room.flow(DONE, "room/flow")
    before = everything(room)
    done = run(room, *RAYMOND, *shlex.split(typed), input=b"caf\xe9")
    assert (done.returncode, done.stdout, done.stderr.decode()) == (2, b"", f"error: {said}\n")
    assert everything(room) == before


# Scripts that do not say where to go

SILENT = "the output has no transition"
TORN = "the output has two transitions: <goto>NEXT</goto> and <result>"


@pytest.mark.parametrize(
    ("script", "why"), [("echo hello", SILENT), ("echo '<goto>NEXT</goto><result>x</result>'", TORN)]
)
def test_a_script_without_one_transition_fails_its_agent_and_the_run_is_kept(room: Room, script: str, why: str) -> None:
    ran = room.command({"START.sh": script, "NEXT.sh": "echo '<result>next</result>'"})
    assert (ran.code, ran.out) == (1, "")
    assert [re.sub(r"after \S+", "after T", line) for line in ran.lines] == [
        "run r started here: flow at START.sh, budget $10.00 (default)",
        "main starts at START.sh",
        f"main step 1 failed (script): {why}",
        f"main failed (script): {why}",
        "run failed",
        "failed: r after T",
        "why:    1 agent failed",
        "cost:   $0.00 in 1 step",
        f"failed: main in START.sh: {why}",
        "next:   change START.sh, then: raymond resume r --latest",
        "or:     raymond resume r --agent main --retry",
    ]
    assert room.project.ids() == ["r"]


# Streams


def run(
    room: Room, *command: str, environment: Mapping[str, str | None] = {}, input: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Any command in the project; a variable that is None is not there."""
    given = {**room.environment, **environment}
    return subprocess.run(
        command,
        cwd=room.path,
        env={name: value for name, value in given.items() if value is not None},
        input=input,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )


def in_bash(room: Room, line: str, *args: str) -> subprocess.CompletedProcess[bytes]:
    """`RAYMOND` in the line is the command with these arguments."""
    return run(room, "bash", "-c", line.replace("RAYMOND", '"$@"'), "bash", *RAYMOND, *args)


def finished(room: Room, id: str, result: str) -> None:
    done = room.raymond("status", id)
    assert (done.returncode, done.stdout.splitlines()[-2:]) == (0, [f"result: {result}", f"next: raymond logs {id}"])


ECHO = {"START.sh": 'echo "<result>[$RAYMOND_INPUT]</result>"'}


@pytest.mark.parametrize("flags", [(), ("--input", "-")])
def test_a_run_whose_stdin_is_closed_has_an_empty_input(room: Room, flags: tuple[str, ...]) -> None:
    done = in_bash(room, "RAYMOND <&-", "run", room.flow(ECHO), "--id", "r", *flags)
    assert (done.returncode, done.stdout) == (0, b"[]\n")
    finished(room, "r", "[]")


def test_a_workflow_that_needs_an_input_says_so_when_stdin_is_closed(room: Room) -> None:
    flow = room.flow({**ECHO, "workflow.yaml": "input: {required: true}"})
    done = in_bash(room, "RAYMOND <&-", "run", flow, "--input", "-")
    assert (done.returncode, done.stderr) == (2, b"error: flow needs an input\nhint: --input TEXT\n")
    assert room.project.ids() == []


def test_a_run_whose_stdout_is_closed_keeps_its_result(room: Room) -> None:
    done = in_bash(room, "RAYMOND >&-", "run", room.flow(ECHO), "--id", "r")
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr.endswith(b"result: []\nnext:   raymond logs r\n")
    finished(room, "r", "[]")


@pytest.mark.slow
@pytest.mark.parametrize("args", [("list",), ("list", "--json"), ("status",), ("--help",)])
def test_looking_with_stdout_closed_says_nothing(room: Room, args: tuple[str, ...]) -> None:
    begun(room)
    done = in_bash(room, "RAYMOND >&-", *args)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.slow
@pytest.mark.parametrize("args", [("list",), ("list", "--json"), ("status",), ("status", "--json"), ("--help",)])
def test_a_pipe_that_breaks_is_no_error_that_anybody_has_to_read(room: Room, args: tuple[str, ...]) -> None:
    begun(room)
    done = in_bash(room, "RAYMOND | true; exit ${PIPESTATUS[0]}", *args)
    assert (done.returncode in (0, 141), done.stdout, done.stderr) == (True, b"", b"")
    done = in_bash(room, "RAYMOND | head -c1; exit ${PIPESTATUS[0]}", *args)
    assert (done.returncode in (0, 141), len(done.stdout), done.stderr) == (True, 1, b"")


@pytest.mark.slow
def test_an_error_that_nobody_can_read_keeps_its_exit_code(room: Room) -> None:
    assert in_bash(room, "RAYMOND 2>&-", "run", "nowhere").returncode == 2


# Places that lack something


@pytest.mark.slow
@pytest.mark.parametrize("missing", ["TERM", "PATH", "LANG", "USER"])
def test_a_run_needs_no_variable_of_the_environment(room: Room, missing: str) -> None:
    done = run(room, *RAYMOND, "run", room.flow(DONE), "--id", "r", environment={missing: None})
    assert (done.returncode, done.stdout) == (0, b"done\n"), done.stderr
    finished(room, "r", "done")


@pytest.mark.slow
def test_without_a_home_there_is_no_place_for_runs_until_one_is_named(room: Room) -> None:
    before = everything(room)
    command = (*RAYMOND, "run", room.flow(DONE), "--id", "r")
    done = run(room, *command, environment={"HOME": None})
    assert (done.returncode, done.stdout, done.stderr.decode()) == (
        2,
        b"",
        (
            "error: there is no place for runs: neither RAYMOND_HOME nor HOME is set\n"
            "hint: set RAYMOND_HOME to a folder of your own, outside of your projects\n"
        ),
    )
    assert everything(room) == before
    done = run(room, *command, environment={"HOME": None, "RAYMOND_HOME": str(room.home)})
    assert (done.returncode, done.stdout) == (0, b"done\n"), done.stderr
    finished(room, "r", "done")


@pytest.mark.slow
def test_a_project_that_may_not_be_written_costs_the_run_nothing_but_its_state_file(room: Room) -> None:
    (room.path / ".raymond" / "workflows").chmod(0o500)
    done = run(room, *as_anyone(), *RAYMOND, "run", room.flow(DONE), "--id", "r")
    assert (done.returncode, done.stdout) == (0, b"done\n"), done.stderr
    file = room.path / ".raymond" / "workflows" / "r.json"
    note = f"the state file in the project was not written: {file}: permission denied"
    assert done.stderr.decode().count(note) == 1
    finished(room, "r", "done")


@pytest.mark.slow
@pytest.mark.parametrize("locale", ["C", "POSIX"])
def test_letters_beyond_ascii_are_shown_in_a_locale_that_has_none(room: Room, locale: str) -> None:
    room.flow({"STÄRT.sh": "echo '<result>größe ☃</result>'"}, "room/flöw")
    here = {"LC_ALL": locale, "LANG": None}
    done = run(room, *RAYMOND, "run", "flöw", "--id", "r", environment=here)
    assert (done.returncode, done.stdout.decode()) == (0, "größe ☃\n")
    assert "main starts at STÄRT.sh\n" in done.stderr.decode()
    finished(room, "r", "größe ☃")
    wrong = run(room, *RAYMOND, "run", "flöw/STÄR.sh", environment=here)
    assert (wrong.returncode, wrong.stderr.decode()) == (
        2,
        "error: there is no `flöw/STÄR.sh`\n --> flöw/STÄR.sh\nhint: did you mean `STÄRT.sh`?\n",
    )


@pytest.mark.slow
def test_a_place_beyond_ascii_is_written_out_where_it_cannot_be_shown(room: Room) -> None:
    room.flow(prompt("Größe: <goto>ENDÉ</goto>"), "room/flow")
    done = run(room, *RAYMOND, "run", "flow", environment={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 6
    assert done.stderr.startswith(b"error: there is no state `END\\xc9`\n --> flow/START.md:1:14\n")


# A narrow terminal


CONTROLS = r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[=>78]"
"""Colours, moves of the cursor, and the title of the window: what a terminal obeys and does not show."""


def at_terminal(room: Room, columns: int, *args: str) -> tuple[int, str]:
    """A command at a terminal of its own; its exit code and what was to be read there."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    sized = {name: value for name, value in room.environment.items() if name not in ("COLUMNS", "LINES")}
    process = subprocess.Popen(
        [*RAYMOND, *args],
        cwd=room.path,
        env=sized | {"TERM": "xterm-256color"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    with open(ours, "rb", buffering=0) as screen:
        got = b"".join(iter(lambda: _some(screen), b""))
    text = re.sub(CONTROLS, "", got.decode()).replace("\r\n", "\n")
    return process.wait(PATIENCE), text


def _some(screen: io.FileIO) -> bytes:
    try:
        return screen.read(4096) or b""
    except OSError:
        return b""  # Linux says so when the last process has left the terminal


@pytest.mark.slow
def test_an_error_at_a_terminal_of_20_columns_is_the_same_and_wrapped_in_its_margin(room: Room) -> None:
    room.flow(prompt("---\nmodle: opus\n---\n"), "room/flow")
    code, text = at_terminal(room, 20, "run", "flow")
    assert code == 6
    assert text == (
        "error: there is no \n"
        "  | key `modle`\n"
        " --> \n"
        "  | flow/START.md:2:\n"
        "  | 1\n"
        "  |\n"
        "2 | modle: opus\n"
        "  | ^^^^^\n"
        "hint: did you mean \n"
        "  | `model`?\n"
    )


@pytest.mark.slow
@pytest.mark.parametrize("columns", [20, 1, 0])
def test_no_command_minds_a_narrow_terminal(room: Room, columns: int) -> None:
    room.flow(DONE, "room/flow")
    for args, word in {
        ("run", "flow", "--id", "a-name-that-is-longer-than-a-line"): "" if columns == 1 else "done",
        ("status",): "" if columns == 1 else "result: done",
        ("list",): "" if columns == 1 else "a-n",
        ("--help",): "Upkeep:",
        ("run", "--help"): "--max-time",
        ("resume", "--help"): "--give-up",
    }.items():
        code, text = at_terminal(room, columns, *args)
        assert (code, word in text, "Traceback" in text) == (0, True, False), text
        assert text.replace("\n", "").replace("\r", "").isprintable(), text


# Our own mistakes

BREAKS = """
import sys, types

from raymond import cli
from raymond.cli.command import as_command


@as_command("break")
def command():
    raise RuntimeError("a wheel fell off")


broken = types.ModuleType("raymond.cli.break")
broken.command = command
sys.modules["raymond.cli.break"] = broken
cli.COMMANDS["break"] = "break"
sys.exit(cli.main(["break"]))
"""


def test_a_bug_of_ours_is_said_to_be_one_with_its_traceback_and_ends_with_70(room: Room) -> None:
    begun(room)
    before = everything(room)
    done = run(room, sys.executable, "-c", BREAKS)
    lines = done.stderr.decode().splitlines()
    assert (done.returncode, done.stdout) == (70, b"")
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-3] == "RuntimeError: a wheel fell off"
    assert lines[-2:] == [
        "error: this is a bug in Raymond; what was journaled is safe and the run can be resumed",
        "hint: please report the lines above to the issue tracker named in `pip show raymond-orchestrator`",
    ]
    assert everything(room) == before


@pytest.mark.slow
def test_what_the_machine_has_too_little_of_is_not_our_bug(room: Room) -> None:
    short = BREAKS.replace('RuntimeError("a wheel fell off")', 'OSError(errno.ENOMEM, "Cannot allocate memory")')
    done = run(room, sys.executable, "-c", f"import errno\n{short}")
    assert done.returncode == 1
    assert done.stderr.decode().splitlines() == [
        "error: the system refused a call: cannot allocate memory",
        "hint: nothing already written is lost: fix this, then try again",
    ]


def test_a_module_that_no_descriptor_is_left_for_is_not_our_bug(room: Room) -> None:
    short = "import resource, sys\nsys.modules.pop('_lsprof', None)\n" + BREAKS.replace(
        'raise RuntimeError("a wheel fell off")',
        "resource.setrlimit(resource.RLIMIT_NOFILE, (3, resource.getrlimit(resource.RLIMIT_NOFILE)[1])); import _lsprof",
    )
    done = run(room, sys.executable, "-c", short)
    assert done.returncode == 1, done.stderr
    assert done.stderr.decode().splitlines() == [
        "error: _lsprof cannot be loaded: too many open files",
        "hint: nothing already written is lost: fix this, then try again",
    ]
