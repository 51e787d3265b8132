"""The scripted backend, in this process and as a program: what replies.yaml says is what happens."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from raymond.backends import Reply, scripted
from raymond.faces import words
from raymond.machine.events import AgentFailed, StepFailed, StepStarted
from raymond.machine.failures import KINDS
from raymond.steps import probe
from running import Ran, Room

HERE, PROGRAM = "scripted", "scripted-program"


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = Room(tmp_path)
    yield room
    room.clear()


@pytest.fixture(params=[HERE, PROGRAM])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def run(room: Room, backend: str) -> Callable[..., Ran]:
    """Runs a workflow of prompts whose replies are given as YAML."""

    def drive(replies: str, files: dict[str, str] | None = None, **options: Any) -> Ran:
        return room.drive({"START.md": "Do it.", "replies.yaml": replies, **(files or {})}, backend=backend, **options)

    return drive


def failure(ran: Ran) -> str:
    [failed] = ran.all(AgentFailed)
    return f"{failed.kind}: {failed.error}"


# What a reply can hold


def test_a_reply_is_a_text(run: Callable[..., Ran]) -> None:
    ran = run("START.md: I did it. <result>done</result>")
    assert (ran.code, ran.result) == (0, "done")
    [turn] = ran.transcript()
    assert (turn["sent"], turn["said"]) == ("Do it.", "I did it. <result>done</result>")


def test_a_reply_of_several_lines_with_every_kind_of_character_arrives_as_it_is(run: Callable[..., Ran]) -> None:
    text = 'é "quoted" \\ and 🦊,\n\n  indented,\ttabbed &amp; <b>bold</b>'
    ran = run(f"START.md: {json.dumps(f'<result>{text}</result>', ensure_ascii=False)}")
    assert ran.result == text


def test_a_prompt_goes_to_the_backend_with_its_names_replaced(run: Callable[..., Ran]) -> None:
    ran = run(
        "START.md: <result></result>",
        {"START.md": "Say {{input}} to {{who}}; {{nothing}} stays. é"},
        input="hi",
        variables={"who": "us"},
    )
    assert ran.transcript()[0]["sent"] == "Say hi to us; {{nothing}} stays. é"


def test_cost_and_tokens_are_counted(run: Callable[..., Ran]) -> None:
    ran = run("START.md: {text: '<goto>START</goto>', cost: 0.25, tokens: {in: 1000, out: 20}}", max_iterations=3)
    assert (ran.run.cost, ran.run.tokens_in, ran.run.tokens_out, ran.run.estimated) == (0.75, 3000, 60, False)


def test_a_delay_makes_others_come_first(run: Callable[..., Ran]) -> None:
    ran = run(
        """
        START.md: "<fork>SLOW</fork><fork>FAST</fork><wait>END</wait>"
        SLOW.md: {text: "<result>slow</result>", delay: 700ms}
        FAST.md: "<result>fast</result>"
        END.md: "<result>{{input}}</result>"
        """,
        {"SLOW.md": "", "FAST.md": "", "END.md": ""},
    )
    done = [line for line in ran.lines if line.endswith(" done")]
    assert done == ["main_fast2 done", "main_slow1 done", "main done"]


def test_a_reply_can_write_files_where_its_agent_works(run: Callable[..., Ran], room: Room) -> None:
    (room.path / "sub").mkdir()
    ran = run(
        """
        START.md: {text: '<reset cd="sub">NEXT</reset>', writes: {one.txt: "1\\n", deep/er/three.txt: "3"}}
        NEXT.md: {text: "<result></result>", writes: {two.txt: "zwölf"}}
        """,
        {"NEXT.md": ""},
    )
    assert ran.code == 0
    assert (room.path / "one.txt").read_text() == "1\n"
    assert (room.path / "sub" / "two.txt").read_text() == "zwölf"
    assert (room.path / "deep" / "er" / "three.txt").read_text() == "3"


@pytest.mark.parametrize("backend", ["scripted", pytest.param("scripted-program", marks=pytest.mark.slow)])
def test_a_reply_can_write_to_the_task_folder(room: Room, backend: str) -> None:
    flow = {
        "START.md": "Write {{task_folder}}/todo.md.",
        "NEXT.sh": 'echo "<result>$(cat "$RAYMOND_TASK_FOLDER/todo.md")</result>"',
        "replies.yaml": "START: {text: <goto>NEXT</goto>, writes: {'{{task_folder}}/todo.md': one}}",
    }
    ran = room.drive(flow, backend=backend)
    assert ran.code == 0, ran.lines
    assert ran.result == "one"
    assert not list(room.path.glob("{{*"))


def test_a_reply_cannot_write_to_a_task_folder_that_no_state_uses(room: Room) -> None:
    replies = "START: {text: <result></result>, writes: {'{{task_folder}}/todo.md': one}}"
    ran = room.drive({"START.md": "", "replies.yaml": replies})
    said = "no state of the workflow uses {{task_folder}}"
    assert failure(ran) == f"setup: cannot write {{{{task_folder}}}}/todo.md: {said}"


def test_a_file_that_cannot_be_written_fails_the_turn_and_not_the_run(room: Room) -> None:
    (room.path / "one").write_text("a file")
    ran = room.drive({"START.md": "", "replies.yaml": "START: {text: <result></result>, writes: {one/two.txt: x}}"})
    assert failure(ran) == f"setup: cannot write {room.path}/one/two.txt: not a directory"


def test_tools_are_shown_as_they_are_used_and_kept_in_the_transcript(run: Callable[..., Ran]) -> None:
    ran = run(
        """
        START.md:
          text: <result></result>
          tools:
            - {name: Read, input: {file_path: notes.md}}
            - {name: Bash, input: {command: make test}}
            - {name: Think}
        """
    )
    shown = ["main * Read notes.md", "main * Bash make test", "main * Think"]
    assert [line for line in ran.lines if " * " in line] == shown
    assert ran.transcript()[0]["tools"] == "Read notes.md\nBash make test\nThink\n"


def test_a_print_in_a_reply_is_shown(run: Callable[..., Ran]) -> None:
    assert "main | hello" in run("START.md: <print>hello</print><result></result>").lines


# Which reply it is


def test_a_list_is_taken_by_visit(run: Callable[..., Ran]) -> None:
    ran = run(
        "START.md: ['<goto input=\"1\">START</goto>', '<goto input=\"2\">START</goto>', '<result>third</result>']"
    )
    assert ran.result == "third"


@pytest.mark.slow
def test_a_list_in_a_list_is_taken_by_turn_of_one_visit(run: Callable[..., Ran]) -> None:
    ran = run("START.md: [['no tag', {fail: crash}, '<goto>START</goto>'], '<result>second visit</result>']")
    assert ran.result == "second visit"
    assert [(event.step, event.turn, event.attempt) for event in ran.all(StepStarted)] == [
        (1, 1, 1),
        (1, 2, 1),
        (2, 1, 2),
        (3, 1, 1),
    ]


def test_a_reply_for_one_agent_comes_before_the_one_for_all(run: Callable[..., Ran]) -> None:
    ran = run(
        """
        START: "<fork>WORK</fork><fork>WORK</fork><wait>END</wait>"
        WORK: "<result>all</result>"
        main_work2/WORK: "<result>mine</result>"
        END.md: "<result></result>"
        """,
        {"WORK.md": "", "END.md": ""},
    )
    assert (ran.run.outcomes["main_work1"].result, ran.run.outcomes["main_work2"].result) == ("all", "mine")


def test_a_state_without_a_reply_fails_and_says_which_reply_is_missing(run: Callable[..., Ran]) -> None:
    ran = run("OTHER.md: <result></result>")
    assert failure(ran) == "setup: replies.yaml has no reply for START.md, visit 1 (agent main)"
    assert (ran.code, len(ran.all(StepStarted))) == (1, 1)


def test_a_visit_beyond_the_list_fails_and_says_which(run: Callable[..., Ran]) -> None:
    ran = run("START.md: ['<goto>START</goto>']")
    assert failure(ran) == "setup: replies.yaml has no reply for START.md, visit 2 (agent main)"


def test_a_try_beyond_the_list_fails_and_says_which(run: Callable[..., Ran]) -> None:
    ran = run("START.md: [['no tag', 'still none']]")
    assert failure(ran) == "setup: replies.yaml has no reply for START.md, visit 1, try 3 (agent main)"


# Failures acted out


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("cap", "machine")])
def test_a_failure_has_the_same_consequences_from_the_program_as_from_here(room: Room, kind: str) -> None:
    """The scenarios say which they are."""
    replies = f"START.md: [[{{fail: {kind}, retry_after: 200ms}}, <result>after</result>]]"
    files = {"START.md": "---\nretries: 0\n---\nDo it.", "replies.yaml": replies}
    here, program = (room.drive(files, id=backend, backend=backend) for backend in (HERE, PROGRAM))
    assert program.all(StepFailed)[0].kind == kind
    assert (program.code, consequences(program)) == (here.code, consequences(here))


def consequences(ran: Ran) -> list[tuple[str, str]]:
    return [(type(event).__name__, getattr(event, "kind", "")) for event in ran.events]


def test_the_cost_of_failed_turns_counts(run: Callable[..., Ran]) -> None:
    ran = run("START.md: [[{fail: refusal, cost: 0.1}, {text: <result></result>, cost: 0.2}]]")
    assert round(ran.run.cost, 6) == 0.3


@pytest.mark.slow
def test_a_crash_that_does_not_say_what_it_cost_is_counted_by_an_estimate(room: Room) -> None:
    ran = room.drive(
        {"START.md": "", "replies.yaml": "START.md: [[{fail: crash}, <result></result>]]"}, backend=PROGRAM
    )
    assert (ran.run.cost, ran.run.estimated) == (0.5, True)
    assert words.money(ran.run) == "$0.50*"


@pytest.mark.slow
def test_while_a_backend_is_closed_scripts_go_on(run: Callable[..., Ran]) -> None:
    ran = run(
        """
        START.md: "<fork>PROMPT</fork><goto>SCRIPT</goto>"
        PROMPT.md: [[{fail: limit, retry_after: 700ms}, "<result></result>"]]
        """,
        {"PROMPT.md": "", "SCRIPT.sh": "echo '<result>went on</result>'"},
    )
    assert [line for line in ran.lines if line.endswith(" done")] == ["main done", "main_prompt1 done"]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["timeout", "max_time"])
def test_silence_is_ended_by_the_time_the_policy_gives(run: Callable[..., Ran], room: Room, how: str) -> None:
    ran = run("START.md: {silent: true}", {"START.md": f"---\n{how}: 300ms\nretries: 1\n---\nDo it."})
    errors = {"timeout": "silent: said nothing for 0.3s", "max_time": "time: took longer than max_time (0.3s)"}
    assert failure(ran) == errors[how]
    assert len(ran.all(StepStarted)) == (2 if how == "timeout" else 1)
    room.nothing_runs()


@pytest.mark.slow
def test_a_program_is_followed_without_pidfds_and_proc(tmp_path: Path) -> None:
    room = Room(tmp_path, RAYMOND_PORTABLE="1")
    files = {
        "START.md": "---\ntimeout: 1s\n---\nDo it.",
        "replies.yaml": "START: [[{fail: crash}, {silent: true}, {text: <result>third</result>, cost: 0.1}]]",
    }
    ran = room.command(files, "--backend", PROGRAM)
    assert (ran.code, ran.out) == (0, "third\n")
    assert [event.kind for event in ran.all(StepFailed)] == ["crash", "silent"]
    room.nothing_runs()


# replies.yaml itself

WRONG = [
    ("START.md: {txt: hi}", "txt", "unknown key `txt`"),
    ("START.md: {cost: much}", "much", "`cost` must be a number, not a text"),
    ("START.md: {delay: 5}", "5", "delay must be a duration such as 200ms or 5s"),
    ("START.md: [[x, {retry_after: soon}]]", "soon", "retry_after must be a duration such as 200ms or 5s"),
    ("START.md: [7]", "7", "it is neither text nor a mapping"),
    ("START.md: {tokens: 7}", "7", "tokens must be a mapping such as {in: 1000, out: 20}"),
    ("START.md: {tokens: {out: -1}}", "-1", "`tokens: out` must be a whole number, 0 or more"),
    ("START.md: {tokens: {in: few}}", "few", "`tokens: in` must be a number, not a text"),
    ("START.md: {tokens: {inn: 3}}", "inn", "unknown key `inn` in tokens"),
    ("START.md: {tokens_in: 3}", "tokens_in", "unknown key `tokens_in`"),
    ("START.md: {text: 5}", "5", "`text` must be a text, not a number"),
    ("START.md: {text: ~}", "~", "`text` must be a text, not nothing"),
    ("START.md: {silent: yes}", "yes", "`silent` must be true or false, not a text"),
    ("START.md: {capped: 1}", "1", "`capped` must be true or false, not a number"),
    ("START.md: {denied: Bash}", "Bash", "`denied` must be a list, not a text"),
    ("START.md: {denied: [x, 7]}", "7", "`denied: 2` must be a text, not a number"),
    ("START.md: {tools: [Bash]}", "Bash", "`tools: 1` must be a mapping, not a text"),
    ("START.md: {tools: [{nam: Bash}]}", "nam", "unknown key `nam` in tools"),
    ("START.md: {writes: [x]}", "[x]", "`writes` must be a mapping, not a list"),
    ("START.md: {writes: {x: true}}", "true", "`writes: x` must be a text, not true or false"),
    ("START.md: {writes: {../x: hi}}", "../x", "`../x` in writes leads out of its folder"),
    ("START.md: [x, [x, {cost: -1}]]", "-1", "`cost` must be a number of dollars, 0 or more"),
]
HINT = (
    "hint: a text, or a mapping of text, cost, tokens, delay, writes, tools, denied, fail, error, retry_after, "
    "silent, capped, only_model\n"
)


def wrong_reply(line: str, at: str, reason: str, file: str = "../flow/replies.yaml", number: int = 1) -> str:
    """What is said about a reply; `at` is the part of its line that is wrong."""
    before = line.index(at)
    return (
        f"error: the reply for START.md cannot be used: {reason}\n --> {file}:{number}:{before + 1}\n"
        f"  |\n{number} | {line}\n  | {' ' * before}{'^' * len(at)}\n{HINT}"
    )


@pytest.mark.slow
@pytest.mark.parametrize(("replies", "at", "reason"), WRONG)
def test_a_wrong_reply_ends_the_command_with_6_before_a_run_begins(
    room: Room, replies: str, at: str, reason: str
) -> None:
    ran = room.command({"START.md": "", "replies.yaml": replies})
    assert (ran.code, ran.err) == (6, wrong_reply(replies, at, reason))
    assert room.project.ids() == []


def test_every_wrong_reply_is_shown_at_its_line(room: Room) -> None:
    first, second = "  - {txt: hi}", "  - {delay: 5}"
    ran = room.command({"START.md": "", "replies.yaml": f"START.md:\n{first}\n  - fine\n{second}\n"})
    assert (ran.code, ran.err) == (
        6,
        wrong_reply(first, "txt", "unknown key `txt`", number=2)
        + wrong_reply(second, "5", "delay must be a duration such as 200ms or 5s", number=4),
    )


def test_an_unknown_failure_class_is_answered_with_those_there_are(room: Room) -> None:
    ran = room.command({"START.md": "", "replies.yaml": "START.md: {fail: tired}"})
    kinds = (
        "limit, overload, auth, billing, silent, crash, context, refusal, unreadable, script, time, setup, session, cap"
    )
    expected = wrong_reply("START.md: {fail: tired}", "tired", f"fail must be one of {kinds}")
    assert (ran.code, ran.err) == (6, expected)


@pytest.mark.slow
def test_a_replies_file_that_is_no_yaml_shows_the_place(room: Room) -> None:
    ran = room.command({"START.md": "", "replies.yaml": "START.md: hi\nSTART.md: again\n"})
    assert ran.code == 6
    assert ran.err == (
        "error: `START.md` is given twice\n"
        " --> ../flow/replies.yaml:2:1\n"
        "  |\n"
        "2 | START.md: again\n"
        "  | ^^^^^^^^\n"
        "hint: the first one is in line 1\n"
    )


@pytest.mark.slow
def test_a_replies_file_that_is_a_list_is_answered_with_a_line_of_one(room: Room) -> None:
    ran = room.command({"START.md": "", "replies.yaml": "- a\n"})
    assert ran.code == 6
    assert ran.err.startswith("error: expected keys with values\n --> ../flow/replies.yaml:1:1\n")
    assert ran.err.endswith("\nhint: write lines like `START.md: <result>done</result>`\n")


@pytest.mark.slow
def test_a_key_given_twice_hides_no_other_wrong_reply(room: Room) -> None:
    ran = room.command({"START.md": "", "replies.yaml": "B.md: x\nB.md: y\nSTART.md: 5\n"})
    assert ran.code == 6
    assert [line for line in ran.err.splitlines() if line.startswith(("error:", " -->"))] == [
        "error: `B.md` is given twice",
        " --> ../flow/replies.yaml:2:1",
        "error: the reply for START.md cannot be used: it is neither text nor a mapping",
        " --> ../flow/replies.yaml:3:11",
    ]


@pytest.mark.slow
def test_replies_given_with_a_flag_are_taken_instead(room: Room) -> None:
    other = room.path / "other.yaml"
    other.write_text("START.md: <result>from the flag</result>")
    ran = room.command({"START.md": "", "replies.yaml": "START.md: <result>beside</result>"}, "--replies", str(other))
    assert ran.out == "from the flag\n"


def test_a_wrong_reply_given_with_a_flag_names_the_flag(room: Room) -> None:
    (room.path / "other.yaml").write_text("START.md: {txt: hi}")
    ran = room.command({"START.md": ""}, "--replies", "other.yaml")
    assert (ran.code, ran.err) == (
        6,
        wrong_reply("START.md: {txt: hi}", "txt", "unknown key `txt`", "--replies"),
    )


def test_a_replies_file_that_is_not_utf_8_is_refused(room: Room) -> None:
    room.flow({"START.md": ""})
    (room.path.parent / "flow" / "replies.yaml").write_bytes(b"START.md: caf\xe9")
    ran = room.command({})
    assert ran.code == 6
    assert ran.err == (
        "error: byte 14 of `replies.yaml` is not UTF-8\n"
        " --> ../flow/replies.yaml:1:14\n"
        "  |\n"
        "1 | START.md: caf\ufffd\n"
        "  |              ^\n"
        "hint: save it as UTF-8\n"
    )


def test_prompts_without_any_replies_are_refused_before_the_run(room: Room) -> None:
    ran = room.command({"START.md": ""}, "--backend", "scripted")
    hint = "write replies.yaml beside it, e.g. `START: <result>done</result>`; or --backend claude"
    assert (ran.code, ran.err) == (2, f"error: nothing answers the prompt START.md\nhint: {hint}\n")
    assert room.project.ids() == []


# Who answers when nobody was named


@pytest.mark.slow
def test_the_replies_beside_a_workflow_answer_when_nobody_was_named(room: Room) -> None:
    ran = room.command({"START.md": "", "replies.yaml": "START: <result>beside</result>"})
    assert (ran.code, ran.out, ran.run.start.backend) == (0, "beside\n", "scripted")


@pytest.mark.slow
def test_the_replies_of_the_flag_answer_when_nobody_was_named(room: Room) -> None:
    (room.path / "mine.yaml").write_text("START: <result>mine</result>", "utf-8")
    ran = room.command({"START.md": ""}, "--replies", "mine.yaml")
    assert (ran.code, ran.out, ran.run.start.backend) == (0, "mine\n", "scripted")


def test_without_replies_claude_code_answers_when_nobody_was_named(room: Room) -> None:
    room.environment["PATH"] = "/usr/bin:/bin"
    ran = room.command({"START.md": "<result>x</result>"})
    hint = "install Claude Code, then start it once to log in; without an account: write replies.yaml beside the workflow, e.g. `START: <result>done</result>`"
    assert (ran.code, ran.err) == (5, f"error: there is no program `claude` on the PATH\nhint: {hint}\n")
    assert room.project.ids() == []


def test_a_reply_to_another_prompt_is_not_recalled(tmp_path: Path) -> None:
    asked = probe.turn("Do it.", cwd=str(tmp_path), session="s")
    kept = Reply(text="done", session="s")
    scripted.keep(str(tmp_path), "s", "", asked.prompt, kept)
    backend = scripted.ScriptedBackend(None, str(tmp_path))
    assert backend.recall(asked) == kept
    assert backend.recall(probe.turn("Do that.", cwd=str(tmp_path), session="s")) is None


# The program that acts like Claude Code, started by hand


def test_the_fake_program_says_what_it_needs(tmp_path: Path) -> None:
    def start(*flags: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "raymond.testing.fake_claude", *flags]
        return subprocess.run(command, input="Do it.", capture_output=True, text=True, cwd=tmp_path, check=False)

    usage = "python -m raymond.testing.fake_claude --reply FILE --sessions DIR --session-id ID < PROMPT"
    assert start("--help").stdout.splitlines()[0] == usage
    done = start("--reply", "reply.json", "--session-id", "s")
    assert (done.returncode, done.stderr) == (2, f"error: --sessions is missing\nhint: {usage}\n")
    (tmp_path / "reply.json").write_text('{"text": "<result>done</result>", "cost": 0.01}')
    done = start("--reply", "reply.json", "--session-id", "s", "--sessions", "kept")
    assert (done.returncode, json.loads(done.stdout.splitlines()[-1])["result"]) == (0, "<result>done</result>")
