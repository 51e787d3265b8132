"""A disk that is full or cannot be written: said in one paragraph, exit code 1, and everything goes on afterwards."""

import contextlib
import os
import re
import resource
import shutil
import subprocess
import sys
from bisect import bisect
from collections.abc import Iterator
from pathlib import Path

import pytest

from crash import runs, torture
from crash.torture import Place, until
from raymond import cli
from raymond.store import exports, journal
from raymond.store import home as homes
from raymond.store import project as projects
from running import as_anyone

NOTE = 'echo "$RAYMOND_AGENT_ID $RAYMOND_STATE $RAYMOND_ATTEMPT" >> "$LEDGER"\n'
STATES = {
    "START_sh": NOTE + """echo '<fork n="one">WORK.sh</fork><wait>THINK.md</wait>'""",
    "WORK_sh": NOTE + """echo "<result>$RAYMOND_VAR_n</result>" """,
    "THINK_md": "What do you say to {{results}}?",
    "END_sh": NOTE + """echo "<result>$RAYMOND_INPUT</result>" """,
    "replies": "THINK.md: {text: '<goto input=\"all is well\">END.sh</goto>', cost: 0.25}",
}
INPUT = "x" * 1500
"""Makes the journal the largest file from its first decision on, so that it is the one that meets the limit."""


@contextlib.contextmanager
def full_at(size: int) -> Iterator[None]:
    """No file may grow beyond `size`: the nearest thing to a full disk that needs no disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


class Corner:
    """A directory to start the small run in; its name has always the same length, and so have its journals."""

    def __init__(
        self, folder: Path, number: int, patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.folder = folder / f"{number:06d}"
        self.folder.mkdir()
        self.ledger = self.folder / "ledger"
        self.flow = runs.workflow(folder / "flow", **STATES)
        patch.setenv(homes.VARIABLE, str(folder / f"home-{number:06d}"))
        self.project = projects.at(str(self.folder))
        self.journal = Path(self.project.run("r").journal)
        self._patch = patch
        self._capsys = capsys

    def raymond(self, *args: str) -> torture.Ending:
        """A command in this process."""
        self._patch.chdir(self.folder)
        self._patch.setenv("LEDGER", str(self.ledger))
        self._capsys.readouterr()
        code = cli.main([*args])
        told = self._capsys.readouterr()
        return torture.Ending(code, told.out, told.err)

    def run(self) -> torture.Ending:
        return self.raymond("run", str(self.flow), "--id", "r", "--input", INPUT)

    def notes(self) -> list[str]:
        """Which attempts of which scripts were started."""
        return sorted(self.ledger.read_text("utf-8").splitlines()) if self.ledger.exists() else []


@pytest.fixture
def corner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Corner:
    return Corner(tmp_path, 0, monkeypatch, capsys)


def said(done: torture.Ending, *, code: int = 1) -> str:
    """The error of a command that failed as it should: one paragraph at the end, nothing of our insides."""
    assert done.code == code, done.err
    assert done.out == ""
    assert "Traceback" not in done.err
    found = re.search(r"^error: [^\n]+\nhint: [^\n]+\n\Z", done.err, re.MULTILINE)
    assert found, done.err
    assert done.err.count("error:") == 1, done.err
    return found[0]


def goes_on(corner: Corner) -> None:
    """With room again the run ends as it should, and nothing that was finished is done again."""
    if corner.journal.exists():
        before = runs.story(corner.project, "r")
        assert journal.read(corner.project.run("r")).torn == 0, "a line that did not fit was taken back"
        done = corner.raymond("resume", "r")
    else:
        before = None
        done = corner.run()
    assert (done.code, done.out) == (0, "all is well\n"), done.err
    told = runs.story(corner.project, "r")
    assert runs.ending(told.run) == ("completed", 0)
    assert set(told.finished.values()) == {1}
    assert len(told.finished) == 4
    assert told.run.cost == 0.25
    assert not told.failed
    attempts = {visit: number for visit, number in told.started.items() if visit.state.endswith(".sh")}
    notes = corner.notes()
    assert len(notes) == len(set(notes)), "an attempt ran twice"
    for visit, number in attempts.items():
        assert f"{visit.agent} {visit.state} {number}" in notes
        if before and visit in before.finished:
            assert number == before.started[visit], f"{visit} was finished and ran again"


def limits(ends: list[int]) -> list[int]:
    """Sizes at which each line of the journal meets the end of the disk: at its first byte, inside it, at its last."""
    lines = zip([0, *ends], ends, strict=False)
    sizes = {0, 1, 20, 27, 100, 500, 700, 1000, 1500}
    return sorted(sizes | {size for start, end in lines for size in (start, (start + end) // 2, end - 1)})


@pytest.mark.slow
def test_a_disk_that_is_full_at_any_line_of_the_journal_stops_the_run_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = Corner(tmp_path, 0, monkeypatch, capsys)
    assert whole.run().code == 0
    ends = runs.boundaries(whole.journal.read_bytes())
    met = set()
    for number, size in enumerate(limits(ends), 1):
        corner = Corner(tmp_path, number, monkeypatch, capsys)
        with full_at(size):
            done = corner.run()
        error = said(done)
        assert "file too large" in error.lower(), error
        if str(corner.journal) in error:
            met.add(bisect(ends, size))
            hint = "no run was started: fix this, then start it again"
            if corner.journal.exists():
                hint = "nothing already written is lost: fix this, then `raymond resume r`"
            assert error == f"error: {corner.journal}: file too large\nhint: {hint}\n"
        goes_on(corner)
    assert met == set(range(1, len(ends))), "every line met the limit; the first is written with the header"


@pytest.mark.slow
def test_a_disk_that_is_full_when_a_run_is_taken_up_stops_it_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, size in enumerate((0, 1, 50, 100, 2000, 3600, 3700, 3900, 4000)):
        corner = Corner(tmp_path, number, monkeypatch, capsys)
        project = runs.project_in(corner.folder)
        runs.begin(project, corner.flow, id="r", input=INPUT)
        with full_at(size):
            error = said(corner.raymond("resume", "r"))
        assert "file too large" in error.lower()
        goes_on(corner)


@pytest.mark.parametrize("folder", ["sessions", "transcripts", "work", "spool"])
def test_a_file_where_a_folder_should_be_is_named(corner: Corner, folder: str) -> None:
    """Whatever cannot be written, the journal is whole and the run goes on when it can."""
    project = runs.project_in(corner.folder)
    runs.begin(project, corner.flow, id="r", input=INPUT)
    path = Path(project.home.work if folder == "work" else project.run("r").file(folder))
    if path.exists():
        path.rmdir()
    path.write_text("in the way")
    assert str(path) in said(corner.raymond("resume", "r"))
    path.unlink()
    goes_on(corner)


def test_a_file_where_the_task_folders_should_be_is_named_and_left_alone(corner: Corner) -> None:
    """They are in the project, where anybody may write: nothing that Raymond needs is there."""
    corner.flow = runs.workflow(corner.folder / "flow", **STATES, X_md="{{task_folder}}")
    path = Path(exports.tasks(corner.project.tree, "r"))
    path.parent.mkdir(parents=True)
    path.write_text("in the way")
    done = corner.run()
    assert (done.code, done.out) == (0, "all is well\n")
    assert f"main * has no task folder: {path}/main: not a directory\n" in done.err
    assert path.read_text() == "in the way"


@pytest.mark.parametrize("name", ["projects", "sources", "work"])
def test_a_folder_of_the_home_that_is_no_folder_is_named(corner: Corner, name: str) -> None:
    path = Path(corner.project.home.path, name)
    path.parent.mkdir(mode=0o700)
    os.mkfifo(path)
    assert said(corner.run(), code=2) == (
        f"error: runs cannot be kept in {path} (RAYMOND_HOME): it is not a folder\n"
        "hint: set RAYMOND_HOME to a folder of your own, outside of your projects\n"
    )
    path.unlink()
    goes_on(corner)


@pytest.mark.parametrize("name", ["", "runs"])
def test_a_folder_of_the_project_that_is_a_file_is_named(corner: Corner, name: str) -> None:
    corner.project.home.make()
    path = Path(corner.project.root, name)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_text("in the way")
    assert said(corner.run()).startswith(f"error: {corner.project.runs}: ")
    path.unlink()
    goes_on(corner)


def test_a_journal_that_is_a_folder_is_named(corner: Corner) -> None:
    project = runs.project_in(corner.folder)
    runs.begin(project, corner.flow, id="r", input=INPUT)
    data = corner.journal.read_bytes()
    corner.journal.unlink()
    corner.journal.mkdir()
    assert said(corner.raymond("resume", "r")).startswith(f"error: {corner.journal}: is a directory\n")
    assert said(corner.raymond("status", "r")).startswith(f"error: {corner.journal}: is a directory\n")
    assert said(corner.run(), code=2).startswith("error: run `r` already exists\n")
    corner.journal.rmdir()
    corner.journal.write_bytes(data)
    goes_on(corner)


def test_a_journal_that_is_gone_is_named(corner: Corner) -> None:
    project = runs.project_in(corner.folder)
    runs.begin(project, corner.flow, id="r", input=INPUT)
    corner.journal.unlink()
    done = corner.raymond("resume", "r")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "error: there is no run `r` here or in any other project\nhint: `raymond list --all` shows the runs of all projects\n"
    )
    left = corner.journal.parent
    assert said(corner.run(), code=2) == (
        f"error: {left} is in the way\nhint: it is not a run: remove {left}, or choose another --id\n"
    )
    shutil.rmtree(corner.journal.parent)
    goes_on(corner)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["journal.jsonl", ".", "transcripts", "sessions"])
def test_what_may_not_be_written_is_named(corner: Corner, name: str) -> None:
    before = as_anyone()
    project = runs.project_in(corner.folder)
    runs.begin(project, corner.flow, id="r", input=INPUT)
    path = Path(project.run("r").file(name))
    if not path.exists():
        path.mkdir()
    mode = path.stat().st_mode
    path.chmod(0o500 if path.is_dir() else 0o400)
    try:
        done = subprocess.run(
            [*before, sys.executable, "-m", "raymond", "resume", "r"],
            cwd=corner.folder,
            env={**os.environ, "LEDGER": str(corner.ledger)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert "permission denied" in said(torture.Ending(done.returncode, done.stdout, done.stderr)).lower()
    finally:
        path.chmod(mode)
    goes_on(corner)


def test_a_state_file_that_cannot_be_written_does_not_stop_the_run(corner: Corner) -> None:
    project = runs.project_in(corner.folder)
    runs.begin(project, corner.flow, id="r", input=INPUT)
    state = Path(project.run("r").state)
    state.mkdir()
    done = corner.raymond("resume", "r")
    assert (done.code, done.out) == (0, "all is well\n")
    assert f"the state file was not written: {state}: is a directory\n" in done.err


@pytest.mark.parametrize("name", [".raymond", ".raymond/workflows"])
def test_a_project_that_takes_no_state_file_does_not_stop_the_run(corner: Corner, name: str) -> None:
    """It is an export: what is in its way is left alone and mentioned once."""
    path = corner.folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("in the way")
    done = corner.run()
    assert (done.code, done.out) == (0, "all is well\n")
    export = exports.state_file(corner.project.tree, "r")
    assert done.err.count(f"the state file in the project was not written: {export}: not a directory\n") == 1
    assert path.read_text() == "in the way"


@pytest.mark.slow
def test_a_request_needs_no_room_on_the_disk(corner: Corner) -> None:
    """The disk of the one who asks is full, while another process drives the run."""
    flow = runs.workflow(corner.folder / "flow", START_sh="cat gate", END_sh="echo '<result>x</result>'")
    place = Place(corner.folder / "other")
    os.mkfifo(place.room / "gate")
    driver = place.start("run", str(flow), "--id", "r")
    until(place.marked, "the script")
    corner.folder = place.room
    with full_at(0):
        stopped = corner.raymond("stop", "r", "--now")
    assert stopped.err == f"r received the request (process {driver.process.pid})\n"
    assert driver.wait().code == 3


def test_a_turn_whose_prompt_does_not_fit_on_the_disk_is_started_again_later(corner: Corner) -> None:
    """The turn stands in the journal as started; its program never was."""
    states = STATES | {"THINK_md": "{{run_input}}" * 10}
    corner.flow = runs.workflow(corner.folder / "flow", **states)
    with full_at(12_000):
        done = corner.raymond("run", str(corner.flow), "--id", "r", "--input", INPUT, "--backend", "scripted-program")
    spool = corner.project.run("r").spool
    assert said(done).startswith(f"error: step 3 of main cannot be started, {spool}: file too large\n")
    told = runs.story(corner.project, "r")
    assert runs.running(told.run) == ["main"]
    goes_on(corner)


def test_a_conversation_that_does_not_fit_on_the_disk_is_named(corner: Corner) -> None:
    """The file is named, whatever the driver was doing when the disk was full."""
    corner.flow = runs.workflow(corner.folder / "flow", **STATES | {"THINK_md": "{{run_input}}" * 10})
    with full_at(12_000):
        done = corner.run()
    sessions = corner.project.run("r").sessions
    assert re.match(f"error: {sessions}/[-0-9a-f]+.json: file too large\n", said(done)), done.err
    assert "then `raymond resume r`\n" in said(done)
    assert os.listdir(sessions) == []
    goes_on(corner)


def test_a_disk_that_fills_while_a_workflow_is_unpacked_leaves_nothing_half_unpacked(corner: Corner) -> None:
    """The snapshot is small, for it is compressed; the script it holds does not fit."""
    states = STATES | {"START_sh": STATES["START_sh"] + "\n" + "# and so on\n" * 20_000}
    corner.flow = runs.workflow(corner.folder / "flow", **states)
    work = Path(corner.project.home.work)
    with full_at(100_000):
        done = corner.raymond("run", str(corner.flow), "--id", "r", "--input", INPUT)
    assert said(done).startswith(f"error: {work}/{runs.story(corner.project, 'r').run.start.source}: file too large\n")
    assert list(work.iterdir()) == []
    goes_on(corner)


@pytest.mark.slow
def test_the_real_command_on_a_full_disk_says_one_paragraph_and_ends_with_1(corner: Corner) -> None:
    """The same through the program itself, whose limit is set before it starts."""
    place = Place(corner.folder / "real")
    limit = "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (4200, -1)); from raymond.__main__ import main; main()"
    place.environment |= {"PYTHONDONTWRITEBYTECODE": "1"}
    command = place.start("run", str(corner.flow), "--id", "r", "--input", INPUT, code=limit)
    done = command.wait()
    assert said(done).startswith(f"error: {place.journal}: file too large\n")
    assert place.marked() == [], "no script was left running"
    assert place.resume().wait().code == 0
