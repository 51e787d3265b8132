"""A twin whose disk is full: nothing can be compared, and the reason says so."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

CHECK = "head -c 6000000 /dev/zero > out.bin && grep -q right answer.txt\n"


def test_a_twin_on_a_full_disk_says_so(tmp_path: Path) -> None:
    """The seals are on a small disk of their own, in namespaces of their own."""
    small = tmp_path / "seals"
    small.mkdir()
    unshare = ["unshare", "--map-root-user", "--mount", "sh", "-ec"]
    mount = f"mount -t tmpfs -o size=4m,mode=700 none {small}"
    if not shutil.which("unshare") or subprocess.run([*unshare, mount], check=False, capture_output=True).returncode:
        pytest.skip("no disk can be mounted here")
    code = f"""if True:
        import pathlib
        from verifier.desk import Desk
        files = {{"tests/check.sh": {CHECK!r}, "answer.txt": "wrong"}}
        desk = Desk(pathlib.Path({str(tmp_path)!r}), files, "sh tests/check.sh")
        found = desk.after("echo right > answer.txt; echo '# better' >> tests/check.sh")
        print(found.verdict, found.reason, sep="\\n")
    """
    tests = str(Path(__file__).parent.parent)
    argv = [*unshare, f'{mount}; exec "$0" -c "$1"', sys.executable, code]
    done = subprocess.run(argv, env=None, cwd=tests, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = f"the check could not be repeated with the sealed files: the disk of {small} is full"
    assert done.stdout.splitlines() == ["not comparable", told]
