"""Conversations with the real Claude Code: who saw what, by what the model was asked."""

import os
import signal
from collections.abc import Callable

import pytest

from e2e.conftest import Desk
from e2e.model import MISSING, Answer, Mute, Text, Tool, program, results, turns
from raymond.machine.events import StepFailed
from raymond.machine.prompts import INTERRUPTED

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(program("claude") is None, reason=MISSING)]


class Talk:
    """A workflow given as the reply to each state; prompts say the name of their state."""

    def __init__(self, desk: Callable[..., Desk], replies: dict[str, str], **scripts: str) -> None:
        self.replies = replies
        self.desk = desk({f"prompt {state}.": Text(reply) for state, reply in replies.items()})
        self.files = {f"{state}.md": f"prompt {state}." for state in replies}
        self.files |= {f"{state}.sh": text for state, text in scripts.items()}

    def run(self) -> "Talk":
        self.ran = self.desk.claude(self.files)
        assert self.ran.code == 0, self.ran.err
        return self

    def saw(self, state: str, agent: str = "main", visit: int = 1) -> list[str]:
        """The states whose prompts and replies a turn saw, with its own prompt last; the words are compared here."""
        (request,) = self.desk.asked(agent, f"{state}.md", visit)
        conversation = turns(request)
        states = [text.removeprefix("prompt ").removesuffix(".") for role, text in conversation if role == "user"]
        assert conversation == self.words(*states)
        return states

    def words(self, *states: str) -> list[tuple[str, str]]:
        """A conversation that went through these states and stands in the last."""
        said = [(("user", f"prompt {state}."), ("assistant", self.replies[state])) for state in states]
        return [line for pair in said for line in pair][:-1]

    def each_in_a_session_of_its_own(self) -> None:
        """The model was asked once in every turn, and no session was written twice."""
        sessions = [turn.session for turn in self.desk.turns()]
        assert len(set(sessions)) == len(sessions)
        assert sorted(request.session for request in self.desk.server.requests) == sorted(sessions)


def test_goto_continues_and_reset_forgets(desk: Callable[..., Desk]) -> None:
    talk = Talk(
        desk,
        {
            "START": "one <goto>A</goto>",
            "A": "two <reset>B</reset>",
            "B": "three <goto>C</goto>",
            "C": "<result>4</result>",
        },
    ).run()
    assert talk.ran.out == "4\n"
    assert talk.saw("START") == ["START"]
    assert talk.saw("A") == ["START", "A"]
    assert talk.saw("B") == ["B"]
    assert talk.saw("C") == ["B", "C"]
    talk.each_in_a_session_of_its_own()


def test_a_state_that_comes_again_branches_every_time(desk: Callable[..., Desk]) -> None:
    talk = Talk(desk, {"START": "<goto>AGAIN</goto>", "AGAIN": "<goto>TURN</goto>"}, TURN=_SECOND_TIME).run()
    assert talk.saw("AGAIN") == ["START", "AGAIN"]
    assert talk.saw("AGAIN", visit=2) == ["START", "AGAIN", "AGAIN"]
    talk.each_in_a_session_of_its_own()


_SECOND_TIME = "if [ -e there ]; then echo '<result></result>'; else touch there; echo '<goto>AGAIN</goto>'; fi"


def test_a_call_sees_its_caller_and_the_caller_nothing_of_it_and_a_function_sees_nothing(
    desk: Callable[..., Desk],
) -> None:
    talk = Talk(
        desk,
        {
            "START": 'I call. <call return="AFTER">SUB</call>',
            "SUB": "<goto>MORE</goto>",
            "MORE": "<result>r</result>",
            "AFTER": '<function return="THEN">ALONE</function>',
            "ALONE": "<reset>FRESH</reset>",
            "FRESH": "<result>f</result>",
            "THEN": '<call return="END">SUB</call>',
            "END": "<result>done</result>",
        },
    ).run()
    assert talk.saw("SUB") == ["START", "SUB"]
    assert talk.saw("MORE") == ["START", "SUB", "MORE"]
    assert talk.saw("AFTER") == ["START", "AFTER"]
    assert talk.saw("ALONE") == ["ALONE"]
    assert talk.saw("FRESH") == ["FRESH"]
    assert talk.saw("THEN") == ["START", "AFTER", "THEN"]
    assert talk.saw("SUB", visit=2) == ["START", "AFTER", "THEN", "SUB"]
    assert talk.saw("END") == ["START", "AFTER", "THEN", "END"]
    talk.each_in_a_session_of_its_own()


def test_nested_calls_return_each_to_its_own_conversation_also_when_a_callee_begins_with_a_script(
    desk: Callable[..., Desk],
) -> None:
    talk = Talk(
        desk,
        {
            "START": '<call return="END">OUTER</call>',
            "OUTER": '<function return="OUTERAFTER">MIDDLE</function>',
            "MIDDLE": '<call return="MIDDLEAFTER">PREPARE</call>',
            "INNER": "<result>1</result>",
            "MIDDLEAFTER": "<result>2</result>",
            "OUTERAFTER": "<result>3</result>",
            "END": "<result>4</result>",
        },
        PREPARE="echo '<goto>INNER</goto>'",
    ).run()
    assert talk.saw("OUTER") == ["START", "OUTER"]
    assert talk.saw("MIDDLE") == ["MIDDLE"]
    assert talk.saw("INNER") == ["MIDDLE", "INNER"]
    assert talk.saw("MIDDLEAFTER") == ["MIDDLE", "MIDDLEAFTER"]
    assert talk.saw("OUTERAFTER") == ["START", "OUTER", "OUTERAFTER"]
    assert talk.saw("END") == ["START", "END"]
    talk.each_in_a_session_of_its_own()


def test_forks_see_neither_parent_nor_each_other_and_the_parent_keeps_its_conversation_over_the_wait(
    desk: Callable[..., Desk],
) -> None:
    talk = Talk(
        desk,
        {
            "START": "<goto>SPLIT</goto>",
            "SPLIT": "<fork>WORK</fork><fork>WORK</fork><wait>JOIN</wait>",
            "WORK": "<goto>MORE</goto>",
            "MORE": "<result>r</result>",
            "JOIN": "<result>joined</result>",
        },
    ).run()
    assert talk.ran.out == "joined\n"
    for agent in ("main_work1", "main_work2"):
        assert talk.saw("WORK", agent) == ["WORK"]
        assert talk.saw("MORE", agent) == ["WORK", "MORE"]
    assert talk.saw("JOIN") == ["START", "SPLIT", "JOIN"]
    talk.each_in_a_session_of_its_own()


def test_an_ask_keeps_the_conversation_over_the_answer_and_the_restart(desk: Callable[..., Desk]) -> None:
    room = desk({"prompt START": Text('<ask next="NEXT">Which one?</ask>'), "prompt NEXT": Text("<result>ok</result>")})
    ran = room.claude({"START.md": "prompt START", "NEXT.md": "prompt NEXT: {{input}}"})
    assert ran.code == 3
    assert room.raymond("answer", "r", "the second", "--no-resume").returncode == 0
    assert room.resume().out == "ok\n"
    assert room.conversation("NEXT") == [
        ("user", "prompt START"),
        ("assistant", '<ask next="NEXT">Which one?</ask>'),
        ("user", "prompt NEXT: the second"),
    ]


def test_what_tools_gave_back_is_remembered_too(desk: Callable[..., Desk]) -> None:
    look = Tool("Bash", {"command": "echo 4711"}, text="I look.")
    room = desk({"prompt START": [look, Text("<goto>NEXT</goto>")], "prompt NEXT": Text("<result>seen</result>")})
    ran = room.claude({"START.md": "prompt START", "NEXT.md": "prompt NEXT"})
    assert "main * Bash echo 4711" in ran.lines
    (request,) = room.asked("main", "NEXT.md")
    assert results(request) == ["4711"]
    assert turns(request) == [
        ("user", "prompt START"),
        ("assistant", "I look."),
        ("assistant", "<goto>NEXT</goto>"),
        ("user", "prompt NEXT"),
    ]


REMINDER = (
    "I could not act on your reply: the output has no transition\n"
    "end with exactly one transition, e.g. <goto>NEXT.md</goto> or <result>text</result>\n"
    "Do not repeat the work. Reply again and end with exactly one of:\n"
    "<goto>STATE</goto>\n<result>your result</result>\nwhere STATE is one of: NEXT.md, START.md"
)


def test_a_reminder_continues_the_conversation_and_does_not_send_the_prompt_again(desk: Callable[..., Desk]) -> None:
    room = desk(
        {
            "prompt START": Text("<goto>NEXT</goto>"),
            "prompt NEXT": Text("I am done."),
            "could not act on": Text("<result>tagged</result>"),
        }
    )
    ran = room.claude({"START.md": "prompt START", "NEXT.md": "prompt NEXT"})
    assert ran.out == "tagged\n"
    assert room.conversation("NEXT", visit=2) == [
        ("user", "prompt START"),
        ("assistant", "<goto>NEXT</goto>"),
        ("user", "prompt NEXT"),
        ("assistant", "I am done."),
        ("user", REMINDER),
    ]
    assert len({turn.session for turn in room.turns()}) == len(room.server.requests) == 3


def test_a_retry_branches_from_before_the_crash_and_says_it_was_interrupted(desk: Callable[..., Desk]) -> None:
    """The program is killed while the model thinks; what it was asked is in no later conversation."""
    mute = Mute()
    answers: list[Answer] = [Text("<goto>NEXT</goto>"), mute, Text("<result>again</result>")]
    room = desk(answers)
    with room.start(*room.begin({"START.md": "prompt START", "NEXT.md": "prompt NEXT"})) as live:
        mute.gate.meet()
        os.kill(room.leader("2.1"), signal.SIGKILL)
        ran = live.wait()
    assert ran.out == "again\n"
    assert [(event.kind, event.error) for event in ran.all(StepFailed)] == [
        ("crash", "the program ended with signal 9 without a result")
    ]
    before = [("user", "prompt START"), ("assistant", "<goto>NEXT</goto>")]
    assert room.conversation("NEXT") == [*before, ("user", "prompt NEXT")]
    assert room.conversation("NEXT", visit=2) == [*before, ("user", f"{INTERRUPTED}\n\nprompt NEXT")]
    first, crashed, again = room.turns()
    assert crashed.base == again.base == first.session
    assert len({first.session, crashed.session, again.session}) == 3


def test_a_crash_after_a_reminder_goes_on_from_the_refused_reply(desk: Callable[..., Desk]) -> None:
    mute = Mute()
    room = desk([Text("<goto>NEXT</goto>"), Text("no tag"), mute, Text("<result>again</result>")])
    with room.start(*room.begin({"START.md": "prompt START", "NEXT.md": "prompt NEXT"})) as live:
        mute.gate.meet()
        os.kill(room.leader("2.2"), signal.SIGKILL)
        assert live.wait().out == "again\n"
    before = [
        ("user", "prompt START"),
        ("assistant", "<goto>NEXT</goto>"),
        ("user", "prompt NEXT"),
        ("assistant", "no tag"),
    ]
    assert room.conversation("NEXT", visit=2) == [*before, ("user", REMINDER)]
    assert room.conversation("NEXT", visit=3) == [*before, ("user", f"{INTERRUPTED}\n\n{REMINDER}")]


def test_a_conversation_moves_along_with_its_project(desk: Callable[..., Desk]) -> None:
    talk = Talk(desk, {"START": 'one <ask next="B">Which?</ask>', "B": "<result>two</result>"})
    assert talk.desk.claude(talk.files).code == 3
    moved = talk.desk.path.with_name("moved place.x")
    talk.desk.path.rename(moved)
    assert talk.desk.raymond("answer", "r", "this", "--no-resume", cwd=moved).returncode == 0
    done = talk.desk.raymond("resume", "r", "--cd", ".", cwd=moved)
    assert (done.returncode, done.stdout) == (0, "two\n"), done.stderr
    assert "without its conversation" not in done.stderr
    assert [text for role, text in turns(talk.desk.server.requests[-1]) if role == "user"] == [
        "prompt START.",
        "prompt B.",
    ]


def test_an_agent_whose_conversation_is_gone_is_named_when_its_project_moved(desk: Callable[..., Desk]) -> None:
    talk = Talk(desk, {"START": 'one <ask next="B">Which?</ask>', "B": "<result>two</result>"})
    assert talk.desk.claude(talk.files).code == 3
    moved = talk.desk.path.with_name("moved")
    talk.desk.path.rename(moved)
    for session in talk.desk.user.rglob("*.jsonl"):
        if "raymond" not in session.parts:
            session.unlink()
    assert talk.desk.raymond("answer", "r", "this", "--no-resume", cwd=moved).returncode == 0
    done = talk.desk.raymond("resume", "r", "--cd", ".", cwd=moved)
    assert (done.returncode, done.stdout) == (0, "two\n"), done.stderr
    assert "main continues without its conversation" in done.stderr
    assert [text for role, text in turns(talk.desk.server.requests[-1]) if role == "user"] == ["prompt B."]
