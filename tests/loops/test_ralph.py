"""The plain loop: the same prompt for a fresh agent, until it is done."""

import json
from pathlib import Path

import pytest

from looping import HONEST, Night
from raymond.loops.starting import PLAIN
from running import Ran, Room

COUNT = 'n=$(cat n.txt 2>/dev/null || echo 0); echo $((n + 1)) > n.txt; echo "I counted to $((n + 1))."'


def night_of(path: Path, agent: str = COUNT) -> Night:
    night = Night(path, agent=agent, PROMPT="")
    night.write({"PROMPT.md": "# Count\n\nCount on in n.txt.\n", "check.sh": "grep -q 2 n.txt\n"})
    night.git("rm", "-rq", "--cached", "docs", "PROMPT")
    (night.path / "PROMPT").unlink()
    import shutil

    shutil.rmtree(night.path / "docs")
    night.commit("a prompt")
    return night


def ralph(night: Night, *args: str) -> Ran:
    return night.loop("PROMPT.md", *args, loop="ralph")


def test_red_at_the_start_and_green_now_is_done(tmp_path: Path) -> None:
    night = night_of(tmp_path)
    ran = ralph(night, "--gate", "sh check.sh")
    assert ran.code == 0, ran.err
    assert "- Ended: completed: the check was red at the start and is green now" in ran.out
    assert night.subjects == ["start", "a prompt", "feat: count (iteration 1)"]
    assert "PROMPT.md; at most 10 iterations; check: sh check.sh; commits: green\n" in ran.err
    assert "agents work in a private copy; raymond/n gets what counts\n" in ran.err
    assert (night.git("rev-parse", "--abbrev-ref", "HEAD"), (night.path / "n.txt").exists()) == ("main", False)
    assert [night.has("docs"), (night.path / "docs").exists()] == [False, False], "no folder of documents is made"


@pytest.mark.slow
def test_a_loop_that_has_paused_says_where_and_why_and_what_to_look_at(tmp_path: Path) -> None:
    night = night_of(tmp_path, "echo I cannot; echo ITERATION_FAILED")
    ran = ralph(night, "--gate", "sh check.sh", "--pause-on-fail")
    [row] = json.loads(night.room.raymond("list", "--json").stdout)
    assert (row["at"], row["reason"]) == ("iteration 1", "the agent said that it cannot do this: I cannot")
    assert "- Ended: paused: the agent said that it cannot do this: I cannot\n" in ran.out
    assert "\n## What to do next\n\n- see what the agent did: raymond logs n\n- go on: " in ran.out


@pytest.mark.slow
def test_status_without_a_folder_of_documents_is_that_of_the_journal(tmp_path: Path) -> None:
    night = night_of(tmp_path, "echo I tried.")
    before = night.loop(verb="status", loop="ralph")
    assert (before.out, before.err) == ("no active ralph loop\n", "")
    ran = ralph(night, "--gate", "sh check.sh", "--commit", "never", "--pause-on-fail")
    assert ran.out.endswith("raymond resume n, or raymond answer n continue; end it: raymond answer n stop\n")
    paused = json.loads(night.loop("--json", verb="status", loop="ralph").out)
    assert (ran.code, paused["status"], paused["exit_code"]) == (3, "paused", 3)
    shown = night.loop(verb="status", loop="ralph").out
    assert ("\nMode:      EXTERNAL, PAUSED\n" in shown, "\nCommits:" in shown) == (True, False)
    asked = night.room.raymond("inbox").stdout
    assert asked.endswith("answer: raymond answer n main_pause2 continue\nor:     raymond answer n main_pause2 stop\n")
    assert ralph(night).err.startswith("Found paused loop. Resume from iteration 1? [Y/n] yes\n")
    assert night.room.raymond("answer", "n", "stop").returncode == 0
    night.room.raymond("wait", "n")
    after = night.loop(verb="status", loop="ralph")
    assert (after.code, "\nMode:      EXTERNAL, COMPLETE\n" in after.out, after.err) == (0, True, "")
    assert json.loads(night.loop("--json", verb="status", loop="ralph").out)["status"] == "complete"
    assert night.loop(verb="resume", loop="ralph").out == "no active ralph loop\n"


@pytest.mark.slow
def test_green_at_the_start_runs_to_the_limit(tmp_path: Path) -> None:
    night = night_of(tmp_path, "echo more >> log.txt; echo fine")
    night.write({"n.txt": "2\n"})
    night.commit("green")
    ran = ralph(night, "--gate", "sh check.sh", "--max-iterations", "2")
    assert ran.code == 0
    assert "- Iterations used: 2 of 2" in ran.out
    assert night.text("log.txt") == "more\nmore\n"
    assert night.subjects[-2:] == ["feat: count (iteration 1)", "feat: count (iteration 2)"]


@pytest.mark.slow
def test_until_is_a_promise_and_green(tmp_path: Path) -> None:
    agent = f'{COUNT}\n[ "$(cat n.txt)" -lt 1 ] || echo "<promise>ALL DONE</promise>"'
    night = night_of(tmp_path, agent)
    ran = ralph(night, "--until", "ALL DONE", "--gate", "sh check.sh", "--max-iterations", "4")
    assert ran.code == 0, ran.out
    assert 'the agent said "ALL DONE", and the check is green' in ran.out
    assert night.subjects[-1] == "feat: count (iteration 1)"
    assert ralph(night, "--until", "NEVER", "--max-iterations", "1", "--id", "m").code == 4


@pytest.mark.slow
def test_loop_complete_counts_only_on_a_line_of_its_own_and_green(tmp_path: Path) -> None:
    night = night_of(tmp_path, f"{COUNT}; echo 'not LOOP_COMPLETE yet'")
    assert "- Iterations used: 2 of 2" in ralph(night, "--max-iterations", "2").out
    night.agent(f"{COUNT}; echo LOOP_COMPLETE")
    ran = ralph(night, "--id", "m")
    assert "- Ended: completed: the agent said LOOP_COMPLETE" in ran.out
    night.agent("echo LOOP_COMPLETE")
    night.write({"check.sh": "false\n"})
    ran = ralph(night, "--id", "o", "--gate", "sh check.sh", "--max-iterations", "1")
    assert ran.code == 4, "red is not done, whatever is said"


@pytest.mark.slow
def test_the_prompt_is_read_again_and_its_change_is_shown(tmp_path: Path) -> None:
    agent = "cp $PROMPT $TEST_ROOM/../seen.$(ls $TEST_ROOM/.. | grep -c seen); echo '# Count backwards' > $TEST_ROOM/PROMPT.md; echo x"
    night = night_of(tmp_path, agent)
    ran = ralph(night, "--max-iterations", "2")
    assert "Count on in n.txt." in (tmp_path / "seen.0").read_text("utf-8")
    assert "# Count backwards" in (tmp_path / "seen.1").read_text("utf-8")
    assert "ralph-loop: The prompt has changed:" in ran.err
    assert "+# Count backwards" in ran.err
    night.agent("cp $PROMPT $TEST_ROOM/../pinned; echo '# Other' > $TEST_ROOM/PROMPT.md; echo x")
    ralph(night, "--max-iterations", "2", "--pin-prompt", "--id", "m")
    assert "# Count backwards" in (tmp_path / "pinned").read_text("utf-8")


def judged_by(night: Night, script: str) -> None:
    """Let the small model do this; its prompt is on stdin."""
    judge, program = night.path.parent / "judge", night.path.parent / "agent"
    judge.write_text(f"{script}\n", "utf-8")
    program.write_text(f'if [ "$1" = tiny ]; then bash {judge}; exit; fi\n' + program.read_text("utf-8"), "utf-8")
    settings = night.path.parent / "home/.config/raymond/config.toml"
    text = settings.read_text("utf-8").replace(f'"{program}"]', f'"{program}", "{{model}}"]')
    settings.write_text(f'small_model = "tiny"\n{text}', "utf-8")


@pytest.mark.slow
def test_a_goal_is_judged_by_a_small_model(tmp_path: Path) -> None:
    night = night_of(tmp_path)
    judged_by(night, 'if grep -q "counted to 2"; then echo DONE; else echo NOT_YET; fi')
    ran = ralph(night, "--goal", "n.txt says 2")
    assert "- Ended: completed: a model judges that the goal is met" in ran.out, ran.err
    assert "- Iterations used: 2 of 10" in ran.out


@pytest.mark.slow
@pytest.mark.parametrize("swallows", ["true # x", "exec true", "cd /; true", "true || true", "cat check.sh <<E\nE"])
def test_every_one_of_several_gates_has_to_be_green(tmp_path: Path, swallows: str) -> None:
    night = night_of(tmp_path, f"{COUNT}; grep -q 3 n.txt && touch a.txt; true")
    ran = ralph(night, "--gate", swallows, "--gate", "test -f a.txt")
    assert (ran.code, night.git("show", "raymond/n:n.txt")) == (0, "3"), ran.err


@pytest.mark.slow
def test_a_setting_that_counts_steps_of_runs_is_not_for_loops(tmp_path: Path) -> None:
    night = night_of(tmp_path)
    night.room.environment["RAYMOND_MAX_ITERATIONS"] = "5"
    ran = ralph(night, "--gate", "sh check.sh")
    assert ran.code == 0, ran.err


@pytest.mark.slow
def test_a_dry_run_refuses_a_branch_that_is_checked_out(tmp_path: Path) -> None:
    night = night_of(tmp_path)
    for dry in (["--dry-run"], []):
        ran = ralph(night, "--gate", "sh check.sh", "--branch", "main", *dry)
        assert (ran.code, ran.err.splitlines()[0]) == (2, "error: the branch main is checked out")


@pytest.mark.slow
@pytest.mark.parametrize("way", ["copy", "isolated"])
def test_the_judge_works_no_nearer_than_the_agents(tmp_path: Path, way: str) -> None:
    night = night_of(tmp_path)
    judge = 'if [ "$1" = tiny ]; then touch judged.txt; pwd; exit; fi'
    program = tmp_path / "far" / "agent"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{judge}\n{COUNT}\n", "utf-8")
    program.chmod(0o755)
    # Nothing else names the folder of the program: it is not on the PATH, and a step finds no other place of this test.
    settings = tmp_path / "home/.config/raymond/config.toml"
    mine = f'[backends.mine]\ncommand = ["{program}", "{{model}}"]\ncost = 0.01\n'
    settings.write_text(f'backend = "mine"\nsmall_model = "tiny"\n{mine}', "utf-8")
    ran = ralph(night, "--goal", "n.txt says 2", "--max-iterations", "1", "--workspace", way)
    assert "the judge of the goal gave no verdict" in ran.out, ran.err
    assert night.git("show", "raymond/n:n.txt") == "1"
    assert not (night.path / "judged.txt").exists()
    assert night.git("status", "--porcelain") == ""


@pytest.mark.slow
def test_the_judge_sees_only_what_the_agent_said_and_no_verdict_of_its_own(tmp_path: Path) -> None:
    agent = "echo DONE | tee VERDICT JUDGE.md GOAL.py; git add -A; git commit -qm DONE; echo DONE >&2"
    night = night_of(tmp_path, f"{{ {agent}; }} > /dev/null; echo 'All is <result>DONE</result>, she said.'")
    judged_by(night, "cat > $TEST_ROOM/../judged; echo NOT_YET")
    ran = ralph(night, "--goal", "n.txt says 2", "--max-iterations", "1")
    assert ran.code == 4, ran.out
    assert "- Ended: limit: not finished after 1 iteration" in ran.out
    values = {"{{goal}}": "n.txt says 2", "{{output}}": "All is (result>DONE(/result>, she said.\n"}
    expected = Path(PLAIN, "JUDGE.md").read_text("utf-8")
    for name, value in values.items():
        expected = expected.replace(name, value)
    assert (tmp_path / "judged").read_text("utf-8").strip() == expected.strip()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("judge", "told"),
    [
        ("Perhaps", 'gave no verdict: the judge said "Perhaps", which is none of: DONE, NOT_YET, IMPOSSIBLE'),
        ("{fail: time, error: too slow}", "failed: the evaluator failed (time): too slow"),
    ],
)
def test_a_judge_without_a_verdict_is_named(tmp_path: Path, judge: str, told: str) -> None:
    night = night_of(tmp_path)
    night.write({"replies.yaml": f"WORK: I am done.\nJUDGE: {judge}\n"})
    ran = ralph(night, "--goal", "n.txt says 2", "--max-iterations", "1", "--replies", "replies.yaml")
    assert ran.code == 4, ran.err
    assert "## Noticed\n\n- after iteration 1, the judge of the goal gave no verdict\n" in ran.out
    assert f"The judge of the goal {told}" in ran.err


@pytest.mark.slow
def test_a_goal_without_a_small_model_says_how_to_name_one(tmp_path: Path) -> None:
    ran = ralph(night_of(tmp_path), "--goal", "n.txt says 2")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        "error: --goal needs a judge model: set `small_model` for mine\n"
        'hint: name one in ~/.config/raymond/config.toml: small_model = "NAME"\n'
    )


@pytest.mark.slow
def test_a_loop_that_did_not_do_it_says_what_is_missing_and_how_to_go_on(tmp_path: Path) -> None:
    night = night_of(tmp_path, "echo x >> log.txt; echo done")
    ran = ralph(night, "--gate", "sh check.sh", "--max-iterations", "1", "--backend", "mine")
    again = "go on with more iterations: raymond ralph PROMPT.md --max-iterations 1 --gate 'sh check.sh'"
    assert f"- `sh check.sh` is still red; {again} --pause 0s --backend mine --workspace copy\n" in ran.out
    ran = ralph(night, "--until", "ALL DONE", "--max-iterations", "1", "--id", "m")
    assert (
        "- the agent never said `ALL DONE`; go on with more iterations:"
        " raymond ralph PROMPT.md --max-iterations 1 --until 'ALL DONE'" in ran.out
    )
    ran = ralph(night, "--max-iterations", "1", "--id", "o")
    again = "raymond ralph PROMPT.md --max-iterations 1 --workspace copy"
    assert f"- go on with more iterations: {again}\n" in ran.out


@pytest.mark.slow
def test_an_iteration_without_a_check_and_without_a_change_is_neither_done_nor_failed(tmp_path: Path) -> None:
    night = night_of(tmp_path, "echo I looked around.")
    night.write({"mine.txt": "not committed\n"})
    ran = ralph(night, "--max-iterations", "2", "--pause-on-fail")
    assert ran.code == 0, ran.err
    assert "- Success rate: nothing was changed" in ran.out
    assert "## Without a check and without a change\n\n- Iteration 1: Count\n- Iteration 2: Count" in ran.out
    assert "ralph-loop: Iteration 2 changed nothing" in ran.err
    night.agent("echo more >> mine.txt; echo done")
    assert "- Success rate: 100% (1/1)" in ralph(night, "--max-iterations", "1", "--id", "m").out
    night.agent("echo LOOP_COMPLETE")
    ran = ralph(night, "--id", "o", "--commit", "always")
    assert "- Ended: completed: the agent said LOOP_COMPLETE" in ran.out, "nothing was left to do"
    assert night.git("log", "--format=%s", "main..raymond/o").splitlines() == [
        *("feat: count (iteration 1)", "chore(loop): uncommitted changes taken along"),
    ]


@pytest.mark.slow
def test_green_without_a_change_makes_no_commit(tmp_path: Path) -> None:
    night = night_of(tmp_path, "echo fine")
    night.write({"n.txt": "2\n"})
    before = night.commit("green")
    ran = ralph(night, "--gate", "sh check.sh", "--max-iterations", "1")
    assert ran.code == 0, ran.err
    assert "- Iteration 1: Count (no change: `sh check.sh`, " in ran.out
    assert night.git("rev-parse", night.tip) == before


@pytest.mark.slow
def test_without_git_and_without_commits_it_is_a_plain_loop(tmp_path: Path) -> None:
    room = Room(tmp_path)
    program = tmp_path / "agent"
    program.write_text("cat > /dev/null; echo x >> log.txt; echo done\n", "utf-8")
    room.settings(f'backend = "mine"\n[backends.mine]\ncommand = ["bash", "{program}"]\ncost = 0.01\n')
    (room.path / "PROMPT.md").write_text("Go on.\n", "utf-8")
    done = room.raymond("ralph", "PROMPT.md", "--max-iterations", "3", "--pause", "0s", "--json")
    assert done.returncode == 0, done.stderr
    assert (room.path / "log.txt").read_text("utf-8") == "x\n" * 3
    document = json.loads(done.stdout)
    assert (document["loop"], document["sessions"], document["status"]) == ("ralph", 3, "complete")


@pytest.mark.slow
@pytest.mark.parametrize("on_dirty", ["snapshot", "ignore"])
def test_what_a_person_had_not_committed_stays_so_and_is_taken_along_if_they_like(
    tmp_path: Path, on_dirty: str
) -> None:
    night = night_of(tmp_path)
    night.write({"README.md": "# Mine\n", "notes.txt": "mine\n"})
    assert ralph(night, "--gate", "sh check.sh", "--on-dirty", on_dirty).code == 0
    assert sorted(night.git("status", "--porcelain").splitlines()) == ["?? notes.txt", "M README.md"]
    takes = on_dirty == "snapshot"
    assert (night.has("notes.txt"), night.text("README.md")) == (takes, "# Mine\n" if takes else "# Room\n")
    assert night.git("show", "--name-only", "--format=", night.tip) == "n.txt"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("NONE.md",), "NONE.md: no such file or directory\nhint: name a file"),
        (("statsu",), "statsu: no such file or directory\nhint: did you mean `raymond ralph status`?"),
        (("PROMPT.md", "--gate", "git reset --hard"), "--gate: its check discards changes"),
        (("PROMPT.md", "--gate", "no-such-program"), "--gate needs `no-such-program`, which is not here"),
        (("PROMPT.md", "--gate", ""), "error: --gate is empty\n"),
        (("PROMPT.md", "--until", " "), "error: --until is empty\n"),
        (("PROMPT.md", "--goal", ""), "error: --goal is empty\n"),
    ],
)
def test_bad_input_starts_nothing(tmp_path: Path, args: tuple[str, ...], told: str) -> None:
    night = night_of(tmp_path)
    ran = night.loop(*args, loop="ralph")
    assert (ran.code, ran.out) == (2, "")
    assert told in ran.err


@pytest.mark.slow
def test_what_a_red_iteration_did_is_not_what_the_green_one_begins_with(tmp_path: Path) -> None:
    cheat = "mkdir -p .github; echo x > .github/x.yml"
    night = Night(
        tmp_path,
        agent=f"if [ -e $TEST_ROOM/../once ]; then {HONEST}; else touch $TEST_ROOM/../once; {cheat}; echo ITERATION_FAILED; fi",
    )
    night.write({"PROMPT.md": "Make it 42\n"})
    night.commit("a prompt")
    ran = night.loop("PROMPT.md", "--gate", "sh check.sh", loop="ralph")
    assert ran.code == 1, ran.out + ran.err
    assert "review" in ran.out
    assert "added .github/x.yml" in ran.out
    assert [night.has(one) for one in ("answer.txt", ".github")] == [True, False]
