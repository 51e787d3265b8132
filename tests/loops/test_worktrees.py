"""A loop in a worktree of its own: where it is, and what becomes of it."""

from pathlib import Path

import pytest

from looping import Night

pytestmark = pytest.mark.slow


def test_its_summary_and_the_status_of_the_checkout_say_where_it_is_and_how_to_end_it(tmp_path: Path) -> None:
    night = Night(tmp_path)
    ran = night.loop("--worktree")
    assert f"working in {tmp_path}/room-n; type raymond commands for this loop there" in ran.err
    assert f"- Worktree: ../room-n, seen from {night.path}" in ran.out
    told = night.room.raymond("continuous-session", "status").stdout
    line = "continuous-session n is in ../room-n (complete): cd ../room-n && raymond continuous-session status"
    assert told == f"no active continuous session\n{line}\n"
    there = night.room.raymond("continuous-session", "status", cwd=tmp_path / "room-n").stdout
    assert "\nWorktree: ../room-n\n" in there
    assert " is in ../" not in there
    again = night.loop("--worktree", "--id", "m")
    assert "the loop n in ../room-n is not merged, so this one starts without it: git merge raymond/n" in again.err
    assert (
        f"- when you are done here: cd {night.path}, git merge raymond/n, then git worktree remove ../room-n" in ran.out
    )
    night.git("merge", "-q", "raymond/n")
    night.git("worktree", "remove", "../room-n")
    assert "is not merged" in night.loop("--worktree", "--id", "o").err, "m is not"
    assert "the loop n" not in night.loop("--worktree", "--id", "p").err
