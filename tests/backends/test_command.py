"""A program of the user's own as a backend: `[backends.mine] command = [...]`, with real programs and real runs."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from raymond.backends import Observation, Reply, Setup, Trouble, Turn
from raymond.backends.command import CommandBackend
from raymond.errors import UsageError
from raymond.machine.events import (
    AgentFailed,
    AgentPaused,
    StepFailed,
    StepFinished,
    StepInterrupted,
    StepRefused,
    StepStarted,
)
from raymond.machine.inputs import Spending
from raymond.machine.requests import Request
from raymond.steps import probe
from raymond.store import inbox
from running import GO, Ran, Room, alive, until

NOTES = """\
#!/bin/sh
out="$TEST_ROOM/.."
printf '%s\\n' "$*" >> "$out/args"
cat > "$out/prompt.$$"
cat "$out/prompt.$$" >> "$out/prompts"; printf '\\n---\\n' >> "$out/prompts"
"""
"""The beginning of a program that notes what it was given."""


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = Room(tmp_path)
    (tmp_path / "bin").mkdir()
    room.environment["PATH"] = f"{tmp_path / 'bin'}:{room.environment['PATH']}"
    yield room
    room.clear()


def agent(room: Room, body: str, name: str = "my-agent") -> str:
    """A program on the PATH that does `body` after noting what it was given."""
    path = room.path.parent / "bin" / name
    path.write_text(NOTES + body + "\n", "utf-8")
    path.chmod(0o755)
    return str(path)


def table(room: Room, text: str = 'command = ["my-agent"]', name: str = "mine") -> None:
    room.settings(f"[backends.{name}]\n{text}\n")


def run(room: Room, files: dict[str, str] | None = None, *args: str) -> Ran:
    return room.command(files or {"START.md": "Do it."}, "--backend", "mine", *args)


def noted(room: Room, name: str) -> list[str]:
    """What the program was given: its arguments or its prompts, turn by turn."""
    text = (room.path.parent / name).read_text("utf-8")
    return text.split("\n---\n")[:-1] if name == "prompts" else text.splitlines()


# --- prompt and answer


def test_the_prompt_comes_on_stdin_and_the_answer_on_stdout(room: Room) -> None:
    agent(room, "printf 'I thought.\\n\\n<result>it is é 🦊</result>\\n'")
    table(room)
    ran = run(room, {"START.md": "Say {{input}} – é.\n\nThen end."}, "--input", "it")
    assert (ran.code, ran.out) == (0, "it is é 🦊\n")
    [turn] = ran.transcript()
    assert noted(room, "prompts") == [turn["sent"]] == ["Say it – é.\n\nThen end."]
    assert turn["said"] == "I thought.\n\n<result>it is é 🦊</result>"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "result"),
    [
        ("printf '<result>no newline</result>'", "no newline"),
        ("printf '\\n\\n  <result>spaces</result>  \\n\\n\\n'", "spaces"),
        ("printf '<result>1\\n2\\n\\n3</result>'", "1\n2\n\n3"),
        ("printf '<result>\\377</result>'", "\ufffd"),
        ("echo noise >&2; echo '<result>quiet</result>'", "quiet"),
        # Its last line is no end of ours, however much it looks like one.
        ("printf 'raymond-0 0\\n<result>x</result>\\nraymond-0 0\\n'", "x"),
    ],
    ids=["no newline", "spaces", "lines", "not UTF-8", "stderr", "looks like an end"],
)
def test_an_answer_is_taken_as_it_is_printed(room: Room, body: str, result: str) -> None:
    agent(room, body)
    table(room)
    ran = run(room)
    assert (ran.code, ran.result) == (0, result)


@pytest.mark.slow
def test_an_answer_of_a_megabyte_is_taken_whole(room: Room) -> None:
    agent(room, "printf '<result>'; head -c 1000000 /dev/zero | tr '\\0' x; printf '</result>'")
    table(room)
    ran = run(room)
    assert (ran.code, ran.result) == (0, "x" * 1_000_000)


@pytest.mark.slow
def test_a_program_by_its_whole_path_with_arguments_of_its_own(room: Room) -> None:
    path = agent(room, "printf '<result>%s</result>' \"$2\"", name="other name")
    table(room, f'command = ["{path}", "--say", "two words; $HOME `x` {{{{}}"]')
    ran = run(room)
    assert (ran.code, ran.result) == (0, "two words; $HOME `x` {{}")


@pytest.mark.slow
@pytest.mark.parametrize("count", [254, 255, 256, 257, 1000])
def test_an_answer_of_many_short_lines_is_read_whole(room: Room, count: int) -> None:
    """Only so many are read at once."""
    agent(room, f"seq {count}; echo '<result>done</result>'")
    table(room)
    [turn] = run(room).transcript()
    assert turn["said"].split() == [*map(str, range(1, count + 1)), "<result>done</result>"]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["stop", "pause"])
def test_a_turn_that_a_person_stops_is_recorded_as_interrupted_and_not_as_failed(room: Room, how: str) -> None:
    agent(room, "touch here; sleep 1000")
    table(room)
    with room.start("run", room.flow({"START.md": "Go."}), "--id", "r", "--backend", "mine") as live:
        until((room.path / "here").exists, "the turn")
        if how == "pause":
            room.raymond("stop", "r", "--agent", "main")
        else:
            live.signal(signal.SIGTERM)
        ran = live.wait()
    [turn] = ran.transcript()
    assert (turn.get("interrupted"), turn.get("failed")) == (True, None)


# --- failures

ONCE = {"START.md": "---\nretries: 0\n---\nDo it."}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("exit 3", "the program ended with exit code 3"),
        (
            "echo '<result>done</result>'; echo first >&2; echo 'no account: é' >&2; exit 3",
            "the program ended with exit code 3: no account: é",
        ),
        ("echo 'nothing to say' >&2", "the program answered nothing: nothing to say"),
        ("printf '  \\n\\n'", "the program answered nothing"),
        ("exit 255", "the program ended with exit code 255"),
    ],
    ids=["exit code", "answer and exit code", "nothing", "spaces", "255"],
)
def test_what_is_no_answer_is_a_crash_with_its_last_word_on_stderr(room: Room, body: str, error: str) -> None:
    agent(room, body)
    table(room)
    ran = run(room, ONCE)
    [failed] = ran.all(AgentFailed)
    assert (ran.code, failed.kind, failed.error) == (1, "crash", error)
    assert len(noted(room, "args")) == 1
    assert f"failed: main in START.md: {error}" in ran.lines


@pytest.mark.slow
def test_a_program_that_was_killed_is_said_with_its_signal(room: Room) -> None:
    agent(room, "echo '<result>whole</result>'; kill -9 $$")
    table(room)
    [failed] = run(room, ONCE).all(AgentFailed)
    # A shell may say the same on stderr in its own words.
    assert failed.error.partition(": ")[0] == "the program ended with signal 9"


@pytest.mark.parametrize(
    ("code", "said"),
    [(-15, "signal 15"), (143, "signal 15"), (128, "exit code 128"), (193, "exit code 193"), (1, "exit code 1")],
)
def test_an_exit_code_of_a_shell_that_means_a_signal_is_said_as_one(tmp_path: Path, code: int, said: str) -> None:
    reader = CommandBackend(Setup(name="mine", options={"command": ["a"], "cost": 0})).reader(one_turn(tmp_path))
    assert reader.close(code, "") == Trouble(kind="crash", error=f"the program ended with {said}")


@pytest.mark.slow
def test_a_crash_is_tried_again_and_every_turn_is_counted(room: Room) -> None:
    agent(room, '[ "$(wc -l < "$out/args")" -ge 2 ] || exit 1; echo "<result>second</result>"')
    table(room, 'command = ["my-agent"]\ncost = 0.25')
    ran = run(room)
    assert (ran.code, ran.result, len(ran.all(StepFailed)), ran.run.cost) == (0, "second", 1, 0.5)


def test_a_program_that_is_not_there_is_said_before_the_run_begins(room: Room) -> None:
    table(room)
    ran = run(room)
    assert (ran.code, ran.err) == (
        5,
        (
            "error: there is no program `my-agent` on the PATH\n"
            "hint: install it, or change [backends.mine] in config.toml\n"
        ),
    )
    assert room.project.ids() == []


# --- cost


@pytest.mark.slow
def test_a_turn_costs_what_the_table_says(room: Room) -> None:
    agent(room, "echo '<result>done</result>'")
    table(room, 'command = ["my-agent"]\ncost = 0.02')
    ran = run(room)
    assert (ran.run.cost, ran.run.estimated, "cost:   $0.02 in 1 step" in ran.lines) == (0.02, False, True)


def test_a_turn_that_costs_nothing_is_free(room: Room) -> None:
    agent(room, "echo '<result>done</result>'")
    table(room, 'command = ["my-agent"]\ncost = 0')
    assert "cost:   $0.00 in 1 step" in run(room).lines


@pytest.mark.slow
def test_without_a_cost_a_turn_counts_as_one_that_nobody_can_tell(room: Room) -> None:
    agent(room, "echo '<result>done</result>'")
    table(room)
    ran = run(room)
    [finished] = ran.all(StepFinished)
    assert (finished.cost, finished.estimated, finished.unknown) == (0.5, True, True)
    assert "cost:   ~$0.50 in 1 step" in ran.lines


# --- conversations

TALK = {
    "START.md": "---\nmodel: small\neffort: high\n---\nBegin.",
    "NEXT.md": "Go on.",
    "LAST.md": "End.",
}
TALKS = """
case "$(cat "$out/prompt.$$")" in
  Begin*) echo '<goto>NEXT</goto>' ;;
  "Go on"*) echo '<goto>LAST</goto>' ;;
  *) echo '<result>done</result>' ;;
esac
"""


def sessions(ran: Ran) -> list[str]:
    return [event.session for event in ran.all(StepStarted)]


@pytest.mark.slow
def test_without_resume_and_branch_every_turn_is_fresh(room: Room) -> None:
    agent(room, TALKS)
    table(room, 'command = ["my-agent", "--id={new}", "--model={model}", "--effort={effort}"]')
    ran = run(room, TALK, "--model", "big")
    first, second, third = sessions(ran)
    assert noted(room, "args") == [
        f"--id={first} --model=small --effort=high",
        f"--id={second} --model=big --effort=",
        f"--id={third} --model=big --effort=",
    ]
    assert (ran.code, [event.base for event in ran.all(StepStarted)]) == (0, ["", "", ""])


@pytest.mark.slow
def test_with_resume_a_conversation_goes_on_in_place_under_its_first_id(room: Room) -> None:
    agent(room, TALKS)
    table(room, 'command = ["my-agent", "--id", "{new}"]\nresume = ["my-agent", "--resume", "{session}", "{model}"]')
    ran = run(room, TALK, "--model", "big")
    first, _, _ = sessions(ran)
    assert noted(room, "args") == [f"--id {first}", f"--resume {first} big", f"--resume {first} big"]
    assert [event.session for event in ran.all(StepFinished)] == [first] * 3
    assert noted(room, "prompts") == ["Begin.", "Go on.", "End."]


@pytest.mark.slow
def test_with_branch_every_turn_leaves_the_one_before_as_it_was(room: Room) -> None:
    agent(room, TALKS)
    table(
        room,
        'command = ["my-agent", "--id", "{new}"]\nresume = ["never"]\n'.replace("never", "never {session}")
        + 'branch = ["my-agent", "--branch", "{session}", "--id", "{new}"]',
    )
    ran = run(room, TALK)
    first, second, third = sessions(ran)
    assert noted(room, "args") == [
        f"--id {first}",
        f"--branch {first} --id {second}",
        f"--branch {second} --id {third}",
    ]
    assert [event.session for event in ran.all(StepFinished)] == [first, second, third]


@pytest.mark.slow
def test_a_reset_begins_another_conversation_in_place_too(room: Room) -> None:
    agent(room, TALKS.replace("<goto>LAST</goto>", "<reset>LAST</reset>"))
    table(room, 'command = ["my-agent", "--id", "{new}"]\nresume = ["my-agent", "--resume", "{session}"]')
    first, _, third = sessions(ran := run(room, TALK))
    assert (ran.code, noted(room, "args")) == (0, [f"--id {first}", f"--resume {first}", f"--id {third}"])


FORGETS = '[ "$(wc -l < "$out/args")" -ge 2 ] && echo "<result>done</result>" || echo "I forgot."'


@pytest.mark.slow
def test_a_reminder_repeats_the_prompt_to_a_program_that_remembers_nothing(room: Room) -> None:
    agent(room, FORGETS)
    table(room)
    ran = run(room, {"START.md": "---\nallowed_transitions: [{tag: result}]\n---\nDo it."})
    first, second = noted(room, "prompts")
    assert (ran.code, first, len(ran.all(StepRefused))) == (0, "Do it.", 1)
    assert second.startswith("Do it.\n\nI could not act on your reply: ")


@pytest.mark.slow
@pytest.mark.parametrize("more", ["resume = ['my-agent', '{session}']", "branch = ['my-agent', '{session}', '{new}']"])
def test_a_reminder_is_short_for_a_program_that_remembers(room: Room, more: str) -> None:
    agent(room, FORGETS)
    table(room, f'command = ["my-agent", "{{new}}"]\n{more}')
    ran = run(room, {"START.md": "---\nallowed_transitions: [{tag: result}]\n---\nDo it."})
    first, second = noted(room, "prompts")
    assert (ran.code, first) == (0, "Do it.")
    assert second.startswith("I could not act on your reply: ")


# --- calls

IN_PLACE = 'command = ["my-agent", "{new}"]\nresume = ["my-agent", "{session}"]'
CALLS = {"START.md": 'Ask:\n\n<call return="END">SUB</call>\n', "SUB.md": "Sub.", "END.md": "End."}


@pytest.mark.slow
def test_a_call_where_conversations_go_on_in_place_is_refused_with_its_place(room: Room) -> None:
    agent(room, "")
    table(room, IN_PLACE)
    ran = run(room, CALLS)
    assert (ran.code, ran.err) == (
        6,
        (
            "error: mine cannot branch: a call would continue in its caller's conversation\n"
            " --> ../flow/START.md:3:1\n"
            "  |\n"
            '3 | <call return="END">SUB</call>\n'
            "  | ^^^^^^^^^^^^^^^^^^^\n"
            "hint: use `<function>`, which starts fresh; or accept this with in_place: true\n"
        ),
    )
    assert (room.project.ids(), (room.path.parent / "args").exists()) == ([], False)


def test_a_call_of_a_policy_is_refused_with_its_place(room: Room) -> None:
    agent(room, "")
    table(room, IN_PLACE)
    policy = "---\nallowed_transitions:\n  - {tag: call, target: SUB.md, return: END.md}\n---\nAsk."
    ran = run(room, {**CALLS, "START.md": policy})
    assert ran.code == 6
    assert " --> ../flow/START.md:3:5\n" in ran.err


@pytest.mark.slow
def test_a_call_that_is_meant_goes_on_in_the_conversation_of_its_caller(room: Room) -> None:
    agent(
        room,
        'case "$(cat "$out/prompt.$$")" in Ask*) echo \'<call return="END">SUB</call>\' ;; '
        "*) echo '<result>done</result>' ;; esac",
    )
    table(room, IN_PLACE)
    ran = run(room, {**CALLS, "START.md": "---\nin_place: true\n---\nAsk."})
    first = sessions(ran)[0]
    assert (ran.code, noted(room, "args")) == (0, [first, first, first])


@pytest.mark.slow
def test_a_call_is_free_where_every_state_that_calls_has_a_backend_that_branches(room: Room) -> None:
    agent(room, "echo '<result>done</result>'")
    table(room, IN_PLACE)
    start = "---\nbackend: scripted\n---\n" + CALLS["START.md"]
    replies = "START: '<call return=\"END\">SUB</call>'"
    ran = run(room, {**CALLS, "START.md": start, "replies.yaml": replies})
    assert (ran.code, ran.result) == (0, "done")


# --- several


@pytest.mark.slow
def test_a_state_can_name_a_backend_and_each_keeps_its_own_conversations(room: Room) -> None:
    agent(room, "echo '<goto>NEXT</goto>'")
    agent(room, "echo '<result>of the other</result>'", name="other-agent")
    table(room, 'command = ["my-agent", "mine", "{new}"]\nresume = ["my-agent", "{session}"]')
    table(room, 'command = ["other-agent", "other", "{new}"]\nresume = ["other-agent", "{session}"]', name="other")
    ran = run(room, {"START.md": "", "NEXT.md": "---\nbackend: other\n---\n"})
    first, second = sessions(ran)
    assert (ran.code, ran.result) == (0, "of the other")
    assert noted(room, "args") == [f"mine {first}", f"other {second}"]
    assert [event.backend for event in ran.all(StepStarted)] == ["mine", "other"]


@pytest.mark.slow
def test_a_state_that_names_a_backend_nobody_has_is_refused(room: Room) -> None:
    agent(room, "")
    table(room)
    ran = run(room, {"START.md": "", "NEXT.md": "---\nbackend: yours\n---\n"})
    assert (ran.code, ran.err) == (
        5,
        (
            "error: there is no backend `yours` for NEXT.md\n"
            "hint: there are: scripted, scripted-program, claude, codex, mine\n"
        ),
    )


@pytest.mark.slow
def test_a_person_can_name_their_usual_backend(room: Room) -> None:
    agent(room, "echo '<result>done</result>'")
    room.settings('backend = "mine"\n')
    table(room)
    ran = room.command({"START.md": ""})
    assert (ran.code, ran.run.start.backend) == (0, "mine")


# --- restarts

SLOW = f"""
echo $$ > "$out/pid"
cd "$TEST_ROOM"; {GO}
printf '<result>paid once</result>'
touch "$out/ended"
"""


def kill_while_it_runs(room: Room) -> None:
    agent(room, SLOW)
    table(room, 'command = ["my-agent", "{new}"]\ncost = 0.25')
    live = room.raymond("run", room.flow({"START.md": "Do it."}), "-d", "--id", "r", "--backend", "mine")
    assert live.returncode == 0, live.stderr
    until(lambda: (room.path.parent / "pid").exists(), "the start of the program")
    [driver] = [pid for pid, line in room.processes().items() if "raymond" in line and "my-agent" not in line]
    os.kill(driver, signal.SIGKILL)
    until(lambda: driver not in room.processes(), "the end of the driver")


@pytest.mark.slow
def test_a_turn_that_outlives_the_driver_is_followed_and_paid_once(room: Room) -> None:
    kill_while_it_runs(room)
    with room.start("resume", "r") as live:
        live.sees("run resumed")
        room.go()
        ran = live.wait()
    assert (ran.code, ran.out, ran.run.cost) == (0, "paid once\n", 0.25)
    assert (len(noted(room, "args")), ran.all(StepInterrupted)) == (1, [])


@pytest.mark.slow
def test_a_turn_that_outlives_a_driver_which_was_asked_to_pause_it_is_paused_by_the_next(room: Room) -> None:
    kill_while_it_runs(room)
    inbox.leave(room.project.run("r").inbox, Request(id="left", kind="pause", agent="main"))
    ran = room.resume()
    assert (ran.code, [event.agent for event in ran.all(AgentPaused)]) == (3, ["main"])
    room.nothing_runs()


@pytest.mark.slow
def test_a_turn_that_ended_without_a_driver_is_taken_from_the_spool(room: Room) -> None:
    kill_while_it_runs(room)
    room.go()
    room.nothing_runs()
    ran = room.resume()
    assert (ran.code, ran.out, ran.run.cost) == (0, "paid once\n", 0.25)
    assert (len(noted(room, "args")), ran.all(StepInterrupted)) == (1, [])


@pytest.mark.slow
def test_half_an_answer_in_the_spool_is_no_answer(room: Room) -> None:
    """The program is killed with the driver: what it had printed looks whole, and is not taken."""
    agent(
        room, 'if [ -e "$out/pid" ]; then echo "<result>whole</result>"; exit; fi\necho "<result>half</result>"' + SLOW
    )
    table(room, 'command = ["my-agent", "{new}"]\ncost = 0.25')
    room.raymond("run", room.flow({"START.md": "Do it."}), "-d", "--id", "r", "--backend", "mine")
    until(lambda: (room.path.parent / "pid").exists(), "the start of the program")
    room.clear()
    room.nothing_runs()
    ran = room.resume()
    assert (ran.code, ran.out, ran.run.cost) == (0, "whole\n", 0.5)
    assert (len(noted(room, "args")), len(ran.all(StepInterrupted))) == (2, 1)
    assert noted(room, "prompts")[1].startswith("(Your last attempt was interrupted.")


# --- wrong tables


@pytest.mark.parametrize(
    ("options", "error", "hint"),
    [
        ({}, "[backends.mine] has no `command`", 'command = ["my-agent", "--print"]'),
        (
            {"command": ["a"], "comand": ["b"]},
            "[backends.mine]: there is no key `comand`",
            "there are: command, resume, branch, cost",
        ),
        *(
            (
                {"command": value},
                "[backends.mine]: `command` must be a list of texts",
                'command = ["my-agent", "--print"]',
            )
            for value in ("my-agent --print", [], ["a", 3], [""], None)
        ),
        (
            {"command": ["a", "{id}"]},
            "[backends.mine]: `command` contains {id}, which is not a placeholder",
            "there are: {new}, {session}, {model}, {effort}",
        ),
        (
            {"command": ["./agent"]},
            "[backends.mine]: `command` starts ./agent, which depends on where an agent works",
            "write its full path, or put it on the PATH",
        ),
        (
            {"command": ["a"], "resume": ["a", "{session}"]},
            "[backends.mine]: `command` does not contain {new}, the id to continue from later",
            'command = ["my-agent", "--id", "{new}"]',
        ),
        (
            {"command": ["a", "{new}"], "resume": ["a"]},
            "[backends.mine]: `resume` does not contain {session}",
            'resume = ["my-agent", "--resume", "{session}"]',
        ),
        (
            {"command": ["a", "{new}"], "branch": ["a", "{new}"]},
            "[backends.mine]: `branch` does not contain {session}",
            'branch = ["my-agent", "--branch", "{session}", "--id", "{new}"]',
        ),
        (
            {"command": ["a", "{new}"], "branch": ["a", "{session}"]},
            "[backends.mine]: `branch` does not contain {new}, the id to continue from later",
            'branch = ["my-agent", "--branch", "{session}", "--id", "{new}"]',
        ),
        *(
            (
                {"command": ["a"], "cost": value},
                "[backends.mine]: `cost` must be a number of dollars, 0 or more",
                "cost = 0.02",
            )
            for value in ("much", -1, True, float("nan"))
        ),
    ],
)
def test_a_wrong_table_is_refused_with_the_way_out(options: dict[str, Any], error: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        CommandBackend(Setup(name="mine", options=options))
    assert (str(caught.value), caught.value.hint) == (error, hint)


def test_a_wrong_table_ends_the_command_with_2_before_a_run_begins(room: Room) -> None:
    table(room, 'command = ["my-agent", "{id}"]')
    ran, file = run(room), f"{room.environment['HOME']}/.config/raymond/config.toml"
    assert (ran.code, ran.err) == (
        2,
        (
            f"error: {file}: [backends.mine]: `command` contains {{id}}, which is not a placeholder\n"
            "hint: there are: {new}, {session}, {model}, {effort}\n"
        ),
    )
    assert room.project.ids() == []


# --- doctor


def findings(room: Room, *args: str) -> dict[str, dict[str, object]]:
    return {one["what"]: one for one in json.loads(room.raymond("doctor", "--json", *args).stdout)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "how"),
    [
        ('command = ["my-agent"]', "are not kept"),
        ('command = ["my-agent", "{new}"]\nresume = ["my-agent", "{session}"]', "continue in place"),
        ('command = ["my-agent", "{new}"]\nbranch = ["my-agent", "{session}", "{new}"]', "branch"),
    ],
)
def test_doctor_says_what_becomes_of_conversations_and_starts_nothing(room: Room, text: str, how: str) -> None:
    path = agent(room, "")
    table(room, text)
    assert findings(room)["mine"] == {
        "what": "mine",
        "found": f"{path}; conversations {how}; paid by: whoever that program charges",
        "ok": True,
        "hint": "",
        "backend": {
            "program": str(path),
            "version": None,
            "payer": "whoever that program charges",
            "conversations": how,
            "keeps_days": None,
        },
        "needed": False,
    }
    assert not (room.path.parent / "args").exists()


@pytest.mark.slow
def test_doctor_says_what_is_wrong_with_a_table(room: Room) -> None:
    table(room, 'command = ["my-agent"]\ntokens = 3')
    assert findings(room)["mine"] == {
        "what": "mine",
        "found": "[backends.mine]: there is no key `tokens`",
        "ok": False,
        "hint": "there are: command, resume, branch, cost",
        "backend": None,
        "needed": False,
    }


# --- without any run


def one_turn(tmp_path: Path, **given: Any) -> Turn:
    return probe.turn("hi", cwd=str(tmp_path), session="new", **given)


def test_a_trial_turn_reads_along_and_ends_like_one_of_a_run(tmp_path: Path) -> None:
    backend = CommandBackend(Setup(name="mine", options={"command": ["cat"], "cost": 0.5}))
    seen: list[Observation] = []
    ending = probe.take(backend, one_turn(tmp_path), see=seen.extend)
    assert isinstance(ending, Reply)
    assert (ending.text, ending.session, ending.spent) == ("hi", "", Spending(cost=0.5))
    assert set(seen) == {Observation("life")}


def test_a_trial_turn_of_a_program_that_says_nothing_is_ended(tmp_path: Path) -> None:
    backend = CommandBackend(Setup(name="mine", options={"command": ["sleep", "1000"], "cost": 0.5}))
    ending = probe.take(backend, one_turn(tmp_path), patience=0.2)
    assert ending == Trouble(kind="silent", error="no answer within 0.2s", spent=Spending(cost=0.5))


def test_a_trial_turn_that_cannot_be_started_says_so(tmp_path: Path) -> None:
    backend = CommandBackend(Setup(name="mine", options={"command": ["cat"]}))
    ending = probe.take(backend, one_turn(tmp_path / "gone"))
    assert ending == Trouble(kind="setup", error="it cannot be started: no such file or directory")


def test_what_a_trial_turn_left_in_the_background_is_ended(tmp_path: Path) -> None:
    script = "sleep 1000 & echo $! > pid; echo done"
    backend = CommandBackend(Setup(name="mine", options={"command": ["sh", "-c", script]}))
    ending = probe.take(backend, one_turn(tmp_path), patience=30.0)
    assert isinstance(ending, Reply)
    assert ending.text == "done"
    left = int((tmp_path / "pid").read_text())
    until(lambda: not alive(left), "the end of what was left")


def test_a_trial_turn_that_nobody_waits_for_any_more_is_ended(tmp_path: Path) -> None:
    """Ctrl-C while the program thinks."""

    def interrupt(seen: list[Observation]) -> None:
        raise KeyboardInterrupt

    script = "echo $$ > pid; echo begun; sleep 1000"
    backend = CommandBackend(Setup(name="mine", options={"command": ["sh", "-c", script]}))
    with pytest.raises(KeyboardInterrupt):
        probe.take(backend, one_turn(tmp_path), see=interrupt)
    pid = int((tmp_path / "pid").read_text())
    until(lambda: not alive(pid), "the end of the program")


def test_only_the_whole_mark_with_an_exit_code_ends_an_answer(tmp_path: Path) -> None:
    backend = CommandBackend(Setup(name="mine", options={"command": ["a"], "cost": 0}))
    reader = backend.reader(one_turn(tmp_path))
    for line in (b"raymond-new x", b"raymond-new ", b" raymond-new 0", b"raymond-newer 0"):
        reader.feed(line)
        assert reader.ending is None
    reader.feed(b"raymond-new 0")
    assert reader.ending == Reply(text="raymond-new x\nraymond-new \n raymond-new 0\nraymond-newer 0", session="")


@pytest.mark.slow
def test_a_reminder_repeats_the_prompt_after_a_state_of_a_backend_that_remembers(room: Room) -> None:
    """The conversation of another backend is no memory of this one."""
    agent(room, "echo I forgot")
    table(room)
    files = {
        "START.md": "Begin.",
        "NEXT.md": "---\nbackend: mine\n---\nThe whole question.",
        "replies.yaml": "START: <goto>NEXT</goto>\n",
    }
    ran = room.command(files)
    sent = [turn["sent"] for turn in ran.transcript() if turn["state"] == "NEXT.md"]
    assert len(sent) == 4
    assert all(text.startswith("The whole question.") for text in sent)


@pytest.mark.slow
def test_output_of_200_gigabytes_that_takes_no_room_holds_nobody_up(room: Room) -> None:
    """A hole in a file: reading all of it takes minutes."""
    agent(room, "truncate -s 200G /proc/self/fd/1")
    table(room)
    ran = run(room, {"START.md": "---\nretries: 0\n---\ngo"})
    assert (ran.code, ran.all(StepFailed)[0].error) == (1, "the program wrote a line of more than 64 MiB"), ran.err


@pytest.mark.slow
def test_a_program_that_shortens_its_output_ends_its_turn_and_nothing_else(room: Room) -> None:
    program = room.path / "shortens"
    program.write_text(
        "#!/bin/bash\nhead -c 5000 /dev/zero | tr '\\0' x; echo\nsleep 0.5\necho '<result>short</result>' > /dev/stdout\nsleep 0.3\n"
    )
    program.chmod(0o755)
    room.settings(f'[backends.mine]\ncommand = ["{program}"]\n')
    done = room.command({"START.md": "---\nretries: 0\n---\ngo"}, "--backend", "mine")
    assert done.code in (0, 1), done.err
    assert "bug in Raymond" not in done.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        ('rm "$0"', "there is no program {}"),
        ('chmod -x "$0"', "{0} is not executable: chmod +x {0}"),
    ],
)
def test_a_turn_whose_program_is_gone_fails_at_once_and_costs_nothing(room: Room, spoil: str, why: str) -> None:
    path = agent(room, f'{spoil}; echo "<goto>NEXT</goto>"')
    table(room, f'command = ["{path}"]\ncost = 0.01')
    ran = run(room, {"START.md": "Do it.", "NEXT.md": "And this. <result>x</result>"})
    [failed] = ran.all(StepFailed)
    assert (failed.kind, failed.error, failed.cost) == ("setup", why.format(path), 0.0)
    assert ran.code == 1
