"""The real Claude Code judges: a small model, asked apart, decides where another one goes."""

from collections.abc import Callable

import pytest

from e2e.conftest import Desk
from e2e.model import MISSING, Answer, Request, Text, program, turns
from raymond.machine.events import EvaluatorEnded, StepStarted

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(program("claude") is None, reason=MISSING)]

COMMIT = "evaluator: {prompt: READY, verdicts: {COMMIT: <goto>COMMIT</goto>, REVIEW: keep}}"
FILES = {
    "START.md": f"---\n{COMMIT}\n---\nprompt START",
    "READY.md": "prompt READY about {{transition}}: {{output}}",
    "REVIEW.md": "prompt REVIEW",
    "COMMIT.md": "prompt COMMIT",
}
START = "It is fixed. <goto>REVIEW</goto>"


def judged(room: Desk) -> list[Request]:
    return [request for request in room.server.requests if "prompt READY" in request.prompt]


def test_a_small_model_overrides_a_transition(desk: Callable[..., Desk]) -> None:
    room = desk(
        {
            "prompt START": Text(START),
            "prompt READY": Text("**Commit.**\nIt has a test. <goto>REVIEW</goto>"),
            "prompt COMMIT": Text("<result>committed</result>"),
        }
    )
    (room.path / "CLAUDE.md").write_text("Instructions for the work.", "utf-8")
    ran = room.claude(FILES)
    assert (ran.code, ran.out) == (0, "committed\n"), ran.err
    [ended] = ran.all(EvaluatorEnded)
    assert (ended.verdict, ended.requested, ended.actual) == ("COMMIT", "goto REVIEW.md", "goto COMMIT.md")
    assert "haiku" in ended.model
    assert (ended.cost > 0, ended.tokens_out > 0) == (True, True)
    assert "main evaluator says COMMIT: goto COMMIT.md instead of goto REVIEW.md" in "\n".join(ran.lines)

    [asked] = judged(room)
    assert turns(asked) == [("user", f"prompt READY about <goto>REVIEW.md</goto>: {START}")], "it knows nothing else"
    assert "haiku" in asked.body["model"]
    assert not asked.body.get("tools"), "it has no tools"
    assert "Instructions for the work." not in str(asked.body)
    [commit] = [request for request in room.server.requests if request.prompt == "prompt COMMIT"]
    assert [text for _, text in turns(commit)] == ["prompt START", START, "prompt COMMIT"], "nobody has heard the judge"


def test_a_judge_that_is_never_content_ends_where_the_visits_end(desk: Callable[..., Desk]) -> None:
    def answer(request: Request) -> Answer:
        if "prompt READY" in request.prompt:
            return Text("No.")
        return Text("<result>given up</result>" if "GIVE_UP" in request.prompt else "<result>done</result>")

    room = desk(answer)
    head = "max_visits: 2\nthen: GIVE_UP\nevaluator: {prompt: READY, verdicts: {YES: keep, NO: <reset>START</reset>}}"
    files = {**FILES, "START.md": f"---\n{head}\n---\nprompt START", "GIVE_UP.md": "prompt GIVE_UP"}
    ran = room.claude(files, "--max-iterations", "3")
    assert (ran.code, ran.out) == (0, "given up\n"), ran.err
    assert [event.verdict for event in ran.all(EvaluatorEnded)] == ["NO", "NO"]
    assert [event.model for event in ran.all(StepStarted)] == ["", "haiku", "", "haiku", ""]
    assert (ran.run.iterations, ran.run.turns) == (3, 5)
