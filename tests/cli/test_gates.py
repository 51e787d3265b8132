"""Gates in runs: real commands, real agents' programs, real kills."""

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from raymond.machine.events import AgentFailed, GateEnded, StepInterrupted, StepStarted
from running import GO, Ran, Room, timeless, until


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = Room(tmp_path)
    yield room
    room.clear()


def gated(policy: str, *replies: str) -> dict[str, str]:
    """A workflow with one prompt, whose turns run these scripts."""
    turns = ", ".join(f'"{one}"' for one in replies)
    return {"START.md": f"---\n{policy}\n---\nDo it.\n", "replies.yaml": f"START: [[{turns}]]\n"}


def verdicts(ran: Ran) -> list[str]:
    return [event.verdict for event in ran.all(GateEnded)]


@pytest.mark.slow
def test_a_claim_without_work_does_not_count(room: Room) -> None:
    claims = ["<result>done</result>"] * 4
    ran = room.command(gated("gate: test -e done", *claims))
    assert ran.code == 1
    assert verdicts(ran) == ["failed"] * 4
    [failed] = ran.all(AgentFailed)
    assert (failed.kind, failed.error) == ("gate", "`test -e done` ended with exit code 1")
    assert "main gate is red (0s): `test -e done` ended with exit code 1; the agent is told\n" in timeless(ran.err)
    assert "main $ test -e done\nmain $ test -e done once more\n" in ran.err


def test_what_was_red_goes_green_and_counts(room: Room) -> None:
    check = "'echo x >> checks; test $(wc -l < checks) -gt 2'"
    ran = room.command(gated(f"gate: {check}", "<result>one</result>", "<result>two</result>"))
    assert (ran.code, ran.out) == (0, "two\n")
    assert verdicts(ran) == ["failed", "passed"]
    steps = [(event.step, event.phase) for event in ran.all(StepStarted)]
    assert steps == [(1, "seal"), (2, ""), (3, "gate"), (4, ""), (5, "gate")]


@pytest.mark.slow
def test_a_check_that_is_red_by_chance_is_flaky_and_passes(room: Room) -> None:
    check = "'echo x >> checks; test $(wc -l < checks) -gt 1'"
    ran = room.command(gated(f"gate: {check}", "<result>one</result>"))
    assert (ran.code, ran.out) == (0, "one\n")
    assert "main gate passed (0s, flaky: it was red the first time)\n" in timeless(ran.err)
    ran = room.command(gated("gate: exit 1\ngate_reruns: 0\ngate_tries: 0", "<result>one</result>"), id="again")
    assert "once more" not in ran.err


@pytest.mark.slow
def test_the_first_red_command_ends_the_gate(room: Room) -> None:
    policy = "gate: [touch a, {run: exit 3, timeout: 1m}, touch b]\ngate_tries: 0\non_fail: RED"
    red = {"RED.sh": 'echo "<result>$RAYMOND_ERROR</result>"'}
    ran = room.command(gated(policy, "<result>one</result>") | red)
    assert ran.out == "`exit 3` ended with exit code 3\n"
    assert ((room.path / "a").exists(), (room.path / "b").exists()) == (True, False)


@pytest.mark.slow
def test_on_fail_gets_what_the_check_printed(room: Room) -> None:
    policy = "gate: 'echo 2 of 7 failed; exit 1'\ngate_tries: 0\non_fail: RED"
    ran = room.command(gated(policy, "<result>one</result>") | {"RED.sh": 'echo "<result>$RAYMOND_GATE</result>"'})
    assert (ran.code, ran.out) == (0, "2 of 7 failed\n")


@pytest.mark.slow
def test_a_program_that_does_not_exist_is_a_mistake_of_the_workflow(room: Room) -> None:
    ran = room.command(gated("gate: no-such-check --all", "<result>one</result>"))
    assert ran.code == 1
    assert verdicts(ran) == ["could not start"]
    assert "the check `no-such-check --all` cannot start: there is no program `no-such-check`" in ran.err
    (room.path / "bin").mkdir()
    program = room.path / "bin" / "no-such-check"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    room.environment["PATH"] = f"{program.parent}:{room.environment['PATH']}"
    again = room.resume()
    assert (again.code, again.out) == (0, "one\n")
    assert len([event for event in again.all(StepStarted) if not event.phase]) == 1, "the work is not done again"


@pytest.mark.slow
def test_a_check_finds_no_variable_that_could_change_it(room: Room) -> None:
    given = {"PYTHONPATH": "/evil", "NODE_OPTIONS": "-r evil", "LD_PRELOAD_X": "evil", "GIT_DIR": "evil", "ENV": "evil"}
    given |= {"MAKEFLAGS": "n", "MAKELEVEL": "1"}
    check = "'env > seen'\ngate_env: {CI: \"true\"}"
    room.environment.update(given)
    ran = room.command(gated(f"gate: {check}", "<result>one</result>"))
    assert ran.code == 0, ran.err
    seen = dict(line.partition("=")[::2] for line in (room.path / "seen").read_text().splitlines())
    assert not given.keys() & seen.keys()
    assert seen["CI"] == "true"
    assert seen["MYPY_CACHE_DIR"] == f"{room.project.run('r').seals}/caches"


@pytest.mark.slow
def test_secrets_in_the_output_of_a_check_are_told_to_nobody(room: Room) -> None:
    policy = "gate: 'echo $MY_TOKEN; exit 1'\ngate_tries: 0\non_fail: RED"
    red = {"RED.sh": 'echo "<result>$RAYMOND_GATE</result>"'}
    room.environment["MY_TOKEN"] = "hunter2-hunter2-hunter2"
    ran = room.command(gated(policy, "<result>one</result>") | red)
    assert "hunter2" not in ran.out + ran.err
    assert "hunter2" not in Path(room.project.run("r").journal).read_text()


@pytest.mark.slow
def test_a_gate_that_was_killed_with_its_driver_runs_again_and_the_work_does_not(room: Room) -> None:
    check = f"'echo $$ >> checks; {GO}'"
    with room.start("run", room.flow(gated(f"gate: {check}", "<result>one</result>")), "--id", "r") as live:
        until(lambda: (room.path / "checks").exists() and (room.path / "checks").read_text(), "the check")
        live.process.kill()
        live.process.wait()
        first = int((room.path / "checks").read_text())
        (room.path / "go").touch()
        again = room.resume()
    assert (again.code, again.out) == (0, "one\n")
    assert len(again.all(StepInterrupted)) == 1
    assert [event.phase for event in again.all(StepStarted)] == ["seal", "", "gate", "gate"]
    assert verdicts(again) == ["passed"]
    until(lambda: not os.path.exists(f"/proc/{first}"), "the end of the check that was interrupted")


@pytest.mark.slow
def test_ctrl_c_pauses_after_the_gate_and_twice_stops_it(room: Room) -> None:
    check = f"'echo $$ >> checks; {GO}'"
    with room.start("run", room.flow(gated(f"gate: {check}", "<result>one</result>")), "--id", "r") as live:
        until(lambda: (room.path / "checks").exists() and (room.path / "checks").read_text(), "the check")
        live.signal(signal.SIGINT)
        live.sees("pausing after 1 running step")
        live.signal(signal.SIGINT)
        assert live.wait().code == 130
    (room.path / "go").touch()
    again = room.resume()
    assert (again.code, again.out) == (0, "one\n")
    assert verdicts(again) == ["passed"]


@pytest.mark.slow
@pytest.mark.parametrize("clean", ["", "env -i PATH=$PATH "], ids=["marked", "without its environment"])
def test_what_a_turn_left_running_does_not_change_what_is_checked(room: Room, clean: str) -> None:
    """The agent starts a process that makes the check green while it runs, and leaves it."""
    (room.path / "agent").write_text(
        "#!/bin/bash\n"
        f"[ -e said ] || ({clean}setsid bash -c 'echo $$ > daemon; sleep 600' > /dev/null 2>&1 &)\n"
        "until [ -s daemon ]; do sleep 0.01; done; touch said; echo '<result>done</result>'\n"
    )
    (room.path / "agent").chmod(0o755)
    room.settings(f'[backends.mine]\ncommand = ["{room.path}/agent"]\ncost = 0.01\n')
    check = "grep -q '^State:.[RS]' /proc/$(cat daemon)/status"
    flow = room.flow({"START.md": f"---\ngate: {check}\ngate_tries: 0\n---\nDo it, then <result>done</result>.\n"})
    done = room.raymond("run", flow, "--id", "r", "--backend", "mine")
    assert done.returncode == 1, done.stderr
    assert "gate is red" in done.stderr


@pytest.mark.slow
def test_a_gate_can_be_tried_before_the_night(room: Room) -> None:
    files = {
        "START.md": "---\ngate: [sh a, {run: 'exit 3', timeout: 1m}]\ngate_reruns: 0\n---\n<goto>A.sh</goto>",
        "A.sh": "echo '<result/>'",
    }
    flow = room.flow(files)
    (room.path / "a").write_text("echo a\n")
    done = room.raymond("gate", flow, "START")
    assert (done.returncode, done.stderr) == (1, "")
    assert re.sub(r"(in|after) \w+", r"\1 0s", done.stdout) == (
        "sealed 1 file in 0s: a\n"
        "$ sh a\n  | a\n  exit code 0 after 0s\n$ exit 3\n  exit code 3 after 0s\n"
        "START.md: failed: `exit 3` ended with exit code 3\n"
    )
    green = room.raymond("gate", flow, "START", "--set", "START.gate=sh a")
    assert green.returncode == 0
    assert re.fullmatch(
        r"sealed 1 file in \w+: a\n\$ sh a\n  \| a\n  exit code 0 after \w+\n"
        r"a twin of this directory takes [\w.]+\nSTART.md: passed\n",
        green.stdout,
    )
    refused = room.raymond("gate", flow, "START", "--set", "START.gate=true")
    assert (refused.returncode, refused.stdout) == (6, "")
    assert "`gate` must be text" in refused.stderr
    assert 'put it in quotes: "true"' in refused.stderr
    assert room.raymond("gate", flow, "START", "--set", "START.gate=no-such-check").returncode == 6
    none = room.raymond("gate", flow, "A")
    assert (none.returncode, none.stderr) == (2, "error: A.sh has no gate\nhint: these have one: START.md\n")
    assert room.raymond("gate", flow, "NOPE").returncode == 2
    assert not room.home.exists(), "nothing was started"


@pytest.mark.parametrize("check", ["false; true", "false\ntrue\n", "echo a && false; echo b"])
def test_a_check_ends_with_the_first_of_its_commands_that_fails(room: Room, check: str) -> None:
    flow = room.flow({"START.md": f"---\ngate: {json.dumps(check)}\n---\nDo it. <result/>"})
    done = room.raymond("gate", flow)
    assert (done.returncode, done.stdout.splitlines()[-1].partition(":")[0]) == (1, "START.md")


def test_a_pattern_that_seals_nothing_is_told(room: Room) -> None:
    flow = room.flow({"START.md": "---\ngate: 'true'\nseal: [here.txt, there.txt]\n---\nDo it. <result/>"})
    (room.path / "here.txt").touch()
    told, sealed, *_ = room.raymond("gate", flow).stdout.splitlines()
    assert told == "`seal: there.txt` matches nothing here now"
    assert re.fullmatch(r"sealed 1 file in \w+: here.txt", sealed)


@pytest.mark.slow
def test_a_check_that_cannot_start_is_mended_in_its_file_and_the_run_goes_on(room: Room) -> None:
    files = {"START.md": "---\ngate: no-such-check\n---\nDo it. <result>done</result>", "replies.yaml": REPLIES}
    done = room.raymond("run", room.flow(files), "--id", "r")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("then: raymond resume r --latest")
    room.flow({"START.md": "---\ngate: 'true'\n---\nDo it. <result>done</result>"})
    done = room.raymond("resume", "r", "--latest")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


REPLIES = "START:\n  - <result>done</result>\n"


@pytest.mark.slow
def test_replies_that_are_given_for_a_run_are_used_whatever_the_settings_name(room: Room) -> None:
    room.settings('backend = "mine"\n[backends.mine]\ncommand = ["false"]\ncost = 1.00\n')
    (room.path / "mine.yaml").write_text(REPLIES)
    flow = room.flow({"START.md": "Do it. <result>done</result>"})
    done = room.raymond("run", flow, "--replies", "mine.yaml")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    done = room.raymond("run", flow, "--replies", "mine.yaml", "--backend", "mine", "--dry-run")
    assert "mine" in done.stdout, "what was typed counts"
