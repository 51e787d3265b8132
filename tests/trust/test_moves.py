"""A project that was moved, copied or replaced by another one."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from trust.places import Place, clear_away, contents, no_traceback

WHERE = {"START.sh": "echo '<ask next=\"END\">Which?</ask>'", "END.sh": 'echo "<result>$PWD $(cat file)</result>"'}


def answered(room: Place) -> None:
    """A run that is ready to go on in the repository it was started in."""
    room.repository().ask(files=WHERE)
    assert room.raymond("answer", "r", "yes", "--no-resume").returncode == 0


def move(room: Place) -> Path:
    return room.path.rename(room.path.parent / "moved")


def refused(room: Place, cwd: Path) -> None:
    before = room.journal().read_bytes()
    done = room.raymond("resume", "r", cwd=cwd)
    said = no_traceback(done)
    assert done.returncode in (1, 2), said
    assert "--cd" in said
    assert room.journal().read_bytes() == before


def test_what_is_known_of_a_project_is_kept_with_its_runs(room: Place) -> None:
    room.repository().ask()
    about = json.loads((room.folder().parent.parent / "project.json").read_text())
    assert about["path"] == str(room.path)
    assert room.git("rev-list", "--max-parents=0", "HEAD").strip() in about.values()


@pytest.mark.slow
def test_a_run_of_a_project_that_was_moved_goes_on_in_its_new_place(room: Place) -> None:
    answered(room)
    moved = move(room)
    done = room.raymond("resume", "r", "--cd", str(moved), cwd=moved)
    assert (done.returncode, done.stdout) == (0, f"{moved} hello\n"), done.stderr
    assert not room.path.exists(), "the old place is not made again"


@pytest.mark.slow
def test_a_run_of_a_project_that_was_moved_is_not_resumed_by_itself(room: Place) -> None:
    answered(room)
    refused(room, move(room))


@pytest.mark.slow
def test_a_run_of_a_project_that_was_moved_can_still_be_read(room: Place) -> None:
    answered(room)
    move(room)
    assert room.status(cwd="/")["workflow_id"] == "r"
    assert room.raymond("logs", "r", cwd="/").returncode == 0


@pytest.mark.slow
def test_a_moved_run_that_asks_again_goes_on_without_being_told_twice(room: Place) -> None:
    again = {
        "START.sh": "echo '<ask next=\"ASK\">Which?</ask>'",
        "ASK.sh": "echo '<ask next=\"END\">Really?</ask>'",
        "END.sh": 'echo "<result>$PWD</result>"',
    }
    room.repository().ask(files=again)
    assert room.raymond("answer", "r", "yes", "--no-resume").returncode == 0
    moved = move(room)
    assert room.raymond("resume", "r", "--cd", ".", cwd=moved).returncode == 3
    assert room.raymond("answer", "r", "yes", "--no-resume", cwd=moved).returncode == 0
    done = room.raymond("resume", "r", cwd=moved)
    assert (done.returncode, done.stdout) == (0, f"{moved}\n"), done.stderr


@pytest.mark.slow
def test_a_run_is_not_resumed_in_another_repository_at_the_same_path(room: Place) -> None:
    answered(room)
    move(room)
    room.path.mkdir()
    room.repository("another\n")
    room.git("commit", "-q", "--allow-empty", "-m", "more")
    before = contents(room.path)
    refused(room, room.path)
    assert contents(room.path) == before
    done = room.raymond("resume", "r", "--cd", ".")
    assert (done.returncode, done.stdout) == (0, f"{room.path} another\n"), done.stderr


def test_a_run_is_resumed_in_a_new_clone_at_the_same_path(room: Place) -> None:
    answered(room)
    moved = move(room)
    room.git("clone", "-q", str(moved), str(room.path), cwd=room.path.parent)
    done = room.resume()
    assert (done.code, done.out) == (0, f"{room.path} hello\n"), done.err


def test_a_run_goes_on_after_commits(room: Place) -> None:
    answered(room)
    (room.path / "file").write_text("changed\n")
    room.git("commit", "-qam", "second")
    done = room.resume()
    assert (done.code, done.out) == (0, f"{room.path} changed\n"), done.err


def test_a_directory_that_is_not_there_cannot_be_moved_to(room: Place) -> None:
    answered(room)
    before = room.journal().read_bytes()
    done = room.raymond("resume", "r", "--cd", "nowhere")
    assert done.returncode == 2, no_traceback(done)
    assert "nowhere" in done.stderr
    assert room.journal().read_bytes() == before


def test_runs_of_a_project_that_is_gone_can_be_cleaned(room: Place) -> None:
    done = room.repository().command({"START.sh": "echo '<result>done</result>'"})
    assert done.code == 0
    clear_away(room.path)
    cleaned = room.raymond("clean", "r", cwd="/")
    assert (cleaned.returncode, cleaned.stdout) == (0, "r\n"), cleaned.stderr


def test_a_run_of_a_subfolder_continues_in_the_same_subfolder(room: Place) -> None:
    room.repository()
    (room.path / "sub").mkdir()
    (room.path / "sub" / "f").write_text("here")
    flow = {"START.sh": "echo '<ask next=\"END\">Which?</ask>'", "END.sh": 'echo "<result>$PWD $(cat f)</result>"'}
    assert room.raymond("run", room.flow(flow), "--id", "r", cwd=room.path / "sub").returncode == 3
    moved = room.path.rename(room.path.with_name("moved"))
    assert room.raymond("answer", "r", "x", "--no-resume", cwd=moved).returncode == 0
    done = room.raymond("resume", "r", "--cd", ".", cwd=moved)
    assert (done.returncode, done.stdout) == (0, f"{moved}/sub here\n"), done.stderr


CUT = '''
"""Python imports this at its start: the move of a run ends where the test says so."""

import os

WHERE = os.environ.get("CUT", "")


def watched(name, ours):
    real = getattr(os, name)

    def call(*args, **options):
        mine = WHERE.endswith(name) and ours(*args)
        if mine and WHERE.startswith("before"):
            os.kill(os.getpid(), 9)
        if mine and WHERE.startswith("full"):
            raise OSError(28, "No space left on device")
        done = real(*args, **options)
        if mine and WHERE.startswith("after"):
            os.kill(os.getpid(), 9)
        return done

    return call


os.rename = watched("rename", lambda old, new, **_: str(new).endswith("/runs/r"))
os.write = watched("write", lambda fd, data: b'"RunMoved"' in data)
os.replace = watched("replace", lambda old, new, **_: str(new).endswith("moves.json"))
'''

IN_SUBFOLDER = {
    "START.sh": "echo '<ask next=\"END\">Which?</ask>'",
    "END.sh": 'echo "<result>$PWD</result>"',
}


def asked_in_subfolder(room: Place) -> Path:
    """A run that was started in `sub` and is ready to go on, in a project that was moved; where to."""
    room.repository()
    (room.path / "sub").mkdir()
    assert room.raymond("run", room.flow(IN_SUBFOLDER), "--id", "r", cwd=room.path / "sub").returncode == 3
    assert room.raymond("answer", "r", "x", "--no-resume").returncode == 0
    return move(room)


@pytest.mark.parametrize(
    "where",
    ["after rename", "before rename", "before write", "after write", "full write", "after replace", "full replace"],
)
def test_a_move_that_was_cut_short_ends_where_it_would_have(room: Place, where: str) -> None:
    moved = asked_in_subfolder(room)
    (room.path.parent / "cut").mkdir()
    (room.path.parent / "cut" / "sitecustomize.py").write_text(CUT)
    faulty = {"PYTHONPATH": str(room.path.parent / "cut"), "CUT": where}
    done = room.raymond("resume", "r", "--cd", ".", cwd=moved, environment=faulty)
    assert done.returncode == (1 if where.startswith("full") else -9), done.stderr
    if where != "after write":
        assert "--cd" in room.raymond("resume", "r", cwd=moved).stderr
    done = room.raymond("resume", "r", "--cd", ".", cwd=moved)
    assert (done.returncode, done.stdout) == (0, f"{moved}/sub\n"), done.stderr


def test_a_repair_that_cuts_off_a_move_is_followed_by_the_same_move(room: Place) -> None:
    moved = asked_in_subfolder(room)
    assert room.raymond("resume", "r", "--cd", ".", cwd=moved).returncode == 0
    lines = room.journal().read_bytes().splitlines(keepends=True)
    bad = next(number for number, line in enumerate(lines) if b'"RunMoved"' in line)
    lines[bad] = lines[bad].replace(b'"seq"', b'"sep"')
    room.journal().write_bytes(b"".join(lines))
    assert room.raymond("doctor", "--repair", "r", cwd=moved).returncode == 0
    done = room.raymond("resume", "r", "--cd", ".", cwd=moved)
    assert (done.returncode, done.stdout) == (0, f"{moved}/sub\n"), done.stderr


def test_a_run_that_was_moved_is_moved_again_from_where_it_is(room: Place) -> None:
    again = IN_SUBFOLDER | {"END.sh": "echo '<ask next=\"LAST\">Now?</ask>'", "LAST.sh": IN_SUBFOLDER["END.sh"]}
    room.repository()
    (room.path / "sub").mkdir()
    assert room.raymond("run", room.flow(again), "--id", "r", cwd=room.path / "sub").returncode == 3
    assert room.raymond("answer", "r", "x", "--no-resume").returncode == 0
    moved = move(room)
    assert room.raymond("resume", "r", "--cd", ".", cwd=moved).returncode == 3
    assert room.raymond("answer", "r", "x", "--no-resume", cwd=moved).returncode == 0
    last = moved.rename(moved.with_name("last"))
    done = room.raymond("resume", "r", "--cd", ".", cwd=last)
    assert (done.returncode, done.stdout) == (0, f"{last}/sub\n"), done.stderr


def test_an_unfinished_run_of_a_project_that_is_gone_can_be_removed(room: Place) -> None:
    room.ask()
    assert room.raymond("clean", "r").returncode == 2
    clear_away(room.path)
    done = room.raymond("clean", "r", cwd="/")
    assert (done.returncode, done.stdout) == (0, "r\n"), done.stderr


def test_a_directory_that_was_deleted_is_named_and_not_a_bug(room: Place) -> None:
    room.ask()
    command = f'mkdir gone; cd gone; rmdir ../gone; "{sys.executable}" -m raymond status r'
    done = subprocess.run(["bash", "-c", command], cwd=room.path, env=room.environment, capture_output=True, text=True)
    assert done.returncode == 2
    assert "was deleted" in done.stderr


def test_a_run_whose_move_was_cut_short_is_not_continued_in_the_old_place(room: Place) -> None:
    answered(room)
    moved = room.path.with_name("copy")
    shutil.copytree(room.path, moved)
    assert room.raymond("run", room.flow({"START.sh": "echo '<result>x</result>'"}, "x"), cwd=moved).returncode == 0
    (target,) = (path for path in room.home.glob("projects/*") if path.name.startswith("copy-"))
    room.folder().rename(target / "runs" / "r")
    done = room.raymond("resume", "r", cwd=moved)
    assert done.returncode == 2
    assert "--cd" in done.stderr
    done = room.raymond("resume", "r", "--cd", ".", cwd=moved)
    assert (done.returncode, done.stdout) == (0, f"{moved} hello\n"), done.stderr


def test_a_move_that_is_refused_moves_nothing(room: Place) -> None:
    answered(room)
    other = room.path.with_name("other")
    (other / ".raymond").mkdir(parents=True)
    (other / ".raymond" / "config.toml").write_text("nonsense")
    before = room.folder()
    assert room.raymond("resume", "r", "--cd", str(other)).returncode == 2
    assert room.folder() == before
    assert room.resume().code == 0


def test_a_directory_whose_name_is_not_text_is_refused(room: Place) -> None:
    odd = os.fsencode(room.path) + b"/\xff"
    os.mkdir(odd)
    done = room.raymond("run", room.flow(WHERE), cwd=os.fsdecode(odd))
    assert done.returncode == 2
    assert "UTF-8" in no_traceback(done)


def test_a_directory_that_is_no_repository_any_more_is_refused(room: Place) -> None:
    answered(room)
    clear_away(room.path / ".git")
    done = room.raymond("resume", "r")
    assert done.returncode == 2
    assert "--cd" in done.stderr
    assert room.raymond("resume", "r", "--cd", ".").returncode == 0


def test_an_unfinished_run_that_another_host_may_drive_is_not_removed(room: Place) -> None:
    """Its directory may be there and not here."""
    room.ask()
    room.part("driver.json").write_text('{"pid": 7, "host": "elsewhere", "started": "1"}')
    clear_away(room.path)
    done = room.raymond("clean", "r", cwd="/")
    assert done.returncode == 1, done.stderr
    assert "elsewhere" in done.stderr
    assert room.folder().exists()
