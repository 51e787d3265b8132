"""The verifier checks the directory that the run names, wherever its process finds itself."""

import subprocess
import sys
from pathlib import Path

import msgspec

from raymond.language.check import Check
from raymond.verifier.assignment import Assignment, Found


def verdict(started_in: Path, cwd: Path) -> Found:
    """What a verifier says that was started in one directory, for another."""
    given = Assignment(
        checks=(Check(run="test -e here"),), timeout=10.0, reruns=0, environment={"PATH": "/usr/bin:/bin"}, cwd=str(cwd)
    )
    run = "from raymond.verifier.__main__ import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", run], input=msgspec.json.encode(given), cwd=started_in, capture_output=True, check=True
    )
    return msgspec.json.decode(done.stdout.splitlines()[-1], type=Found)


def test_a_directory_that_was_renamed_under_the_verifier_is_not_the_one_that_is_checked(tmp_path: Path) -> None:
    other, named = tmp_path / "other", tmp_path / "named"
    other.mkdir()
    (other / "here").touch()
    found = verdict(other, named)
    assert (found.verdict, found.reason) == (
        "could not start",
        f"the directory {named} cannot be entered: no such file or directory",
    )
    named.mkdir()
    assert verdict(other, named).verdict == "failed"
    (named / "here").touch()
    assert verdict(other, named).verdict == "passed"
