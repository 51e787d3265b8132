"""The live block on a terminal: what matters stays as lines above it, the rest is redrawn.

A question is written whole above the block, and answered below it, while the rows of the other agents go on.
"""

import io
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Protocol, TextIO

from raymond.drivers.face import Quiet
from raymond.faces import question, rows, terminal, words
from raymond.faces.editor import LONGEST_ANSWER, Entry, Typed
from raymond.faces.foreign_text import hung, in_margin, plain
from raymond.faces.lines import Lines, output, wrapped
from raymond.faces.rows import PACE, Activity, Row, Symbols, symbols_for
from raymond.faces.words import with_author_paths
from raymond.language import choices
from raymond.language.refusal import cut
from raymond.machine.agent import ASKING
from raymond.machine.events import (
    AgentCalled,
    AgentEnded,
    AgentFailed,
    AgentMoved,
    AgentReturned,
    AgentStarted,
    AgentWoke,
    AskEnded,
    AskStarted,
    BackendClosed,
    Decision,
    Event,
    RequestTaken,
    RunEnded,
    RunStopped,
    StepFailed,
    StepFinished,
    StepStarted,
    WaitEnded,
    WaitStarted,
)
from raymond.machine.run import Run
from raymond.store import asked_files
from raymond.text import visible
from raymond.views.questions import Question, question_of

usable = terminal.usable

_MOST_LINES = 6
"""Lines of an answer that are shown while it is written."""
_HOW_TO_ANSWER = "Enter sends it, Ctrl-L shows the question again, Ctrl-D leaves it open"
COLLECTED_SECONDS = 0.05
"""Seconds for which what steps print is collected."""
_LEAVES = (AgentMoved, AgentCalled, AgentReturned, WaitEnded, AskEnded, AgentEnded, AgentFailed)
"""These end an agent's visit, and any question it asked."""
_MOVES = (AgentStarted, AgentMoved, AgentCalled, AgentReturned, AgentWoke, WaitStarted, WaitEnded)
_STYLES = {AgentFailed: "red", StepFailed: "red", BackendClosed: "yellow", RunStopped: "yellow", RunEnded: "bold"}


# What a kind of run adds to the live view: rows of its own, and what Enter means below a question


class Board(Protocol):
    """Rows between the header of the block and its agents."""

    def rows(self, run: Run, look: Symbols, now: float) -> list[Row]:
        """The rows, the most important first: where there is little room, the last are left out."""

    def enter(self, asked: Question) -> str:
        """The answer that Enter alone gives; empty when it gives none."""


class NoBoard:
    """Nothing is added."""

    def rows(self, run: Run, look: Symbols, now: float) -> list[Row]:
        """No rows."""
        return []

    def enter(self, asked: Question) -> str:
        """Enter alone is no answer."""
        return ""


class Live(Quiet):
    """A face that draws a block, and asks a person what agents ask."""

    refresh_every = 1 / PACE

    def __init__(
        self,
        stream: TextIO | None = None,
        *,
        stdin: int = -1,
        refuses: Callable[[str], str] = lambda answer: "",
        clock: Callable[[], float] = time.time,
        size: Callable[[], tuple[int, int]] | None = None,
        watches: bool = False,
    ) -> None:
        self.stdin = stdin
        self.board: Board = NoBoard()
        self._refuses = refuses
        """Names the secret in an answer; empty when there is none."""
        self._clock = clock
        self._terminal = terminal.Terminal(stream or sys.stderr, stdin, size)
        self._kept = Kept(self._terminal.paint, self._hides, self._terminal.size)
        self._run: Run | None = None
        self._look = symbols_for(os.environ)
        self._watches = watches
        """Another process drives the run: what steps do is heard when they have ended."""
        self._doings: dict[str, Activity] = {}
        self._asks: dict[str, str] = {}
        """Questions nobody has answered yet, oldest first."""
        self._asked = ""
        """The agent whose question is answered below the block."""
        self._left: set[str] = set()
        """Agents whose question a person leaves open."""
        self._answered: set[str] = set()
        """Agents answered here, until the journal has it."""
        self._entry = Entry(clock)
        self._shown: list[str] = []
        """What was shown of the question's files."""
        self._after = 0
        """Lines written after the question."""
        self._size = (0, 0)
        """The terminal when it was drawn last."""
        self._is_resized = False
        """Its size has changed after the question was written."""
        self._drawn_at = 0.0
        self._over = False
        self._leaves = False
        """Ctrl-Z was typed."""
        # A shell without job control ignores it, and so do we.
        self._stops = self._terminal.real and signal.getsignal(signal.SIGTSTP) == signal.SIG_DFL
        self._hear_stops()

    @property
    def can_answer(self) -> bool:
        """Whether a question is open that nobody has left open here, or there is none."""
        return self.stdin >= 0 and (not self._asks or not self._asks.keys() <= self._left)

    def on_decisions(self, run: Run, decisions: list[Decision]) -> None:
        """Note what is now in the journal."""
        self._kept.on_decisions(run, decisions)
        self._kept.refresh()
        for decision in decisions:
            for event in decision.events:
                self._note(event)
        if self._run is None and run.statuses.get(ASKING):
            # Asked before this process resumed the run.
            found = sorted(
                (agent for agent in run.agents.values() if agent.status == ASKING), key=lambda one: one.visit.since
            )
            self._asks = {agent.id: agent.question for agent in found} | self._asks
        self._run = run
        if self._asked and run.stop:
            self._leave_open()

    def on_output(self, agent: str, kind: str, text: str) -> None:
        """What a step prints stays; what else it does is seen in its row."""
        self._doings.setdefault(agent, Activity()).hear(kind, text, 0.0 if self._watches else self._clock())
        if kind == "print":
            self._kept.on_output(agent, kind, "\n".join(plain(line) for line in text.splitlines()))
            if abs(self._clock() - self._drawn_at) >= COLLECTED_SECONDS:
                self._draw()

    def on_note(self, text: str) -> None:
        """Something a person should know."""
        self._kept.on_note(text)
        self._draw()

    is_terminal = True

    def give(self, board: Board) -> None:
        """Show a loop, which tells its items itself: what its agents and states do is seen in their rows alone."""
        self.board = board
        self._kept.is_quiet = True

    def tell(self, at: float, text: str) -> None:
        """Something that happened at a time."""
        self._kept.tell(at, text)
        self._draw()

    def on_pausing(self, run: Run) -> None:
        """Say what Ctrl-C waits for."""
        self._kept.on_pausing(run)
        self._draw()

    def refresh(self, run: Run) -> None:
        """Show the current state."""
        self._run = run
        if self._leaves:
            self._suspend()
        self._draw()

    def answers(self) -> list[tuple[str, str]]:
        """The answer to the question on the screen, when its line is complete."""
        if self.stdin < 0 or not self._terminal.ours():
            return []
        try:
            data = os.read(self.stdin, 65536)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            self._hang_up()
            return []
        asked = self._question()
        answer = self._entry.take(data, is_asked=bool(self._asked), enter=self.board.enter(asked) if asked else "")
        answers: list[tuple[str, str]] = []
        if answer is Typed.LEAVE:
            self._leave_open()
        elif answer is Typed.TOO_LONG:
            self._kept.on_note(self._too_long())
        elif answer is Typed.AGAIN:
            self._print_question()
        elif isinstance(answer, str):
            wrong = self._wrong(answer)
            if wrong:
                width, _ = self._terminal.size()
                told = (part for one in wrong for part in hung(plain(one), question.MARGIN, width))
                self._kept.put("".join(f"{part}\n" for part in told))
            else:
                answers.append((self._asked, answer))
                self._answer(answer)
        self._draw()
        return answers

    def _wrong(self, answer: str) -> list[str]:
        """Why an answer cannot be sent, in lines; empty when it can."""
        secret = self._refuses(answer)
        if secret:
            return [f"not sent: it contains {secret}; a step reads secrets from its environment"]
        asked = self._question()
        if asked and asked.choices and choices.pick(asked.choices, answer) is None:
            self._entry.end()  # whoever types another choice need not delete this one
            told = cut(" ".join(answer.split()))
            return [f"not sent: `{told}` is not one of: {choices.offer(asked.choices)}"]
        found = asked_files.read_all(asked.cwd, asked.files) if asked else []
        hidden = asked_files.why_hidden(found)
        if hidden:
            return [f"not sent: {hidden}; to answer all the same:", f"  {self._way()} --unseen"]
        if [one.mark for one in found] != self._shown:
            self._print_question()
            return ["not sent: a file has changed since it was shown: see above, and answer again"]
        return []

    def close(self) -> None:
        """Take the block away and leave the terminal as it was."""
        if not self._over:
            self._over = True
            self._take_back()
            self._draw()
            self._terminal.close()
            if self._stops:
                signal.signal(signal.SIGTSTP, signal.SIG_DFL)
                signal.signal(signal.SIGCONT, signal.SIG_DFL)

    # --- what happened

    def _note(self, event: Event) -> None:
        if isinstance(event, StepStarted):
            self._doings.setdefault(event.agent, Activity()).begin(0.0 if self._watches else self._clock())
        elif isinstance(event, AskStarted):
            self._asks[event.agent] = event.question
            self._left.discard(event.agent)
        elif isinstance(event, _LEAVES):
            if event.agent in self._doings:
                self._doings[event.agent].end()
            self._asks.pop(event.agent, None)
            self._left.discard(event.agent)
            self._answered.discard(event.agent)
            if event.agent == self._asked:
                self._take_back()
                if isinstance(event, AskEnded):
                    how = "nobody answered in time" if event.timed_out else "answered elsewhere"
                    self._kept.on_note(plain(f"{event.agent} no longer asks: {how}; it continues at {event.state}"))
            if isinstance(event, AgentEnded):
                self._doings.pop(event.agent, None)
        elif isinstance(event, RequestTaken) and event.problem:
            self._answered.clear()

    def _hides(self, event: Event) -> bool:
        """Whether `event` needs no line that stays: the block shows it, or another line says it."""
        match event:
            case AskStarted():
                return self._asks_here(self._run)
            case AskEnded():
                return event.agent in self._answered or event.agent == self._asked
            case RequestTaken():
                return event.kind == "answer" and not event.problem
            case RunStopped():
                return event.kind == "paused"
            case AgentMoved():
                return not event.instead_of and event.tag not in ("on_error", "on_fail", "moved")
            case WaitEnded():
                return not event.instead_of and not event.timed_out
            case _:
                return isinstance(event, _MOVES)

    def _draw(self) -> None:
        self._drawn_at = self._clock()
        run = self._run
        if run is None or self._over or not self._terminal.ours():
            self._terminal.draw(self._kept.take(), [])
            return
        if not self._asked and self._open() and self._asks_here(run):
            self._ask()
        width, height = size = self._terminal.size()
        label: list[rows.Row] = []
        draft = None
        if self._asked:
            # The rows of the agents come last when there is little room.
            draft = self._entry.draft(width, max(1, min(_MOST_LINES, height - 3)))
            label = [rows.fit([(self._label(), "bold yellow")], width, self._look.cut)] if height > 3 else []
            height -= len(label) + len(draft.lines)
        now = self._clock()
        room = height > rows.SPARE or not draft
        drawn = self._rows(run, width, height, now) if room else []
        text = self._kept.take()
        if draft:
            text += self._again(text, size, len(drawn) + len(label) + len(draft.lines))
            draft = self._entry.draft(width, len(draft.lines))
        self._size = size
        self._terminal.draw(text, [*drawn, *label], title=rows.title(run, now), draft=draft)

    def _rows(self, run: Run, width: int, height: int, now: float) -> list[rows.Row]:
        more = self.board.rows(run, self._look, now)
        return rows.block(run, self._doings, width=width, height=height, now=now, look=self._look, more=more)

    # --- Ctrl-Z

    def _hear_stops(self) -> None:
        if self._stops:
            signal.signal(signal.SIGTSTP, self._note_stop)
            signal.signal(signal.SIGCONT, self._note_return)

    def _note_stop(self, _number: int, _frame: object) -> None:
        self._leaves = True

    def _note_return(self, _number: int, _frame: object) -> None:
        # The shell may say `bg` before we have stopped: nobody would continue us then.
        self._leaves = False

    def _suspend(self) -> None:
        """Give the shell its terminal; the block, or the question, returns when the shell gives it back."""
        self._leaves = False
        self._take_back()
        self._terminal.draw(self._kept.take(), [])
        self._terminal.close()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        self._hear_stops()

    # --- questions

    def _asks_here(self, run: Run | None) -> bool:
        return self.stdin >= 0 and not (run and (run.stop or run.final_status)) and self._terminal.ours()

    def _open(self) -> list[str]:
        """Agents whose questions are still to be answered here, the oldest first."""
        return [agent for agent in self._asks if agent not in self._left]

    def _ask(self) -> None:
        self._asked = self._open()[0]
        self._entry.begin(self._terminal.drain())
        self._size, self._is_resized = self._terminal.size(), False
        self._print_question()

    def _question(self) -> Question | None:
        agent = self._run.agents.get(self._asked) if self._run else None
        return question_of(self._run.start.workflow_id, agent, self._run.start.cwd) if self._run and agent else None

    def _again(self, text: str, size: tuple[int, int], block: int) -> str:
        """The question, when `text` pushes it off the screen or the terminal has got another size."""
        self._after += text.count("\n")
        is_pushed = self._after > 0 and self._after + block >= size[1]
        is_settled = self._is_resized and size == self._size  # once, and not for every step of a window that is drawn
        self._is_resized = not is_settled and (self._is_resized or size != self._size)
        if not is_pushed and not is_settled:
            return ""
        self._print_question(most=max(1, size[1] - block))
        self._after = 0
        return self._kept.take()

    def _print_question(self, most: int = 0) -> None:
        """All of it, with its files and choices, inside its margin, and nothing in it that is hidden.

        One of more than `most` lines is only mentioned, unless that is 0.
        """
        asked = self._question()
        if not asked:
            return
        width, _ = self._terminal.size()
        found = asked_files.read_all(asked.cwd, asked.files)
        asks = f"{words.named(asked.agent, asked.label)} asks:"
        first, *rest = question.beside(asks, self._asks[self._asked], question.MARGIN, width)
        lines = [*hung(first, question.MARGIN, width), *rest, *question.rest(asked, found, width)]
        if 0 < most < len(lines):
            told = f"{visible(asks)} {len(lines)} lines, see above; Ctrl-L shows them again"
            lines = hung(told, question.MARGIN, width)
        else:
            marks = [one.mark for one in found]
            if marks != self._shown:
                self._entry.end()  # what was typed was meant for what was shown before
            self._shown = marks
        head, tail = lines[0][: len(visible(asks))], lines[0][len(visible(asks)) :]
        lines[0] = f"{self._terminal.paint(head, 'bold yellow')}{tail}"
        self._kept.put("".join(f"{line}\n" for line in lines))
        self._after = -self._kept.lines

    def _label(self) -> str:
        more = len(self._open()) - 1
        waits = f"; {words.many(more, 'more question')} {'waits' if more == 1 else 'wait'}" if more else ""
        how = "what was typed before is dropped: press Enter, then answer" if self._entry.is_locked else _HOW_TO_ANSWER
        return f"answer {self._who()}{waits} ({how})"

    def _who(self) -> str:
        asked = self._question()
        return plain(words.named(asked.agent, asked.label) if asked else self._asked)

    def _answer(self, text: str) -> None:
        agent, self._asked = self._asked, ""
        self._asks.pop(agent, None)
        self._answered.add(agent)
        width, _ = self._terminal.size()
        self._kept.put("".join(f"{line}\n" for line in in_margin(text, f"{plain(agent)} < ", width)))

    def _take_back(self) -> None:
        """The question on the screen can no longer be answered here; what was typed for it is dropped."""
        if self._asked:
            self._asked = ""
            self._entry.end()

    def _way(self) -> str:
        return plain(f"raymond answer {self._run.start.workflow_id if self._run else 'ID'} {self._asked}")

    def _too_long(self) -> str:
        return f"not taken: more than {LONGEST_ANSWER:,} characters were typed; {self._way()} --file FILE takes them"

    def _leave_open(self) -> None:
        """Leave the question to somebody else; the next one is asked."""
        note = f"no answer; to answer later: {self._way()}"
        self._left.add(self._asked)
        self._take_back()
        self.on_note(note)

    def _hang_up(self) -> None:
        """Nobody types any more."""
        if self._asked or not self._terminal.there():
            self.stdin = -1
        if self._asked:
            self._leave_open()


class Kept(Lines):
    """The lines that stay, until they are taken; with the time of day, as a terminal is read on the same day."""

    def __init__(
        self, paint: Callable[[str, str], str], hides: Callable[[Event], bool], size: Callable[[], tuple[int, int]]
    ) -> None:
        self._size = size
        self._text = io.StringIO()
        super().__init__(self._text)
        self._paint = paint
        self._hides = hides

    def _width(self) -> int:
        return self._size()[0]

    @property
    def lines(self) -> int:
        """How many lines were not taken yet."""
        return self._text.getvalue().count("\n")

    def take(self) -> str:
        """What was not taken yet."""
        text = self._text.getvalue()
        if text:
            self._text.seek(0)
            self._text.truncate()
        return text

    def _lines(self, decision: Decision, spent: dict[str, str], total: str) -> str:
        lines: list[str] = []
        failed = {event.agent for event in decision.events if isinstance(event, AgentFailed)}
        for event in decision.events:
            if isinstance(event, StepStarted | StepFinished) or (
                isinstance(event, StepFailed) and event.agent in failed
            ):
                continue
            # Also for hidden events: it keeps track of where an agent was, and whose cost was shown.
            with words.times_for(None):
                line = self._line(event, spent, total, self._width())
            if isinstance(event, AgentFailed):
                mine = (one for one in decision.events if isinstance(one, StepFailed) and one.agent == event.agent)
                printed = next((one.output for one in mine), "")
                line += output(with_author_paths(printed, self.folder), self._width())
            if line and not self._hides(event):
                lines.append(self._at(decision.time, line, _STYLES.get(type(event), "")))
        return "".join(lines)

    def tell(self, at: float, text: str) -> None:
        """Something that happened at a time."""
        self.put(self._at(at, text))

    def _at(self, at: float, text: str, style: str = "") -> str:
        when = time.strftime("%H:%M:%S", time.localtime(at))
        line = wrapped(f"{when} {_plain(text)}", self._width()).removeprefix(f"{when} ")
        return f"{self._paint(when, 'dim')} {self._paint(line, style)}\n"


def _plain(text: str) -> str:
    """All lines of `text`: a question has several."""
    return "\n".join(map(plain, text.split("\n")))
