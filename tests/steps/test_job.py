"""A job: what a step needs to run, as data that could be sent to another machine."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from builders import KEY, Play, block, head
from raymond.backends import Observation
from raymond.machine import failures
from raymond.machine.inputs import Ending
from raymond.steps.job import GateJob, PatternJob, ScriptJob, TurnJob, job_of
from raymond.steps.kinds import step_for
from raymond.steps.step import Host, Step
from raymond.steps.turn_step import TurnStep
from raymond.store.home import Home
from raymond.store.transcripts import Transcripts
from raymond.store.workflow_snapshot import UnpackedWorkflow
from raymond.system.stragglers import Marks

FILES = {
    "START.md": head("model: opus\nallowed_transitions: [{tag: goto, target: S}]", "Do {{input}}."),
    "S.sh": block("timeout: 5s\nmax_time: 1m"),
    "P.py": "",
    "workflow.yaml": "python: /opt/python",
}


def job(play: Play) -> ScriptJob | TurnJob | GateJob | PatternJob:
    """The job of the main agent's next step."""
    play.begin()
    return job_of(play.run, play.workspace, play.main)


def sent(job: ScriptJob | TurnJob | GateJob | PatternJob) -> ScriptJob | TurnJob | GateJob | PatternJob:
    """The job as another machine would read it."""
    return msgspec.msgpack.decode(msgspec.msgpack.encode(job), type=ScriptJob | TurnJob | GateJob | PatternJob)


def at_script(**given: Any) -> Play:
    play = Play(FILES, **given)
    play.say("<goto>S</goto>")
    return play


def at_gate() -> Play:
    play = Play(FILES | {"START.md": head("gate: [make, {run: make lint, expected: 2}]")})
    play.say("<goto>S</goto>")
    return play


def test_a_script_a_turn_and_a_gate_survive_the_way_to_another_machine() -> None:
    for made in (job(Play(FILES, input="this", retryable=["reset"])), job(at_script()), job(at_gate())):
        assert sent(made) == made


def test_a_turn_knows_what_to_ask_and_what_to_write() -> None:
    play = Play(FILES, input="this")
    made = job(play)
    assert isinstance(made, TurnJob)
    assert (made.backend, made.step, made.turn, made.attempt) == ("claude", 1, 1, 1)
    assert (made.invocation.prompt, made.invocation.model) == ("Do this.", "opus")
    assert made.invocation.session == play.main.turn_session
    assert made.invocation.spool == "1.1", "relative to the spool of whoever runs it"


def test_a_script_knows_its_file_its_values_and_the_key_of_its_visit() -> None:
    made = job(at_script())
    assert isinstance(made, ScriptJob)
    assert (made.script, made.python) == ("/snap/S.sh", "/opt/python")
    assert (made.values["agent_id"], made.values["state"]) == ("main", "S.sh")
    assert made.key == f"{KEY}-main-2"


@pytest.mark.parametrize(("timeout", "silence"), [(0.0, failures.SILENCE), (7.0, 7.0)])
def test_a_state_without_a_timeout_has_that_of_its_run(timeout: float, silence: float) -> None:
    assert job(Play(FILES, timeout=timeout)).silence == silence
    assert job(at_script(timeout=timeout)).silence == 5.0


def host_in(
    folder: Path, ended: list[tuple[Step, Ending]], show: Callable[[str, str, str], None] = lambda *_: None
) -> Host:
    return Host(
        marks=Marks(KEY, str(folder / "pids")),
        transcripts=Transcripts(str(folder / "transcripts")),
        unpacked=UnpackedWorkflow(Home(str(folder)), "0" * 64, dict),
        tree=str(folder),
        home=str(folder),
        spool=str(folder / "spool"),
        seals=str(folder / "seals"),
        noted=str(folder / "processes"),
        clock=lambda: 0.0,
        report=lambda step, ending: ended.append((step, ending)),
        named=lambda agent, session: None,
        show=show,
    )


def test_a_step_does_nothing_before_it_is_started(tmp_path: Path) -> None:
    ended: list[tuple[Step, Ending]] = []
    host = host_in(tmp_path, ended)
    try:
        step = step_for(host, job(at_script()), {})
        assert (step.agent, step.number, step.pid, step.ended, ended) == ("main", 2, 0, False, [])
        assert os.listdir(tmp_path) == []
    finally:
        host.close()


def test_words_are_shown_as_they_come_and_a_secret_in_pieces_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = "zq8Vw2Lk9Xp4Rt6Yb1Nm"
    monkeypatch.setenv("MY_API_TOKEN", token)
    shown: list[tuple[str, str]] = []
    host = host_in(tmp_path, [], lambda agent, kind, text: shown.append((kind, text)))
    try:
        made = job(Play(FILES))
        assert isinstance(made, TurnJob)
        step = TurnStep(host, made)
        for piece in ("It is ", token[:7], token[7:], ". Fine, I am done with it now."):
            step.see([Observation("words", piece)])
            step.show_words()
        assert {kind for kind, _ in shown} == {"words"}
        assert len(shown) > 1
        assert "".join(text for _, text in shown) == "It is [secret MY_API_TOKEN]. Fine, I am done with it now."
        step.see([Observation("words", f"again {token[:5]}"), Observation("text", "whole")])
        step.show_words()
        assert shown[-1] == ("text", "whole"), "words that came before the whole text are not shown after it"
    finally:
        host.close()
