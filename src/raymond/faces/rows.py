"""The live block in rows: the run in one line, then its agents, as many as fit.

Rows are made of pieces, each with a style, and are never wider than the terminal. Only the rows that are shown are
made: the rest is counted, and the run keeps the counts.
"""

import time
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from raymond import durations
from raymond.faces import table, words
from raymond.faces.foreign_text import plain
from raymond.faces.words import crowd, dollars, money, stop, stuck
from raymond.machine.agent import ASKING, FAILED, PAUSED, READY, RUNNING, SLEEPING, WAITING, Agent, Closed
from raymond.machine.events import RunStopped
from raymond.machine.run import CANCELLED, Run
from raymond.machine.schedule import wake_at
from raymond.text import visible
from raymond.views.status import is_checking, is_judged, run_status, why_red

PACE = 4
"""Pictures of the spinner in a second."""

_MARKS = {ASKING: "?", PAUSED: "=", SLEEPING: "z"}

_KEPT_WORDS = 1000
"""Characters of a text that is being written: wider than any terminal."""
SILENCE = 10.0
"""Seconds of silence that are not worth a word."""

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
_SHOWN_FIRST = (RUNNING, ASKING, FAILED)
_COUNTED = (*_SHOWN_FIRST, READY, SLEEPING, WAITING, PAUSED)


# Symbols


class Symbols(Struct, frozen=True, kw_only=True):
    """The characters of the live view, each of one cell except `cut`."""

    spinner: str
    full: str
    empty: str
    ends: tuple[str, str] = ("", "")
    """What a bar begins and ends with."""
    dot: str
    cut: str
    """What is put where something was left out."""
    marks: dict[str, str]
    """By the status of an agent."""

    def bar(self, part: float, size: int) -> str:
        """A bar of `size` cells that is full by `part`."""
        full = max(0, min(size, int(part * size)))
        return f"{self.ends[0]}{self.full * full}{self.empty * (size - full)}{self.ends[1]}"

    def spin(self, now: float) -> str:
        """The spinner's picture at `now`."""
        return self.spinner[int(now * PACE) % len(self.spinner)]


UNICODE = Symbols(
    spinner="⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏",
    full="█",
    empty="░",
    dot="·",
    cut="…",
    marks={**_MARKS, FAILED: "✗", READY: "·", WAITING: "…"},
)
ASCII = Symbols(
    spinner="|/-\\",
    full="#",
    empty="-",
    ends=("[", "]"),
    dot="-",
    cut="...",
    marks={**_MARKS, FAILED: "x", READY: ".", WAITING: "."},
)


def symbols_for(environment: Mapping[str, str]) -> Symbols:
    """The look for the terminal that `environment` describes."""
    # Python itself sets LC_CTYPE=C.UTF-8 where no locale is set: that says nothing about the terminal.
    ours = "" if environment.get("LANG", "") in ("", "C", "POSIX") else environment.get("LANG", "")
    kinds = [environment.get("LC_ALL", ""), environment.get("LC_CTYPE", ""), ours]
    if not kinds[0] and not ours and kinds[1] in ("C.UTF-8", "C.utf8", "UTF-8"):
        return ASCII
    locale = next(filter(None, kinds), "").lower().replace("-", "")
    # The console of Linux has few of these characters.
    return UNICODE if "utf8" in locale and environment.get("TERM") != "linux" else ASCII


# What agents do


class Activity(Struct):
    """What was heard of an agent."""

    last: str = ""
    """The last line that it said, or the last tool that it used."""
    words: str = ""
    """The end of the text that it is writing."""
    check: str = ""
    """The command of its gate that runs."""
    heard: float = 0.0
    """When it last showed a sign of life; 0 when that is not known."""
    context: str = ""
    """How much of its context window is used, in a few characters."""

    def hear(self, kind: str, text: str, now: float) -> None:
        """Take what a step shows."""
        self.heard = now
        match kind:
            case "life":
                pass
            case "context":
                self.context = context_in_use(text)
            case "check":
                self.check = plain(" ".join(text.split()))
            case "words":
                self.words = (self.words + text)[-_KEPT_WORDS:]
            case _:
                self.words = ""
                lines = [plain(line) for line in text.splitlines()]
                self.last = next((line for line in reversed(lines) if line.strip()), "")

    def begin(self, now: float) -> None:
        """A step begins."""
        self.words, self.check, self.heard = "", "", now

    def end(self) -> None:
        """The visit is over."""
        self.last = self.words = self.check = ""
        self.heard = 0.0

    def silent(self, now: float) -> float:
        """For how many seconds nothing was heard; 0 when that is not worth a word."""
        return now - self.heard if self.heard and now - self.heard >= SILENCE else 0.0


def context_in_use(text: str) -> str:
    """`12000` or `12000/200000` tokens, as people read them."""
    used, _, window = text.partition("/")
    if not used.isdigit() or (window and not window.isdigit()):
        return ""
    if window and int(window):
        return f"{min(100, round(100 * int(used) / int(window)))}% ctx"
    return f"{int(used) / 1000:.0f}k ctx"


# The block


_NO_ACTIVITY = Activity()
_RANKS = {status: rank for rank, status in enumerate(_SHOWN_FIRST)}


def block(
    run: Run,
    doings: Mapping[str, Activity],
    *,
    width: int,
    height: int,
    now: float,
    look: Symbols = UNICODE,
    more: Sequence[Row] = (),
) -> list[Row]:
    """The block for a terminal of this size; `doings` are by agent, and `more` comes before the agents."""
    room = max(1, height - SPARE)
    closed = [*(_closed(name, one, now) for name, one in run.closed.items()), *more][: max(0, room - 2)]
    room -= 1 + len(closed)
    folds = bool(run.outcomes) or len(run.agents) > room
    shown = _select(run, room - folds)
    made = [_header(run, now, look), *closed, *Agents(run, doings, width, now, look).rows(shown)]
    if folds and room > 0:
        made.append(_fold(run, shown))
    return [fit(row, width, look.cut) for row in made]


def title(run: Run, now: float) -> str:
    """The run in a few words, for the title of the window."""
    word = status(run, now)[0].partition(":")[0].partition(" until")[0]
    return plain(f"raymond {run.start.workflow_id}: {word} {_many(len(run.agents), 'agent')} {money(run)}")


def fit(row: Row, width: int, cut: str = UNICODE.cut) -> Row:
    """`row` cut to `width` cells, with `cut` where something is missing."""
    fitted: Row = []
    left = width
    for number, (text, style) in enumerate(row):
        size = table.cell_count(text)
        if size > left or (size == left and any(rest.strip() for rest, _ in row[number + 1 :])):
            fitted.append((_shortened(text, left, cut), style))
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


def _header(run: Run, now: float, look: Symbols) -> Row:
    words, style = status(run, now)
    rest = [elapsed(now - run.started_at), _many(run.iterations, "step")]
    dot = f" {look.dot} "
    row = [(run.start.workflow_id, "bold"), (dot, "dim"), (words, style)]
    for text in rest:
        row += [(dot, "dim"), (text, "")]
    budget = run.limits.budget
    if budget:
        return [*row, (dot, "dim"), (f"{money(run)} of {dollars(budget)} ", ""), _bar(run.cost / budget, look)]
    return [*row, (dot, "dim"), (money(run), "")]


def _bar(spent: float, look: Symbols) -> Piece:
    style = "red" if spent >= 0.9 else "yellow" if spent >= 0.7 else "green"
    return look.bar(spent, BAR), style


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
    if stopped.kind == "paused":
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
    for one in _SHOWN_FIRST:
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
        rank = _RANKS.get(agent.status, len(_SHOWN_FIRST))
        if agent is not main and len(ranked[rank]) < quotas[rank]:
            ranked[rank].append(agent)
            missing -= 1
    return shown + [agent for rank in ranked for agent in rank]


class Agents:
    """The rows of agents, in columns."""

    def __init__(self, run: Run, doings: Mapping[str, Activity], width: int, now: float, look: Symbols) -> None:
        self._run = run
        self._doings = doings
        self._width = width
        self._now = now
        self._look = look
        self._is_narrow = width < NARROW
        """Where there is little room, what an agent does says more than where."""

    def rows(self, shown: list[Agent]) -> list[Row]:
        """A row for each."""
        width, cut = self._width, self._look.cut
        columns = [
            (_column([self._mark(agent) for agent in shown], gap=1), ""),
            (_column([_tail(plain(agent.id), max(8, width // 3), cut) for agent in shown]), "bold"),
            (_column([self._part(label_of(agent)) for agent in shown]), "cyan"),
            (_column([self._part(_state(agent)) for agent in shown]), ""),
            (_column([agent.status for agent in shown]), ""),
            (_column([elapsed(self._now - words.status_since(agent)) for agent in shown], right=True), "dim"),
            (_column([_cost(agent) for agent in shown], right=True), ""),
            (_column([self._doing(agent).context for agent in shown], right=True), "dim"),
        ]
        return [self._row(agent, [(texts[n], style) for texts, style in columns]) for n, agent in enumerate(shown)]

    def _row(self, agent: Agent, row: Row) -> Row:
        of_status = STYLES.get(agent.status, "")
        row[0], row[4] = (row[0][0], of_status), (row[4][0], of_status)
        return [*row, self._detail(agent, self._width - sum(table.cell_count(text) for text, _ in row))]

    def _doing(self, agent: Agent) -> Activity:
        return self._doings.get(agent.id) or _NO_ACTIVITY

    def _mark(self, agent: Agent) -> str:
        if self._is_narrow:
            return ""
        return self._look.spin(self._now) if agent.status == RUNNING else self._look.marks.get(agent.status, " ")

    def _part(self, text: str) -> str:
        return "" if self._is_narrow else head(text, self._width // 4, self._look.cut)

    def _detail(self, agent: Agent, room: int) -> Piece:
        visit = agent.visit
        until = f"until {moment(visit.wake_at, self._now)}" if visit.wake_at else ""
        match agent.status:
            case "running":
                return self._work(agent, room), "dim"
            case "asking":
                return _asks(agent, until, room), "yellow"
            case "failed" | "paused":
                return _line(stuck(agent)), "red" if agent.status == FAILED else "yellow"
            case "waiting":
                return " ".join(part for part in (f"for {_many(agent.alive, 'agent')}", until) if part), "dim"
            case "sleeping" if visit.failures:
                return f"attempt {visit.attempt + 1} at {moment(visit.wake_at, self._now)}", "dim"
            case "ready":
                return until or words.waiting_for(self._run, agent, lambda at: moment(at, self._now)), "dim"
            case _:
                return until, "dim"

    def _work(self, agent: Agent, room: int) -> str:
        """What it does: since when it is silent, and what it writes now, or what it did last."""
        doing, attempt = self._doing(agent), agent.visit.attempt
        if is_checking(agent):
            return f"checks: {doing.check}" if doing.check else "checks"
        if is_judged(agent):
            return "is evaluated"
        silent = doing.silent(self._now)
        parts = [f"attempt {attempt}" if attempt > 1 else "", f"silent for {elapsed(silent)}" if silent else ""]
        told = agent.visit.gate_tries if why_red(agent) else 0
        parts.append(f"told {_many(told, 'time')} that its gate is red" if told else "")
        before = ", ".join(filter(None, parts))
        room -= table.cell_count(before) + 2 if before else 0
        words = _line(doing.words[-WIDEST:])
        last = end(words, room, self._look.cut) if words else _line(doing.last)
        return ": ".join(part for part in (before, last) if part)


def label_of(agent: Agent) -> str:
    """What the workflow calls the agent; empty when it has no name for it."""
    return plain(agent.label)


def _cost(agent: Agent) -> str:
    return dollars(agent.cost - agent.scripted, agent.scripted, estimated=agent.estimated) if agent.cost else ""


def _state(agent: Agent) -> str:
    visits = (agent.visits or {}).get(agent.state, 0)
    return plain(f"{agent.state} x{visits}" if visits > 1 else agent.state)


def _asks(agent: Agent, until: str, room: int) -> str:
    """The question where all of it fits, else only that there is one: nobody decides about half a question."""
    late = f" ({until})" if until else ""
    question = visible(agent.question.strip())
    lines = agent.question.strip().count("\n") + 1
    if lines == 1 and table.cell_count(question) + table.cell_count(late) <= room:
        return f"{question}{late}"
    return f"a question of {_many(lines, 'line')}{late}"


def _fold(run: Run, shown: list[Agent]) -> Row:
    counts = dict.fromkeys(_COUNTED, 0) | run.statuses
    for agent in shown:
        counts[agent.status] -= 1
    counts["ended"] = ended = run.started - len(run.agents)
    left = {status: count for status, count in counts.items() if count}
    told = f" ({next(iter(left))})" if len(left) == 1 else f": {', '.join(f'{left[one]} {one}' for one in left)}"
    return [(f"... and {len(run.agents) - len(shown) + ended} more{told}", "dim")]


# --- words and columns


def _column(texts: list[str], *, right: bool = False, gap: int = 2) -> list[str]:
    """Texts of one width and `gap` spaces after them; nothing when there is nothing to show."""
    size = max(map(table.cell_count, texts), default=0)
    if not size:
        return texts
    pads = [" " * (size - table.cell_count(text)) for text in texts]
    space = " " * gap
    return [f"{pad}{text}{space}" if right else f"{text}{pad}{space}" for text, pad in zip(texts, pads, strict=True)]


def head(text: str, width: int, cut: str) -> str:
    """The beginning of a text that is too long, and `cut`."""
    return text if table.cell_count(text) <= width else _shortened(text, width, cut)


def _shortened(text: str, width: int, cut: str) -> str:
    left = width - len(cut)
    return f"{table.clip(text, left).rstrip()}{cut}" if left >= 0 else cut[: max(0, width)]


def end(text: str, width: int, cut: str) -> str:
    """The end of a text that is too long, after `cut`."""
    if table.cell_count(text) <= width:
        return text
    left = width - len(cut)
    return f"{cut}{table.clip(text[::-1], left)[::-1]}" if left >= 0 else cut[: max(0, width)]


def _tail(text: str, width: int, cut: str) -> str:
    """The end of a long name: forks of forks differ there."""
    return text if len(text) <= width else f"{cut}{text[len(cut) - width :]}"


def _line(text: str) -> str:
    # Wider than any terminal: no work is spent on what would be cut off.
    return " ".join(plain(" ".join(text[:WIDEST].split())).split())


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def elapsed(seconds: float) -> str:
    """An elapsed time, in whole seconds."""
    whole = max(0, int(seconds))
    return f"{whole}s" if whole < 60 else durations.show(whole)


def moment(at: float, now: float) -> str:
    """A time of day on the person's own clock, with the day when it is not today."""
    then, today = time.localtime(at), time.localtime(now)
    return time.strftime("%H:%M:%S" if then[:3] == today[:3] else "%b %d %H:%M", then)
