"""`raymond clean` removes what is Raymond's and is not needed any more, beside whatever else runs."""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pace import mostly_slow
from raymond.control import clean, request
from raymond.control.handle import RunHandle
from raymond.errors import RunNotFound
from running import GO, alive, as_anyone, until
from trust.places import Place, clear_away, contents, link, no_traceback

DONE = {"START.sh": "echo '<result>done</result>'"}
LONG = "$(printf 'x%.0s' {1..20000})"
OLD = time.time() - 7200
"""Two hours ago."""


def age(path: Path) -> None:
    os.utime(path, (OLD, OLD), follow_symlinks=False)


def no_room() -> None:
    """No file may have a byte: the nearest thing to a full disk that needs no disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def ended(room: Place, id: str = "r") -> None:
    assert room.command(DONE, id=id).code == 0


@pytest.mark.slow
def test_clean_removes_the_folder_of_a_run_and_its_export(room: Place) -> None:
    ended(room)
    folder = room.folder()
    done = room.raymond("clean", "r")
    assert (done.returncode, done.stdout) == (0, "r\n"), done.stderr
    assert not folder.exists()
    assert room.rows() == []
    assert [path.name for path in (room.path / ".raymond").rglob("r*")] == []


@pytest.mark.slow
def test_a_dry_run_lists_runs_and_removes_nothing(room: Place) -> None:
    ended(room)
    before = contents(room.home)
    done = room.raymond("clean", "r", "--dry-run")
    assert (done.returncode, done.stdout) == (0, "r\n"), done.stderr
    assert {path: data for path, data in contents(room.home).items() if path in before} == before


@pytest.mark.slow
def test_a_dry_run_lists_the_snapshots_that_would_go(room: Place) -> None:
    ended(room)
    assert room.raymond("clean", "r").returncode == 0
    (source,) = room.sources()
    for path in (source, *room.unpacked()):
        age(path)
    dry = room.raymond("clean", "--dry-run")
    assert source.stem[:12] in dry.stdout + dry.stderr
    assert source.exists()
    assert room.raymond("clean").returncode == 0
    assert room.sources() == []
    assert room.unpacked() == []


@pytest.mark.slow
def test_a_snapshot_that_a_run_needs_stays_however_old_it_is(room: Place) -> None:
    room.ask()
    (source,) = room.sources()
    age(source)
    assert room.raymond("clean").returncode == 0
    assert room.sources() == [source]
    assert room.raymond("answer", "r", "yes", "--no-resume").returncode == 0
    assert room.resume().out == "told yes\n"


@pytest.mark.slow
def test_a_snapshot_that_is_young_stays(room: Place) -> None:
    """A run that is just being started may be about to use it."""
    ended(room)
    assert room.raymond("clean", "r").returncode == 0
    assert len(room.sources()) == 1


@pytest.mark.slow
def test_runs_of_other_projects_stay(room: Place) -> None:
    folder = room.path.parent / "other"
    folder.mkdir()
    other = Place(folder, HOME=room.environment["HOME"])
    ended(other, "theirs")
    ended(room)
    assert room.raymond("clean", "--keep", "0s").returncode == 0
    assert [row["workflow_id"] for row in other.rows()] == ["theirs"]
    assert room.rows() == []


def test_only_names_that_raymond_gives_are_removed(room: Place) -> None:
    """What somebody else put there is not Raymond's to remove."""
    ended(room)
    runs = room.folder().parent
    strange = [
        room.home / "sources" / "notes.txt",
        room.home / "sources" / f"{'g' * 64}.zip",
        room.home / "work" / "notes" / "file",
        runs / "notes.txt",
        runs / "a folder" / "file",
        room.home / "notes" / "file",
    ]
    for path in strange:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
        age(path)
        age(path.parent)
    no_traceback(room.raymond("clean", "--keep", "0s"))
    no_traceback(room.raymond("clean", "r"))
    assert [path for path in strange if not path.exists()] == []


@pytest.mark.parametrize("name", ["sources", "work", "projects"])
def test_clean_follows_no_link_in_the_home(room: Place, name: str) -> None:
    ended(room)
    victim = room.victim()
    for fake in ("0" * 64, "0" * 64 + ".zip", "0" * 16):
        (victim / fake).write_text("mine")
        age(victim / fake)
    before = contents(victim)
    folder = room.home / name
    if folder.is_dir():
        folder.rename(room.path.parent / "moved")
    link(folder, victim)
    no_traceback(room.raymond("clean", "--keep", "0s"))
    no_traceback(room.raymond("clean", "r"))
    assert contents(victim) == before


def test_clean_follows_no_link_in_the_folder_of_a_run(room: Place) -> None:
    ended(room)
    victim = room.victim()
    before = contents(victim)
    link(room.folder() / "spool", victim)
    link(room.folder() / "more", victim)
    assert room.raymond("clean", "r").returncode == 0
    assert contents(victim) == before
    assert room.rows() == []


def test_a_run_that_is_a_link_is_not_removed_through_it(room: Place) -> None:
    ended(room)
    folder = room.folder()
    moved = folder.rename(room.path.parent / "moved")
    folder.symlink_to(moved)
    before = contents(moved)
    no_traceback(room.raymond("clean", "r"))
    no_traceback(room.raymond("clean", "--keep", "0s"))
    assert contents(moved) == before


def test_an_unfinished_run_stays(room: Place) -> None:
    room.ask()
    no_traceback(room.raymond("clean", "--keep", "0s"))
    assert room.raymond("clean", "r").returncode == 2
    assert room.status()["status"] == "waiting"


# --- beside others

COUNTS = {
    "START.sh": f"""
        n=${{#RAYMOND_INPUT}}
        echo s >> ../ledger
        if [ "$(wc -l < ../ledger)" -ge "$STEPS" ]; then
            echo "<result>$n</result>"
        else
            printf '<goto input="%s%s">START</goto>' {LONG} "$(wc -l < ../ledger)"
        fi
    """
}
"""Hands a long text to itself, another one each time, as often as STEPS says."""


def clean_until(room: Place, *processes: "subprocess.Popen[bytes]") -> int:
    """Clean again and again while they run; how often."""
    times = 0
    while any(process.poll() is None for process in processes):
        no_traceback(room.raymond("clean", "--keep", "1h"))
        times += 1
    return times


@pytest.mark.slow
def test_a_live_run_with_long_texts_survives_being_cleaned_beside(room: Place) -> None:
    room.environment["STEPS"] = "120"
    with room.start("run", room.flow(COUNTS), "--id", "r") as live:
        assert clean_until(room, live.process) > 2
        done = live.wait()
    assert done.code == 0, done.err
    for args in (("status", "r"), ("logs", "r"), ("cost", "r")):
        again = room.raymond(*args)
        assert again.returncode == 0, again.stderr


def held(id: str) -> dict[str, str]:
    """A workflow of its own for every run: it hands on a long text, then waits, then says whether it came through."""
    return {
        "START.sh": f"printf '<goto input=\"{id}%s\">HELD</goto>' {LONG}",
        "HELD.sh": f'echo {id} >> ../ledger; {GO}; test "${{RAYMOND_INPUT:0:{len(id)}}}" = {id} && echo "<result>{id}</result>"',
    }


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_dozen_runs_survive_being_started_and_killed_while_clean_runs_in_a_loop(room: Place) -> None:
    ids = [f"run{n}" for n in range(12)]
    flows = [room.flow(held(id), name=f"flow-{id}") for id in ids]
    drivers = []
    for id, flow in zip(ids, flows, strict=True):
        drivers.append(room.popen("run", flow, "--id", id))
        no_traceback(room.raymond("clean", "--keep", "0s"))
    while sorted(room.ledger()) != sorted(ids):
        assert all(driver.poll() is None for driver in drivers), "a start failed"
        no_traceback(room.raymond("clean", "--keep", "0s"))
    for driver in drivers:
        driver.kill()
        driver.wait()
    room.clear()
    no_traceback(room.raymond("clean", "--keep", "0s"))
    room.go()
    for id in ids:
        done = room.raymond("resume", id)
        assert (done.returncode, done.stdout) == (0, f"{id}\n"), done.stderr


SLOWLY = ("strace", "-qq", "-o", "/dev/null", "-e", "inject=unlink,unlinkat,rmdir:delay_exit=250000")
"""Before a command: every removal takes a quarter of a second."""


@pytest.mark.slow
def test_a_run_is_started_beside_the_cleaning_of_an_old_one_of_its_name(room: Place) -> None:
    """Either the old one is still there and the name is taken, or it is gone and the new one runs to its end."""
    if not shutil.which("strace"):
        pytest.skip("there is no strace to make `clean` slow")
    flow = room.flow(DONE)
    ended(room)
    argv = [*SLOWLY, sys.executable, "-m", "raymond", "clean", "r"]
    cleaning = subprocess.Popen(argv, cwd=room.path, env=room.environment, stderr=subprocess.PIPE, text=True)
    codes = []
    while 0 not in codes:
        start = room.raymond("run", flow, "--id", "r")
        codes.append(start.returncode)
        assert start.returncode in (0, 2), start.stderr
        assert start.returncode == 0 or "exists" in start.stderr
        assert cleaning.poll() in (None, 0), cleaning.stderr and cleaning.stderr.read()
    assert cleaning.wait() == 0
    assert room.status()["status"] == "completed"


@pytest.mark.parametrize("number", mostly_slow([2, 8]))
def test_two_starts_at_once_both_run(room: Place, number: int) -> None:
    """Just after the unpacked files of their workflow went, or half of them."""
    flow = room.flow({**DONE, **{f"lib/{n}.txt": "text" for n in range(200)}})
    for turn in range(number):
        for work in room.unpacked():
            clear_away(work if turn % 2 else work / "lib")
        argv = [sys.executable, "-m", "raymond", "run", flow, "--json"]
        both = [
            subprocess.Popen(
                argv, cwd=room.path, env=room.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            for _ in range(2)
        ]
        for process in both:
            out, err = process.communicate()
            assert process.returncode == 0, err
            assert json.loads(out)["status"] == "completed"
        assert [path.name for path in room.unpacked() if not path.name.isalnum()] == [], "nothing is left aside"


def test_an_unpacked_workflow_that_is_gone_is_unpacked_again_while_a_run_uses_it(room: Place) -> None:
    flow = {
        "START.sh": 'chmod -R u+w "$RAYMOND_WORKFLOW_DIR"; rm -rf "$RAYMOND_WORKFLOW_DIR"; echo "<goto>END</goto>"',
        "END.sh": "echo '<result>done</result>'",
    }
    done = room.command(flow)
    assert (done.code, done.out) == (0, "done\n"), done.err


def test_a_run_that_cannot_be_removed_does_not_keep_the_others(room: Place) -> None:
    for id in ("one", "two", "three"):
        ended(room, id)
    tasks = room.path / ".raymond" / "tasks"
    tasks.mkdir(exist_ok=True)
    (tasks / "two").mkdir()
    room.part("driver.json", "one").write_text('{"pid": 7, "host": "elsewhere", "started": "1"}')
    with room.start("run", room.flow({"START.sh": GO + "; echo '<result>x</result>'"}, "held"), "--id", "live") as live:
        until(lambda: list(room.home.glob("projects/*/runs/live/journal.jsonl")), "the journal")
        done = room.raymond("clean", "--keep", "0s")
        assert done.returncode == 0, done.stderr
        assert sorted(done.stdout.split()[:3]) == ["one", "three", "two"]
        room.go()
        live.wait("live")
    assert not (tasks / "two").exists()


def test_a_finished_run_is_removed_from_a_disk_that_is_full(room: Place) -> None:
    ended(room)
    folder = room.folder()
    done = room.raymond("clean", "r", preexec_fn=no_room)
    assert (done.returncode, done.stdout) == (0, "r\n"), done.stderr
    assert not folder.exists()


def test_an_unfinished_run_is_removed_from_a_disk_that_is_full(room: Place) -> None:
    """That it was cancelled cannot be written, and goes with it anyway."""
    room.ask()
    folder = room.folder()
    done = room.raymond("cancel", "r", preexec_fn=no_room)
    assert (done.returncode, done.stderr.splitlines()[0]) == (1, f"error: {folder}/journal.jsonl: file too large")
    done = room.raymond("clean", "--force", "r", preexec_fn=no_room)
    assert (done.returncode, done.stdout) == (0, "r\n"), done.stderr
    assert not folder.exists()


def test_what_an_interrupted_run_left_is_ended_although_the_disk_is_full(room: Place) -> None:
    with room.start("run", room.flow({"START.sh": "echo $$ > pid; exec sleep 600"}), "--id", "r") as live:
        note = room.path / "pid"
        pid = int(until(lambda: note.read_text() if note.exists() else None, "its process"))
        live.signal(signal.SIGKILL)
    done = room.raymond("clean", "--force", "r", preexec_fn=no_room)
    assert (done.returncode, done.stdout) == (0, "r\n"), done.stderr
    assert not alive(pid)


def test_of_two_that_remove_a_run_at_once_the_loser_says_that_there_is_none(room: Place) -> None:
    """Wherever it is when the other one is done."""
    room.ask()
    with room.start("clean", "--force", "r") as one, room.start("clean", "--force", "r") as other:
        ends = sorted((live.process.wait(), live.err) for live in (one, other))
    assert [code for code, _ in ends] == [0, 2], ends
    assert re.match(
        "error: (run `r` no longer exists|there is no run `r` here or in any other project)\n", ends[1][1]
    ), ends


def test_a_run_that_somebody_else_removed_is_not_to_be_resumed(room: Place) -> None:
    room.ask()
    run = RunHandle(room.project, "r")
    assert room.raymond("clean", "--force", "r").returncode == 0
    for work in (clean.cancel, clean.remove, lambda run: request.cancel(run.project, run.id)):
        with pytest.raises(RunNotFound) as caught:
            work(run)
        assert str(caught.value) == "run `r` no longer exists"
        assert caught.value.hint == "`raymond list` shows the runs that are there"


def test_what_cannot_be_removed_is_named_and_everything_else_goes(room: Place) -> None:
    """Of the runs and of what no run needs."""
    for id in ("one", "two"):
        ended(room, id)
    tasks, sources = room.path / ".raymond" / "tasks", room.home / "sources"
    stays, goes = sources / f"{'0' * 64}.zip.0123abcd.tmp", room.home / "work" / ".a.0123abcd.old"
    (tasks / "one").mkdir(parents=True)
    goes.mkdir()
    stays.touch()
    for path in (stays, goes):
        age(path)
    for folder in (tasks, sources):
        folder.chmod(0o500)
    argv = [*as_anyone(), sys.executable, "-m", "raymond", "clean", "--keep", "0s"]
    done = subprocess.run(argv, cwd=room.path, env=room.environment, text=True, capture_output=True, check=False)
    for folder in (tasks, sources):
        folder.chmod(0o700)
    assert done.returncode == 1, no_traceback(done)
    assert done.stdout.splitlines() == ["two", str(goes)]
    assert [line for line in done.stderr.splitlines() if line.startswith("error: ")] == [
        f"error: {tasks}: permission denied",
        f"error: {stays}: permission denied",
    ]
    assert "1 run removed, and 1 thing that no run needs" in done.stderr
    assert (room.folder("one").exists(), goes.exists(), stays.exists()) == (True, False, True)


def test_what_a_removal_that_was_cut_short_left_in_the_project_goes(room: Place) -> None:
    """Only after a while, only names of that form, and through no link."""
    ended(room)
    top, victim = room.path / ".raymond", room.victim()
    gone = [top / "tasks" / ".deep.0123abcd.old", top / "debug" / ".deep.4567cdef.old"]
    kept = [
        top / "tasks" / ".deep.0123ABCD.old",
        top / "tasks" / ".deep.0123abcd.older",
        top / "tasks" / ".deep.0123abc.old",
        top / "workflows" / ".deep.0123abcd.old",
        room.path / ".deep.0123abcd.old",
        victim / ".deep.0123abcd.old",
    ]
    for path in (*gone, *kept):
        (path / "deep").mkdir(parents=True)
        age(path)
    young = top / "tasks" / ".deep.89abcdef.old"
    young.mkdir()
    done = room.raymond("clean")
    assert sorted(done.stdout.splitlines()) == sorted(map(str, gone)), done.stderr
    assert [path for path in (*kept, young) if not path.exists()] == []
    link(top / "debug", victim)
    assert room.raymond("clean").stdout == ""
    assert kept[-1].exists()


def test_clean_says_what_to_do_with_the_name_of_another_host(room: Place) -> None:
    """It has no flag to overrule that."""
    room.ask()
    name = room.part("driver.json")
    name.write_text('{"pid": 7, "host": "elsewhere", "started": "1"}')
    clear_away(room.path)
    done = room.raymond("clean", "r", cwd="/")
    assert (done.returncode, "--force" in done.stderr) == (1, False), done.stderr
    assert f"then remove {name}" in done.stderr
    name.unlink()
    assert room.raymond("clean", "r", cwd="/").returncode == 0


def test_a_resume_that_is_refused_does_not_overrule_another_host(room: Place) -> None:
    room.repository().ask()
    name = room.part("driver.json")
    name.write_text('{"pid":7,"host":"elsewhere","started":"1"}')
    clear_away(room.path / ".git")
    assert room.raymond("resume", "r", "--force").returncode == 2
    done = room.raymond("resume", "r", "--cd", ".")
    assert done.returncode == 1, done.stderr
    assert "elsewhere" in done.stderr
