"""Texts of people, agents and programs reach whoever reads them as they were written."""

import subprocess
from pathlib import Path

import pytest

from looping import HONEST, LOG, Night
from running import Ran

KEY = "ghp_Zx8Qw2Lm4Rt6Yp0Bv3Nc5Kd7Js9Hg1Fa2QeW"
NAMES = "{{input}} {{results}} {{title}} {{{input}}} {{loop_braces}} {{"


def sent(night: Night, agent: str) -> str:
    """Everything that an agent was told."""
    transcript = Ran(night.room, "n", 0, "", "").transcript(agent)
    return "\n".join(str(one.get("sent", "")) for one in transcript)


@pytest.mark.slow
def test_names_in_braces_in_an_item_a_check_and_a_message(tmp_path: Path) -> None:
    queue = f"1. [VERIFY: sh check.sh] Replace {NAMES}\n   Details {NAMES}\n2. [NO-VERIFY] Second\n"
    agent = f"""
    echo 'I said {NAMES}'
    grep -q '^# Second' "$PROMPT" && echo ITERATION_FAILED
    grep -q 'An earlier session' "$PROMPT" && echo 42 > answer.txt
    echo ITERATION_COMPLETE
    """
    night = Night(tmp_path, queue, agent)
    night.write({"check.sh": f"grep -q 42 answer.txt || {{ echo 'Printed {NAMES}'; exit 1; }}\n"})
    night.commit("check")
    ran = night.loop()
    assert ran.code == 1, ran.err
    assert [one["title"] for one in night.state["completedItems"]] == [f"Replace {NAMES}"]
    assert night.state["failedItems"][0]["error"].endswith(f"I said {NAMES}")
    told = sent(night, "main_work1")
    assert f"# Replace {NAMES}\n\nDetails {NAMES}\n" in told
    assert told.rpartition("An earlier session")[2].count(f"Printed {NAMES}") == 1, told
    assert f"I said {NAMES}" in night.text(f"docs/session_logs/{night.logs[1]}")


@pytest.mark.slow
def test_names_in_braces_that_a_hook_prints(tmp_path: Path) -> None:
    agent = f"""
    if grep -q 'hook of this project' "$PROMPT"
    then echo fine > style.txt; echo 'I said {NAMES}'; echo ITERATION_COMPLETE
    else {HONEST}; fi
    """
    night = Night(tmp_path, agent=agent)
    hook = night.path / ".git/hooks/pre-commit"
    refuses = f"[ -e style.txt ] || {{ echo 'no style: {NAMES}'; exit 1; }}"
    hook.write_text(f"#!/bin/sh\n{refuses}\ngrep -q tidy answer.txt || echo tidy >> answer.txt\n", "utf-8")
    hook.chmod(0o755)
    ran = night.loop()
    assert ran.code == 0, ran.err
    assert f"no style: {NAMES}" in sent(night, "main_work1")
    assert f"I said {NAMES}" in night.text(f"docs/session_logs/{night.logs[-1]}"), "also after the second check"


@pytest.mark.slow
def test_names_in_braces_in_a_prompt_file(tmp_path: Path) -> None:
    night = Night(tmp_path, agent=f"echo x >> x.txt; echo 'I said {NAMES}'; echo ITERATION_COMPLETE")
    night.write({"PROMPT.md": f'Render {NAMES} in the "mail"\n'})
    done = night.room.raymond(*"ralph PROMPT.md --id n --pause 0s --max-iterations 2 --commit always".split())
    assert done.returncode == 0, done.stderr
    assert [f'Render {NAMES} in the "mail"\n' in sent(night, f"main_work{number}") for number in (1, 2)] == [True] * 2
    assert f"The agent said: I said {NAMES}" in " ".join(
        night.git("log", "-1", "--format=%B", f"{night.tip}~1").split()
    )


@pytest.mark.slow
def test_a_title_that_is_not_utf_8_is_done_once(tmp_path: Path) -> None:
    night = Night(tmp_path)
    queue = b"1. [VERIFY: sh check.sh] Write caf\xe9\n2. [VERIFY: test -e tea] Make th\xe9\n3. [BLOCKED: x] L\xe4ter\n"
    (night.path / LOG).write_bytes(b"## Next Steps\n\n" + queue)
    night.commit("latin")
    ran = night.loop("--on-fail", "retry", "--attempts", "1", "--max-failures", "2")
    assert ran.code == 1, ran.err
    assert [one["verification"] for one in night.state["completedItems"]] == ["passed"]
    assert len(night.state["failedItems"]) == 1
    shown = ["git", "cat-file", "blob", f"{night.tip}:docs/session_logs/{night.logs[-1]}"]
    left = subprocess.run(shown, cwd=night.path, check=True, capture_output=True).stdout
    assert b"[VERIFY: test -e tea] Make th\xe9\n" in left, "blocked after two failures, in its own bytes"
    assert b"[BLOCKED: x] L\xe4ter\n" in left
    assert night.text("docs/progress.md").count("###") == 3


@pytest.mark.slow
def test_what_looks_like_a_secret_stays_in_what_a_person_wrote(tmp_path: Path) -> None:
    queue = f"1. [NO-VERIFY] Write the answer\n2. Rotate {KEY}\n3. [VERIFY: GH_TOKEN={KEY} sh check.sh] Third\n"
    agent = f"""
    date > $RANDOM.txt; echo '## Summary'; echo 'I used {KEY}.'
    grep -q '^# Rotate' $PROMPT && echo ITERATION_FAILED || echo ITERATION_COMPLETE
    """
    night = Night(tmp_path, queue, agent)
    night.write({"docs/progress.md": f"# Progress\n\nmine: {KEY}\n"})
    night.commit("progress")
    ran = night.loop()
    assert ran.code == 1, ran.err
    assert (len(night.state["completedItems"]), len(night.state["failedItems"])) == (1, 1), "each once"
    assert "Third: its check contains something that looks like a GitHub token, which no journal keeps" in ran.out
    assert night.text("docs/progress.md").count(KEY) == 1
    log = night.text(f"docs/session_logs/{night.logs[-1]}")
    assert f"2. Rotate {KEY}\n3. [VERIFY: GH_TOKEN={KEY} sh check.sh] Third\n" in log
    assert log.count(KEY) == 2, "what the agent said is cleaned"


@pytest.mark.slow
def test_items_that_break_for_a_reason_of_their_own_have_a_record_each(tmp_path: Path) -> None:
    queue = "1. [VERIFY: test -e one] One\n2. [VERIFY: test -e one] Two\n"
    night = Night(tmp_path, queue, "touch one; echo ITERATION_COMPLETE")
    workflow = tmp_path / "mine"
    night.loop(str(workflow), verb="eject")
    (workflow / "PREPARE.py").write_text("raise SystemExit('broken')\n", "utf-8")
    ran = night.loop("--workflow", str(workflow))
    assert ran.code == 1, ran.err
    assert night.text("docs/progress.md").count("\n### ") == 2
    assert night.text("docs/failures.md").count("\n### ") == 2
