"""Commands for many runs, and what they leave alone."""

import os
import re
from pathlib import Path

import pytest

from raymond import cli
from raymond.control import request, runs, start
from raymond.control.drive import hold
from raymond.control.start import Choices
from raymond.faces.overview import run_lines
from raymond.store import journal, loader
from raymond.store import project as projects
from raymond.store.project import Project
from running import GO, Room, until


class Desk:
    """Two projects of one person; the current directory is the first."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        patch.setenv("RAYMOND_HOME", str(folder / "home"))
        flow = folder / "flow"
        flow.mkdir()
        (flow / "START.sh").write_text("echo '<result>done</result>'")
        self._loaded = loader.load(str(flow))
        self._patch = patch
        for name in ("one", "two"):
            (folder / name).mkdir()
        self.one, self.two = (projects.at(str(folder / name)) for name in ("one", "two"))
        patch.chdir(self.one.tree)

    def begin(self, project: Project, *ids: str) -> None:
        """Runs that nobody drives, as if their driver had died."""
        for id in ids:
            self._patch.chdir(project.tree)
            start.begin(project, self._loaded, Choices(id=id, budget=5.0, budget_from="test"))
        self._patch.chdir(self.one.tree)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(tmp_path, monkeypatch)


def test_resume_all_means_all_projects_and_never_what_a_person_stopped(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.begin(desk.one, "a", "stopped", "cancelled")
    desk.begin(desk.two, "b", "lost")
    request.stop(desk.one, "stopped")
    request.cancel(desk.one, "cancelled")
    assert cli.main(["resume", "--all", "--dry-run"]) == 0
    said = capsys.readouterr()
    assert sorted(said.out.split()) == ["a", "b", "lost"]
    assert f"a     interrupted  $0.00 of $5.00  {desk.one.tree}\n" in said.err
    assert cli.main(["resume", "--here", "--dry-run"]) == 0
    assert capsys.readouterr().out == "a\n"
    os.rmdir(desk.two.tree)
    assert cli.main(["resume", "--all", "--dry-run"]) == 0
    said = capsys.readouterr()
    assert said.out == "a\n"
    assert f"b is left out: {desk.two.tree} is gone\n" in said.err


def test_clean_with_force_cancels_and_removes_what_is_named(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    desk.begin(desk.one, "a", "b")
    assert cli.main(["clean", "a"]) == 2
    assert "raymond clean --force a" in capsys.readouterr().err
    assert cli.main(["clean", "--force", "a", "--dry-run"]) == 0
    assert sorted(desk.one.ids()) == ["a", "b"]
    assert cli.main(["clean", "--force", "a"]) == 0
    assert desk.one.ids() == ["b"]
    assert cli.main(["clean", "--force"]) == 2
    assert "--force needs the id of a run" in capsys.readouterr().err


def test_clean_all_means_all_projects(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    desk.begin(desk.one, "a")
    desk.begin(desk.two, "b", "unfinished")
    request.cancel(desk.one, "a")
    request.cancel(desk.two, "b")
    assert cli.main(["clean", "--keep", "0s", "--dry-run"]) == 0
    assert capsys.readouterr().out == "a\n"
    assert cli.main(["clean", "--all", "--keep", "0s"]) == 0
    said = capsys.readouterr()
    assert sorted(said.out.split()) == ["a", "b"]
    assert f"project: {desk.two.tree}\n" in said.err
    assert (desk.one.ids(), desk.two.ids()) == ([], ["unfinished"])


def test_stop_all_asks_and_without_a_terminal_wants_yes(
    desk: Desk, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.begin(desk.one, "a")
    desk.begin(desk.two, "b")
    with open(os.devnull) as nobody, hold(desk.two, "b"):
        monkeypatch.setattr("sys.stdin", nobody)
        assert cli.main(["stop", "--all"]) == 2
        said = capsys.readouterr().err
        assert f"b  running  $0.00 of $5.00  {desk.two.tree}\n" in said
        assert "cannot ask whether to stop them without a terminal\nhint: add --yes" in said
        assert cli.main(["stop", "--here", "--yes"]) == 0
        assert capsys.readouterr().err == "nothing is running\n"
    assert not any(journal.read(project.run(id)).run.stop for project, id in ((desk.one, "a"), (desk.two, "b")))
    for args in (["a", "--all"], ["--all", "--agent", "main"], ["--yes"]):
        assert cli.main(["stop", *args]) == 2


def test_cost_of_all_projects_tells_runs_of_one_name_apart(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    from raymond.control import history

    for project in (desk.one, desk.two):
        desk.begin(project, "same")
        Path(project.run("same").journal).write_bytes(b"damage\n")
    names = history.books_of_projects([desk.one, desk.two]).unreadable
    assert [*names] == ["same", f"same ({desk.two.tree})"]
    assert cli.main(["cost", "--here"]) == 0
    assert capsys.readouterr().err.count("is left out") == 1


# --- the same directory


def test_a_run_that_is_driven_in_the_same_directory_is_a_neighbour(desk: Desk) -> None:
    desk.begin(desk.one, "a", "b", "c")
    first = journal.first(desk.one.run("a"))
    assert runs.neighbours(desk.one, first) == []
    with hold(desk.one, "b"), hold(desk.one, "a"):
        assert runs.neighbours(desk.one, first) == ["b"]
    assert runs.neighbours(desk.one, first) == []


# --- what status proposes


def test_a_running_run_with_a_question_is_to_be_answered_and_no_step_of_a_dead_driver_is_called_running(
    tmp_path: Path,
) -> None:
    room = Room(tmp_path)
    run = room.drive({"START.sh": "echo '<ask next=\"END\">Which?</ask>'", "END.sh": "echo '<result>x</result>'"}).run
    folder = room.project.run("r").transcripts
    assert run_lines(run, "running", 123, folder)[-1] == "next: raymond answer r"
    run.agents["main"].status = "running"
    run.statuses = {"running": 1}
    assert run_lines(run, "running", 123, folder)[-1] == "next: raymond attach r"
    shown = run_lines(run, "interrupted", 0, folder)
    assert "  main  START.sh  interrupted" in shown
    assert not any("running for" in line for line in shown)


# --- a run that works


@pytest.mark.slow
def test_a_run_that_ends_its_steps_is_stopping_and_a_second_one_beside_it_is_warned_of(room: Room) -> None:
    held = {"START.sh": f"touch started.$RAYMOND_WORKFLOW_ID; {GO}; echo '<result>done</result>'"}
    assert room.raymond("run", room.flow(held), "--id", "r", "-d").returncode == 0
    until(lambda: any(room.path.glob("started*")), "the script")
    other = room.raymond("run", room.flow({"START.sh": "echo '<result>x</result>'"}, "other"), "--id", "o")
    assert "warning: r is running in this directory too; " in other.stderr
    done = room.raymond("stop", "--all", "--yes")
    assert done.returncode == 0, done.stderr
    assert re.match(r"r: stopping in process \d+ \(stopped on request\)\n", room.raymond("status", "r").stdout)
    assert room.raymond("list", "--status", "stopping").stdout.split()[-10:-8] == ["working", "r"]
    forced = room.raymond("clean", "--force", "r")
    assert (forced.returncode, forced.stdout) == (0, "r\n"), forced.stderr
    assert room.project.ids() == ["o"]
    room.nothing_runs()


def test_a_limit_that_is_reached_already_is_refused_with_one_that_is_not(room: Room) -> None:
    before = room.drive({"START.sh": "echo '<goto>START</goto>'"}, max_iterations=3)
    done = room.raymond("resume", "r", "--max-iterations", "2")
    assert done.returncode == 2
    assert done.stderr == (
        "error: --max-iterations 2: r has made 3 steps (scripts count, too), so nothing would run\n"
        "hint: raymond resume r --max-iterations 5 allows 2 more\n"
    )
    assert len(room.events()) == len(before.events)


def test_several_runs_are_stopped_and_cancelled_by_one_command(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    desk.begin(desk.one, "a", "b", "c")
    assert cli.main(["stop", "a", "b"]) == 0
    told = [line.partition(";")[0] for line in capsys.readouterr().err.splitlines()]
    assert [line for line in told if " is " in line] == ["a is stopped", "b is stopped"]
    assert cli.main(["stop", "a", "b", "--agent", "main"]) == 2
    assert "hint: raymond stop a --agent main" in capsys.readouterr().err
    assert cli.main(["cancel", "a", "a"]) == 0
    assert cli.main(["cancel", "a", "b", "c"]) == 2
    said = capsys.readouterr().err
    assert "error: a was cancelled" in said, said
    assert "b is cancelled" in said
    assert "c is cancelled" in said
    assert cli.main(["cancel", "b", "nonsense"]) == 2, "a name that means nothing: no run is touched"


@pytest.mark.slow
def test_several_runs_are_waited_for_and_a_wait_ends_with_its_time(room: Room) -> None:
    flow = room.flow({"START.sh": f'{GO}\necho "<result>$RAYMOND_INPUT</result>"'})
    for id in ("a", "b"):
        assert room.raymond("run", flow, "-d", "--id", id, "--input", id).returncode == 0
    late = room.raymond("wait", "a", "b", "--timeout", "1ms")
    assert (late.returncode, late.stdout) == (124, "")
    assert late.stderr.splitlines() == [f"{id} is still running: raymond status {id}" for id in ("a", "b")]
    room.go()
    done = room.raymond("wait", "a", "b", "--timeout", "1h")
    assert (done.returncode, done.stdout) == (0, "a\nb\n")
