"""What somebody changes while nobody has an item of a loop from the inside: a person sees it before it counts."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from inside import Inside
from planned import SPEC, STATUS, Planned
from raymond.control.runs import is_driven
from running import until
from typist import Typist


def ask(
    night: Planned, verb: str, *args: str, said: str = "", code: int | None = 0, loop: str = "task-loop"
) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "raymond", loop, verb, "--json", *args],
        cwd=night.path,
        env=night.room.environment,
        capture_output=True,
        text=True,
        check=False,
        input=said,
    )
    assert code in (None, done.returncode), done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


pytestmark = pytest.mark.slow


def one_done(path: Path) -> Planned:
    night = Planned(path)
    assert ask(night, "next", "--id", "n")["changed"] == []
    night.write({"answer.txt": "42\n"})
    assert ask(night, "record", said="ITERATION_COMPLETE")["verdict"] == "passed"
    return night


def waits(night: Planned, loop: str = "task-loop") -> str:
    """What a person is asked when somebody wants the next item."""
    found = ask(night, "next", code=3, loop=loop)
    assert (found["status"], found["command"]) == ("waiting", "raymond answer n continue")
    return str(found["question"])


def agree(night: Planned, answer: str = "continue") -> None:
    assert Typist(night.room, "answer", "n", answer, "--no-resume").end() == 0


def verified(text: str) -> str:
    """The spec with everything marked as done."""
    return text.replace("🔵 Planned", "✅ Complete\n**Verified:** true (2026-11-18, sh check.sh)")


def test_new_files_are_asked_about_and_belong_to_the_next_item(tmp_path: Path) -> None:
    """By its name it decides nothing, and yet `python3 tools/verify.py` would import it."""
    night = one_done(tmp_path)
    night.write({"tools/json.py": "import sys; sys.exit(0)\n"})
    assert "\n- added `tools/json.py`\n" in waits(night)
    agree(night)
    assert ask(night, "next")["changed"] == ["tools/json.py"]


def test_nothing_is_said_where_nothing_changed(tmp_path: Path) -> None:
    night = one_done(tmp_path)
    assert ask(night, "next")["changed"] == []


def test_a_plan_that_changed_waits_for_a_person_at_a_terminal(tmp_path: Path) -> None:
    night = one_done(tmp_path)
    night.write({SPEC: night.spec.replace("grep -q because why.txt", "true")})
    assert f"\n- changed `{SPEC}`\n" in waits(night)
    assert waits(night), "whoever asks again does not get it"
    assert night.room.raymond("answer", "n", "continue", "--no-resume").returncode == 2, "not without a terminal"
    shown = night.loop(verb="status", loop="task-loop").out.splitlines()[-2:]
    assert shown == [
        "asked:  Somebody changed something while nobody had an item:",
        "next:   raymond answer n continue",
    ]
    person = Typist(night.room, "answer", "n", "continue")
    person.sees("answered; raymond task-loop next goes on with it")
    assert person.end() == 0
    until(lambda: not is_driven(night.room.project.run("n")), "the end of what goes on in the background")
    assert ask(night, "next")["item"]["check"] == "true"


@pytest.mark.parametrize(
    ("files", "doubt"),
    [
        ({"check.sh": "exit 0\n"}, "changed `check.sh`"),
        ({"tests/test_it.py": "def test_it(): pass\n"}, "added `tests/test_it.py`"),
        ({"conftest.py": "\n"}, "added `conftest.py`"),
        ({".claude/settings.json": "{}\n"}, "added .claude/settings.json (.claude decides what runs elsewhere)"),
        (
            {".github/workflows/x.yml": "on: push\n"},
            "added .github/workflows/x.yml (.github decides what runs elsewhere)",
        ),
    ],
)
def test_files_that_decide_something_wait_for_a_person(tmp_path: Path, files: dict[str, str], doubt: str) -> None:
    night = one_done(tmp_path)
    night.write(files)
    assert f"\n- {doubt}\n" in waits(night)


def test_a_loop_does_not_end_with_a_plan_that_somebody_has_ticked_off(tmp_path: Path) -> None:
    night = one_done(tmp_path)
    before = night.subjects
    night.write({SPEC: verified(night.spec)})
    assert f"\n- changed `{SPEC}`\n" in waits(night), "and not that nothing is left"
    assert night.subjects == before


def test_stories_that_somebody_lets_pass_are_asked_about(tmp_path: Path) -> None:
    night = Planned(tmp_path)
    ask(night, "next", "--id", "n", loop="story-loop")
    night.write({"answer.txt": "42\n"})
    assert ask(night, "record", said="ITERATION_COMPLETE", loop="story-loop")["verdict"] == "passed"
    night.write({STATUS: night.text(STATUS).replace('"passes": false', '"passes": true')})
    assert f"\n- changed `{STATUS}`\n" in waits(night, "story-loop")


@pytest.mark.parametrize("answer", ["continue", "stop"])
def test_stop_commits_no_plan_that_a_person_has_not_let_pass(tmp_path: Path, answer: str) -> None:
    night = one_done(tmp_path)
    night.write({SPEC: verified(night.spec)})
    stopped = night.room.raymond("task-loop", "stop")
    assert stopped.stdout == "n stops once a person has answered: raymond answer n continue\n"
    agree(night, answer)
    summary = ask(night, "next")["summary"]
    assert f"- when nobody had an item, somebody changed `{SPEC}`" in summary
    assert (night.git("status", "--short", SPEC) == "") is (answer == "continue")


def test_a_cancelled_loop_commits_no_plan_that_somebody_has_changed(tmp_path: Path) -> None:
    night = one_done(tmp_path)
    night.write({SPEC: verified(night.spec)})
    assert night.room.raymond("cancel", "n").returncode == 0
    ask(night, "next", "--id", "m", "--on-dirty", "continue")
    assert "Verified:** true" not in night.git("show", f"HEAD:{SPEC}").partition("1.4.2")[2]


def test_a_yes_counts_for_what_was_shown(tmp_path: Path) -> None:
    night = one_done(tmp_path)
    night.write({"docs/critical-learnings.md": "harmless\n"})
    assert SPEC not in waits(night)
    night.write({SPEC: night.spec.replace("grep -q because why.txt", "id")})
    agree(night)
    assert f"\n- changed `{SPEC}`\n" in waits(night)
    agree(night)
    assert ask(night, "next")["item"]["check"] == "id"


def test_the_plan_is_watched_while_a_person_is_asked_about_a_failure(tmp_path: Path) -> None:
    night = Planned(tmp_path)
    ask(night, "next", "--id", "n", "--on-fail", "pause")
    assert ask(night, "record", said="no\n\nITERATION_FAILED", code=3)["status"] == "waiting"
    night.write({SPEC: night.spec.replace("sh check.sh", "true")})
    agree(night)
    assert f"\n- changed `{SPEC}`\n" in waits(night)


def test_what_decides_what_git_does_is_put_back_and_asked_about(tmp_path: Path) -> None:
    night = one_done(tmp_path)
    night.git("config", "core.fsmonitor", "evil.sh")
    night.write({".git/hooks/post-checkout": "#!/bin/sh\n"})
    main = night.git("rev-parse", "main")
    night.git("update-ref", "refs/heads/main", night.git("rev-parse", "HEAD"))
    asked = waits(night)
    assert "core.fsmonitor, which was put back\n" in asked
    assert "post-checkout, which was put back\n" in asked
    assert "\n- moved main\n" in asked
    assert not (night.path / ".git/hooks/post-checkout").exists()
    assert "fsmonitor" not in night.text(".git/config")
    night.git("update-ref", "refs/heads/main", main)
    agree(night)
    assert "\n- moved main\n" in waits(night), "a person who puts something back is asked once more"
    agree(night)
    assert ask(night, "next")["item"]["title"] == "1.4.2. Explain it"


def test_commits_of_nobody_are_asked_about(tmp_path: Path) -> None:
    night = one_done(tmp_path)
    night.write({"extra.txt": "x\n"})
    night.commit("feat: extra\n\nRaymond-Item: n/forged")
    assert " (made 1 of its own)\n" in waits(night)


def test_a_process_that_waits_for_the_commit_changes_nothing_unseen(tmp_path: Path) -> None:
    """It writes as soon as the work is committed, before anybody has noted how things stand."""
    night = Planned(tmp_path)
    ask(night, "next", "--id", "n")
    night.write({"answer.txt": "42\n"})
    waiting = f"until [ $(git rev-list --count HEAD) -gt {len(night.subjects)} ]; do :; done"
    late = f"{waiting}; sed -i 's/grep -q because why.txt/true/' {SPEC}"
    with subprocess.Popen(["bash", "-c", late], cwd=night.path, env=night.room.environment) as running:
        ask(night, "record", said="ITERATION_COMPLETE", code=None)  # it may be asked about at once
        running.wait()
    assert night.fields("1.4.2")["Verification"] == "`true`"
    assert night.fields("1.4.1")["Status"] == "✅ Complete"
    assert f"\n- changed `{SPEC}`\n" in waits(night)


def test_files_that_a_new_rule_hides_are_asked_about(tmp_path: Path) -> None:
    night = one_done(tmp_path)
    night.write({"tests/.gitignore": "*\n", "tests/conftest.py": "\n"})
    assert "\n- added `tests/`, which git ignores\n" in waits(night)


def test_a_submodule_is_asked_about(tmp_path: Path) -> None:
    night = Planned(tmp_path)
    other = tmp_path / "other"
    who = ("-C", str(other), "-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    for args in (("init", "-q", str(other)), (*who, "commit", "-q", "--allow-empty", "-m", "x")):
        night.git(*args)
    night.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "lib")
    night.commit("lib")
    ask(night, "next", "--id", "n")
    night.write({"answer.txt": "42\n"})
    assert ask(night, "record", said="ITERATION_COMPLETE")["verdict"] == "passed"
    night.write({"lib/c.sh": "exit 0\n"})
    assert "\n- changed the submodule `lib`\n" in waits(night)


def test_another_branch_while_the_item_ends_hides_nothing(tmp_path: Path) -> None:
    """Where it is not that of the loop, nothing can be compared yet."""
    night = Planned(tmp_path)
    night.write({".git/hooks/post-commit": "#!/bin/sh\ngit symbolic-ref HEAD refs/heads/main\n"})
    (night.path / ".git/hooks/post-commit").chmod(0o755)
    ask(night, "next", "--id", "n")
    night.write({"answer.txt": "42\n"})
    assert ask(night, "record", said="ITERATION_COMPLETE")["verdict"] == "passed"
    assert night.git("branch", "--show-current") == "main"
    night.git("symbolic-ref", "HEAD", "refs/heads/raymond/n")
    night.write({SPEC: night.spec.replace("grep -q because why.txt", "true")})
    assert f"\n- changed `{SPEC}`\n" in waits(night)


def test_the_plan_comes_first_among_many_changes(tmp_path: Path) -> None:
    night = one_done(tmp_path)
    night.write({f"a/test_{one}.py": "" for one in range(250)} | {SPEC: night.spec.replace("sh check.sh", "true")})
    asked = waits(night).splitlines()
    assert asked[2] == f"- changed `{SPEC}`"
    assert "- changed 51 more files" in asked


def test_a_loop_that_somebody_has_stopped_goes_on_for_nobody(tmp_path: Path) -> None:
    night = one_done(tmp_path)
    assert night.room.raymond("task-loop", "stop").returncode == 0
    night.write({SPEC: night.spec.replace("grep -q because why.txt", "true")})
    done = ask(night, "next")
    assert (done["status"], done["workflow_id"], done["ended"]) == ("done", "n", "stopped: somebody asked for it")
    assert ask(night, "next", "--id", "m")["workflow_id"] == "m", "whoever asks again wants another one"


def test_what_the_item_was_judged_for_is_not_asked_about_again(tmp_path: Path) -> None:
    night = Planned(tmp_path)
    ask(night, "next", "--id", "n", "--attempts", "1")
    night.git("worktree", "add", "-q", "../other", "-b", "other")
    found = ask(night, "record", said="ITERATION_COMPLETE")
    assert (found["status"], found["verdict"]) == ("recorded", "tampered")
    assert ask(night, "next")["status"] == "item"


def test_references_that_a_killed_step_has_moved_are_not_asked_about(tmp_path: Path) -> None:
    night = one_done(tmp_path)
    night.git("update-ref", "refs/raymond/n/base", "HEAD")
    assert ask(night, "next")["status"] == "item"


def test_where_the_branch_of_the_loop_is_pushed_to_is_nobodys_business(tmp_path: Path) -> None:
    night = one_done(tmp_path)
    night.git("config", "branch.raymond/n.remote", "origin")
    night.git("config", "branch.raymond/n.merge", "refs/heads/raymond/n")
    assert ask(night, "next")["status"] == "item"
    assert night.git("config", "branch.raymond/n.remote") == "origin"


def test_what_a_person_leaves_with_a_command_of_raymond_is_not_asked_about(tmp_path: Path) -> None:
    inside = Inside(tmp_path)
    inside.begin()
    inside.write({"answer.txt": "42\n"})
    assert inside.record()["verdict"] == "passed"
    refused = inside.room.raymond("continuous-session", "learn", "use evil", environment={"CLAUDECODE": "1"})
    assert refused.returncode == 2
    assert "`continuous-session learn` was asked for by what claude has started" in refused.stderr
    assert inside.call("learn", "use tabs").returncode == 0
    assert "use tabs" in inside.next()["learnings"]


def test_the_verdict_comes_before_the_question(tmp_path: Path) -> None:
    night = Planned(tmp_path)
    night.write({".git/hooks/post-commit": "#!/bin/sh\ntouch late.txt\n"})
    (night.path / ".git/hooks/post-commit").chmod(0o755)
    ask(night, "next", "--id", "n")
    night.write({"answer.txt": "42\n"})
    found = ask(night, "record", said="ITERATION_COMPLETE")
    assert (found["status"], found["verdict"]) == ("recorded", "passed")
    assert "\n- added `late.txt`\n" in waits(night)
