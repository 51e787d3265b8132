"""Whatever a tree holds, the verifier runs nothing of it and touches nothing outside of it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from raymond.verifier import overlay
from verifier.desk import Desk


def outside(path: Path) -> Path:
    """A folder beside the tree with programs that somebody needs."""
    folder = path / "outside"
    folder.mkdir()
    for name in ("mytool", "notes"):
        (folder / name).write_text("#!/bin/sh\necho precious\n")
        (folder / name).chmod(0o755)
    return folder


@pytest.mark.parametrize("kind", ["nothing", "file", "link"])
def test_nothing_is_put_back_through_a_link(tmp_path: Path, kind: str) -> None:
    others, top = outside(tmp_path), tmp_path / "top"
    (top / "a").mkdir(parents=True)
    (top / "a" / "bin").symlink_to(others)
    (tmp_path / "source").write_text("sealed")
    given = {"path": "a/bin/notes", "kind": kind, "source": str(tmp_path / "source"), "mode": 0o600, "mtime": 0}
    overlay.put_back([given], str(top))
    assert (others / "notes").read_text().endswith("echo precious\n")
    assert not (top / "a" / "bin").is_symlink()
    assert os.path.lexists(top / "a" / "bin" / "notes") == (kind != "nothing")


def test_a_file_in_the_place_of_a_folder_stays_where_nothing_is_to_be(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("work")
    overlay.put_back([{"path": "a/b", "kind": "nothing"}], str(tmp_path))
    assert (tmp_path / "a").read_text() == "work"


@pytest.mark.slow
def test_a_repository_inside_of_the_tree_is_asked_nothing(tmp_path: Path) -> None:
    desk = Desk(tmp_path, {"a": ""}, "true")
    ran = tmp_path / "ran"
    (tmp_path / "evil.sh").write_text(f"#!/bin/sh\ntouch {ran}\nexit 1\n")
    (tmp_path / "evil.sh").chmod(0o755)
    desk.after(
        "mkdir sub; cd sub; git init -q .; echo x > f; git add f; git commit -qm x; "
        f"git config core.fsmonitor {tmp_path}/evil.sh"
    )
    for number in range(2):  # from the second look on, git knows the repository
        desk.after(f"echo {number} > a")
    assert not ran.exists()


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root and setpriv")
def test_a_repository_of_another_user_above_is_not_the_tree(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    (tmp_path / "other" / "tests").mkdir(parents=True)
    (tmp_path / "other" / "tests" / "test_m.py").touch()
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for folder, _, files in os.walk(tmp_path / ".git"):
        for name in (folder, *(os.path.join(folder, one) for one in files)):
            os.chown(name, 65534, 65534)
    desk = Desk(tmp_path, {"tests/test_a.py": ""}, "true", repository=False)
    assert [*desk.seal().entries] == ["tests/test_a.py"]
    assert desk.check().verdict == "passed"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("printf 'import os,sys\\nsys.exit(0 if os.path.exists(\"go\") else 1)\\n' > pytest.py", "touch go"),
        ("printf '.PHONY: test\\n' >> Makefile", "git checkout -q Makefile; touch test"),
        ("echo tests/ > .gitignore; git rm -rq --cached tests; git commit -qam x", "echo true > tests/run.sh"),
    ],
    ids=["module", "target", "ignored"],
)
def test_what_a_red_visit_prepares_does_not_change_the_rules_of_the_next(tmp_path: Path, first: str, then: str) -> None:
    files = {"Makefile": "test:\n\tsh tests/run.sh && python3 -m pytest --version\n", "tests/run.sh": "exit 1\n"}
    desk = Desk(tmp_path, files, "make test")
    assert desk.after(first).verdict == "failed"
    assert desk.after(f"echo true > tests/run.sh; {then}").verdict == "review"


@pytest.mark.slow
def test_a_check_that_writes_over_what_decides_it_shows_nothing(tmp_path: Path) -> None:
    files = {"Makefile": "test:\n\tpython3 calc.py; sh tests/run.sh\n", "tests/run.sh": "exit 1\n", "calc.py": ""}
    desk = Desk(tmp_path, files, "make test")
    desk.policy["unseal"] = ("calc.py",)
    found = desk.after("""echo 'open("tests/run.sh", "w").write("true")' > calc.py""")
    assert (found.verdict, found.reason) == (
        "not comparable",
        "the check itself writes tests/run.sh, so it cannot be told what it says as sealed",
    )
