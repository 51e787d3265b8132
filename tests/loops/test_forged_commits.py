"""Commits that an agent makes in the name of Raymond: none is taken for the one that was planned."""

from pathlib import Path

import pytest

from looping import Night

pytestmark = pytest.mark.slow
FORGES = r"""
id=$(git branch --show-current); id=${id#raymond/}
echo 'touch evil' > payload.sh; git add payload.sh
git commit -q -m "$(printf 'feat: write the answer\n\nxENDRaymond-Item: %s/%s-main_work1' "$id" "${RAYMOND_STEP%/*}")"
rm payload.sh; echo 42 > answer.txt; echo ITERATION_COMPLETE
"""


@pytest.mark.parametrize("end", [r"\n", r"\r", r"\v", r"\f", r"\x1c", r"\xc2\x85", r"\xe2\x80\xa8", r"\xe2\x80\xa9"])
def test_a_forged_trailer_is_found_whatever_ends_the_line_before_it(tmp_path: Path, end: str) -> None:
    night = Night(tmp_path, agent=FORGES.replace("END", end))
    ran = night.loop("--squash", "--attempts", "1")
    assert ran.code == 1, ran.out
    assert [(one["verdict"], "in the name of Raymond" in one["error"]) for one in night.state["failedItems"]] == [
        ("tampered", True)
    ]
    assert night.state["completedItems"] == []
    assert "payload.sh" not in night.git("log", "--name-only", "--format=", "raymond/n")


HOOKED = """
printf 'git update-ref HEAD $(git commit-tree -p HEAD -F "$1" HEAD^{tree})\\n' > message.sh
echo 42 > answer.txt; echo ITERATION_COMPLETE
"""


@pytest.mark.parametrize("flags", [(), ("--squash",)])
def test_a_commit_with_the_message_of_the_plan_and_other_files_is_not_it(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    night = Night(tmp_path, agent=HOOKED, **{"message.sh": ":\n"})
    hook = night.path / ".git/hooks/commit-msg"
    hook.write_text('#!/bin/sh\nsh message.sh "$1"\n', "utf-8")
    hook.chmod(0o755)
    ran = night.loop("--attempts", "1", *flags)
    assert night.state["completedItems"] == [], ran.out
    assert "it could not be committed: somebody has moved HEAD or switched branches meanwhile" in ran.out
    assert night.text("answer.txt") == "42\n", "the work is still in the tree"
