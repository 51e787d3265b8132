"""docs/tutorial.md: its first five minutes with a fake agent, its shell loop, and the rest typed as it stands there."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from looping import Night
from pages.reader import Reader, Typed, alike, blocks, empty_room, left_out
from running import Room
from typist import Typist

PAGE = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text("utf-8")
BASH = re.findall(r"^```bash\n((?:raymond|git) .*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
LOOK, DRY, LOOP, MORNING, START, STUCK = BASH
PLAN = "- [ ] greet.sh prints hello\n- [ ] greet.sh bye prints goodbye\n"
"""The list of the shell loop."""
PROJECT = {
    "PROMPT.md": "Make the tests pass, one at a time.\n",
    "Makefile": "test:\n\t@grep -qs 42 answer.txt && echo 3 passed || { echo 1 failed, 2 passed; exit 1; }\n",
}
LIES = "n=$(cat tries 2>/dev/null); echo x$n > tries; [ x$n = xxx ] && echo 42 > answer.txt; echo LOOP_COMPLETE\n"
"""An agent that says twice that it is done, and the third time it is."""


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = empty_room(tmp_path)
    yield room
    room.clear()


def words(block: str) -> list[str]:
    """What follows `raymond` in a block of one command."""
    [line] = block.splitlines()
    command, *args = shlex.split(line)
    assert command == "raymond"
    return args


# --- the first five minutes ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_demo_and_the_doctor_show_what_the_page_says(room: Room) -> None:
    demo, doctor = (room.raymond(*words(line)) for line in LOOK.splitlines())
    assert demo.returncode == 0, demo.stderr
    assert "three things to try:" in demo.stdout + demo.stderr
    for said in ("main_write3 (upgrading) starts", "topics: features", "REVIEW.md -> FIX.md"):
        assert said in demo.stderr
    for said in ("programs:", "workspace:", "claude:", "codex:"):
        assert said in doctor.stdout


@pytest.mark.slow
def test_the_first_loop_goes_as_the_page_says(tmp_path: Path) -> None:
    night = Night(tmp_path, agent=LIES, **PROJECT)
    night.git("rm", "-rq", "docs")
    before = night.commit("no documents")
    assert f"`{PROJECT['PROMPT.md'].strip()}`" in PAGE.replace("\n", " ")

    dry = night.room.raymond(*words(DRY))
    assert dry.returncode == 0, dry.stderr
    for said in (PROJECT["PROMPT.md"], "works: ", "rights: ", "budget: ", "make test is red: 1 failed, 2 passed"):
        assert said in dry.stdout
    assert dry.stdout.endswith("apart from the check, nothing was started\n")
    (tmp_path / "replies.yaml").write_text("WORK: done\n", "utf-8")
    allowed = night.room.raymond(*words(DRY), "--allow-gate-commands", "--replies", str(tmp_path / "replies.yaml"))
    assert "also allowed: Bash(make test)" in allowed.stdout

    person = Typist(night.room, *words(LOOP), "--pause", "0s", columns=200)
    for line in ("at most 10 iterations", "says it is done", "Check red: 1 failed, 2 passed", "Check green"):
        person.sees(re.escape(line))
    assert person.end() == 0
    assert night.git("rev-parse", "HEAD") == before

    summary, difference, apply = MORNING.splitlines()
    told = night.room.raymond(*words(summary)).stdout
    for said in ("- Ended: completed: ", "- Cost: ", "## Completed", "## Red", "## What to do next"):
        assert said in told
    assert "git merge raymond/fix, or raymond apply fix" in told
    assert "+42" in night.git(*shlex.split(difference)[1:])
    assert night.room.raymond(*words(apply)).returncode == 0
    assert (night.path / "answer.txt").read_text() == "42\n"
    assert night.git("rev-parse", "HEAD") == before
    night.git("stash", "-qu")
    night.git("merge", "-q", "raymond/fix")
    assert (night.path / "answer.txt").read_text() == "42\n"


# --- from a shell loop to a workflow ---------------------------------------------------------------------------------


def files() -> dict[str, str]:
    """Those of the shell loop."""
    found = dict(block for block in blocks(PAGE) if not isinstance(block, Typed))
    return {name: found[name] for name in ("PROMPT.md", "CHECK.sh", "STUCK.sh")} | {"fix_plan.md": PLAN}


def write(room: Room, files: dict[str, str]) -> None:
    for name, text in files.items():
        (room.path / name).write_text(text, "utf-8")


@pytest.mark.slow
def test_the_shell_loop_ends_when_every_box_is_ticked_and_the_check_passes(room: Room) -> None:
    ticked = [PLAN.replace("[ ]", "[x]", count) for count in (1, 2)]
    replies = [
        {"text": "Done!", "writes": {"fix_plan.md": ticked[0]}},
        {"text": "Fixed.", "writes": {"fix_plan.md": ticked[0], "repaired": ""}},
        {"text": "All of it.", "writes": {"fix_plan.md": ticked[1]}},
    ]
    write(room, {**files(), "Makefile": "test:\n\ttest -e repaired\n", "replies.yaml": f"PROMPT: {replies}\n"})
    dry, start = (words(line) for line in START.splitlines())
    shown = room.raymond(*dry)
    assert shown.returncode == 0, shown.stderr
    assert "nothing was started" in shown.stdout
    done = room.raymond(*start, "--strict")
    assert (done.returncode, done.stdout) == (0, "every box is ticked, and the check passes\n"), done.stderr
    sent = room.raymond("logs", "--text").stdout
    assert sent.count("The check fails, whatever is ticked.") >= 1


@pytest.mark.slow
def test_a_shell_loop_that_is_stuck_continues_with_the_command_of_the_page_which_next_says_too(room: Room) -> None:
    check = files()["CHECK.sh"]
    write(room, files())
    write(room, {"CHECK.sh": check.replace("max_visits: 50", "max_visits: 2")})
    write(room, {"Makefile": "test:\n\ttest -e repaired\n", "fix_plan.md": "- [x] all of it\n"})
    write(room, {"replies.yaml": "PROMPT: {text: done}\n"})
    stuck = room.raymond("PROMPT.md", "--replies", "replies.yaml", "--id", "r")
    command = STUCK.strip()
    assert stuck.stderr.splitlines()[-1] == (
        f"next:   raise max_visits in CHECK.sh, then: {command.replace('resume', 'resume r')}.md"
    )

    (room.path / "repaired").touch()
    (room.path / "CHECK.sh").write_text(check, "utf-8")
    done = room.raymond(*shlex.split(command)[1:])
    assert (done.returncode, done.stdout) == (0, "every box is ticked, and the check passes\n"), done.stderr


# --- the rest --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_everything_in_the_tutorial_happens_as_it_says(room: Room) -> None:
    Reader(room).reads(PAGE)


def test_nothing_on_the_page_is_left_out() -> None:
    """Every fence is a file with a name, a block of commands, or typed above; every command of the page is in one."""
    assert sorted(left_out(PAGE)) == sorted([*BASH, PLAN])
    typed = [block.line for block in blocks(PAGE) if isinstance(block, Typed)]
    assert len(typed) == len(re.findall(r"^\$ ", PAGE, re.MULTILINE))


def test_what_differs_from_reader_to_reader_is_little() -> None:
    """A comparison that forgives too much proves nothing."""
    assert alike("completed: note after 7ms") == alike("completed: note after 1m 12s")
    assert alike("completed: note after 7ms") != alike("failed: note after 7ms")
    assert alike("[2026-01-17T14:03:23Z] main done") != alike("[2026-01-17T14:03:23Z] main failed")
    assert alike("cost:   $0.03 in 3 steps") != alike("cost:   $0.04 in 3 steps")
    assert alike("main gate passed (0s)") == alike("main gate passed (1.5s)")
    assert alike("main gate passed (0s)") != alike("main gate passed (0s, flaky: it was red the first time)")
