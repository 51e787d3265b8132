"""The live block in rows: the run in one line, then its agents, as many as fit.

Rows are made of pieces, each with a style, and are never wider than the terminal. Only the rows that are shown are
made: the rest is counted, and the run keeps the counts.
"""

import time
from collections.abc import Mapping
from typing import TypeAlias

from rich.cells import cell_len, set_cell_size

from raymond import durations
from raymond.faces.plain_text import plain
from raymond.faces.words import crowd, money, stop, stuck
from raymond.machine.agent import ASKING, FAILED, PAUSED, READY, RUNNING, SLEEPING, WAITING, Agent, Closed
from raymond.machine.events import RunStopped
from raymond.machine.run import CANCELLED, Run
from raymond.machine.schedule import wake_at
from raymond.views.status import run_status

Piece: TypeAlias = tuple[str, str]
"""A text and its style: words such as `bold red`, or nothing."""
Row: TypeAlias = list[Piece]

SPARE = 3
"""Lines of the terminal that are left for the text above the block, and for the cursor."""
BAR = 10
WIDEST = 1000
NARROW = 40
STYLES = {
    RUNNING: "green",
    ASKING: "yellow",
    FAILED: "red",
    PAUSED: "yellow",
    READY: "dim",
    SLEEPING: "dim",
    WAITING: "dim",
    "completed": "green",
    CANCELLED: "yellow",
}

_FIRST = (RUNNING, ASKING, FAILED)
_RANKS = {status: rank for rank, status in enumerate(_FIRST)}
_COUNTED = (*_FIRST, READY, SLEEPING, WAITING, PAUSED)


def rows(
    run: Run, costs: Mapping[str, float], last: Mapping[str, str], *, width: int, height: int, now: float
) -> list[Row]:
    """The block for a terminal of this size; `costs` and `last` (what it said last) are by agent."""
    room = max(1, height - SPARE)
    closed = [_closed(name, one, now) for name, one in run.closed.items()][: max(0, room - 2)]
    room -= 1 + len(closed)
    folds = bool(run.outcomes) or len(run.agents) > room
    shown = _select(run, room - folds)
    made = [_header(run, now), *closed, *_agents(shown, costs, last, width, now)]
    if folds and room > 0:
        made.append(_fold(run, shown))
    return [fit(row, width) for row in made]


def title(run: Run, now: float) -> str:
    """The run in a few words, for the title of the window."""
    word = status(run, now)[0].partition(":")[0].partition(" until")[0]
    return plain(f"raymond {run.start.workflow_id}: {word} {_many(len(run.agents), 'agent')} {money(run)}")


def fit(row: Row, width: int) -> Row:
    """`row` cut to `width` cells, with an ellipsis where something is missing."""
    fitted: Row = []
    left = width
    for number, (text, style) in enumerate(row):
        size = cell_len(text)
        if size > left or (size == left and any(rest.strip() for rest, _ in row[number + 1 :])):
            fitted.append((f"{set_cell_size(text, left - 1).rstrip()}…" if left > 0 else "", style))
            break
        fitted.append((text, style))
        left -= size
    while fitted and not fitted[-1][0].strip():
        fitted.pop()
    if fitted:
        text, style = fitted.pop()
        fitted.append((text.rstrip(), style))
    return fitted


# --- the run


def _header(run: Run, now: float) -> Row:
    words, style = status(run, now)
    rest = [since(now - run.started_at), _many(run.iterations, "step")]
    row = [(run.start.workflow_id, "bold"), (" · ", "dim"), (words, style)]
    for text in rest:
        row += [(" · ", "dim"), (text, "")]
    budget = run.limits.budget
    if budget:
        return [*row, (" · ", "dim"), (f"{money(run)} of ${budget:.2f} ", ""), _bar(run.cost / budget)]
    return [*row, (" · ", "dim"), (money(run), "")]


def _bar(spent: float) -> Piece:
    full = min(BAR, int(spent * BAR))
    style = "red" if spent >= 0.9 else "yellow" if spent >= 0.7 else "green"
    return f"[{'#' * full}{'-' * (BAR - full)}]", style


def status(run: Run, now: float) -> Piece:
    """What the run does, or waits for."""
    if run.final_status:
        return run.final_status, STYLES[run.final_status]
    if run.stop:
        return _stopping(run.stop, run.statuses.get(RUNNING, 0)), "yellow"
    if run.statuses.get(RUNNING) or any(queue and pool not in run.closed for pool, queue in run.ready.items()):
        return "running", STYLES[RUNNING]
    if run.statuses.get(ASKING):
        return "waiting for you", STYLES[ASKING]
    for backend, closed in run.closed.items():
        if closed.until and run.ready.get(backend):
            return f"waiting for {plain(backend)} until {moment(closed.until, now)}", "yellow"
    at = wake_at(run)
    if at is not None and run.statuses.get(SLEEPING):
        return f"sleeping until {moment(at, now)}", "cyan"
    return run_status(run), "yellow"


def _stopping(stopped: RunStopped, running: int) -> str:
    finishing = f"finishing {_many(running, 'running step')}"
    if stopped.kind in ("paused", "parked"):
        again = f"Ctrl-C again stops {'it' if running == 1 else 'them'} now"
        return f"pausing: {finishing}; {again}" if running else "paused"
    if stopped.kind == "stop" and running:
        return f"stopping: {finishing}"
    reason = _line(stop(stopped))
    return f"stopping: {reason}; {finishing}" if running and stopped.kind == "limit" else f"stopping: {reason}"


def _closed(backend: str, closed: Closed, now: float) -> Row:
    until = f" until {moment(closed.until, now)}" if closed.until else ""
    what = crowd(plain(backend), closed.most) if closed.kind == "machine" else f"{plain(backend)} is unavailable"
    return [(f"{what}{until} ({closed.kind}): ", "yellow"), (_line(closed.error), "")]


# --- the agents


def _select(run: Run, room: int) -> list[Agent]:
    """The agents to show, in order: main, running, asking, failed, others; one pass, no longer than needed."""
    main = run.agents.get("main")
    shown = [main] if main and room > 0 else []
    left = max(0, room - len(shown))
    others = len(run.agents) - (main is not None)
    quotas: list[int] = []
    for one in _FIRST:
        count = run.statuses.get(one, 0) - (main is not None and main.status == one)
        quotas.append(min(left, count))
        left -= quotas[-1]
        others -= count
    quotas.append(min(left, others))
    ranked: list[list[Agent]] = [[], [], [], []]
    missing = sum(quotas)
    for agent in run.agents.values():
        if not missing:
            break
        rank = _RANKS.get(agent.status, len(_FIRST))
        if agent is not main and len(ranked[rank]) < quotas[rank]:
            ranked[rank].append(agent)
            missing -= 1
    return shown + [agent for rank in ranked for agent in rank]


def _agents(
    shown: list[Agent], costs: Mapping[str, float], last: Mapping[str, str], width: int, now: float
) -> list[Row]:
    ids = _column([_tail(plain(agent.id), max(8, width // 3)) for agent in shown])
    # Where there is little room, what an agent does says more than where.
    states = _column([_head(_state(agent), width // 4) if width >= NARROW else "" for agent in shown])
    words = _column([agent.status for agent in shown])
    times = _column([since(now - agent.visit.since) for agent in shown], right=True)
    spent = _column([f"${costs[agent.id]:.2f}" if costs.get(agent.id) else "" for agent in shown], right=True)
    return [
        [
            (ids[n], "bold"),
            (states[n], ""),
            (words[n], STYLES.get(agent.status, "")),
            (times[n], "dim"),
            (spent[n], ""),
            _detail(agent, last.get(agent.id, ""), now),
        ]
        for n, agent in enumerate(shown)
    ]


def _state(agent: Agent) -> str:
    visits = (agent.visits or {}).get(agent.state, 0)
    return plain(f"{agent.state} x{visits}" if visits > 1 else agent.state)


def _detail(agent: Agent, last: str, now: float) -> Piece:
    visit = agent.visit
    until = f"until {moment(visit.wake_at, now)}" if visit.wake_at else ""
    match agent.status:
        case "running":
            again = f"attempt {visit.attempt}" if visit.attempt > 1 else ""
            return ": ".join(part for part in (again, _line(last)) if part), "dim"
        case "asking":
            return " ".join(part for part in (_line(agent.question), f"({until})" if until else "") if part), "yellow"
        case "failed" | "paused":
            return _line(stuck(agent)), "red" if agent.status == FAILED else "yellow"
        case "waiting":
            return " ".join(part for part in (f"for {_many(agent.alive, 'agent')}", until) if part), "dim"
        case "sleeping" if visit.failures:
            return f"attempt {visit.attempt + 1} at {moment(visit.wake_at, now)}", "dim"
        case _:
            return until, "dim"


def _fold(run: Run, shown: list[Agent]) -> Row:
    counts = dict.fromkeys(_COUNTED, 0) | run.statuses
    for agent in shown:
        counts[agent.status] -= 1
    counts["ended"] = ended = run.started - len(run.agents)
    told = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    return [(f"... and {len(run.agents) - len(shown) + ended} more: {told}", "dim")]


# --- words and columns


def _column(texts: list[str], *, right: bool = False) -> list[str]:
    """Texts of one width and two spaces after them; nothing when there is nothing to show."""
    size = max(map(cell_len, texts), default=0)
    if not size:
        return texts
    pads = [" " * (size - cell_len(text)) for text in texts]
    return [f"{pad}{text}  " if right else f"{text}{pad}  " for text, pad in zip(texts, pads, strict=True)]


def _head(text: str, width: int) -> str:
    return text if cell_len(text) <= width else f"{set_cell_size(text, width - 1)}…"


def _tail(text: str, width: int) -> str:
    """The end of a long name: forks of forks differ there."""
    return text if len(text) <= width else f"…{text[1 - width :]}"


def _line(text: str) -> str:
    # Wider than any terminal: no work is spent on what would be cut off.
    return " ".join(plain(" ".join(text[:WIDEST].split())).split())


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def since(seconds: float) -> str:
    """An elapsed time, in whole seconds."""
    whole = max(0, int(seconds))
    return f"{whole}s" if whole < 60 else durations.show(whole)


def moment(at: float, now: float) -> str:
    """A time of day on the person's own clock, with the day when it is not today."""
    then, today = time.localtime(at), time.localtime(now)
    return time.strftime("%H:%M:%S" if then[:3] == today[:3] else "%b %d %H:%M", then)
