"""A step that is killed while it writes records is nobody's fault."""

from pathlib import Path

import pytest

from planned import Planned

KILLS = """#!/bin/sh
echo x >> {mark}
if [ $(wc -l < {mark}) -le 6 ]; then kill -9 $(cut -d" " -f4 /proc/$PPID/stat); fi
"""


@pytest.mark.slow
def test_good_work_counts_however_often_its_records_were_cut_off(tmp_path: Path) -> None:
    night = Planned(tmp_path)
    hook = night.path / ".git/hooks/commit-msg"
    hook.write_text(KILLS.format(mark=tmp_path / "kills"), "utf-8")
    hook.chmod(0o755)
    done = night.tasks("--attempts", "1", "--task", "1.4.1")
    assert done.code == 0, done.err
    assert (tmp_path / "kills").read_text("utf-8").count("x") >= 7
    assert night.fields("1.4.1")["Verified"].startswith("true (")
