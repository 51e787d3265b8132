"""Runs that an earlier release kept in the project: taken over by a person, who sees what they may do."""

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from crash import record
from running import until
from trust.places import ASKS, Place, contents, link, no_traceback

LONG = "long " * 8000
"""A text that is kept outside the journal."""
THINKS = {
    "START.md": "Think.",
    "ASK.md": "Ask.",
    "END.md": "Say what {{input}} was about.",
    "replies.yaml": """
        START.md: <goto>ASK</goto>
        ASK.md: <ask next="END">Which?</ask>
        END.md: <result>done</result>
    """,
}


def earlier(room: Place, id: str = "r", *args: str, files: dict[str, str] = ASKS) -> Path:
    """Leave a waiting run as an earlier release did; the `.raymond` that holds it."""
    done = room.raymond("run", room.flow(files), "--id", id, "--input", LONG, *args)
    assert done.returncode == 3, done.stderr
    top, folder = room.path / ".raymond", room.folder(id)
    (source,) = room.sources()
    for path, target in (
        (folder / "journal.jsonl", top / "workflows" / f"{id}.jsonl"),
        (source, top / "sources" / source.name),
        (folder / "blobs", top / "blobs"),
        (folder / "transcripts", top / "transcripts" / id),
        (folder / "sessions", top / "sessions" / id),
    ):
        target.parent.mkdir(exist_ok=True)
        if path.exists():
            path.rename(target)
    (top / "workflows" / f"{id}.lock").touch()
    shutil.rmtree(room.home)
    return top


@pytest.mark.slow
def test_an_adopted_run_goes_on_where_it_was(room: Place) -> None:
    earlier(room, files=THINKS)
    done = room.raymond("adopt", "r", "--yes")
    assert done.returncode == 0, done.stderr
    assert room.raymond("answer", "r", "this", "--no-resume").returncode == 0
    resumed = room.resume()
    assert (resumed.code, resumed.out) == (0, "done\n"), resumed.err
    assert [one["state"] for one in resumed.transcript()] == ["START.md", "ASK.md", "END.md"]
    begun = resumed.run.start
    assert begun.input == LONG


@pytest.mark.parametrize(
    ("kept", "why"),
    [
        ("{}\n", "{} is not a journal of Raymond, or its first line is damaged"),
        ("{", "{} ends before its run begins"),
    ],
)
def test_a_file_that_is_not_a_journal_is_named_where_it_is(room: Place, kept: str, why: str) -> None:
    file = room.path / ".raymond" / "workflows" / "old.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text(kept)
    done = room.raymond("adopt", "old")
    hint = "it was damaged, or it did not come from here; it stays where it is"
    said = f"error: old cannot be adopted: {why.format(file)}\nhint: {hint}\n"
    assert (done.returncode, done.stderr) == (1, said)


@pytest.mark.slow
def test_a_person_sees_what_a_run_may_do_and_is_asked(room: Place) -> None:
    top = earlier(room, "r", "--notify", "tell-me", "--budget", "7", "--allow-tool", "Bash(make:*)")
    before = contents(top)
    done = room.raymond("adopt", "r")
    assert done.returncode == 2
    for word in ("tell-me", "$7.00", "acceptEdits", "Bash(make:*)", "does not track it", "--yes"):
        assert word in done.stderr
    assert room.rows() == []
    assert contents(top) == before
    assert list(room.home.glob("projects/*/runs/*")) == [], "nothing is left of what was looked at"


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "adopted"), [(b"y\n", True), (b"n\n", False), (b"\n", False)])
def test_an_answer_on_the_terminal_decides(room: Place, answer: bytes, adopted: bool) -> None:
    earlier(room)
    master, slave = os.openpty()
    os.write(master, answer)
    done = room.raymond("adopt", "r", stdin=slave)
    os.close(slave)
    os.close(master)
    assert done.returncode == 0, done.stderr
    assert bool(room.rows()) == adopted


@pytest.mark.slow
def test_commands_mention_them_once_and_never_take_them(room: Place) -> None:
    earlier(room)
    room.ask("new")
    said = [no_traceback(room.raymond("list")) for _ in range(2)]
    assert ["raymond adopt" in one for one in said] == [False, False], "the start has mentioned them"
    for command in (["resume", "r"], ["status", "r"], ["answer", "r", "yes"], ["stop", "r"]):
        done = room.raymond(*command)
        assert done.returncode == 2
        assert "raymond adopt r" in done.stderr
    assert room.raymond("adopt").stdout == "r\n"


def test_all_of_them_can_be_adopted(room: Place) -> None:
    top = earlier(room, "one")
    kept = room.path.parent / "kept"
    top.rename(kept)
    top = earlier(room, "two")
    shutil.copytree(kept, top, dirs_exist_ok=True)
    assert room.raymond("adopt", "--all", "--yes").returncode == 0
    assert {row["workflow_id"] for row in room.rows()} == {"one", "two"}


def test_what_was_adopted_and_removed_is_not_offered_again(room: Place) -> None:
    earlier(room)
    assert room.raymond("adopt", "r", "--yes").returncode == 0
    assert room.raymond("answer", "r", "x", "--no-resume").returncode == 0
    assert room.resume().code == 0
    assert room.raymond("clean", "r").returncode == 0
    assert room.raymond("adopt").stdout == ""


def test_a_text_or_a_snapshot_that_was_changed_is_refused(room: Place) -> None:
    top = earlier(room)
    (blob,) = (top / "blobs").iterdir()
    (source,) = (top / "sources").iterdir()
    for path in (blob, source):
        data = path.read_bytes()
        path.write_bytes(data.replace(b"long", b"LONG", 1).replace(b"Which", b"WHICH", 1))
        refused(room, top)
        path.unlink()
        refused(room, top)
        path.write_bytes(data)
    assert room.raymond("adopt", "r", "--yes").returncode == 0


def test_a_snapshot_of_other_files_under_the_right_name_is_refused(room: Place) -> None:
    top = earlier(room)
    (source,) = (top / "sources").iterdir()
    shutil.make_archive(str(source.with_suffix("")), "zip", room.flow({"START.sh": "echo evil"}, "evil"))
    refused(room, top)


def test_a_text_outside_of_the_project_is_refused(room: Place) -> None:
    top = earlier(room)
    journal = top / "workflows" / "r.jsonl"
    (blob,) = (top / "blobs").iterdir()
    lines = [record.bare(line) for line in journal.read_bytes().splitlines()]
    forged = [line.replace(blob.name.encode(), b"../../../../../../etc/hostname") for line in lines]
    journal.write_bytes(b"".join(record.line(line) for line in forged))
    refused(room, top)


@pytest.mark.parametrize("name", ["workflows/r.jsonl", "blobs", "sources", "workflows"])
def test_no_link_is_followed(room: Place, name: str) -> None:
    top = earlier(room)
    away = room.path.parent / "away"
    (top / name).rename(away)
    link(top / name, away)
    done = room.raymond("adopt", "r", "--yes")
    assert done.returncode != 0
    no_traceback(done)
    assert room.rows() == []


def test_links_among_its_transcripts_stay_behind(room: Place) -> None:
    top = earlier(room)
    link(top / "transcripts" / "r" / "passwords.jsonl", room.victim() / ".bashrc")
    assert room.raymond("adopt", "r", "--yes").returncode == 0
    assert sorted(path.name for path in room.part("transcripts").iterdir()) == ["main.jsonl"]


def test_a_run_that_an_earlier_release_still_drives_is_refused(room: Place) -> None:
    top = earlier(room)
    with (top / "workflows" / "r.lock").open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        refused(room, top)
    assert room.raymond("adopt", "r", "--yes").returncode == 0


def test_a_run_that_git_tracks_is_pointed_out_and_keeps_its_name(room: Place) -> None:
    room.repository()
    top = earlier(room)
    room.git("add", "-f", ".raymond")
    room.git("commit", "-qm", "theirs")
    done = room.raymond("adopt", "r", "--yes")
    assert done.returncode == 0
    assert "COME WITH THE REPOSITORY" in done.stderr
    assert room.git("status", "--porcelain") == ""
    assert (top / "workflows" / "r.jsonl").exists()


def test_an_id_that_is_taken_is_refused(room: Place) -> None:
    top = earlier(room)
    assert room.raymond("adopt", "r", "--yes").returncode == 0
    (top / "workflows" / "r.jsonl.adopted").rename(top / "workflows" / "r.jsonl")
    done = room.raymond("adopt", "r", "--yes")
    assert done.returncode == 2
    assert "already" in done.stderr
    assert (top / "workflows" / "r.jsonl").exists()


def test_a_run_of_the_same_name_is_not_started_beside_it(room: Place) -> None:
    """It would share its task folders, and removing the new one would remove them."""
    top = earlier(room)
    (top / "tasks" / "r" / "main").mkdir(parents=True)
    (top / "tasks" / "r" / "main" / "notes").write_text("precious")
    before = contents(top)
    done = room.raymond("run", room.flow(ASKS), "--id", "r")
    assert done.returncode == 2
    assert "raymond adopt r" in done.stderr
    assert contents(top) == before


def test_a_run_that_changes_while_its_owner_is_asked_is_refused(room: Place) -> None:
    top = earlier(room)
    master, slave = os.openpty()
    asked = subprocess.Popen(
        [sys.executable, "-m", "raymond", "adopt", "r"],
        cwd=room.path,
        env=room.environment,
        stdin=slave,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    said = asked.stderr
    assert said
    until(lambda: b"adopt it?" in os.read(said.fileno(), 4096), "the question")
    with (top / "workflows" / "r.jsonl").open("ab") as file:
        file.write(b"more")
    os.write(master, b"y\n")
    assert asked.wait() == 1
    os.close(slave)
    os.close(master)
    assert room.rows() == []


@pytest.mark.parametrize("name", ["../../other/journal", "..", "a/b"])
def test_an_agent_whose_name_leads_elsewhere_is_refused(room: Place, name: str) -> None:
    top = earlier(room)
    journal = top / "workflows" / "r.jsonl"
    lines = [record.bare(line).replace(b'"main"', f'"{name}"'.encode()) for line in journal.read_bytes().splitlines()]
    journal.write_bytes(b"".join(record.line(line) for line in lines))
    refused(room, top)


@pytest.mark.parametrize("path", ["", "sub/folder", "../elsewhere"])
def test_a_directory_that_is_not_absolute_is_refused(room: Place, path: str) -> None:
    """It would be another one wherever the run is resumed."""
    top = earlier(room)
    journal = top / "workflows" / "r.jsonl"
    here = f'"cwd":"{room.path}"'.encode()
    lines = [record.bare(line).replace(here, f'"cwd":"{path}"'.encode()) for line in journal.read_bytes().splitlines()]
    journal.write_bytes(b"".join(record.line(line) for line in lines))
    assert "absolute" in room.raymond("adopt", "r", "--yes").stderr
    refused(room, top)


def test_nothing_is_hidden_by_blanks_or_by_length(room: Place) -> None:
    padded = "nobody" + " " * 74 + "git:       does not track it" + " " * 4000 + "; touch pwned"
    earlier(room, "r", "--notify", padded, "--notify", "second\x1b[2Jtarget")
    said = room.raymond("adopt", "r").stderr
    assert "notify:    nobody [74 spaces] git:" in said
    assert "characters more]" in said or "touch pwned" in said
    assert "second\\x1b[2Jtarget" in said
    assert all(len(line) < 400 for line in said.splitlines())


def test_a_repository_inside_the_project_counts_as_tracked(room: Place) -> None:
    room.repository()
    top = earlier(room)
    room.git("init", "-q", cwd=top)
    done = room.raymond("adopt", "r", "--yes")
    assert "COME WITH THE REPOSITORY" in done.stderr
    assert (top / "workflows" / "r.jsonl").exists()


@pytest.mark.parametrize("harm", ["deep", "huge"])
def test_folders_and_files_of_any_size_are_refused(room: Place, harm: str) -> None:
    top = earlier(room)
    target = top / "transcripts" / "r"
    if harm == "deep":
        target.joinpath(*["d"] * 200).mkdir(parents=True)
    else:
        with (target / "huge.jsonl").open("wb") as file:
            file.truncate(1 << 41)
    done = room.raymond("adopt", "r", "--yes")
    assert done.returncode == 1
    no_traceback(done)
    assert room.rows() == []


def refused(room: Place, top: Path) -> None:
    before = contents(top)
    done = room.raymond("adopt", "r", "--yes")
    assert done.returncode not in (0, 70), done.stderr
    no_traceback(done)
    assert room.rows() == []
    assert contents(top) == before
    assert list(room.home.glob("projects/*/runs/*")) == []
