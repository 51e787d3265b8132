"""Rule 2: nothing inside can name the person's tree or its `.git`, but for the objects, read-only."""

import os
import subprocess
import uuid

import pytest

from workspace.person import Person, daily

SEARCH = """
import json, os, sys
found, pending = [], ["/"]
while pending:
    folder = pending.pop()
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name == MARK:
                    found.append(entry.path)
                elif entry.is_dir(follow_symlinks=False) and entry.path not in ("/proc", "/sys"):
                    pending.append(entry.path)
    except OSError:
        pass
print(json.dumps(found))
"""


def found_inside(person: Person, below: str = "/") -> list[str]:
    """Where a file with a name of its own can be seen that the person makes in the checkout, and in its `.git`."""
    mark = f"mark-{uuid.uuid4().hex}"
    person.make_tree()
    person.write(mark, "secret\n")
    person.write(f".git/{mark}", "secret\n")
    person.write(f".git/hooks/{mark}", "secret\n")
    script = f"MARK = {mark!r}\n{SEARCH}".replace('["/"]', repr([below]))
    found: list[str] = person.python_inside(script, timeout=500)
    return found


@daily
def test_the_person_s_checkout_cannot_be_found_near_its_place(person: Person) -> None:
    person.begin()
    assert found_inside(person, str(person.folder)) == []


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_person_s_checkout_cannot_be_found_anywhere(person: Person) -> None:
    person.begin()
    assert found_inside(person) == []


@pytest.mark.parametrize("what", ["the folder above", "the project", "a folder of the project"])
def test_the_checkout_cannot_be_found_where_its_file_system_is_mounted_again(person: Person, what: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can mount a folder again")
    person.begin()
    again = person.folder / "again"
    again.mkdir()
    source = {"the folder above": person.folder, "the project": person.project}.get(what, person.project / ".git")
    subprocess.run(["mount", "--bind", source, again], check=True)
    try:
        found = found_inside(person, str(person.folder))
    finally:
        subprocess.run(["umount", "-l", again], check=True)
    assert found == []


def test_the_git_directory_of_a_linked_worktree_cannot_be_read(person: Person) -> None:
    person.begin()
    main, person.project = person.project, person.folder / "linked"
    person.sh(f"git worktree add -q -b linked '{person.project}'", cwd=main)
    person.write(main / ".git/config", (main / ".git/config").read_text("utf-8") + "[x]\n\ttoken = secret\n")
    said = person.inside(f"git status -sb; git log --format=%s; cat '{main}/.git/config' 2>&1; true")
    assert "secret" not in said
    assert said.startswith("## linked\nfirst\n")


def test_the_objects_can_be_read_and_not_written(person: Person) -> None:
    person.begin()
    before = person.possessions()
    said = person.inside(
        """
        git cat-file -p HEAD:README
        for one in /run/raymond/objects /run/raymond/objects/??; do
            touch $one/x 2>/dev/null && echo written; rm -rf $one/* 2>/dev/null
        done
        git cat-file -p HEAD:README
        """
    )
    assert said == "read me\nread me\n"
    assert person.possessions() == before
    person.git("fsck", "--strict")


def test_a_repository_that_borrows_objects_itself_works(person: Person) -> None:
    person.begin()
    lender, person.project = person.project, person.home / "borrowing"
    person.sh(f"git clone -q --shared '{lender}' '{person.project}'", cwd=person.folder)
    second = person.home / "second"
    person.sh(f"git clone -q --shared '{person.project}' '{second}'", cwd=person.folder)
    person.sh(f"mv '{lender}' ~/lender; echo ~/lender/.git/objects > '{person.project}/.git/objects/info/alternates'", cwd=person.folder)  # fmt: skip
    person.project = second
    assert person.inside("git log --format=%s; git cat-file -p HEAD:README; git status --short") == "first\nread me\n"
