"""The proof that gates decided as they should: once for each try, before anything counted, and nothing stays exchanged."""

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from raymond.machine.events import AgentEnded, AgentMoved, AgentReturned, GateEnded, SealEnded
from raymond.machine.evolve import evolve
from raymond.machine.run import Run
from raymond.store import journal

if TYPE_CHECKING:
    from crash.torture import Place


def check(place: "Place", expected: dict[str, list[str]]) -> None:
    """Every visit of a gated state, which `expected` knows, was sealed once, and left when its gate had passed."""
    run = Run()
    found: dict[tuple[str, int, str], list[str]] = defaultdict(list)
    for decision in journal.decisions(place.project.run(place.id)):
        run.seq, run.now = decision.seq, decision.time
        for event in decision.events:
            agent = run.agents.get(getattr(event, "agent", ""))
            if agent and agent.state in expected:
                visit = found[agent.id, agent.entered, agent.state]
                if isinstance(event, SealEnded):
                    visit.append("sealed" if event.seal else event.reason)
                elif isinstance(event, GateEnded):
                    visit.append(event.verdict)
                elif isinstance(event, AgentMoved | AgentEnded | AgentReturned):
                    visit.append("left")
            evolve(run, event)
    for (who, _, state), what in found.items():
        assert what == ["sealed", *expected[state], "left"], f"the gate of {who} in {state}: {what}"
    assert {state for _, _, state in found} == set(expected), "every gated state was visited"


def check_files(place: "Place", left: dict[Path, str]) -> None:
    """The checks are what the agents made of them."""
    assert {path: path.read_text("utf-8") for path in left} == left, "a sealed file stayed in the tree"
