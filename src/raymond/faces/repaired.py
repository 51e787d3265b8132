"""What a repair of a journal did, line by line."""

from collections.abc import Iterator

from raymond import durations, pasted
from raymond.faces import words
from raymond.faces.dollars import dollars
from raymond.machine import prices
from raymond.machine.events import LimitsChanged, RunStopped
from raymond.store.losses import LostStep
from raymond.store.repair import Repair


def lines(done: Repair) -> Iterator[str]:
    """Where the journal was cut, what was lost with that, and what still holds."""
    yield f"cut at line {done.line}; the whole journal is kept in {done.copy}"
    if done.decisions:
        yield f"lost after it: {words.many(done.decisions, 'good decision')}"
    if done.cost:
        yield f"their cost still counts: {dollars(done.cost - done.scripted, done.scripted)}"
    for step in done.steps if not done.is_over else ():
        yield f"  {_step(step)}"
    for event in done.standing:
        yield f"still holds: {words.stop(event) if isinstance(event, RunStopped) else ', '.join(_limits(event))}"


def _step(step: LostStep) -> str:
    name = f"step {step.number} of {step.agent}" + (f" ({step.state})" if step.state else "")
    unless = ", unless its reply is found" if step.is_kept else ""
    return f"{name} had {'finished' if step.finished else 'begun'} and will run again{unless}"


def _limits(event: LimitsChanged) -> Iterator[str]:
    if event.budget is not None:
        yield f"budget {prices.show(event.budget)}" if event.budget else "no budget"
    for name, count in (("max_iterations", event.max_iterations), ("max_turns", event.max_turns)):
        if count is not None:
            yield f"{name} {count or 'unlimited'}"
    if event.max_time is not None:
        yield f"max_time {durations.show(event.max_time) if event.max_time else 'unlimited'}"
    yield from (pasted.flag("--allow-tool", tool, "TOOL") for tool in event.allowed_tools)
    yield from (pasted.flag("--root", root, "DIR") for root in event.roots)
