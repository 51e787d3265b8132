"""`raymond apply`: all of the work, or nothing where something of the person's is in the way."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from workspace.checkout import Checkout, put
from workspace.person import Entry, Person, walked


def files(checkout: Checkout) -> dict[str, Entry]:
    """What the person has in the checkout, but for what Raymond keeps there."""
    return {path: entry for path, entry in walked(checkout.path) if not path.startswith((".raymond", ".git/"))}


def refused(checkout: Checkout) -> list[str]:
    """The files in the way; nothing was written."""
    before = files(checkout)
    done = checkout.apply()
    assert files(checkout) == before
    assert (done.changed, done.there) == ([], 0)
    return done.conflicts


def test_apply_writes_what_changed_and_nothing_else(checkout: Checkout) -> None:
    checkout.begin({"a": "1\n", "gone/x": "2\n", "run.sh": "3\n", "kept": "4\n"}).open()
    put(checkout.tree / "a", "changed\n")
    put(checkout.tree / "run.sh", "3\n", 0o755)
    put(checkout.tree / "new/deep/b", b"\0\xff")
    (checkout.tree / "link").symlink_to("a")
    (checkout.tree / "gone/x").unlink()
    put(checkout.path / "kept", "the person's\n")
    put(checkout.path / "untracked", "the person's\n")
    checkout.save()
    kept = files(checkout)
    assert checkout.apply().changed == ["a", "gone/x", "link", "new/deep/b", "run.sh"]
    assert (checkout.path / "a").read_text("utf-8") == "changed\n"
    assert (checkout.path / "new/deep/b").read_bytes() == b"\0\xff"
    assert (checkout.path / "run.sh").stat().st_mode & 0o111
    assert os.readlink(checkout.path / "link") == "a"
    assert not (checkout.path / "gone").exists()
    now = files(checkout)
    assert {path: now[path] for path in ("kept", "untracked")} == {path: kept[path] for path in ("kept", "untracked")}
    assert checkout.git("diff", "--cached", "--name-only") == ""
    again = checkout.apply()
    assert (again.changed, again.there, again.conflicts) == ([], 5, [])
    assert files(checkout) == now


def test_a_file_that_the_person_changed_is_in_the_way_of_everything(checkout: Checkout) -> None:
    checkout.begin({"a": "1\n", "b": "1\n", "c": "1\n", "d": "1\n"}).open()
    for name in ("a", "b", "c"):
        put(checkout.tree / name, "agent\n")
    (checkout.tree / "d").unlink()
    put(checkout.tree / "new", "agent\n")
    checkout.save()
    put(checkout.path / "a", "person\n")
    (checkout.path / "b").unlink()
    put(checkout.path / "d", "person\n")
    put(checkout.path / "new", "person\n")
    assert refused(checkout) == ["a", "b", "d", "new"]


def test_what_is_there_already_is_not_in_the_way(checkout: Checkout) -> None:
    checkout.begin({"a": "1\n", "b": "1\n"}).open()
    put(checkout.tree / "a", "2\n")
    (checkout.tree / "b").unlink()
    put(checkout.tree / "new", "2\n")
    checkout.save()
    put(checkout.path / "a", "2\n")
    (checkout.path / "b").unlink()
    put(checkout.path / "new", "2\n")
    done = checkout.apply()
    assert (done.changed, done.there, done.conflicts) == ([], 3, [])


def test_what_was_uncommitted_at_the_start_is_not_in_the_way(checkout: Checkout) -> None:
    checkout.begin({"a": "1\n"})
    put(checkout.path / "a", "uncommitted\n")
    put(checkout.path / "new", "untracked\n")
    checkout.open()
    put(checkout.tree / "a", "agent\n")
    put(checkout.tree / "new", "agent\n")
    checkout.save()
    assert checkout.apply().changed == ["a", "new"]


def test_an_ignored_file_of_the_person_is_in_the_way(checkout: Checkout) -> None:
    checkout.begin({"a": "1\n"}).open()
    put(checkout.tree / "out", "agent\n")
    checkout.save()
    put(checkout.path / "out", "person\n")
    put(checkout.path / ".git/info/exclude", "out\n")
    assert refused(checkout) == ["out"]


def test_a_folder_takes_the_place_of_a_file(checkout: Checkout) -> None:
    checkout.begin({"x": "1\n"}).open()
    (checkout.tree / "x").unlink()
    put(checkout.tree / "x/y", "2\n")
    checkout.save()
    assert checkout.apply().changed == ["x", "x/y"]
    assert (checkout.path / "x/y").read_text("utf-8") == "2\n"


def test_a_file_takes_the_place_of_a_folder_and_of_empty_folders_in_it(checkout: Checkout) -> None:
    checkout.begin({"x/y": "1\n", "x/deep/z": "1\n"}).open()
    for name in ("x/y", "x/deep/z"):
        (checkout.tree / name).unlink()
    (checkout.tree / "x/deep").rmdir()
    (checkout.tree / "x").rmdir()
    put(checkout.tree / "x", "file\n")
    checkout.save()
    (checkout.path / "x/empty/deeper").mkdir(parents=True)
    assert checkout.apply().changed == ["x", "x/deep/z", "x/y"]
    assert (checkout.path / "x").read_text("utf-8") == "file\n"


@pytest.mark.parametrize("kind", ["file", "link to a folder", "pipe"])
def test_anything_of_the_person_in_a_folder_is_in_the_way_of_a_file(checkout: Checkout, kind: str) -> None:
    checkout.begin({"x/y": "1\n"}).open()
    (checkout.tree / "x/y").unlink()
    (checkout.tree / "x").rmdir()
    put(checkout.tree / "x", "file\n")
    checkout.save()
    theirs = checkout.path / "x/person"
    if kind == "file":
        put(theirs, "1\n")
    elif kind == "pipe":
        os.mkfifo(theirs)
    else:
        theirs.symlink_to("/")
    assert refused(checkout) == ["x"]


def test_nothing_is_written_through_a_link_of_the_person(checkout: Checkout, tmp_path: Path) -> None:
    checkout.begin({"src/a": "1\n", "b": "1\n"}).open()
    put(checkout.tree / "src/a", "2\n")
    put(checkout.tree / "b", "2\n")
    put(checkout.tree / "out/new", "2\n")
    checkout.save()
    outside = tmp_path / "outside"
    put(outside / "a", "1\n")
    (checkout.path / "src/a").unlink()
    (checkout.path / "src").rmdir()
    (checkout.path / "b").unlink()
    for name, target in (("src", outside), ("out", outside), ("b", outside / "a")):
        (checkout.path / name).symlink_to(target)
    before = dict(walked(outside))
    assert refused(checkout) == ["b", "out/new", "src/a"]
    assert dict(walked(outside)) == before


def test_a_folder_takes_the_place_of_a_link_to_a_folder_with_the_same_files(checkout: Checkout) -> None:
    checkout.begin({"v1/a": "1\n"})
    (checkout.path / "current").symlink_to("v1")
    checkout.git("add", "-A")
    checkout.git("commit", "-qm", "link")
    checkout.open()
    (checkout.tree / "current").unlink()
    put(checkout.tree / "current/a", "1\n")
    put(checkout.tree / "current/b", "2\n")
    checkout.save()
    assert checkout.apply().changed == ["current", "current/a", "current/b"]
    assert not (checkout.path / "current").is_symlink()
    assert (checkout.path / "current/a").read_text("utf-8") == "1\n"
    assert sorted(os.listdir(checkout.path / "v1")) == ["a"]


def test_line_endings_of_the_checkout_are_those_of_the_base(checkout: Checkout) -> None:
    checkout.begin({".gitattributes": "*.txt text eol=crlf\n", "a.txt": "1\n", "b.txt": "1\n"})
    (checkout.path / "a.txt").unlink()
    checkout.git("checkout", "a.txt")
    assert (checkout.path / "a.txt").read_bytes() == b"1\r\n"
    checkout.open()
    put(checkout.tree / "a.txt", "1\r\n2\r\n")
    put(checkout.tree / "new.txt", "1\n")
    checkout.save()
    assert checkout.apply().changed == ["a.txt", "new.txt"]
    assert (checkout.path / "a.txt").read_bytes() == b"1\r\n2\r\n"
    assert (checkout.path / "new.txt").read_bytes() == b"1\r\n"
    assert checkout.apply().there == 2


def test_new_attributes_of_the_agent_convert_nothing(checkout: Checkout) -> None:
    checkout.begin({"a.txt": "1\n", "src/.gitattributes": "*.c text\n"}).open()
    put(checkout.tree / ".gitattributes", "* text eol=crlf\n")
    put(checkout.tree / "src/.gitattributes", "*.c text eol=crlf\n")
    put(checkout.tree / "a.txt", "2\n")
    checkout.save()
    assert checkout.apply().changed == [".gitattributes", "a.txt", "src/.gitattributes"]
    assert (checkout.path / "a.txt").read_bytes() == b"2\n"
    assert (checkout.path / ".gitattributes").read_bytes() == b"* text eol=crlf\n"
    assert checkout.apply().there == 3


def test_what_a_killed_apply_left_is_in_nobody_s_way(checkout: Checkout) -> None:
    checkout.begin({"a": "1\n"}).open()
    put(checkout.tree / "a", "2\n")
    put(checkout.tree / "new", "2\n")
    checkout.save()
    put(checkout.path / ".raymond/apply-r/git/index.lock", "")
    put(checkout.path / ".raymond/apply-r/files/new", "half of it")
    assert checkout.apply().changed == ["a", "new"]
    assert (checkout.path / "new").read_text("utf-8") == "2\n"
    assert os.listdir(checkout.path / ".raymond") == []


def applying(checkout: Checkout) -> list[str]:
    """A process that brings the work home."""
    tip, base = checkout.save(), checkout.place.slot.base()
    assert base
    program = f"from raymond.workspace.apply import apply; apply({str(checkout.path)!r}, 'r', {base.commit!r}, {tip!r})"
    return [sys.executable, "-c", program]


@pytest.mark.slow
def test_two_that_bring_the_work_home_at_once_take_turns(checkout: Checkout) -> None:
    checkout.begin({"a": "1\n"}).open()
    for n in range(40):
        put(checkout.tree / f"new/{n}", f"{n}\n")
    argv = applying(checkout)
    started = [subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    assert [one.communicate()[1] for one in started] == ["", "", ""]
    assert {path.name: path.read_text("utf-8") for path in (checkout.path / "new").iterdir()} == {
        str(n): f"{n}\n" for n in range(40)
    }


@pytest.mark.slow
def test_what_was_applied_before_is_not_in_the_way(checkout: Checkout) -> None:
    checkout.begin({"a": "1\n", "b": "1\n", "c": "1\n"}).open()
    put(checkout.tree / "a", "2\n")
    put(checkout.tree / "b", "2\n")
    put(checkout.tree / "new", "2\n")
    checkout.save()
    assert checkout.apply().changed == ["a", "b", "new"]
    put(checkout.tree / "a", "3\n")
    put(checkout.tree / "b", "1\n")  # as it was
    (checkout.tree / "new").unlink()
    (checkout.tree / "c").unlink()
    checkout.save()
    assert checkout.apply().changed == ["a", "b", "c", "new"]
    at_home = {path.name: path.read_text() for path in checkout.path.iterdir() if path.is_file()}
    assert {name: text for name, text in at_home.items() if len(name) < 4} == {"a": "3\n", "b": "1\n"}
    put(checkout.path / "a", "mine\n")
    put(checkout.tree / "a", "4\n")
    checkout.save()
    assert checkout.apply().conflicts == ["a"]


def test_an_edit_while_files_are_prepared_is_in_the_way(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout.begin({"a": "1\n", "b": "1\n"}).open()
    put(checkout.tree / "a", "2\n")
    put(checkout.tree / "b", "2\n")
    checkout.save()
    real = shutil.which("git")
    script = (
        f'#!/bin/sh\ncase "$*" in *checkout-index*files*) echo mine > \'{checkout.path}/b\';; esac\nexec {real} "$@"\n'
    )
    put(checkout.path.parent / "bin/git", script, 0o755)
    monkeypatch.setenv("PATH", f"{checkout.path.parent}/bin:{os.environ['PATH']}")
    assert checkout.apply().conflicts == ["b"]
    assert [(checkout.path / name).read_text() for name in "ab"] == ["1\n", "mine\n"]


def test_nothing_is_written_where_not_everything_can_be(anyone: Person) -> None:
    anyone.begin({"a": "1\n", "d/b": "1\n"})
    assert anyone.run("echo 2 > a; echo 2 > d/b").returncode == 0
    anyone.sh("chmod 555 d")
    done = anyone.raymond("apply", "r")
    assert (done.returncode, done.stderr) == (1, "error: nothing was written: d cannot be written\n")
    assert (anyone.project / "a").read_text() == "1\n"
    anyone.sh("chmod 755 d")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_a_killed_apply_is_finished_by_the_next_one(checkout: Checkout, seed: int) -> None:
    chance = random.Random(seed)
    checkout.begin({f"d{n % 5}/f{n}": f"{n}\n" for n in range(120)}).open()
    for n in range(120):
        path = checkout.tree / f"d{n % 5}/f{n}"
        if n % 3 == 0:
            path.unlink()
        elif n % 3 == 1:
            put(path, f"agent {n}\n")
    put(checkout.tree / "new/file", "1\n")
    argv = applying(checkout)
    for _ in range(4):
        started = subprocess.Popen(argv, start_new_session=True, stderr=subprocess.DEVNULL)
        with_patience = time.monotonic() + chance.uniform(0.05, 0.35)
        while started.poll() is None and time.monotonic() < with_patience:
            os.sched_yield()
        os.killpg(started.pid, signal.SIGKILL) if started.poll() is None else None
        started.wait()
    assert checkout.apply().conflicts == []
    at_home = {path: entry[3] for path, entry in files(checkout).items()}
    assert at_home == {path: entry[3] for path, entry in walked(checkout.tree) if not path.startswith(".git/")}
