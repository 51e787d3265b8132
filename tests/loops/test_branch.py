"""The branch of a loop: what it begins with, what is committed on it, and how the work comes home."""

import json
import shutil
import signal
from pathlib import Path

import pytest

from looping import HONEST, LOG, QUEUE, WAIT, Night
from running import until

FOUR = "".join(f"{number}. [VERIFY: grep -q {number} {number}.txt] Write {number}\n" for number in range(1, 5))
WRITES = 'n=$(grep -o "Write [0-9]" "$PROMPT" | head -n 1 | cut -c 7); echo $n > $n.txt; echo ITERATION_COMPLETE'
RECORDS = "chore(loop): records"


@pytest.mark.slow
def test_the_plan_and_what_is_not_committed_are_taken_along_without_secrets(tmp_path: Path) -> None:
    night = Night(tmp_path, agent=f"cat notes.txt > seen.txt; ls .env.local >> seen.txt; {HONEST}")
    night.write({LOG: f"## Next Steps\n\n{QUEUE}- [BLOCKED: later] More\n", "notes.txt": "mine\n"})
    night.write({".env.local": "TOKEN=ghp_16C7e42F292c6912E7710c838347Ae178B4a\n"})
    ran = night.loop()
    assert ran.code == 0, ran.err
    assert night.subjects[:3] == ["start", "docs(loop): the plan", "chore(loop): uncommitted changes taken along"]
    assert "n: your changes that are not committed are taken along: notes.txt\n" in ran.err
    assert "n: left out, because it looks like a secret: .env.local\n" in ran.err
    assert (night.text("seen.txt"), night.has(".env.local")) == ("mine\n", False)
    assert "take it over: raymond apply n" in ran.out
    applied = night.room.raymond("apply", "n")
    assert applied.returncode == 0, applied.stderr
    assert (night.path / "answer.txt").read_text("utf-8") == "42\n"


@pytest.mark.slow
def test_without_a_merge_the_second_night_goes_on_from_the_first(tmp_path: Path) -> None:
    night = Night(tmp_path, FOUR, WRITES)
    assert night.loop("--max-sessions", "2").code == 0
    night.write({"README.md": "# Mine\n"})
    night.commit("of a person")
    ran = night.loop("--id", "m")
    assert ran.code == 0, ran.err
    assert "m: it continues what n did, which is not merged; --from HEAD begins without that\n" in ran.err
    assert [night.has(f"{number}.txt") for number in range(1, 5)] == [True] * 4
    assert night.text("README.md") == "# Mine\n"
    done = [item["title"] for item in night.state["completedItems"]]
    assert done == ["Write 3", "Write 4"], "nothing is paid twice"
    assert night.git("merge", "-q", "raymond/m") == ""
    assert (
        night.loop("--id", "o").out
        == f"nothing to do: docs/session_logs/{night.logs[-1]} has nothing that can be worked on\n"
    )


@pytest.mark.slow
def test_a_second_night_that_conflicts_with_the_checkout_is_refused_with_the_way_out(tmp_path: Path) -> None:
    night = Night(tmp_path, FOUR, WRITES)
    assert night.loop("--max-sessions", "1").code == 0
    night.write({"1.txt": "mine\n"})
    night.commit("of a person")
    before = night.git("for-each-ref")
    ran = night.loop("--id", "m")
    assert (ran.code, ran.out) == (2, "")
    assert "error: n is not merged, and conflicts with your checkout in 1.txt\n" in ran.err
    assert (
        "hint: commit or stash your changes, git merge raymond/n and resolve it, or start without it: --from HEAD\n"
        in ran.err
    )
    assert night.git("for-each-ref") == before, "a refused start changes nothing"
    ran = night.loop("--id", "m", "--from", "HEAD", "--max-sessions", "1")
    assert (ran.code, night.subjects) == (0, ["start", "of a person", "feat: write 1", RECORDS])


@pytest.mark.slow
def test_records_that_both_sides_have_added_to_are_united(tmp_path: Path) -> None:
    night = Night(tmp_path, FOUR, WRITES)
    assert night.loop("--max-sessions", "1").code == 0
    night.write({"docs/progress.md": "# Progress\n\n<!-- raymond other/1 -->\n### Of another loop\n\nDone.\n"})
    night.commit("of another loop")
    ran = night.loop("--id", "m", "--max-sessions", "1")
    assert ran.code == 0, ran.err
    progress = night.text("docs/progress.md")
    assert [progress.count(f"<!-- raymond {one} -->") for one in ("other/1", "n/1", "m/1")] == [1, 1, 1]


@pytest.mark.slow
def test_what_an_earlier_night_may_not_change_the_next_one_may_not_either(tmp_path: Path) -> None:
    """A check that an unmerged night would decide counts for nothing in the next one."""
    agent = "mkdir -p tests; echo 'def test_it(): pass' > tests/test_it.py; echo x >> work.txt; echo ITERATION_COMPLETE"
    queue = "1. [NO-VERIFY] Prepare\n2. [VERIFY: python3 -m pytest -q tests] Do it\n"
    night = Night(tmp_path, queue, agent)
    night.write({"tests/test_it.py": "def test_it():\n    assert open('work.txt').read() == 'done'\n"})
    night.commit("tests")
    assert night.loop("--max-sessions", "1").code == 0
    ran = night.loop("--id", "m", "--attempts", "1")
    assert (ran.code, night.state["completedItems"]) == (1, []), ran.out


@pytest.mark.slow
def test_a_branch_that_is_checked_out_stays_and_the_loop_goes_on(tmp_path: Path) -> None:
    night = Night(tmp_path, FOUR, f"{WAIT}{WRITES}")
    with night.room.start("continuous-session", "start", "--id", "n", "--pause", "0s") as live:
        live.sees("Selected item")
        night.git("switch", "-q", "raymond/n")
        there = night.git("rev-parse", "HEAD")
        (tmp_path / "go").touch()
        assert live.process.wait(60) == 0
        assert "- Behind: raymond/n lacks 5 commits: it is checked out, or was moved" in live.out
        assert "take it over: git merge refs/raymond/n/tip, or raymond apply n" in live.out
    assert (night.git("rev-parse", "HEAD"), night.git("status", "--porcelain")) == (there, "")
    assert "\nBehind:   raymond/n lacks 5 commits: " in night.loop(verb="status").out
    night.git("merge", "-q", "--ff-only", "refs/raymond/n/tip")
    assert "Behind" not in night.loop(verb="status").out


@pytest.mark.slow
def test_a_commit_of_a_person_on_the_branch_is_part_of_the_next_night(tmp_path: Path) -> None:
    night = Night(tmp_path, FOUR, WRITES)
    assert night.loop("--max-sessions", "1").code == 0
    night.git("switch", "-q", "raymond/n")
    night.write({"mine.txt": "mine\n"})
    night.commit("mine")
    night.git("switch", "-q", "main")
    assert night.loop("--id", "m", "--max-sessions", "1").code == 0
    assert night.text("mine.txt") == "mine\n"


@pytest.mark.slow
def test_learn_and_edit_are_commits_of_a_person_while_the_loop_runs(tmp_path: Path) -> None:
    night = Night(tmp_path, agent=f"cp docs/critical-learnings.md $TEST_ROOM/../seen; {WAIT}{HONEST}; echo 1 > n.txt")
    with night.room.start("continuous-session", "start", "--id", "n", "--pause", "0s") as live:
        live.sees("Selected item")
        done = night.room.raymond("continuous-session", "learn", "Be brief")
        assert "added to raymond/n:docs/critical-learnings.md: an agent is at work" in done.stdout
        editor = tmp_path / "editor"
        editor.write_text("#!/bin/sh\necho '2. [VERIFY: grep -q 1 n.txt] More' >> \"$1\"\n", "utf-8")
        editor.chmod(0o755)
        edited = night.room.raymond("continuous-session", "edit", environment={"EDITOR": str(editor), "VISUAL": ""})
        assert edited.returncode == 0, edited.stderr
        (tmp_path / "go").touch()
        assert live.process.wait(60) == 0
    assert night.subjects == [
        *("start", "docs(loop): a learning", "docs(loop): edit the queue"),
        *("feat: write the answer", "feat: more", RECORDS),
    ]
    assert "Be brief" in (tmp_path / "seen").read_text("utf-8"), "the next agent is told"
    assert night.git("status", "--porcelain") == ""


SPEC = "docs/implementation/1-core/1.1-a.md"
TASKS = "".join(
    f"### 1.1.{number}. Write {number}\n\n**Status:** 🔵 Planned\n**Verification:** `grep -q {number} {number}.txt`\n\nSo.\n\n"
    for number in (1, 2, 3)
)


@pytest.mark.slow
@pytest.mark.parametrize("line", ["its own", "the loop's"])
def test_an_edit_of_a_spec_in_the_checkout_is_merged_with_what_the_loop_has_marked(tmp_path: Path, line: str) -> None:
    held = f'grep -q "Write 2" "$PROMPT" && {{ touch $TEST_ROOM/../on; {WAIT} }}\n{WRITES}'
    night = Night(tmp_path, agent=held, **{SPEC.replace("/", "__"): TASKS})
    with night.room.start("task-loop", "start", "--id", "n", "--pause", "0s") as live:
        until((tmp_path / "on").exists, "the second task")
        if line == "its own":
            night.write({SPEC: TASKS.replace("### 1.1.3. Write 3", "### 1.1.3. Write 3, please")})
        else:
            night.write({SPEC: TASKS.replace("🔵 Planned", "🟡 In Progress", 1)})
        assert (
            f"edited in the checkout, which does not count: {SPEC}; " in night.loop(verb="status", loop="task-loop").out
        )
        done = night.room.raymond("task-loop", "edit", "--from-checkout")
        (tmp_path / "go").touch()
        assert live.process.wait(60) == 0
    if line == "its own":
        assert done.returncode == 0, done.stderr
        assert "### 1.1.3. Write 3, please\n\n**Status:** ✅ Complete" in night.text(SPEC)
    else:
        assert (
            f"error: {SPEC} was changed in the same lines on the branch\nhint: git show raymond/n:{SPEC} "
            in done.stderr
        )
        assert done.returncode == 2
    assert night.text(SPEC).count("✅ Complete") == 3


@pytest.mark.slow
def test_a_person_may_be_named_by_the_environment_alone(tmp_path: Path) -> None:
    night = Night(tmp_path)
    for name in ("name", "email"):
        night.git("config", "--unset", f"user.{name}")
    who = {"NAME": "Grace", "EMAIL": "grace@example.com"}
    night.room.environment |= {
        f"GIT_{what}_{name}": value for what in ("AUTHOR", "COMMITTER") for name, value in who.items()
    }
    assert night.loop().code == 0
    assert night.git("log", "-1", "--format=%an %ce", night.tip) == "Grace grace@example.com"


@pytest.mark.slow
def test_two_plain_loops_of_one_prompt_are_one_too_many_and_of_two_prompts_are_not(tmp_path: Path) -> None:
    night = Night(
        tmp_path, agent=f"touch $TEST_ROOM/../on\n{WAIT}{HONEST}", **{"PROMPT.md": "Go.\n", "OTHER.md": "Go.\n"}
    )
    night.room.environment["COLUMNS"] = "200"
    flags = ("--gate", "sh check.sh", "--pause", "0s")
    with night.room.start("ralph", "PROMPT.md", "--id", "r", *flags) as live:
        until((tmp_path / "on").exists, "its agent")
        again = night.room.raymond("ralph", "PROMPT.md", *flags)
        assert (again.returncode, "a ralph is running here: r" in again.stderr) == (2, True), again.stderr
        (tmp_path / "go").touch()
        assert night.room.raymond("ralph", "OTHER.md", *flags).returncode == 0
        assert live.process.wait(60) == 0


@pytest.mark.slow
def test_current_brings_the_work_to_the_branch_that_is_checked_out(tmp_path: Path) -> None:
    night = Night(tmp_path)
    ran = night.loop("--branch", "current")
    assert ran.code == 0, ran.err
    assert night.git("log", "--format=%s").splitlines() == [RECORDS, "feat: write the answer", "start"]
    assert (night.path / "answer.txt").read_text("utf-8") == "42\n"
    assert night.git("status", "--porcelain") == ""


@pytest.mark.slow
def test_no_commit_brings_the_files_and_nothing_else(tmp_path: Path) -> None:
    night = Night(tmp_path)
    ran = night.loop("--no-commit")
    assert ran.code == 0, ran.err
    assert night.git("log", "--format=%s") == "start"
    assert "?? answer.txt" in night.git("status", "--porcelain").splitlines()
    assert night.git("branch", "--list", "raymond/*") == ""


@pytest.mark.slow
def test_loops_of_different_kinds_run_side_by_side_while_the_person_works(tmp_path: Path) -> None:
    task = "### 1.1.1. Write a task\n\n**Status:** 🔵 Planned\n**Verification:** `grep -q 1 task.txt`\n"
    agent = (
        f'touch $TEST_ROOM/../on-$(grep -q "a task" "$PROMPT" && echo t || echo r)\n{WAIT}echo 1 > task.txt; {HONEST}'
    )
    night = Night(tmp_path, agent=agent, **{"docs__implementation__1-core__1.1-a.md": task, "PROMPT.md": "Go.\n"})
    flags = ("--pause", "0s", "--max-iterations", "1")
    with (
        night.room.start("task-loop", "start", "--id", "t", *flags) as tasks,
        night.room.start("ralph", "PROMPT.md", "--gate", "sh check.sh", "--id", "r", *flags) as plain,
    ):
        for id in ("t", "r"):
            until((tmp_path / f"on-{id}").exists, f"the agent of {id}")
        night.write({"README.md": "# Edited\n", "staged.txt": "later\n"})
        night.git("commit", "-qam", "meanwhile")
        night.git("switch", "-q", "-c", "elsewhere")
        night.git("add", "staged.txt")
        (tmp_path / "go").touch()
        assert [one.process.wait(60) for one in (tasks, plain)] == [0, 0], tasks.err + plain.err
    assert night.git("branch", "--show-current") == "elsewhere"
    assert night.git("status", "--porcelain") == "A  staged.txt"
    for id, name in (("t", "task.txt"), ("r", "answer.txt")):
        assert night.git("show", "--name-only", "--format=", f"refs/raymond/{id}/tip~1").splitlines().count(name) == 1
    assert night.git("log", "--format=%s", "main").splitlines() == ["meanwhile", "start"]


@pytest.mark.slow
def test_a_night_of_four_items_that_is_killed_in_the_middle_does_each_once(tmp_path: Path) -> None:
    night = Night(
        tmp_path, FOUR, f"echo turn >> $TEST_ROOM/../turns; [ ! -e $TEST_ROOM/../hold ] || exec sleep 1000\n{WRITES}"
    )
    with night.room.start("continuous-session", "start", "--id", "n", "--pause", "0s") as live:
        live.sees("Iteration 2 complete")
        live.signal(signal.SIGKILL)
        live.process.wait()
        night.room.clear()
    ran = night.loop("--yes", verb="resume")
    assert ran.code == 0, ran.err
    assert night.subjects == ["start", *(f"feat: write {number}" for number in range(1, 5)), RECORDS]
    assert [item["title"] for item in night.state["completedItems"]] == [f"Write {one}" for one in range(1, 5)]
    assert night.git("fsck", "--strict") == ""


@pytest.mark.slow
def test_the_closing_check_ends_a_cheat_that_was_prepared_over_several_items(tmp_path: Path) -> None:
    """Each item is green by itself; on the last commit the first one is broken again."""
    agent = (
        'if grep -q "Write the answer" "$PROMPT"; then echo 42 > answer.txt;'
        " else echo 41 > answer.txt; echo x > other.txt; fi; echo ITERATION_COMPLETE"
    )
    night = Night(tmp_path, f"{QUEUE}2. [VERIFY: grep -q x other.txt] Do another thing\n", agent)
    ran = night.loop()
    assert ran.code == 1, ran.out
    assert "- Ended: failed: the closing check is red by the files that you vouch for: " in ran.out
    assert json.loads(night.loop("--json", verb="status").out)["exit_code"] == 1


@pytest.mark.slow
def test_a_check_that_cannot_be_green_in_its_place_is_refused_before_an_agent_is_paid(tmp_path: Path) -> None:
    night = Night(tmp_path, agent=f"echo paid >> $TEST_ROOM/../paid; {HONEST}", **{".gitignore": "data/\n"})
    night.write({"data/known.txt": "42\n", "check.sh": "grep -q 42 data/known.txt\n"})
    night.git("commit", "-qam", "check")
    before = night.git("for-each-ref")
    ran = night.loop()
    assert (ran.code, (tmp_path / "paid").exists()) == (2, False), ran.out
    assert night.git("for-each-ref") == before, "a refused start changes nothing"
    assert not (night.path / "docs/.continuous-session-state.json").exists()
    assert "- Ended: refused before an agent was paid: " in ran.out
    assert "data" in ran.out


@pytest.mark.slow
@pytest.mark.parametrize("way", ["here", "isolated"])
def test_the_other_ways_do_the_same(tmp_path: Path, way: str) -> None:
    night = Night(tmp_path, "1. [VERIFY: false] Fail\n2. [VERIFY: sh check.sh] Write the answer\n")
    (night.path / "replies.yaml").write_text(
        'WORK: {text: ITERATION_COMPLETE, writes: {answer.txt: "42\\n"}}\n', "utf-8"
    )
    night.commit("replies")
    ran = night.loop(
        "--workspace", way, "--attempts", "1", "--replies", "replies.yaml", "--allow", "sh *", "--allow", "false"
    )
    assert ran.code == 1, ran.err
    assert night.subjects == ["start", "replies", RECORDS, "feat: write the answer", RECORDS]
    assert f"- Workspace: {way}" in ran.out
    assert night.git("status", "--porcelain") == ""
    if way == "here":
        assert night.git("branch", "--show-current") == "raymond/n"
        assert "take it over: git switch main, then git merge raymond/n" in ran.out
    else:
        assert night.git("branch", "--show-current") == "main"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["raymond/n", "feature"])
def test_a_branch_that_cannot_follow_is_refused_and_nothing_is_changed(tmp_path: Path, name: str) -> None:
    night = Night(tmp_path)
    if name == "feature":
        night.git("switch", "-q", "-c", "feature")
        night.write({"other.txt": "x\n"})
        night.commit("other")
        night.git("switch", "-q", "main")
    else:
        night.git("branch", "raymond")
    before = night.git("for-each-ref")
    ran = night.loop(*(["--branch", "feature"] if name == "feature" else []))
    assert (ran.code, ran.out) == (2, "")
    assert f"error: the branch {name} has other commits, or has the name of a folder" in ran.err
    assert night.git("for-each-ref") == before
    assert night.room.raymond("list").stdout.count("\n") <= 1, "there is no run"


@pytest.mark.slow
def test_a_plain_loop_that_is_hidden_by_another_one_is_named(tmp_path: Path) -> None:
    night = Night(tmp_path, agent="echo no", **{"PROMPT.md": "Go.\n", "OTHER.md": "Go.\n"})
    assert night.loop("PROMPT.md", "--gate", "sh check.sh", "--pause-on-fail", "--id", "r", loop="ralph").code == 3
    night.agent(HONEST)
    assert night.loop("OTHER.md", "--gate", "sh check.sh", "--id", "s", loop="ralph").code == 0
    assert "ralph r has not ended: raymond status r\n" in night.loop(verb="status", loop="ralph").out


@pytest.mark.slow
def test_a_start_that_was_killed_before_there_was_a_run_bars_no_other(tmp_path: Path) -> None:
    night = Night(tmp_path, "- [NO-VERIFY] Take a note\n", "echo 1 > n.txt; echo done")
    fake = tmp_path / "bin"
    fake.mkdir()
    script = (
        'case "$*" in *"refs/heads/raymond/n "*) touch "$TEST_ROOM/../late"; [ -z "$HANG" ] || exec sleep 1000;; esac'
    )
    (fake / "git").write_text(f'#!/bin/sh\n{script}\nexec {shutil.which("git")} "$@"\n', "utf-8")
    (fake / "git").chmod(0o755)
    night.room.environment["PATH"] = f"{fake}:{night.room.environment['PATH']}"
    night.write({"notes.txt": "mine\n"})
    with night.room.start("continuous-session", "start", "--id", "n", HANG="1") as live:
        until((tmp_path / "late").exists, "the branch")
        live.signal(signal.SIGKILL)
        live.process.wait()
    assert not night.room.folder("n").exists()
    night.write({"notes.txt": "changed\n"})
    ran = night.loop()
    assert ran.code == 0, ran.err
    assert (night.text("notes.txt"), night.text("n.txt")) == ("changed\n", "1\n")
    (night.room.folder("n")).rename(tmp_path / "elsewhere")
    assert "refs/raymond/n/tip has the work of an earlier run" in night.loop().err


@pytest.mark.slow
@pytest.mark.parametrize("side", ["the person", "the branch"])
def test_records_that_one_side_has_removed_are_no_reason_to_crash(tmp_path: Path, side: str) -> None:
    night = Night(tmp_path, FOUR, WRITES)
    assert night.loop("--max-sessions", "1").code == 0
    night.git("merge", "-q", "raymond/n")
    assert night.loop("--id", "m", "--max-sessions", "1").code == 0
    if side == "the branch":
        night.git("switch", "-q", "raymond/m")
    night.git("rm", "-q", "docs/progress.md")
    night.git("commit", "-qm", "no progress")
    if side == "the branch":
        night.git("switch", "-q", "main")
        night.write({"docs/progress.md": night.git("show", "main:docs/progress.md") + "\n\nMore.\n"})
        night.commit("more")
    ran = night.loop("--id", "o", "--max-sessions", "1")
    assert ran.code == 0, ran.err
    assert night.text("3.txt") == "3\n"


@pytest.mark.slow
def test_a_repository_with_submodules_is_refused_before_anything_is_touched(tmp_path: Path) -> None:
    night = Night(tmp_path)
    night.git("clone", "-q", ".", "sub")
    night.git("add", "sub")
    night.git("commit", "-qm", "a repository inside")
    night.write({"sub/README.md": "my work\n", "sub/new.txt": "mine\n"})
    for flags in (("--workspace", "here"), ("--workspace", "copy"), ("--workspace", "isolated")):
        ran = night.loop(*flags)
        assert (ran.code, ran.out) == (2, ""), ran.err
        assert "sub" in ran.err
    assert (night.path / "sub/README.md").read_text("utf-8") == "my work\n"
    assert (night.path / "sub/new.txt").read_text("utf-8") == "mine\n"
    assert not night.git("for-each-ref", "refs/raymond/")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["HEAD", "-x", "a..b", "a b"])
def test_what_cannot_be_the_name_of_a_branch_is_refused(tmp_path: Path, name: str) -> None:
    night = Night(tmp_path)
    ran = night.loop(f"--branch={name}")
    assert (ran.code, f"error: `{name}` cannot be the name of a branch" in ran.err) == (2, True), ran.err
    assert not night.git("for-each-ref", "refs/raymond/")


@pytest.mark.slow
@pytest.mark.parametrize("place", ["docs/session_logs", "src"])
def test_a_pipe_in_place_of_a_folder_ends_no_night(tmp_path: Path, place: str) -> None:
    agent = f"rm -rf {place}; mkfifo {place}; {WRITES}"
    night = Night(
        tmp_path, f"1. [VERIFY: false] Fail\n{FOUR.replace('4.', '5.', 1)}", agent, src__a="a\n", src__b="b\n"
    )
    ran = night.loop("--attempts", "1", "--max-sessions", "3")
    assert ran.code == 1, ran.out + ran.err
    assert [one["title"] for one in night.state["completedItems"]] == ["Write 1", "Write 2"]


@pytest.mark.slow
def test_a_name_that_another_system_takes_for_git_s_own_is_in_no_commit(tmp_path: Path) -> None:
    night = Night(
        tmp_path,
        agent=f"mkdir $(printf '.gi\\342\\200\\214t'); echo x > $(printf '.gi\\342\\200\\214t')/config; {HONEST}",
    )
    assert night.loop().code == 0
    assert "config" not in night.git("ls-tree", "-r", "--name-only", night.tip)
    assert night.git("fsck", "--strict") == ""


@pytest.mark.slow
def test_after_trouble_the_summary_still_knows_what_was_done(tmp_path: Path) -> None:
    """The answer of a person is the input of the loop's own step, which has the ledger beside it."""
    night = Night(tmp_path, FOUR, f"{WRITES}\n[ $n != 2 ] || touch $TEST_ROOM/../full")
    fake = tmp_path / "bin"
    fake.mkdir()
    script = 'if [ -e "$TEST_ROOM/../full" ] && [ "${RAYMOND_STATE-}" = NEXT.py ]; then echo "fatal: no room" >&2; exit 128; fi'
    (fake / "git").write_text(f'#!/bin/bash\n{script}\nexec {shutil.which("git")} "$@"\n', "utf-8")
    (fake / "git").chmod(0o755)
    night.room.environment["PATH"] = f"{fake}:{night.room.environment['PATH']}"
    assert night.loop().code == 3
    for again in (night.loop("--yes", verb="resume"), night.loop(verb="status")):
        assert "Write 1 (passed" in again.out, again.out
        assert "Write 2 (passed" in again.out
    (tmp_path / "full").unlink()
    assert night.loop("--yes", verb="resume").code == 0
    assert night.subjects[-1] == RECORDS
    assert [item["title"] for item in night.state["completedItems"]] == [f"Write {one}" for one in range(1, 5)]


@pytest.mark.slow
def test_a_sparse_checkout_is_refused_where_agents_would_work_in_it(tmp_path: Path) -> None:
    night = Night(tmp_path, src__a="a\n")
    night.git("sparse-checkout", "set", "docs")
    for flags in (("--workspace", "here"), ("--workspace", "isolated")):
        ran = night.loop(*flags)
        assert (ran.code, "sparse" in ran.err) == (2, True), ran.err
    assert not night.git("for-each-ref", "refs/raymond/")


@pytest.mark.slow
def test_advice_does_not_name_what_is_done(tmp_path: Path) -> None:
    night = Night(tmp_path)
    assert "take it over" not in night.loop("--no-commit").out
    assert "error: --from is empty\nhint: is the variable it comes from set?\n" in night.loop("--from", "").err
    refused = night.loop("--workspace", "here", "--branch", "current", "--id", "m", "--from", "HEAD")
    assert "--branch current is not for --workspace here" in refused.err


@pytest.mark.slow
def test_a_refused_start_leaves_the_branch_of_a_person(tmp_path: Path) -> None:
    night = Night(tmp_path)
    before = night.git("for-each-ref")
    ran = night.loop("--branch", "main")
    assert (ran.code, night.git("for-each-ref")) == (2, before), ran.err


@pytest.mark.slow
def test_no_branch_with_other_commits_is_moved_where_agents_work_in_the_checkout(tmp_path: Path) -> None:
    night = Night(tmp_path)
    night.git("switch", "-q", "-c", "feature")
    night.git("commit", "-q", "--allow-empty", "-m", "mine")
    night.git("switch", "-q", "main")
    before = night.git("for-each-ref")
    ran = night.loop("--branch", "feature", "--workspace", "here")
    assert (ran.code, night.git("for-each-ref")) == (2, before), ran.err
