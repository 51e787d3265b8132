"""Carried: what a tree has besides the files of git, and that none of it reaches the person's."""

import os
import sys
from pathlib import Path

import pytest

from raymond.errors import UsageError
from workspace.checkout import Checkout, put
from workspace.person import Person


def test_ignored_files_in_a_folder_that_git_does_not_track_are_carried(checkout: Checkout) -> None:
    checkout.begin()
    put(checkout.path / "new/main.py", "1\n")
    put(checkout.path / "new/.env", "KEY=1\n")
    put(checkout.path / "new/node_modules/x/index.js", "1\n")
    put(checkout.path / "only/ignored/.env", "KEY=2\n")
    base = checkout.open()
    assert base.installed == ["new/node_modules"]
    assert (checkout.tree / "new/.env").read_text("utf-8") == "KEY=1\n"
    assert (checkout.tree / "only/ignored/.env").read_text("utf-8") == "KEY=2\n"
    assert checkout.taken() == {}


def test_small_ignored_files_are_copied_with_their_times_and_modes(checkout: Checkout) -> None:
    checkout.begin()
    put(checkout.path / ".env", "KEY=1\n", 0o600)
    (checkout.path / "run.log").symlink_to("/nowhere")
    os.utime(checkout.path / ".env", ns=(10**18, 10**18))
    checkout.open()
    found = (checkout.tree / ".env").stat()
    assert (found.st_mtime_ns, found.st_mode & 0o777) == (10**18, 0o600)
    assert os.readlink(checkout.tree / "run.log") == "/nowhere"


def test_build_folders_begin_empty_and_packages_are_carried_ignored_or_not(person: Person) -> None:
    person.begin({".gitignore": "dist/\nnode_modules/\n"})
    person.write("dist/old.js", "old\n")
    person.write("node_modules/a/index.js", "a\n")
    person.write("venv/pyvenv.cfg", "home = /usr/bin\n")
    person.write("packages/b/node_modules/c/index.js", "c\n")
    before = person.possessions()
    said = person.inside(
        """
        ls dist 2>/dev/null; cat node_modules/a/index.js venv/pyvenv.cfg packages/b/node_modules/c/index.js
        mkdir -p dist && echo new > dist/new.js
        echo agent > node_modules/a/index.js; echo agent > packages/b/node_modules/new
        git status --short
        """
    )
    assert said == "a\nhome = /usr/bin\nc\n?? venv/\n"
    assert person.possessions() == before
    assert person.taken() == {}
    assert person.inside("cat dist/new.js node_modules/a/index.js packages/b/node_modules/new") == "new\nagent\nagent\n"


def test_large_files_and_named_folders_are_shown_read_only(person: Person) -> None:
    person.begin({".gitignore": "data/\n*.bin\n"})
    person.write("big.bin", b"x" * (11 << 20))
    person.write("data/rows.csv", "1\n")
    before = person.possessions()
    said = person.inside(
        """
        wc -c < big.bin; cat data/rows.csv
        for one in big.bin data/rows.csv data/new; do echo x 2>/dev/null > $one || echo refused; done 2>/dev/null
        rm -rf big.bin data 2>/dev/null; cat data/rows.csv
        """,
        carry=["data"],
    )
    assert said == f"{11 << 20}\n1\nrefused\nrefused\nrefused\n1\n"
    assert person.possessions() == before


def test_tracked_files_of_a_carried_folder_stay_as_they_are(checkout: Checkout) -> None:
    checkout.begin({".gitignore": "data/*\n!data/.gitkeep\n", "data/.gitkeep": "", "a": "1\n"})
    put(checkout.path / "data/rows.csv", "1\n")
    checkout.open("data")
    put(checkout.tree / "a", "2\n")
    assert checkout.taken() == {"a": "M"}


def test_a_file_that_is_carried_and_not_ignored_is_no_work(checkout: Checkout) -> None:
    checkout.begin({"a": "1\n"})
    put(checkout.path / "notes", "1\n")
    assert checkout.open("notes").data == ["notes"]
    assert checkout.taken() == {}


def test_what_git_tracks_is_not_carried(checkout: Checkout) -> None:
    checkout.begin({"a": "1\n"})
    with pytest.raises(UsageError, match="carry: git tracks `a`, so agents have it anyway"):
        checkout.open("a")


def test_tracked_files_among_installed_packages_are_refused(checkout: Checkout) -> None:
    checkout.begin()
    put(checkout.path / "node_modules/mine/i.js", "1\n")
    checkout.git("add", "-f", "node_modules/mine/i.js")
    checkout.git("commit", "-qm", "packages")
    with pytest.raises(UsageError, match=r"tracks files among installed packages \(node_modules\)"):
        checkout.open()


def test_a_copy_has_data_of_its_own(checkout: Checkout) -> None:
    checkout.begin({".gitignore": "data/\n"})
    checkout.place.way = "copy"
    put(checkout.path / "data/rows.csv", "1\n")
    put(checkout.path / "big.dat", b"x" * (11 << 20))
    checkout.open("data")
    put(checkout.tree / "data/rows.csv", "agent\n")
    put(checkout.tree / "big.dat", "agent\n")
    assert (checkout.path / "data/rows.csv").read_text() == "1\n"
    assert (checkout.path / "big.dat").stat().st_size == 11 << 20


def test_an_editable_install_imports_the_code_of_the_agent(person: Person) -> None:
    person.begin({"src/thing.py": "who = 'person'\n"})
    person.sh(f"'{sys.executable}' -m venv --without-pip .venv && echo '{person.project}/src' > .venv/lib/python3.{sys.version_info.minor}/site-packages/thing.pth")  # fmt: skip
    script = (
        "echo \"who = 'agent'\" > src/thing.py; .venv/bin/python -c 'import thing; print(thing.who, thing.__file__)'"
    )
    assert person.inside(script) == f"agent {person.project}/src/thing.py\n"


REPLACED = {
    "a file": "rm -rf packages/b 2>/dev/null; mv packages/b packages/c; echo x > packages/b",
    "a link": "mv packages/b packages/c; ln -s /etc packages/b",
    "a link in the place itself": "mv packages/b packages/c; mkdir packages/b; ln -s /etc packages/b/node_modules; ln -s /etc/passwd packages/b/big.bin",
    "nothing": "mv packages/b packages/c",
    "a folder for a file": "mv packages/b packages/c; mkdir -p packages/b/big.bin packages/b/node_modules/x",
}


@pytest.mark.parametrize("how", REPLACED)
def test_what_an_agent_puts_where_something_is_carried_keeps_no_later_step_out(person: Person, how: str) -> None:
    person.begin({"packages/b/main.js": "1\n", ".gitignore": "node_modules/\n*.bin\n"})
    person.write("packages/b/node_modules/c", "c\n")
    person.write("packages/b/big.bin", b"x" * (11 << 20))
    before = person.possessions()
    passwd = Path("/etc/passwd").read_bytes()
    person.inside(REPLACED[how])
    assert person.inside("ls /etc/hostname; cat README") == "/etc/hostname\nread me\n"
    assert person.inside("head -c 4 /etc/passwd") == passwd[:4].decode()
    assert person.possessions() == before
