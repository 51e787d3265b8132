"""Conversations: what each turn could see of what was said before it."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from raymond.backends.scripted import conversation
from raymond.machine.events import StepInterrupted
from raymond.machine.prompts import INTERRUPTED
from running import Ran, Room, until


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = Room(tmp_path)
    yield room
    room.clear()


@pytest.fixture(params=["scripted", "scripted-program"])
def run(request: pytest.FixtureRequest, room: Room) -> Callable[..., Ran]:
    """Runs a workflow given as one line per state: its reply. Prompts say the name of their state."""

    def drive(replies: dict[str, str], **scripts: str) -> Ran:
        files = {f"{state}.md": f"prompt {state}" for state in replies}
        files |= {f"{state}.sh": text for state, text in scripts.items()}
        files["replies.yaml"] = "\n".join(f"{state}: {reply}" for state, reply in replies.items())
        return room.drive(files, backend=request.param)

    return drive


def seen(ran: Ran, session: str) -> list[str]:
    """The prompts of a conversation, the oldest first."""
    folder = ran.room.project.run(ran.id).sessions
    return [turn.prompt.removeprefix("prompt ") for turn in conversation(folder, session)]


def sees(ran: Ran, state: str, agent: str = "main", visit: int = 1) -> list[str]:
    """What the turn of an agent in a state could see, with its own prompt last."""
    return seen(ran, ran.sessions(agent, f"{state}.md")[visit - 1])


def test_the_first_turn_sees_nothing_but_its_prompt(run: Callable[..., Ran]) -> None:
    assert sees(run({"START": "<result></result>"}), "START") == ["START"]


def test_goto_continues_the_conversation(run: Callable[..., Ran]) -> None:
    ran = run({"START": "<goto>A</goto>", "A": "<goto>B</goto>", "B": "<result></result>"})
    assert sees(ran, "B") == ["START", "A", "B"]


def test_reset_forgets(run: Callable[..., Ran]) -> None:
    ran = run({"START": "<goto>A</goto>", "A": "<reset>B</reset>", "B": "<goto>C</goto>", "C": "<result></result>"})
    assert sees(ran, "B") == ["B"]
    assert sees(ran, "C") == ["B", "C"]


def test_a_conversation_is_never_written_twice(run: Callable[..., Ran]) -> None:
    """Every turn branches: each has a session of its own, whatever came before."""
    ran = run({"START": '["<goto>START</goto>", "<goto>START</goto>", "<result></result>"]'})
    sessions = ran.sessions("main", "START.md")
    assert len(set(sessions)) == 3
    assert [len(seen(ran, session)) for session in sessions] == [1, 2, 3]


def test_call_sees_the_conversation_of_the_caller(run: Callable[..., Ran]) -> None:
    ran = run({"START": '<call return="AFTER">SUB</call>', "SUB": "<result>r</result>", "AFTER": "<result></result>"})
    assert sees(ran, "SUB") == ["START", "SUB"]


def test_the_caller_never_sees_the_turns_of_the_callee(run: Callable[..., Ran]) -> None:
    ran = run(
        {
            "START": '<call return="AFTER">SUB</call>',
            "SUB": "<goto>MORE</goto>",
            "MORE": "<result>r</result>",
            "AFTER": "<result></result>",
        }
    )
    assert sees(ran, "MORE") == ["START", "SUB", "MORE"]
    assert sees(ran, "AFTER") == ["START", "AFTER"]


def test_a_reset_inside_a_call_does_not_reach_the_caller(run: Callable[..., Ran]) -> None:
    ran = run(
        {
            "START": '<call return="AFTER">SUB</call>',
            "SUB": "<reset>FRESH</reset>",
            "FRESH": "<result>r</result>",
            "AFTER": "<result></result>",
        }
    )
    assert sees(ran, "FRESH") == ["FRESH"]
    assert sees(ran, "AFTER") == ["START", "AFTER"]


def test_nested_calls_return_each_to_its_own_conversation(run: Callable[..., Ran]) -> None:
    ran = run(
        {
            "START": '<call return="END">OUTER</call>',
            "OUTER": '<function return="OUTERAFTER">MIDDLE</function>',
            "MIDDLE": '<call return="MIDDLEAFTER">INNER</call>',
            "INNER": "<result>1</result>",
            "MIDDLEAFTER": "<result>2</result>",
            "OUTERAFTER": "<result>3</result>",
            "END": "<result></result>",
        }
    )
    assert sees(ran, "OUTER") == ["START", "OUTER"]
    assert sees(ran, "MIDDLE") == ["MIDDLE"]
    assert sees(ran, "INNER") == ["MIDDLE", "INNER"]
    assert sees(ran, "MIDDLEAFTER") == ["MIDDLE", "MIDDLEAFTER"]
    assert sees(ran, "OUTERAFTER") == ["START", "OUTER", "OUTERAFTER"]
    assert sees(ran, "END") == ["START", "END"]


def test_a_second_call_sees_nothing_of_the_first(run: Callable[..., Ran]) -> None:
    ran = run(
        {
            "START": '<call return="AGAIN">SUB</call>',
            "SUB": "<result>r</result>",
            "AGAIN": '<call return="END">SUB</call>',
            "END": "<result></result>",
        }
    )
    assert sees(ran, "SUB", visit=2) == ["START", "AGAIN", "SUB"]


def test_scripts_between_prompts_do_not_break_the_conversation(run: Callable[..., Ran]) -> None:
    ran = run({"START": "<goto>CHECK</goto>", "END": "<result></result>"}, CHECK="echo '<goto>END</goto>'")
    assert sees(ran, "END") == ["START", "END"]


@pytest.mark.slow
def test_an_ask_keeps_the_conversation_over_the_answer_and_the_restart(run: Callable[..., Ran], room: Room) -> None:
    ran = run({"START": '<ask next="NEXT">Which one?</ask>', "NEXT": "<result>{{input}}</result>"})
    assert ran.code == 3
    assert room.raymond("answer", "r", "the second", "--no-resume").returncode == 0
    again = room.again()
    assert again.code == 0
    assert sees(again, "NEXT") == ["START", "NEXT"]


# Reminders


def test_a_reminder_continues_the_conversation_says_what_was_wrong_and_does_not_send_the_prompt_again(
    run: Callable[..., Ran],
) -> None:
    ran = run({"START": "<goto>NEXT</goto>", "NEXT": '[["I am done.", "<goto>NOWHERE</goto>", "<result></result>"]]'})
    first, second, third = ran.sessions("main", "NEXT.md")
    assert len({first, second, third}) == 3
    prompts = seen(ran, third)
    assert prompts[:2] == ["START", "NEXT"]
    assert prompts[2] == (
        "I could not act on your reply: the output has no transition\n"
        "end with exactly one transition, e.g. <goto>NEXT.md</goto> or <result>text</result>\n"
        "Do not repeat the work. Reply again and end with exactly one of:\n"
        "<goto>STATE</goto>\n<result>your result</result>\nwhere STATE is one of: NEXT.md, START.md"
    )
    assert prompts[3].startswith(
        "I could not act on your reply: there is no state `NOWHERE`\nthe states are: NEXT.md, START.md\n"
    )
    assert "prompt NEXT" not in prompts[2] + prompts[3]


def test_a_reminder_lists_what_the_policy_allows(room: Room) -> None:
    prompt = "---\nallowed_transitions:\n  - {tag: goto, target: GOOD.sh}\n  - {tag: result}\n---\nChoose. See `<goto>BAD.sh</goto>`."
    ran = room.drive(
        {
            "START.md": prompt,
            "GOOD.sh": "echo '<result>good</result>'",
            "BAD.sh": "",
            "replies.yaml": 'START: [["<goto>BAD</goto>", "<goto>GOOD</goto>"]]',
        }
    )
    assert ran.result == "good"
    assert ran.transcript()[1]["sent"] == (
        "I could not act on your reply: `<goto>BAD</goto>` is not allowed here; "
        "allowed: `<goto>GOOD.sh</goto>`, `<result>...</result>`\n"
        "Do not repeat the work. Reply again and end with exactly one of:\n"
        "<goto>GOOD.sh</goto>\n<result>...</result>"
    )


def test_a_reminder_lists_what_the_prompt_mentions(room: Room) -> None:
    ran = room.drive(
        {
            "START.md": "Either `<goto>OTHER.sh</goto>` or\n```\n<result>the text</result>\n```\n",
            "OTHER.sh": "",
            "replies.yaml": 'START: [["hm", "<result></result>"]]',
        }
    )
    assert ran.transcript()[1]["sent"].endswith("<goto>OTHER.sh</goto>\n<result>the text</result>")


# After a crash


@pytest.mark.slow
def test_a_retry_branches_from_before_the_crash_and_says_it_was_interrupted(run: Callable[..., Ran]) -> None:
    ran = run({"START": "<goto>NEXT</goto>", "NEXT": "[[{fail: crash}, <result></result>]]"})
    assert [turn["base"] for turn in ran.transcript()[1:]] == ran.sessions("main", "START.md") * 2
    assert sees(ran, "NEXT", visit=2) == ["START", f"{INTERRUPTED}\n\nprompt NEXT"]
    crashed, again = ran.sessions("main", "NEXT.md")
    assert crashed != again, "a retry never meets its own leftover"


@pytest.mark.slow
def test_a_crash_after_a_reminder_goes_on_from_the_refused_reply(run: Callable[..., Ran]) -> None:
    ran = run({"START": '[["no tag", {fail: crash}, "<result></result>"]]'})
    prompts = seen(ran, ran.sessions("main", "START.md")[-1])
    assert prompts[0] == "START"
    assert prompts[1].startswith(f"{INTERRUPTED}\n\nI could not act on your reply: the output has no transition\n")
    assert len(prompts) == 2


def test_a_turn_cut_off_by_a_second_ctrl_c_is_told_so_and_branches_from_before(room: Room) -> None:
    """The turn waits for a file, so it is certainly cut off before it has said anything."""
    flow = room.flow(
        {
            "START.md": "prompt START",
            "NEXT.md": "prompt NEXT",
            "replies.yaml": "START: <goto>NEXT</goto>\nNEXT: {silent: true}",
        }
    )
    with room.start("run", flow, "--id", "r", "--backend", "scripted-program") as live:
        live.sees("main START.md -> NEXT.md (goto)")
        until(lambda: os.path.exists(f"{room.project.run('r').spool}/2.1/pid"), "the turn")
        live.signal(signal.SIGINT)
        live.sees("pausing after ")
        live.signal(signal.SIGINT)
        ran = live.wait()
    assert ran.code == 130
    assert [event.step for event in ran.all(StepInterrupted)] == [2]
    room.nothing_runs()


@pytest.mark.slow
def test_a_turn_that_was_interrupted_runs_again_and_both_count(room: Room) -> None:
    """Interrupted by a kill: the program is ended, too, so that nothing can be followed."""
    flow = room.flow(
        {
            "START.md": "prompt START",
            "NEXT.md": "prompt NEXT",
            "replies.yaml": "START: {text: <goto>NEXT</goto>, cost: 0.1}\nNEXT: {text: <result>done</result>, delay: 1s, cost: 0.2}",
        }
    )
    with room.start("run", flow, "--id", "r", "--backend", "scripted-program") as live:
        spool = f"{room.project.run('r').spool}/2.1"
        until(lambda: os.path.exists(f"{spool}/out") and b"init" in open(f"{spool}/out", "rb").read(), "the turn")
        live.process.kill()
        live.process.wait()
    room.clear()
    ran = room.resume()
    assert (ran.code, ran.out) == (0, "done\n")
    assert [event.step for event in ran.all(StepInterrupted)] == [2]
    assert sees(ran, "NEXT", visit=2) == ["START", f"{INTERRUPTED}\n\nprompt NEXT"]
    assert round(ran.run.cost, 6) == 0.1 + 0.5 + 0.2, "the turn that was cut off is counted by an estimate"
