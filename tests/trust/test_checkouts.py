"""What a foreign checkout ships is settings at most: it runs nothing, it is not believed, and no link in it is used."""

import os
import resource
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from trust.places import ASKS, Place, contents, link, no_traceback, pack

DONE = {"START.sh": "echo '<result>done</result>'"}


def digest_of(room: Place, files: dict[str, str]) -> str:
    """The name of a workflow's snapshot, which anybody who has its files can know."""
    folder = room.path.parent / "elsewhere"
    folder.mkdir()
    other = Place(folder)
    assert other.command(files).code in (0, 3)
    (source,) = other.sources()
    return source.stem


# --- links


@pytest.mark.parametrize("size", [16, 64])
@pytest.mark.parametrize("command", ["run", "resume"])
def test_a_link_named_for_a_public_workflow_is_not_unpacked_into(room: Place, size: int, command: str) -> None:
    digest = digest_of(room, ASKS)
    victim = room.victim()
    before = contents(victim)
    if command == "resume":
        room.ask()
        assert room.raymond("answer", "r", "yes", "--no-resume").returncode == 0
    link(room.path / ".raymond" / "work" / digest[:size], victim)
    done = room.resume() if command == "resume" else room.command(ASKS)
    assert done.code == (0 if command == "resume" else 3), done.err
    assert contents(victim) == before


# --- settings


def limited() -> None:
    """A command that reads without end must not take the machine down with it."""
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def large(path: Path) -> None:
    path.write_text("# much\n" * (1 << 18))


def pipe(path: Path) -> None:
    os.mkfifo(path)


def linked(path: Path) -> None:
    other = path.parent.parent.parent / "other.toml"
    other.write_text("budget = 3\n")
    path.symlink_to(other)


@pytest.mark.parametrize("put", [endless, large, pipe, linked])
def test_settings_that_are_no_small_file_are_an_error(room: Place, put: Callable[[Path], None]) -> None:
    (room.path / ".raymond").mkdir()
    put(room.path / ".raymond" / "config.toml")
    done = room.raymond("run", room.flow(DONE), preexec_fn=limited)
    said = no_traceback(done)
    assert done.returncode in (1, 2), said
    assert "config.toml" in said


def test_settings_of_a_checkout_still_count(room: Place) -> None:
    (room.path / ".raymond").mkdir()
    (room.path / ".raymond" / "config.toml").write_text("budget = 3\n")
    done = room.command(DONE)
    assert done.code == 0
    assert "$3.00" in done.err


def test_settings_further_up_do_not_count(room: Place) -> None:
    above = room.path.parent / ".raymond"
    above.mkdir()
    (above / "config.toml").write_text("budget = 3\n")
    done = room.command(DONE)
    assert done.code == 0
    assert "$3.00" not in done.err


def test_a_stray_folder_further_up_swallows_no_run(room: Place) -> None:
    (room.path.parent / ".raymond").mkdir()
    assert room.command(DONE).code == 0
    assert contents(room.path.parent / ".raymond") == {}
    assert [row["project"] for row in room.rows()] == [str(room.path)]


def test_settings_at_the_top_of_a_repository_count_below_it(room: Place) -> None:
    below = room.repository().path / "a" / "b"
    below.mkdir(parents=True)
    (room.path / ".raymond").mkdir()
    (room.path / ".raymond" / "config.toml").write_text("budget = 3\n")
    done = room.raymond("run", room.flow(DONE), "--id", "r", cwd=below)
    assert done.returncode == 0, done.stderr
    assert "$3.00" in done.stderr
    assert [row["project"] for row in room.rows()] == [str(room.path)]


# --- snapshots

EVIL = {"START.sh": "echo '<ask next=\"END\">Which?</ask>'", "END.sh": "touch PWNED; echo '<result>evil</result>'"}


@pytest.mark.parametrize("where", ["home", "checkout"])
def test_a_snapshot_is_not_believed_by_its_name(room: Place, where: str) -> None:
    digest = digest_of(room, ASKS)
    folder = room.home if where == "home" else room.path / ".raymond"
    folder.mkdir(mode=0o700, parents=True)
    pack(folder / "sources" / f"{digest}.zip", EVIL)
    room.ask()
    assert room.raymond("answer", "r", "yes", "--no-resume").returncode == 0
    done = room.resume()
    assert (done.code, done.out) == (0, "told yes\n"), done.err
    assert not (room.path / "PWNED").exists()


def test_an_unpacked_workflow_is_not_believed_by_its_name(room: Place) -> None:
    room.ask("first")
    (work,) = room.unpacked()
    for path in (work, *work.rglob("*")):
        path.chmod(0o700)
    (work / "END.sh").write_text(EVIL["END.sh"])
    room.ask("second")
    assert room.raymond("answer", "second", "yes", "--no-resume").returncode == 0
    done = room.resume(id="second")
    assert (done.code, done.out) == (0, "told yes\n"), done.err
    assert not (room.path / "PWNED").exists()


def test_the_snapshot_of_a_run_is_compared_with_what_its_journal_says(room: Place) -> None:
    """One file in two places: whoever changes the snapshot in place changes both."""
    room.ask()
    assert room.raymond("answer", "r", "yes", "--no-resume").returncode == 0
    for path in (*room.sources(), room.part("source.zip")):
        if path.exists():
            path.chmod(0o600)
            pack(path, EVIL)
    for path in room.unpacked():
        path.rename(room.path.parent / path.name)
    done = room.raymond("resume", "r")
    assert done.returncode == 1, no_traceback(done)
    assert "source" in done.stderr or "snapshot" in done.stderr
    assert not (room.path / "PWNED").exists()


def test_a_run_whose_shared_snapshot_is_gone_goes_on_with_its_own(room: Place) -> None:
    room.ask()
    assert room.raymond("answer", "r", "yes", "--no-resume").returncode == 0
    for path in room.sources():
        path.unlink()
    done = room.resume()
    assert (done.code, done.out) == (0, "told yes\n"), done.err


# --- runs


def ship(room: Place) -> Place:
    """A checkout that ships a run of somebody else, in `.raymond`; it notifies by a command."""
    folder = room.path.parent / "somebody"
    folder.mkdir()
    other = Place(folder)
    pwned = room.path / "PWNED"
    done = other.raymond("run", other.flow(ASKS), "--id", "r", "--budget", "77", "--notify", f"touch {pwned}")
    assert done.returncode == 3, done.stderr
    old = room.repository().path / ".raymond"
    (old / "workflows").mkdir(parents=True)
    (old / "sources").mkdir()
    shutil.copy(other.journal(), old / "workflows" / "r.jsonl")
    shutil.copy(other.part("state.json"), old / "workflows" / "r.json")
    for source in other.sources():
        shutil.copy(source, old / "sources")
    room.git("add", "-A", "-f")
    room.git("commit", "-qm", "a run")
    pwned.unlink(missing_ok=True)
    other.clear()
    return room


def test_a_run_that_a_checkout_ships_is_not_listed(room: Place) -> None:
    ship(room)
    assert room.rows() == []


@pytest.mark.parametrize("args", [("status", "r"), ("resume", "r"), ("answer", "r", "main", "yes"), ("stop", "r")])
def test_a_run_that_a_checkout_ships_is_not_taken(room: Place, args: tuple[str, ...]) -> None:
    ship(room)
    before = contents(room.path / ".raymond")
    done = room.raymond(*args)
    said = no_traceback(done)
    assert done.returncode == 2, said
    assert "there is no run `r` here or in any other project" in said
    assert contents(room.path / ".raymond") == before
    assert not (room.path / "PWNED").exists()


def test_resume_all_takes_no_run_that_a_checkout_ships(room: Place) -> None:
    ship(room)
    path = room.path / ".raymond" / "workflows" / "r.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2]))  # as if its driver had died
    done = room.raymond("resume", "--all")
    no_traceback(done)
    assert "r" not in done.stdout.split()
    room.nothing_runs()
    assert len(path.read_bytes().splitlines()) == 2


def test_clean_removes_no_run_that_a_checkout_ships(room: Place) -> None:
    ship(room)
    before = contents(room.path / ".raymond")
    no_traceback(room.raymond("clean", "r"))
    no_traceback(room.raymond("clean", "--keep", "0s"))
    assert contents(room.path / ".raymond") == before


def test_another_id_can_be_used_beside_a_run_that_a_checkout_ships(room: Place) -> None:
    done = ship(room).command(DONE, id="mine")
    assert (done.code, done.out) == (0, "done\n"), done.err
    assert room.status("mine")["status"] == "completed"
