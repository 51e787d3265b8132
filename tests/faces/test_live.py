"""The live block: its rows, what stays above it, questions on the terminal, and all of it in a real one."""

import contextlib
import io
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from builders import START, Play, head, place, start
from raymond.faces import live
from raymond.faces import rows as rows_module
from raymond.faces import terminal as terminal_module
from raymond.faces.foreign_text import plain
from raymond.faces.live import Live
from raymond.faces.rows import ASCII, UNICODE, Activity, Symbols, symbols_for
from raymond.machine import decide, evolve
from raymond.machine.agent import Stuck
from raymond.machine.events import (
    AgentPaused,
    AgentStarted,
    AskStarted,
    Decision,
    RunStopped,
    StepFinished,
    StepStarted,
    WaitStarted,
)
from raymond.machine.run import Run
from raymond.store import asked_files
from running import GO, Room, until
from terminals import MARK, Pane, in_tmux

FILES = {"START.md": "", "A.md": "", "B.md": "", "N.md": "", "T.md": "", "S.sh": ""}
FORK_TWO = "<fork>A</fork><fork>B</fork><wait>N</wait>"
ASK = '<ask next="A">Which colour?</ask>'


@pytest.fixture(autouse=True)
def _the_same_everywhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Times are shown as a person's clock has them, colours as the environment wants them."""
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    for name in ("NO_COLOR", "COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def play(*texts: str, **given: Any) -> Play:
    made = Play(FILES, **{"workflow_id": "r", **given})
    for text in texts:
        made.say(text)
    return made


def rows(
    made: Run,
    width: int = 80,
    height: int = 24,
    *,
    after: float = 0.0,
    look: Symbols = UNICODE,
    last: dict[str, str] | None = None,
    doing: dict[str, Activity] | None = None,
    marked: bool = False,
) -> list[str]:
    """The block as text."""
    doings = (doing or {}) | {name: Activity(last=text) for name, text in (last or {}).items()}
    shown = rows_module.block(made, doings, width=width, height=height, now=START + after, look=look)
    made_of = ["".join(text for text, _ in row) for row in shown]
    return made_of if marked else [MARK.sub("", row) for row in made_of]


def crowd(count: int, running: int = 0) -> Run:
    """A run whose main agent waits for `count` agents; some of them run."""
    workspace = place(FILES)
    names = [f"main_a{number + 1}" for number in range(count)]
    begun = decide.begin(start(workspace, workflow_id="r", budget=10.0, max_turns_at_once=count))
    told = [
        *begun,
        StepStarted(agent="main", step=1, backend="claude"),
        *(AgentStarted(agent=name, state="A.md", parent="main") for name in names),
        WaitStarted(agent="main", state="N.md"),
        *(StepStarted(agent=name, step=number + 2, backend="claude") for number, name in enumerate(names[:running])),
    ]
    return evolve.fold([Decision(seq=1, time=START, events=told)])


# --- what a terminal may be given


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("as it is", "as it is"),
        ("a\tb", "a b"),
        ("\x1b[2J\x1b[31mred\x1b[0m", "red"),
        ("\x1b]2;title\x07text\x1b]8;;http://x\x1b\\link", "textlink"),
        ("\x1b]52;c;never ended", "52;c;never ended"),
        ("\x1bcreset \x1b(Bset", "reset set"),
        ("bell\x07 back\x08 return\r delete\x7f", "bell back return delete"),
        ("\x9b2J one byte", "2J one byte"),
        ("left \u202eto right\u2066", "left to right"),
        ("no\u200b mark\u200f at\u061c all\ufeff", "no mark at all"),
        ("Grüße 世界 🎉", "Grüße 世界 🎉"),
        ("half \ud83d a pair", "half \ufffd a pair"),
    ],
)
def test_what_moves_a_cursor_is_taken_out_of_texts(text: str, shown: str) -> None:
    assert plain(text) == shown


@pytest.mark.parametrize(
    ("terminal", "term", "usable"),
    [
        (True, "xterm", True),
        (True, "dumb", False),
        (True, "unknown", False),
        (True, "", False),
        (True, None, False),
        (False, "xterm", False),
    ],
)
def test_a_block_needs_a_terminal_that_can_move_its_cursor(
    terminal: bool, term: str | None, usable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TERM") if term is None else monkeypatch.setenv("TERM", term)
    assert live.usable(Paper(terminal=terminal)) is usable


# --- the rows


def mixed() -> Play:
    """An agent in every status, in no good order."""
    forks = "".join(f"<fork>{state}</fork>" for state in ("A", "B", "A", "B", "A", "B"))
    made = play(f"{forks}<wait>N</wait>", budget=10.0, max_turns_at_once=10)
    made.say('<goto after="17m">A</goto>', "main_a1")
    made.say('<ask next="A">Which\n  colour?</ask>', "main_b2", cost=0.07)
    made.fail("setup", "main_a3", error="no such model")
    made.say("<goto>B</goto>", "main_b4", cost=0.25)
    made.begin("main_b4")
    made.begin("main_a5")
    return made


MIXED: dict[str, Any] = {
    "last": {"main_b4": "Read src/x.py", "main_a5": "says\x1b[2J this"},
}


def test_at_80_columns_there_is_a_row_for_every_agent() -> None:
    assert rows(mixed().run, 80, after=75, **MIXED) == [
        "r · running · 1m 15s · 5 steps · $0.32 of $10.00 ░░░░░░░░░░",
        "main     START.md  waiting   1m 15s         for 5 agents",
        "main_b4  B.md x2   running   1m 15s  $0.25  Read src/x.py",
        "main_a5  A.md      running   1m 15s         says this",
        "main_b2  B.md      asking    1m 15s  $0.07  a question of 2 lines",
        "main_a3  A.md      failed    1m 15s         no such model",
        "main_a1  A.md x2   sleeping  1m 15s         until 14:03:40",
        "main_b6  B.md      ready     1m 15s",
    ]


def test_the_row_of_an_agent_that_is_paused_says_why() -> None:
    made = play()
    made.commit([AgentPaused(agent="main", kind="denied", tools=["Bash(make:*)", "Edit"])])
    assert rows(made.run, 80)[1] == "main  START.md  paused  0s  denied tools it needs: Bash(make:*), Edit"


def test_at_200_columns_nothing_is_cut_and_at_20_everything_ends_in_an_ellipsis() -> None:
    made = mixed()
    made.agent("main_a3").visit.stuck = Stuck("setup", "word " * 60)
    wide, narrow = rows(made.run, 200, after=75, **MIXED), rows(made.run, 20, after=75, **MIXED)
    assert wide[1] == "main     START.md  waiting   1m 15s         for 5 agents"
    assert wide[5] == f"main_a3  A.md      failed    1m 15s         {'word ' * 30}wor…"
    assert narrow == [
        "r · running · 1m 15…",
        "main     waiting   …",
        "main_b4  running   …",
        "main_a5  running   …",
        "main_b2  asking    …",
        "main_a3  failed    …",
        "main_a1  sleeping  …",
        "main_b6  ready     …",
    ]


def test_a_wide_character_is_cut_as_the_two_cells_it_takes() -> None:
    made = play()
    made.begin()
    shown = [rows(made.run, width, last={"main": "世界" * 20})[1] for width in (42, 41)]
    assert shown == ["main  START.md  running  0s  世界世界世…", "main  START.md  running  0s  世界世界…"]
    assert [cell_len(row) for row in shown] == [40, 38], "without their marks"


def test_a_long_name_keeps_its_end_and_a_long_state_its_beginning() -> None:
    name = "main_review1_fix2_check3"
    made = Run()
    evolve.evolve(made, start(place(FILES), workflow_id="r"))
    evolve.evolve(made, AgentStarted(agent=name, state="A_STATE_WITH_A_VERY_LONG_NAME.md"))
    assert rows(made, 40)[1] == "…_fix2_check3  A_STATE_W…  ready  11d…"


def test_the_number_of_the_attempt_is_told() -> None:
    made = play()
    made.fail("crash")
    made.begin()
    assert rows(made.run)[1] == "main  START.md  running  0s  attempt 2"
    assert rows(made.run, last={"main": "hello"})[1] == "main  START.md  running  0s  attempt 2: hello"


def test_a_question_and_a_wait_with_a_time_say_until_when() -> None:
    made = play('<ask next="A" timeout="5m" timeout_next="B">Now?</ask>')
    assert rows(made.run)[1] == "main  START.md  asking  0s  Now? (until 13:51:40)"
    made = play('<fork>A</fork><wait timeout="5m" timeout_next="B">N</wait>')
    assert rows(made.run)[1] == "main     START.md  waiting  0s  for 1 agent until 13:51:40"


def test_a_time_on_another_day_has_its_day() -> None:
    made = play('<goto after="3d">A</goto>')
    assert rows(made.run) == [
        "r · sleeping until Jan 15 13:46 · 0s · 1 step · $0.00",
        "main  A.md  sleeping  0s  until Jan 15 13:46",
    ]


@pytest.mark.parametrize(
    ("cost", "bar"),
    [(0.0, "░░░░░░░░░░"), (0.99, "░░░░░░░░░░"), (3.5, "███░░░░░░░"), (9.99, "█████████░"), (12.0, "██████████")],
)
def test_the_bar_is_the_part_of_the_budget_that_is_spent(cost: float, bar: str) -> None:
    made = play(budget=10.0)
    made.run.cost = cost
    assert rows(made.run)[0] == f"r · running · 0s · 0 steps · ${cost:.2f} of $10.00 {bar}"


def test_without_a_budget_there_is_no_bar() -> None:
    assert rows(play().run)[0] == "r · running · 0s · 0 steps · $0.00"


def test_a_cost_that_is_estimated_says_so() -> None:
    made = play()
    made.say("<goto>A</goto>", cost=0.5, estimated=True)
    assert rows(made.run)[0] == "r · running · 0s · 1 step · ~$0.50"


def test_a_row_begins_with_a_mark_for_its_status_and_a_running_one_turns() -> None:
    made = mixed().run
    assert [row[:2] for row in rows(made, marked=True)[1:]] == ["… ", "⠋ ", "⠋ ", "? ", "✗ ", "z ", "· "]
    assert [row[:2] for row in rows(made, marked=True, after=0.25)[2:4]] == ["⠙ ", "⠙ "]
    assert rows(made, 39, marked=True)[2].startswith("main_b4"), "there is no room for it"


def test_in_ascii_nothing_else_is_shown() -> None:
    made = mixed()
    made.agent("main_a3").visit.stuck = Stuck("setup", "word " * 60)
    shown = rows(made.run, 80, after=75, look=ASCII, marked=True, **MIXED)
    assert all(row.isascii() for row in shown)
    assert shown[0] == "r - running - 1m 15s - 5 steps - $0.32 of $10.00 [----------]"
    assert shown[2].startswith("| main_b4  B.md x2   running")
    assert shown[5].endswith("w...")
    assert all(cell_len(row) <= 10 for row in rows(made.run, 10, look=ASCII, **MIXED))


@pytest.mark.parametrize(
    ("environment", "look"),
    [
        ({"LANG": "de_DE.UTF-8"}, UNICODE),
        ({"LC_ALL": "C.UTF-8"}, UNICODE),
        ({"LANG": "en_US.utf8", "TERM": "linux"}, ASCII),
        ({"LANG": "de_DE.UTF-8", "LC_ALL": "C"}, ASCII),
        ({"LANG": "de_DE.ISO-8859-1"}, ASCII),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, ASCII),
        ({"LC_CTYPE": "en_US.UTF-8"}, UNICODE),
        ({}, ASCII),
    ],
)
def test_the_look_follows_the_locale(environment: dict[str, str], look: Symbols) -> None:
    assert symbols_for(environment) is look


def test_a_running_agent_shows_what_it_writes_how_full_its_context_is_and_for_how_long_it_is_silent() -> None:
    made = play()
    made.begin()
    doing = Activity()
    doing.hear("tool", "Read x.py", START)
    doing.hear("context", "46000", START)
    doing.hear("words", "First I look\nat the", START + 1)
    doing.hear("words", " file.\x1b[2J", START + 1)

    def shown(width: int = 80, after: float = 2) -> str:
        return rows(made.run, width, after=after, doing={"main": doing})[1]

    assert shown() == "main  START.md  running  2s  46k ctx  First I look at the file."
    assert shown(50) == "main  START.md  running  2s  46k ctx  …the file.", "the end of what it writes"
    assert shown(90, 13) == "main  START.md  running  13s  46k ctx  silent for 12s: First I look at the file."
    doing.hear("context", "46000/200000", START + 20)
    doing.hear("text", "First I look\nat the file.\nThen more.", START + 20)
    assert shown(80, 21) == "main  START.md  running  21s  23% ctx  Then more."


def test_an_agent_that_could_start_says_what_it_waits_for() -> None:
    made = play(FORK_TWO, max_turns_at_once=1)
    made.begin("main_a1")
    made.now += 9
    assert rows(made.run, after=9)[3] == "main_b2  B.md      ready    9s  for a place (1 of 1 running)"
    made.say("<result>x</result>", "main_a1")
    made.begin("main_b2")
    assert rows(made.run, after=14)[2] == "main_b2  B.md      running   5s", "the time of the step, not of the wait"
    closed = play(FORK_TWO)
    closed.fail("limit", "main_a1", error="usage limit", retry_at=START + 600)
    assert rows(closed.run)[4].endswith("ready    0s  for claude until 13:56:40")
    money = play(FORK_TWO, budget=0.05, max_turns_at_once=3)
    money.begin("main_a1")
    assert rows(money.run)[3].endswith("for money that running turns may need")


def test_what_an_agent_has_cost_is_known_after_a_resume() -> None:
    made = Watched(FORK_TWO, told=False)
    made.play.say("<goto>B</goto>", "main_a1", cost=0.25)
    made.play.say("<goto>B</goto>", "main_a1", cost=0.5, estimated=True)
    made.told = len(made.play.decisions)
    made.play.resume()
    assert "main_a1  B.md x2   ready    0s  ~$0.75" in made.tell()


# --- the status in words


def words(made: Play) -> str:
    return rows_module.status(made.run, START)[0]


def two_run() -> Play:
    made = play(FORK_TWO)
    made.begin("main_a1")
    made.begin("main_b2")
    return made


def test_the_header_says_what_a_run_that_pauses_waits_for() -> None:
    made = two_run()
    made.stop(RunStopped(kind="paused"))
    assert words(made) == "pausing: finishing 2 running steps; Ctrl-C again stops them now"
    made.say("<result>x</result>", "main_a1")
    assert words(made) == "pausing: finishing 1 running step; Ctrl-C again stops it now"
    made.say("<result>x</result>", "main_b2")
    assert words(made) == "paused"


@pytest.mark.parametrize(
    ("how", "told"),
    [
        (RunStopped(kind="stop"), "stopping: finishing 2 running steps"),
        (RunStopped(kind="signal", signal=15), "stopping: stopped by SIGTERM"),
        (
            RunStopped(kind="limit", limit="budget", amount=1.0),
            "stopping: the budget of $1.00 is spent; finishing 2 running steps",
        ),
    ],
)
def test_the_header_says_why_a_run_stops(how: RunStopped, told: str) -> None:
    made = two_run()
    made.stop(how)
    assert words(made) == told


def test_the_header_says_for_whom_a_run_waits() -> None:
    assert words(play(ASK)) == "waiting for you"
    closed = play()
    closed.fail("limit", error="usage limit", retry_at=START + 600)
    assert words(closed) == "waiting for claude until 13:56:40"


def test_the_header_says_how_a_run_ended() -> None:
    done = play("<result>x</result>")
    done.pass_time()
    assert words(done) == "completed"
    failed = play()
    failed.fail("setup")
    failed.pass_time()
    assert words(failed) == "failed"


def test_a_closed_backend_has_a_line_of_its_own() -> None:
    made = play()
    made.fail("limit", error="usage limit\nreached", retry_at=START + 600)
    assert rows(made.run)[1] == "claude is unavailable until 13:56:40 (limit): usage limit reached"
    made = play()
    made.fail("auth", error="log in")
    assert rows(made.run)[1] == "claude is unavailable (auth): log in"


# --- many agents, little room


def test_of_200_agents_those_that_do_not_fit_are_counted() -> None:
    shown = rows(crowd(200, running=30), 80, 24, after=4)
    assert len(shown) == 21
    assert shown[:3] == [
        "r · running · 4s · 0 steps · $0.00 of $10.00 ░░░░░░░░░░",
        "main      START.md  waiting  4s  for 200 agents",
        "main_a1   A.md      running  4s",
    ]
    assert shown[-1] == "... and 182 more: 12 running, 170 ready"


def test_of_10000_agents_only_what_is_shown_is_made() -> None:
    shown = rows(crowd(10_000, running=4), 80, 12, after=4)
    assert shown == [
        "r · running · 4s · 0 steps · $0.00 of $10.00 ░░░░░░░░░░",
        "main     START.md  waiting  4s  for 10000 agents",
        "main_a1  A.md      running  4s",
        "main_a2  A.md      running  4s",
        "main_a3  A.md      running  4s",
        "main_a4  A.md      running  4s",
        "main_a5  A.md      ready    4s",
        "main_a6  A.md      ready    4s",
        "... and 9994 more (ready)",
    ]


def test_agents_that_have_ended_are_counted_with_those_that_do_not_fit() -> None:
    made = play("<fork>A</fork><fork>B</fork><fork>A</fork><wait>N</wait>")
    made.say("<result>x</result>", "main_a1")
    made.begin("main_a3")
    assert rows(made.run) == [
        "r · running · 0s · 2 steps · $0.00",
        "main     START.md  waiting  0s  for 2 agents",
        "main_a3  A.md      running  0s",
        "main_b2  B.md      ready    0s",
        "... and 1 more (ended)",
    ]
    assert rows(made.run, height=6) == [
        "r · running · 0s · 2 steps · $0.00",
        "main  START.md  waiting  0s  for 2 agents",
        "... and 3 more: 1 running, 1 ready, 1 ended",
    ]


@pytest.mark.parametrize("height", [1, 2, 3, 4, 5, 6, 7])
@pytest.mark.parametrize("width", [1, 2, 20])
def test_the_block_is_never_larger_than_its_place(width: int, height: int) -> None:
    made = mixed().run
    shown = rows(made, width, height, **MIXED)
    assert 1 <= len(shown) <= max(1, height - 3)
    assert all(cell_len(row) <= width for row in shown)


# --- on a terminal


class Paper(io.StringIO):
    """A terminal as far as the block needs one: what stands on it, however it was written."""

    def __init__(self, width: int = 80, height: int = 24, *, terminal: bool = True) -> None:
        super().__init__()
        self.width, self.height, self.terminal = width, height, terminal
        self.cursor = 0, 0

    def isatty(self) -> bool:
        return self.terminal

    def size(self) -> tuple[int, int]:
        return self.width, self.height

    @property
    def lines(self) -> list[str]:
        """Everything from the first line on; after the block comes an empty one."""
        lines, at, column = [""], 0, 0
        for part in re.findall(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b\].*?\x07|[\r\n]|[^\x1b\r\n]+", self.getvalue()):
            if part == "\n":
                at, column = at + 1, 0
                lines += [""] * (at + 1 - len(lines))
            elif part == "\r":
                column = 0
            elif part.startswith("\x1b["):
                at, column = self._control(lines, at, column, part)
            elif not part.startswith("\x1b]"):
                lines[at] = (lines[at][:column].ljust(column) + part + lines[at][column + len(part) :]).rstrip(" ")
                column += len(part)
        self.cursor = at, column
        return [MARK.sub("", line) for line in lines]

    def _control(self, lines: list[str], at: int, column: int, part: str) -> tuple[int, int]:
        if part.endswith(("A", "B")):
            return at + int(part[2:-1] or 1) * (-1 if part[-1] == "A" else 1), column
        if part.endswith("C"):
            return at, column + int(part[2:-1])
        if part in ("\x1b[J", "\x1b[K", "\x1b[2K"):
            lines[at] = "" if part == "\x1b[2K" else lines[at][:column]
            if part == "\x1b[J":
                del lines[at + 1 :]
        else:
            assert re.fullmatch(r"\x1b\[([\d;]+m|\?(25|2004)[lh]|2[23];2t)", part), part
        return at, column

    @property
    def titles(self) -> list[str]:
        return re.findall(r"\x1b\]2;(.*?)\x07", self.getvalue())

    @property
    def colours(self) -> set[str]:
        return set(re.findall(r"\x1b\[([\d;]+)m", self.getvalue())) - {"0"}


class Watched:
    """A run moved by hand, and a face that is told of it."""

    def __init__(self, *texts: str, asks: bool = False, told: bool = True, **given: Any) -> None:
        self.paper = Paper()
        self.play = play(**given)
        self.writer = self.reader = -1
        if asks:
            self.reader, self.writer = os.pipe()
        self.live = Live(self.paper, stdin=self.reader, clock=lambda: self.play.now, size=self.paper.size)
        self.told = 0
        for text in texts:
            self.play.say(text)
        if told:
            self.tell()

    def tell(self) -> list[str]:
        """Tell what was not told yet; what the terminal shows then."""
        news, self.told = self.play.decisions[self.told :], len(self.play.decisions)
        self.live.on_decisions(self.play.run, news)
        self.live.refresh(self.play.run)
        return self.paper.lines

    def type(self, text: str) -> list[tuple[str, str]]:
        """Type, and let the run have the answers."""
        os.write(self.writer, text.encode())
        answers = self.live.answers()
        for agent, answer in answers:
            self.play.ask("answer", agent=agent, text=answer)
        return answers


STARTED = "13:46:40 run r started here: test at START.md, no budget (default)"


def test_the_block_stands_below_what_stays_and_is_drawn_in_its_place() -> None:
    made = Watched()
    made.play.begin()
    made.play.now += 1
    assert made.tell() == [STARTED, "r · running · 1s · 0 steps · $0.00", "main  START.md  running  1s", ""]
    made.play.say(FORK_TWO, cost=0.02)
    made.play.now += 1
    assert made.tell() == [
        STARTED,
        "r · running · 2s · 1 step · $0.02",
        "main     START.md  waiting  2s  $0.02  for 2 agents",
        "main_a1  A.md      ready    1s",
        "main_b2  B.md      ready    1s",
        "",
    ]
    made.play.say("<result>x</result>", "main_a1", cost=0.01)
    made.play.fail("setup", "main_b2", error="no such model")
    assert made.tell()[:4] == [
        STARTED,
        "13:46:42 main_a1 done $0.01 total $0.03",
        "13:46:42 main_b2 failed (setup): no such model",
        "r · running · 2s · 3 steps · $0.03",
    ]


def test_nothing_is_written_when_nothing_has_changed() -> None:
    made = Watched()
    before = made.paper.getvalue()
    made.live.refresh(made.play.run)
    assert made.paper.getvalue() == before
    made.play.now += 1
    made.live.refresh(made.play.run)
    assert made.paper.getvalue() != before


def test_what_steps_print_stays_and_the_tools_they_use_do_not() -> None:
    made = Watched()
    made.play.begin()
    made.play.now += 1
    made.live.on_output("main", "print", "one\n\x1b[2Jtwo")
    made.live.on_output("main", "tool", "Read src/x.py")
    assert made.tell() == [
        STARTED,
        "main | one",
        "main | two",
        "r · running · 1s · 0 steps · $0.00",
        "main  START.md  running  1s  Read src/x.py",
        "",
    ]


def test_what_is_printed_in_one_moment_is_written_together() -> None:
    made = Watched()
    made.play.now += live.COLLECTED_SECONDS
    made.live.on_output("main", "print", "one")
    before = made.paper.getvalue()
    made.live.on_output("main", "print", "two")
    assert made.paper.getvalue() == before
    assert made.tell()[:3] == [STARTED, "main | one", "main | two"]


def test_the_last_line_of_a_visit_goes_with_it() -> None:
    made = Watched()
    made.play.begin()
    made.live.on_output("main", "text", "I think")
    assert made.tell()[2] == "main  START.md  running  0s  I think"
    made.play.say("<goto>A</goto>")
    assert made.tell()[2] == "main  A.md  ready  0s"


def test_moves_that_were_not_to_be_expected_stay() -> None:
    made = Watched(FORK_TWO)
    made.play.ask("move", agent="main_a1", state="N")
    made.play.begin("main_b2")
    made.play.interrupt("main_b2")
    assert made.tell()[1:4] == [
        "13:46:40 move requested",
        "13:46:40 main_a1 A.md -> N.md (moved)",
        "13:46:40 main_b2 step 2 interrupted",
    ]


def test_what_a_person_should_know_is_said_at_once() -> None:
    made = Watched()
    made.live.on_note("pausing after 1 running step (main)\x1b[A")
    assert made.paper.lines[:2] == [STARTED, "pausing after 1 running step (main)\\x1b[A"], "shown, and not obeyed"


def test_what_is_said_before_the_run_is_known_stands_alone() -> None:
    made = Watched(told=False)
    made.live.on_note("12 bytes were torn off")
    assert made.paper.lines == ["12 bytes were torn off", ""]


def test_at_the_end_the_block_is_gone_and_the_terminal_is_as_it_was() -> None:
    made = Watched("<result>x</result>")
    made.live.on_output("main", "print", "last words")
    made.live.close()
    made.live.close()
    assert made.paper.lines == [STARTED, "13:46:40 main done", "main | last words", ""]
    assert made.paper.getvalue().endswith("\x1b[?25h\x1b]2;\x07\x1b[23;2t")
    made.live.on_note("after it")
    assert made.paper.lines[-2:] == ["after it", ""]


def test_the_title_tells_the_run_and_changes_with_it() -> None:
    made = Watched()
    made.play.say(FORK_TWO, cost=0.31)
    made.tell()
    made.play.now += 1
    made.tell()
    made.live.close()
    assert made.paper.titles == ["raymond r: running 1 agent $0.00", "raymond r: running 3 agents $0.31", ""]
    assert made.paper.getvalue().startswith("\x1b[?25l\x1b[22;2t\x1b]2;raymond r: ")


def test_what_is_no_terminal_gets_no_title() -> None:
    made = Watched(told=False)
    made.paper.terminal = False
    made.tell()
    made.live.close()
    assert made.paper.titles == []


def test_colours_are_left_out_where_nobody_wants_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Watched(budget=1.0).paper.colours == {"1", "2", "32"}
    monkeypatch.setenv("NO_COLOR", "1")
    assert Watched(budget=1.0).paper.colours == {"1", "2"}


def test_rows_that_a_narrower_terminal_has_wrapped_are_erased_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VTE_VERSION", "7600")
    made = Watched(budget=10.0)
    assert made.paper.lines[1:3] == [
        "r · running · 0s · 0 steps · $0.00 of $10.00 ░░░░░░░░░░",
        "main  START.md  ready  0s",
    ]
    made.paper.width = 20
    made.live.refresh(made.play.run)
    # 57 cells are three lines now, 25 are two.
    assert made.paper.getvalue().count("\x1b[A\x1b[2K") == 5


@pytest.mark.parametrize(
    ("environment", "rewraps"),
    [
        ({"TERM": "xterm-256color", "VTE_VERSION": "7600"}, True),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "vscode"}, True),
        ({"TERM": "tmux-256color", "TMUX": "/tmp/tmux,1,0"}, True),
        ({"TERM": "screen-256color", "STY": "1.x", "VTE_VERSION": "7600"}, False),
        ({"TERM": "xterm", "XTERM_VERSION": "XTerm(390)", "VTE_VERSION": "7600"}, False),
        ({"TERM": "xterm-256color"}, False),
    ],
)
def test_where_nobody_knows_what_became_of_rows_old_ones_stay(environment: dict[str, str], rewraps: bool) -> None:
    assert terminal_module.rewraps(environment) is rewraps


def test_where_rows_may_have_been_cut_off_nothing_above_the_block_is_erased() -> None:
    made = Watched(budget=10.0)
    made.paper.width = 20
    made.live.refresh(made.play.run)
    assert made.paper.getvalue().count("\x1b[A\x1b[2K") == 2


def test_a_terminal_that_is_gone_does_not_end_the_run() -> None:
    class Gone(Paper):
        def write(self, _: str) -> int:
            raise OSError(5, "Input/output error")

    made = play()
    face = Live(Gone(), clock=lambda: START, size=lambda: (80, 24))
    face.on_decisions(made.run, made.decisions)
    face.refresh(made.run)
    face.on_note("nobody reads this")
    face.close()


# --- questions


def test_where_nobody_types_a_question_is_a_line_and_a_row() -> None:
    made = Watched(ASK)
    assert made.paper.lines == [
        STARTED,
        "13:46:40 main asks: Which colour?",
        "r · waiting for you · 0s · 1 step · $0.00",
        "main  START.md  asking  0s  Which colour?",
        "",
    ]
    made.play.ask("answer", agent="main", text="blue")
    assert made.tell()[2] == "13:46:40 main START.md -> A.md (answered)"


LABEL = "answer main (Enter sends it, Ctrl-L shows the question again, Ctrl-D leaves it…"


def test_a_question_is_answered_below_the_block_while_everything_else_is_shown() -> None:
    made = Watched('<ask next="A">Which colour?\nRed\x1b[2J or blue?\n</ask>', asks=True)
    asked = [STARTED, "main asks:", "  | Which colour?", "  | Red\\x1b[2J or blue?"]
    row = "main  START.md  asking  {}s  a question of 2 lines"
    assert made.paper.lines == [
        *asked,
        "r · waiting for you · 0s · 1 step · $0.00",
        *(row.format(0), LABEL, ">", ""),
    ]
    assert made.paper.cursor == (7, 2)
    made.play.now += 5
    made.live.on_output("main_b2", "print", "meanwhile")
    assert made.tell()[4:] == [
        "main_b2 | meanwhile",
        "r · waiting for you · 5s · 1 step · $0.00",
        *(row.format(5), LABEL, ">", ""),
    ]
    assert made.type("bl") == []
    assert made.type("e\x1b[Du") == []
    assert made.paper.lines[-2:] == ["> blue", ""]
    assert made.paper.cursor == (8, 5)
    assert made.type("\n") == [("main", "blue")]
    assert made.tell() == [
        *asked,
        "main_b2 | meanwhile",
        "main < blue",
        "r · running · 5s · 1 step · $0.00",
        "main  A.md  ready  0s",
        "",
    ]


def test_a_question_that_was_pushed_off_the_screen_is_shown_again() -> None:
    made = Watched('<ask next="A">Which colour?</ask>', asks=True)
    made.play.now += 1
    made.live.on_output("main_b2", "print", "\n".join(f"line {number}" for number in range(10)))
    assert sum("Which" in line for line in made.tell()) == 2, "the question, and the row"
    made.type("re")
    made.live.on_output("main_b2", "print", "\n".join(f"line {number}" for number in range(10)))
    shown = made.tell()
    assert shown[-6:-4] == ["main asks: Which colour?", "r · waiting for you · 1s · 1 step · $0.00"]
    assert shown[-2] == "> re", "what was typed stays"
    made.tell()
    assert sum(line.startswith("main asks:") for line in made.paper.lines) == 2


def test_a_question_longer_than_the_screen_is_only_mentioned_again() -> None:
    made = Watched('<ask next="A">' + "\n".join(f"Q{number}" for number in range(30)) + "</ask>", asks=True)
    made.live.on_output("main_b2", "print", "x\n" * 24)
    assert "main asks: 31 lines, see above; Ctrl-L shows them again" in made.tell()
    assert sum(line == "  | Q29" for line in made.paper.lines) == 1


def test_after_a_resize_a_question_is_shown_again_once_and_in_the_new_width() -> None:
    made = Watched('<ask next="A">Which colour do you like best?</ask>', asks=True)
    for made.paper.width in (40, 30):
        made.live.refresh(made.play.run)
    assert "  | best?" not in made.paper.lines, "not for every step of a moving window"
    for _ in range(3):
        made.live.refresh(made.play.run)
    assert made.paper.lines.count("  | best?") == 1


def test_what_stands_above_the_block_is_found_from_the_line_that_is_typed_on() -> None:
    """A terminal that is made lower drops the empty line below it, so nothing can be counted from there."""
    made = Watched('<ask next="A">Which colour?</ask>', asks=True)
    before = len(made.paper.getvalue())
    made.paper.width, made.paper.height = 100, 12
    made.live.refresh(made.play.run)
    drawn = made.paper.getvalue()[before:]
    assert drawn.count("\x1b[A\x1b[2K") == 3, "the header, the row and the label"
    assert not re.search(r"\x1b\[\d*B", drawn)


def test_questions_are_asked_one_after_the_other() -> None:
    made = Watched(FORK_TWO, asks=True)
    made.play.say('<ask next="N">Second?</ask>', "main_b2")
    made.tell()
    made.play.say('<ask next="N">Third?</ask>', "main_a1")
    shown = made.tell()
    assert shown[:2] == [STARTED, "main_b2 asks: Second?"]
    assert shown[-3].startswith("answer main_b2; 1 more question waits (Enter sends it, ")
    assert made.type("yes\n\n\n") == [("main_b2", "yes")]
    shown = made.tell()
    assert shown[1:4] == ["main_b2 asks: Second?", "main_b2 < yes", "main_a1 asks: Third?"]
    assert made.type("\n") == [], "Enter alone is no answer"
    assert made.type(" \n") == []
    assert made.type("\x0c") == []
    assert made.tell()[4] == "main_a1 asks: Third?", "Ctrl-L shows it again"
    assert made.type("\x15\x1b[200~one\r\ntwo\x1b[201~") == []
    assert made.type("\n") == [("main_a1", "one\ntwo")]
    assert made.tell()[5:7] == ["main_a1 < one", "main_a1 < two"]


def test_what_is_typed_while_nothing_is_asked_is_no_answer() -> None:
    made = Watched(asks=True)
    assert made.type("y\nhalf") == []
    made.play.say(ASK)
    made.tell()
    assert made.type("way\n") == [], "the line was begun before"
    assert made.type("blue\n") == [("main", "blue")]


def test_choices_and_files_are_shown_with_a_question_and_checked(tmp_path: Path) -> None:
    made = Watched(asks=True, cwd=str(tmp_path))
    (tmp_path / "report.md").write_text("all\x1b[2J green\n")
    made.play.say("<goto>A</goto>")
    taken = asked_files.resolve(str(tmp_path), "report.md")
    assert isinstance(taken, tuple)
    asked = AskStarted(agent="main", question="Ship?", state="B.md", number=1, choices=["yes", "no"], files=list(taken))
    made.play.begin()
    made.play.commit([StepFinished(agent="main", step=2), asked])
    shown = ["main asks: Ship?", "file report.md (14 bytes):", "  | all\\x1b[2J green"]
    lines = made.tell()
    assert lines[1:4] == shown
    assert lines[4].startswith("choices: ")
    assert made.type("perhaps\n") == []
    assert made.paper.lines[5].startswith("not sent: `perhaps` is not one of: ")
    assert made.paper.lines[-2] == ">", "another choice is typed from its beginning"
    (tmp_path / "report.md").write_text("all red\n")
    assert made.type("yes\n") == []
    assert "file report.md (8 bytes, CHANGED SINCE IT ASKED):" in made.paper.lines
    assert made.type("\n") == [], "what was typed for another file is dropped"
    os.truncate(tmp_path / "report.md", 2 << 20)
    assert made.type("yes\n") == [], "a file that cannot be shown any more was not seen either"
    assert "not sent: `report.md` is larger than 1 MiB, so it cannot be shown" in "\n".join(made.paper.lines)
    assert made.type("\n") == [], "nor is it when it is sent once more"
    (tmp_path / "report.md").write_text("all red\n")
    assert made.type("\x15no\n") == [("main", "no")], "this was seen before"


def test_a_question_that_is_left_open_makes_room_for_the_next_one() -> None:
    made = Watched(FORK_TWO, asks=True)
    made.play.say('<ask next="N">First?</ask>', "main_a1")
    made.play.say('<ask next="N">Second?</ask>', "main_b2")
    made.tell()
    assert made.type("\x04") == []
    assert "no answer; to answer later: raymond answer r main_a1" in made.paper.lines
    assert "main_b2 asks: Second?" in made.paper.lines
    waits = [made.live.can_answer]
    assert made.type("\x04") == []
    waits.append(made.live.can_answer)
    assert waits == [True, False], "nobody waits for a person who left all of them open"
    made.play.ask("answer", agent="main_a1", text="yes")
    made.play.say('<ask next="N">Third?</ask>', "main_a1")
    assert "main_a1 asks: Third?" in made.tell()
    assert made.type("ja\n") == [("main_a1", "ja")]


def test_an_answer_that_is_too_long_to_be_typed_is_not_cut_but_refused() -> None:
    made = Watched(ASK, asks=True)
    made.tell()
    assert made.type("a\x1b[200~" + "x" * 40_000) == []
    assert made.type("x" * 40_000 + "\x1b[201~") == []
    assert made.type("\n") == [("main", "a")]
    assert "raymond answer r main --file FILE takes them" in " ".join(made.paper.lines)


def test_what_was_typed_for_a_question_that_is_over_is_no_answer_to_the_next() -> None:
    made = Watched(FORK_TWO, asks=True)
    made.play.say('<ask next="N" timeout="5m" timeout_next="T">First?</ask>', "main_a1")
    made.play.say('<ask next="N">Second?</ask>', "main_b2")
    made.tell()
    assert made.type("ye") == []
    made.play.pass_time(300)
    made.play.now -= 300
    shown = made.tell()
    assert "main_b2 asks: Second?" in shown
    assert shown[-3].startswith("answer main_b2 (what was typed before is dropped: press Enter, then answer")
    assert made.type("s\n") == []
    assert made.type("no\n") == [("main_b2", "no")]


def test_a_question_asked_before_the_run_was_taken_up_is_asked_again() -> None:
    made = Watched(ASK, told=False, asks=True)
    made.told = len(made.play.decisions)
    made.play.resume()
    assert made.tell()[:3] == [
        "13:46:40 run resumed",
        "main asks: Which colour?",
        "r · waiting for you · 0s · 1 step · $0.00",
    ]


def test_an_answer_from_elsewhere_takes_the_question_away() -> None:
    made = Watched(ASK, asks=True)
    made.play.ask("answer", agent="main", text="blue")
    assert made.tell() == [
        STARTED,
        "main asks: Which colour?",
        "main no longer asks: answered elsewhere; it continues at A.md",
        "r · running · 0s · 1 step · $0.00",
        "main  A.md  ready  0s",
        "",
    ]
    assert made.type("too late\n") == []


def test_a_question_that_nobody_answers_in_time_is_taken_away() -> None:
    made = Watched('<ask next="A" timeout="5m" timeout_next="T">Now?</ask>', asks=True)
    made.play.pass_time(300)
    assert made.tell()[1:4] == [
        "main asks: Now?",
        "main no longer asks: nobody answered in time; it continues at T.md",
        "r · running · 5m · 1 step · $0.00",
    ]


def test_an_answer_that_came_too_late_is_said_to_be_refused() -> None:
    made = Watched(ASK, asks=True)
    made.play.ask("answer", agent="main", text="red")
    assert made.type("blue\n") == [("main", "blue")]
    assert "13:46:40 answer refused: main is not waiting for an answer" in made.tell()


def test_when_nobody_types_any_more_it_says_how_to_answer_later() -> None:
    made = Watched(ASK, asks=True)
    os.close(made.writer)
    assert made.live.answers() == []
    assert made.live.stdin == -1
    assert made.live.answers() == []
    assert made.paper.lines == [
        STARTED,
        "main asks: Which colour?",
        "no answer; to answer later: raymond answer r main",
        "r · waiting for you · 0s · 1 step · $0.00",
        "main  START.md  asking  0s  Which colour?",
        "",
    ]


def test_a_question_that_comes_while_a_run_pauses_is_a_line() -> None:
    made = Watched(asks=True)
    made.play.begin()
    made.play.stop()
    made.tell()
    made.play.say(ASK)
    assert made.tell()[1:3] == ["13:46:40 main asks: Which colour?", "r · paused · 0s · 1 step · $0.00"]


def test_a_pipe_that_has_ended_is_left_alone_before_anything_is_asked() -> None:
    made = Watched(asks=True)
    os.close(made.writer)
    assert made.live.answers() == []
    assert made.live.stdin == -1
    made.play.say(ASK)
    assert made.tell()[1] == "13:46:40 main asks: Which colour?"


def test_a_run_that_pauses_asks_nothing_more() -> None:
    made = Watched(FORK_TWO, asks=True)
    made.play.begin("main_a1")
    made.play.say(ASK, "main_b2")
    made.tell()
    made.play.stop()
    made.live.on_note("pausing after 1 running step (main_a1)")
    assert made.tell()[1:5] == [
        "main_b2 asks: Which colour?",
        "pausing after 1 running step (main_a1)",
        "no answer; to answer later: raymond answer r main_b2",
        "r · pausing: finishing 1 running step; Ctrl-C again stops it now · 0s · 2 steps…",
    ]


# --- in a real terminal


@pytest.fixture
def room(tmp_path: Path) -> Room:
    (tmp_path / "room").mkdir()
    return Room(tmp_path / "room", TZ="UTC", TERM="screen")


@contextlib.contextmanager
def terminal(room: Room, files: dict[str, str], width: int = 80) -> Iterator[Pane]:
    pane = Pane(room, width)
    try:
        pane.start(room.flow(files))
        yield pane
    finally:
        pane.end()


WAITS = {"START.sh": f"{GO}\necho '<result>done</result>'"}
LEFT = [
    "before",
    "TIME run r started here: flow at START.sh, budget $10.00 (default)",
    *("TIME main done", "TIME run completed", "completed", "echo"),
]


@in_tmux
@pytest.mark.parametrize("width", [20, 80, 200])
def test_the_block_is_seen_while_the_run_goes_on_and_nothing_of_it_after(room: Room, width: int) -> None:
    with terminal(room, WAITS, width) as pane:
        lines = pane.sees(r"main  (START\.sh  )?running  .*")
        header = "r · running · " if width == 20 else "of $10.00 ░░░░░░░░░░"
        assert [header in line for line in lines[-2:]] == [True, False]
        room.go()
        lines = pane.sees("echo")
        whole = "".join(line.removeprefix("    | ") for line in lines)
        assert whole.replace(" ", "") == "".join(LEFT).replace(" ", "")


@pytest.mark.slow
@in_tmux
def test_the_block_follows_the_size_of_the_terminal(room: Room) -> None:
    with terminal(room, WAITS) as pane:
        pane.sees(r"main  START\.sh  running  \ds")
        pane.tmux("resize-window", "-x", "30", "-y", "24")
        lines = pane.sees(r"r · running · \d+s · 0 steps? · …")
        assert len(lines[-2]) == 30
        pane.tmux("resize-window", "-x", "200", "-y", "10")
        pane.sees(r"r · running · \d+s · 0 steps · \$0\.00 of \$10\.00 ░{10}")
        room.go()
        assert pane.sees("echo") == LEFT


@pytest.mark.slow
@in_tmux
def test_the_screen_of_a_narrower_terminal_has_every_row_once(room: Room) -> None:
    """What tmux has moved into its scrollback meanwhile is out of reach."""
    fork = '<fork label="a label that takes its room">W</fork>'
    waits = {"START.sh": f"echo '{fork * 4}<wait>END</wait>'", "W.sh": WAITS["START.sh"], "END.sh": "exit 1"}
    with terminal(room, waits, 100) as pane:
        pane.sees(r"main_w4  .* running .*")
        pane.tmux("resize-window", "-x", "40", "-y", "24")
        pane.sees(r"r · running · \d+s · 1 step · \$0\.00 of \$1…")
        shown = [MARK.sub("", line) for line in pane.tmux("capture-pane", "-p").splitlines() if line.strip()]
        assert [line.split()[0] for line in shown] == ["r", "main", "main_w1", "main_w2", "main_w3", "main_w4"]
        room.go()


@in_tmux
def test_a_block_at_the_top_of_the_screen_does_not_get_into_the_scrollback(room: Room) -> None:
    """tmux puts a screen that is cleared from its first line on into the scrollback."""
    prints = "".join(f"<print>{number}</print>" for number in range(30))
    with terminal(room, {"START.sh": f"echo '{prints}<goto>NEXT</goto>'", "NEXT.sh": WAITS["START.sh"]}) as pane:
        pane.sees(r"main  NEXT\.sh  running  \ds")
        pane.tmux("resize-window", "-x", "80", "-y", "3")
        pane.type("C-c")
        pane.sees(r"r · pausing: .*")
        room.go()
        assert [line for line in pane.sees("echo") if " · " in line] == []


ASKS = {
    "START.sh": "echo '<fork>OTHER</fork><fork>ASK</fork><wait>END</wait>'",
    "OTHER.sh": f"{GO}\necho '<print>the other goes on</print><result>ok</result>'",
    "ASK.sh": "printf '<ask next=\"TOLD\">Release now?</ask>'",
    "TOLD.sh": 'echo "<print>told: $RAYMOND_INPUT</print><result>ok</result>"',
    "END.sh": "echo '<result>all</result>'",
}


@in_tmux
def test_a_person_answers_while_another_agent_goes_on(room: Room) -> None:
    with terminal(room, ASKS) as pane:
        pane.sees(">")
        pane.type("in a mom")
        pane.sees("> in a mom")
        room.go()
        until(lambda: any(type(one).__name__ == "AgentEnded" for one in room.events()), "the end of the other agent")
        assert pane.lines[-1] == "> in a mom"
        pane.type("ent", "Enter")
        lines = pane.sees("echo")
        question = lines.index("main_ask2 asks: Release now?")
        assert lines[question : question + 4] == [
            "main_ask2 asks: Release now?",
            "main_other1 | the other goes on",
            "TIME main_other1 done",
            "main_ask2 < in a moment",
        ]
        assert lines[-6:] == [
            "main_ask2 | told: in a moment",
            "TIME main_ask2 done",
            "TIME main done",
            "TIME run completed",
            "completed",
            "echo",
        ]


@in_tmux
def test_what_is_typed_below_the_block_moves_nothing_and_answers_nothing(room: Room) -> None:
    files = {"START.sh": f"{GO}\n{ASKS['ASK.sh']}", "TOLD.sh": ASKS["TOLD.sh"]}
    with terminal(room, files) as pane:
        pane.sees(r"main  START\.sh  running  \ds")
        pane.type("too early", "Enter", "Enter", "Enter", "C-d")
        room.go()
        assert pane.sees(">")[:3] == [*LEFT[:2], "main asks: Release now?"]
        assert pane.cursor()
        pane.type("noww", "BSpace", "Enter")
        assert pane.sees("echo")[2:5] == ["main asks: Release now?", "main < now", "main | told: now"]


@in_tmux
def test_a_person_who_will_not_answer_ends_the_waiting(room: Room) -> None:
    with terminal(room, {"START.sh": ASKS["ASK.sh"], "TOLD.sh": ASKS["TOLD.sh"]}) as pane:
        pane.sees(">")
        pane.type("C-d")
        assert pane.sees("echo") == [
            *LEFT[:2],
            "main asks: Release now?",
            "no answer; to answer later: raymond answer r main",
            "not ended",
            "echo",
        ]


@pytest.mark.slow
@in_tmux
def test_a_question_answered_elsewhere_goes_with_what_was_typed(room: Room) -> None:
    with terminal(room, {"START.sh": ASKS["ASK.sh"], "TOLD.sh": f"{GO}\n{ASKS['TOLD.sh']}"}) as pane:
        pane.sees(">")
        pane.type("not y")
        pane.sees("> not y")
        assert room.raymond("answer", "r", "main", "yes", "--no-resume").returncode == 0
        lines = pane.sees(r"main  TOLD\.sh  running  \ds")
        assert lines[2:4] == [
            "main asks: Release now?",
            "main no longer asks: answered elsewhere; it continues at TOLD.sh",
        ]
        room.go()
        assert pane.sees("echo")[4] == "main | told: yes"


@pytest.mark.slow
@in_tmux
def test_what_a_script_prints_cannot_clear_the_terminal(room: Room) -> None:
    files = {"START.sh": r"printf '<print>\033[2J\033[Hgotcha\033]2;mine\007</print><goto>WAITS</goto>'"}
    files["WAITS.sh"] = WAITS["START.sh"]
    with terminal(room, files) as pane:
        before = ["before", LEFT[1], "main | gotcha"]
        assert pane.sees(r"main  WAITS\.sh  running .*")[:3] == before
        assert pane.tmux("display-message", "-p", "#{pane_title}") == "raymond r: running 1 agent $0.00\n"
        room.go()
        assert pane.sees("echo") == [*before, *LEFT[2:]]
        assert not pane.tmux("display-message", "-p", "#{pane_title}").startswith("raymond")


@pytest.mark.slow
@in_tmux
def test_ctrl_c_pauses_and_the_header_says_what_it_waits_for(room: Room) -> None:
    with terminal(room, WAITS) as pane:
        pane.sees(r"main  START\.sh  running  \ds")
        pane.type("C-c")
        pane.sees(r"r · pausing: finishing 1 running step; Ctrl-C again stops it now · .*")
        pane.type("C-c")
        lines = pane.sees("echo")
        assert lines[-3:] == ["TIME main step 1 interrupted", "not ended", "echo"]
        assert not any("finishing" in line for line in lines)


@contextlib.contextmanager
def in_shell(room: Room, files: dict[str, str]) -> Iterator[Pane]:
    """A shell with jobs, the program one of them."""
    pane = Pane(room, 80)
    try:
        (room.path / "run.sh").write_text(f"exec {pane.command(room.flow(files))}", "utf-8")
        pane.tmux("new-session", "-d", "-x", "80", "-y", "24", "env PS1='$ ' bash --norc --noprofile")
        pane.sees(r"\$")
        pane.type("sh run.sh", "Enter")
        yield pane
    finally:
        pane.end()


STOPPED = r"\[1\]\+  Stopped +sh run\.sh"


@pytest.mark.slow
@in_tmux
def test_ctrl_z_gives_the_shell_a_clean_terminal_and_fg_brings_the_block_back(room: Room) -> None:
    with in_shell(room, WAITS) as pane:
        pane.sees(r"main  START\.sh  running  \ds")
        pane.type("C-z")
        assert blocks(pane.sees(STOPPED)) == []
        assert pane.cursor()
        pane.type("fg", "Enter")
        pane.sees(r"main  START\.sh  running  \ds")
        assert not pane.cursor()
        room.go()
        lines = pane.sees("completed")
        assert blocks(lines) == []
        assert lines[lines.index("completed") - 1] == "TIME run completed"


@pytest.mark.slow
@in_tmux
def test_after_ctrl_z_a_question_is_asked_again(room: Room) -> None:
    with in_shell(room, {"START.sh": ASKS["ASK.sh"], "TOLD.sh": ASKS["TOLD.sh"]}) as pane:
        pane.sees(">")
        pane.type("half", "C-z")
        pane.sees(STOPPED)
        pane.type("fg", "Enter")
        assert pane.sees(">")[-5] == "main asks: Release now?"
        pane.type("whole", "Enter")
        pane.sees(r"main \| told: whole")
        pane.sees("completed")


@pytest.mark.slow
@in_tmux
def test_in_the_background_there_are_lines_and_no_block(room: Room) -> None:
    files = {"START.sh": f"{GO}\necho '<print>one</print><goto>NEXT</goto>'", "NEXT.sh": "exec sleep 600"}
    with in_shell(room, files) as pane:
        pane.sees(r"main  START\.sh  running  \ds")
        pane.type("C-z")
        pane.sees(STOPPED)
        pane.type("bg", "Enter")
        room.go()
        assert blocks(pane.sees(r"(\$ )?main \| one")) == []
        pane.type("fg", "Enter")
        pane.sees(r"main  NEXT\.sh  running  \ds")


def blocks(lines: list[str]) -> list[str]:
    """The headers of blocks."""
    return [line for line in lines if " · " in line]


# --- gates


def gated() -> Play:
    made = Play({"START.md": head("gate: make test")})
    made.say("<result>one</result>")
    made.begin()
    return made


def test_an_agent_whose_gate_runs_shows_the_command() -> None:
    made, doing = gated(), Activity()
    doing.hear("tool", "Read x.py", START)
    doing.begin(START)

    def shown() -> str:
        return rows(made.run, 100, after=20, doing={"main": doing})[1]

    assert shown() == "main  START.md  running  20s  checks"
    doing.hear("check", "make test\n  once more", START)
    assert shown() == "main  START.md  running  20s  checks: make test once more", "a check may be silent"
    doing.begin(START)
    assert doing.check == ""


def test_an_agent_whose_evaluator_runs_says_so() -> None:
    files = {"START.md": head("evaluator: {prompt: JUDGE, verdicts: {YES: keep}}"), "JUDGE.md": "Is it done?"}
    made = Play(files)
    made.say("<result>one</result>")
    made.begin()
    assert rows(made.run, 100, after=20)[1] == "main  START.md  running  20s  is evaluated"


def test_an_agent_that_was_told_of_a_red_gate_says_so() -> None:
    made = gated()
    made.check("failed", reason="`make test` ended with exit code 2", output="1 failed")
    made.begin()
    [row] = rows(made.run, 100)[1:]
    assert row == "main  START.md  running  0s  attempt 2, told 1 time that its gate is red"
