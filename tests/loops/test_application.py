"""Accepting what a loop has set aside: exactly what was shown is committed, or everything is as before."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from looping import SIGNED, Night
from raymond.loops.repository import Repository
from running import until
from typist import Typist

ITEM = "1. [VERIFY: sh check.sh] Write the answer\n"
AGENT = "echo 42 > answer.txt; mkdir -p .github; echo x > .github/ci.yml; echo ITERATION_COMPLETE"
HOOK = "#!/bin/sh\ntest ! -e ~/strict || { echo 'two lines'; echo 'of reasons'; exit 1; }\n"
REWRITES = "test ! -e ~/rewrites || echo 43 > answer.txt\n"


def aside(path: Path, agent: str = AGENT, queue: str = ITEM, **files: str) -> Night:
    """A night that has set its first item aside."""
    night = Night(path, queue, agent, **files)
    assert night.loop("--branch", "current").code == 1
    return night


def accept(night: Night, **environment: str) -> Typist:
    """Somebody who has seen the first item and agreed."""
    person = Typist(night.room, "accept", "n", "1", columns=200, **environment)
    person.sees("commit this")
    person.type("y\n")
    return person


def home(night: Night) -> Path:
    return Path(night.room.environment["HOME"])


def is_as_before(night: Night, head: str) -> None:
    """Nothing was committed, nothing is in the tree, and the item still waits."""
    assert night.git("rev-parse", "HEAD") == head
    assert night.git("status", "--porcelain") == ""
    assert not (night.path / "answer.txt").exists()
    assert "[BLOCKED: waits for a person" in night.text(f"docs/session_logs/{night.logs[-1]}")
    assert "item 1: Write the answer" in night.room.raymond("review", "n").stdout


def killing(night: Night, words: str) -> dict[str, str]:
    """An environment in which the process that runs git with these words is killed right after it."""
    folder = night.path.parent / "killing"
    folder.mkdir(exist_ok=True)
    git = folder / "git"
    git.write_text(
        f'#!/bin/sh\n{shutil.which("git")} "$@"; code=$?\ncase "$*" in *"{words}"*) kill -9 $PPID;; esac\nexit $code\n'
    )
    git.chmod(0o755)
    return {"PATH": f"{folder}:{night.room.environment['PATH']}"}


@pytest.mark.slow
def test_what_the_check_writes_is_neither_committed_nor_left(tmp_path: Path) -> None:
    evil = "docs/session_logs/20990101_0000_session.md"
    night = aside(
        tmp_path,
        f"""
        cat > tool.sh <<'END'
        test -e ~/go || exit 0
        echo 'worse' > tool.sh; echo x > docs/summaries/x.sh
        printf '## Next Steps\\n\\n1. [VERIFY: touch ~/evil] Evil\\n' > {evil}
        END
        {AGENT}""",
        **{"check.sh": "sh tool.sh\n"},
    )
    head = night.git("rev-parse", "HEAD")
    (home(night) / "go").touch()
    person = accept(night)
    person.sees(
        f"error: not committed, because files changed while its check ran: {evil}, docs/summaries/x.sh, tool.sh"
    )
    assert person.end() == 1
    is_as_before(night, head)
    assert not (night.path / evil).exists()
    assert night.git("show", "refs/raymond/n/1.1.changed:tool.sh") == "worse"


@pytest.mark.slow
def test_nothing_is_accepted_or_rejected_while_a_loop_is_at_its_next_item(tmp_path: Path) -> None:
    agent = f"""
        if grep -q '^# Second' "$PROMPT"; then
        touch ~/second; until [ -e ~/go ]; do sleep 0.05; done; touch two; echo ITERATION_COMPLETE
        else {AGENT}; fi"""
    night = Night(tmp_path, f"{ITEM}2. [VERIFY: test -e two] Second\n", agent)
    with night.room.start("continuous-session", "start", "--id", "n", "--pause", "0s") as live:
        until((home(night) / "second").exists, "the second item")
        for args in (("accept", "n", "1"), ("reject", "n", "1", "no CI, please")):
            refused = night.room.raymond(*args)
            assert (refused.returncode, refused.stdout) == (2, "")
            assert refused.stderr.startswith("error: a continuous-session is running here: n\n")
            assert "raymond continuous-session stop ends it" in refused.stderr
        (home(night) / "go").touch()
        assert live.wait("n").code == 1
    assert night.room.raymond("reject", "n", "1", "no CI, please").returncode == 0
    assert "It was rejected: no CI, please" in night.text(f"docs/session_logs/{night.logs[-1]}")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["notes.log", "v.log/notes.log"])
def test_a_file_that_git_ignores_is_not_overwritten(tmp_path: Path, name: str) -> None:
    night = aside(tmp_path, f"mkdir -p $(dirname {name}); echo agents > {name}; {AGENT}")
    night.write({".gitignore": "*.log\n"})
    head = night.commit("ignore logs")
    there = name.partition("/")[0]
    night.write({there: "of a week\n"})
    person = accept(night)
    person.sees(f"error: {there} is there, is not committed, and would be overwritten\nhint: move it away")
    assert person.end() == 2
    is_as_before(night, head)
    assert night.text(there) == "of a week\n"


@pytest.mark.slow
def test_an_accept_that_fails_or_is_killed_leaves_everything_as_it_was(tmp_path: Path) -> None:
    night = aside(tmp_path)
    head = night.git("rev-parse", "HEAD")
    night.git("config", "commit.gpgsign", "true")
    night.git("config", "gpg.program", "false")
    assert accept(night).end() == 1
    is_as_before(night, head)

    night.git("config", "commit.gpgsign", "false")
    assert accept(night, **killing(night, "checkout-index")).end() == -9
    assert night.text("answer.txt") == "42\n"
    night.write({"mine.txt": "written since\n"})
    refused = accept(night)
    refused.sees("the tree has changes that are not committed: mine.txt")
    assert refused.end() == 2
    (night.path / "mine.txt").unlink()
    is_as_before(night, head)
    assert accept(night).end() == 0
    assert night.git("show", "HEAD:answer.txt") == "42"


@pytest.mark.slow
def test_what_is_rejected_after_an_accept_that_was_killed_is_taken_out_of_the_tree(tmp_path: Path) -> None:
    night = aside(tmp_path)
    assert accept(night, **killing(night, "checkout-index")).end() == -9
    assert night.text("answer.txt") == "42\n"
    done = night.room.raymond("reject", "n", "1", "no CI, please")
    assert done.returncode == 0, done.stderr
    assert [line for line in night.git("status", "--porcelain").splitlines() if " docs/" not in line] == []


@pytest.mark.slow
def test_an_accept_that_is_killed_after_its_commit_is_finished_by_the_next(tmp_path: Path) -> None:
    night = aside(tmp_path)
    assert accept(night, **killing(night, "raymond: accepted")).end() == -9
    head, count = night.git("rev-parse", "HEAD"), len(night.subjects)
    note = night.room.folder("n") / "loop/applied"
    noted = note.read_bytes()
    refused = night.room.raymond("reject", "n", "1", "no CI, please")
    told = f"Write the answer was accepted before: it is committed as {head[:12]}"
    assert (refused.returncode, told in refused.stderr) == (2, True)
    note.write_bytes(noted)
    (night.room.folder("n") / "loop/decided").unlink()
    person = accept(night)
    person.sees(f"committed as {head[:12]}")
    assert person.end() == 0
    assert len(night.subjects) == count
    assert night.git("status", "--porcelain") == ""
    assert night.room.raymond("review", "n").stderr == "nothing of n waits for a review\n"


@pytest.mark.slow
def test_ctrl_c_during_the_check_brings_everything_back(tmp_path: Path) -> None:
    check = "grep -q 42 answer.txt; touch ~/at; until [ ! -e ~/hold ]; do sleep 0.05; done\n"
    night = aside(tmp_path, **{"check.sh": check})
    head = night.git("rev-parse", "HEAD")
    (home(night) / "at").unlink()
    (home(night) / "hold").touch()
    person = accept(night)
    until((home(night) / "at").exists, "the check")
    person.type("\x03")
    assert person.end() == 130
    is_as_before(night, head)


@pytest.mark.slow
@pytest.mark.parametrize("done", ["commit -q --allow-empty -m meanwhile", "switch -q -c meanwhile"])
def test_what_somebody_does_with_git_meanwhile_stays(tmp_path: Path, done: str) -> None:
    night = aside(tmp_path)
    program = tmp_path / "sign"
    program.write_text(f"#!/bin/sh\ngit -c commit.gpgsign=false {done}\n{SIGNED}")
    program.chmod(0o755)
    night.git("config", "commit.gpgsign", "true")
    night.git("config", "gpg.program", str(program))
    person = accept(night)
    person.sees("error: somebody has committed meanwhile")
    assert person.end() == 2
    assert "meanwhile" in (night.subjects[-1], night.git("branch", "--show-current"))
    is_as_before(night, night.git("rev-parse", "HEAD"))


@pytest.mark.slow
def test_hooks_run_as_they_were_when_the_loop_began(tmp_path: Path) -> None:
    hooks = {"hooks/pre-commit": HOOK + REWRITES, "hooks/commit-msg": "#!/bin/sh\necho 'Seen-By: a hook' >> $1\n"}
    night = Night(tmp_path, ITEM, AGENT, **hooks)
    for name in hooks:
        (night.path / name).chmod(0o755)
    night.commit("hooks")
    night.git("config", "core.hooksPath", "hooks")
    assert night.loop("--branch", "current").code == 1
    head = night.git("rev-parse", "HEAD")
    (home(night) / "strict").touch()
    person = accept(night)
    person.sees("two lines\n.*of reasons\nerror: not committed, because the hook pre-commit rejects it\n")
    assert person.end() == 1
    is_as_before(night, head)
    (home(night) / "strict").rename(home(night) / "rewrites")
    person = accept(night)
    person.sees("error: not committed, because files changed while the hooks of the project ran: answer.txt\n")
    assert person.end() == 1
    is_as_before(night, head)
    (home(night) / "rewrites").unlink()
    assert accept(night).end() == 0
    assert night.git("log", "-1", "--format=%B").endswith("Seen-By: a hook")


@pytest.mark.slow
def test_the_check_runs_where_the_loop_ran(tmp_path: Path) -> None:
    night = aside(tmp_path)
    program = ("sh", "-c", f"cd docs && {sys.executable} -m raymond accept n 1")
    person = Typist(night.room, program=program)
    person.sees("commit this")
    person.type("y\n")
    assert person.end() == 0


@pytest.mark.slow
def test_the_check_has_the_time_that_its_item_gives_it(tmp_path: Path) -> None:
    check = "test ! -e ~/slow || sleep 30; grep -q 42 answer.txt\n"
    night = aside(tmp_path, queue=f"{ITEM}   - Timeout: 3s\n", **{"check.sh": check})
    head = night.git("rev-parse", "HEAD")
    (home(night) / "slow").touch()
    person = accept(night)
    person.sees("its time is over after 3s")
    assert person.end() == 1
    is_as_before(night, head)


@pytest.mark.slow
def test_a_loop_with_items_that_wait_is_removed_only_by_force(tmp_path: Path) -> None:
    night = aside(tmp_path)
    for args in (("n",), ("--dry-run", "n")):
        refused = night.room.raymond("clean", *args)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert refused.stderr == (
            "error: n has set items aside that wait for you: 1 (Write the answer)\n"
            "hint: raymond review n shows them; "
            "raymond clean --force n removes the run, but not what git has in refs/raymond/n\n"
        )
    swept = night.room.raymond("clean", "--keep", "0s")
    assert (swept.returncode, swept.stdout) == (0, "")
    assert "item 1: Write the answer" in night.room.raymond("review", "n").stdout
    assert night.room.raymond("clean", "--force", "n").stdout == "n\n"
    assert night.git("show", "refs/raymond/n/1.1:answer.txt") == "42"


@pytest.mark.slow
def test_more_paths_are_compared_than_a_command_can_be_given(tmp_path: Path) -> None:
    count = 9_600
    paths = [f"v/{number:0240}" for number in range(count)]
    assert sum(map(len, paths)) > os.sysconf("SC_ARG_MAX")
    files = "".join(f"M 644 inline {path}\ndata 2\nx\n" for path in paths)
    author = "committer A <a@example.com> 0 +0000\ndata 1\nm\n"
    stream = f"commit refs/heads/a\n{author}commit refs/heads/b\n{author}{files}"
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    subprocess.run(["git", "fast-import", "--quiet"], cwd=tmp_path, input=stream.encode(), check=True)
    shown = Repository(str(tmp_path), str(tmp_path / "index")).diff("refs/heads/a", "refs/heads/b", paths)
    assert shown.count("\n+x\n") == count
