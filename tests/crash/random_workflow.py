"""Random workflows of all transitions, and what each of them should come to.

A workflow is a tree of states made from a seed. `write` makes the files that Raymond runs; `expected` walks the same
tree and reckons, without a line of Raymond, the result, the visits, the cost and the conversations. Every state adds its
name to what it was handed, so that the result tells of everything on the way.
"""

import json
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from random import Random
from typing import Any

from msgspec import Struct, field

from crash import ledger, leftovers
from crash.nothing_lost import Expected
from crash.person import blob

SHORT = ("goto", "reset", "later", "ask", "late", "loop", "error", "wait")
"""Moves to the next state; `later` is a goto that sleeps, `late` an ask that nobody answers in time, `loop` a state
that goes to itself until its visits are used up, and `error` a script that fails and names a state for that."""
DEEP = ("call", "function", "fork", "spread")
"""Moves with other states below them; `fork` is followed by a wait at once, `spread` goes on without one."""
GATED = ("goto", "reset", "later", "result")
"""Moves that pass a gate."""
QUICK = "quick"
"""The input of a run that should do nothing: for other runs of the same workflow."""
JUDGE, JUDGED = "JUDGE.md", 0.05
"""What judges, and what that costs."""
DECOY = "DECOY.sh"
"""Where states want to go whose evaluator sends them elsewhere; nobody may ever come there."""
UNANSWERED = "nobody answers "
"""How the question of a `late` begins."""


class State(Struct):
    """One state, and where it leads."""

    name: str
    move: str = "result"
    next: "State | None" = None
    into: "list[State]" = field(default_factory=list)
    """The first states of the subtask, or of the agents that are forked."""
    pause: float = 0.0
    """Seconds its work takes."""
    visits: int = 1
    cost: float = 0.0
    tries: list[str] = field(default_factory=list)
    """What a prompt gives before its answer: crash, limit, or refused."""
    stumbles: bool = False
    """A script that fails at its first attempt and leaves that to whoever resumes the run."""
    leaves: str = ""
    """How the process that a script leaves in the background is started."""
    looks_for: str = ""
    """The last state before it that left a process, which should still be there."""
    nap: str = "40ms"
    """How long a sleep, or a question that nobody answers, takes."""
    by_file: bool = False
    """The script says its transition in RAYMOND_OUT."""
    evaluator: str = ""
    """What decides about its transition: a `pattern` or a `prompt`."""
    overrides: bool = False
    """The evaluator does not keep it: the state asks for the decoy, and goes on only because it is sent there."""
    gate: str = ""
    """What a prompt makes of its sealed check: `green` at once; `red`, and green after the second turn; or `edited`,
    green with a check that it has reformatted, so that the sealed one runs too."""

    @property
    def is_prompt(self) -> bool:
        return self.name.endswith(".md")

    @property
    def reds(self) -> int:
        """How many turns end in a red gate."""
        return int(self.gate == "red")

    @property
    def mark(self) -> str:
        """What it adds to the text that is handed on."""
        return self.name.partition(".")[0]


class Maker:
    """Makes the states of one workflow."""

    def __init__(self, chance: Random, features: Collection[str]) -> None:
        self._chance = chance
        self._features = features
        self._left = chance.randint(5, 14)
        """How many more states there may be."""
        self.states: list[State] = []

    def path(self, depth: int, first: str = "", script: bool = False, *, main: bool = False, left: str = "") -> State:
        """A state and everything that follows it, until the result."""
        state = self._state(first, script or self._chance.random() < 0.6)
        move = self._move(depth, state)
        if self._left <= 0 or (depth and self._chance.random() < 0.25):
            move = "result"
        self._furnish(state, move, main=main)
        state.looks_for = left
        if move in DEEP:
            width = self._chance.choice((1, 2, 3)) if move in ("fork", "spread") else 1
            child = self.path(depth + 1, main=main and width == 1 and move in ("call", "function"))
            state.into = [child] * width
        if move != "result":
            left = state.name if state.leaves else left
            state.next = self.path(depth, script=move in ("fork", "wait"), main=main, left=left)
        return state

    def _state(self, first: str, script: bool) -> State:
        self._left -= 1
        state = State(first or (f"S{len(self.states)}.sh" if script else f"P{len(self.states)}.md"))
        self.states.append(state)
        return state

    def _move(self, depth: int, state: State) -> str:
        moves = SHORT + (DEEP * 2 if depth < 2 else ())
        found = self._chance.choice(moves)
        return "goto" if state.is_prompt and found in ("loop", "error") else found

    def _furnish(self, state: State, move: str, *, main: bool) -> None:
        chance = self._chance
        state.move = move
        state.nap = "400ms" if "naps" in self._features else "40ms"
        state.pause = chance.choice((0.0, 0.01, 0.03, 0.03, 0.06, 0.2))
        state.visits = chance.randint(2, 3) if move == "loop" else 1
        evaluator = chance.choice(("", "", "", "pattern", "prompt" if state.is_prompt else "pattern"))
        state.evaluator = evaluator if "judges" in self._features else ""
        state.overrides = bool(state.evaluator) and move in ("goto", "result") and chance.random() < 0.5
        if state.is_prompt:
            is_gated = main and move in GATED and "gates" in self._features
            state.gate = (
                chance.choice(("green", "red", "edited") if "tries" in self._features else ("green", "edited"))
                if is_gated
                else ""
            )
            state.cost = chance.randint(1, 40) / 100
            tries = chance.choice(([], [], [], ["crash"], ["refused"], ["limit"], ["refused", "crash"]))
            state.tries = tries if "tries" in self._features else []
            return
        state.stumbles = main and move in ("goto", "result") and chance.random() < 0.15
        leaves = chance.choice(("", "", "", *leftovers.LEFT))
        state.leaves = leaves if leaves in self._features else ""
        state.by_file = "out" in self._features and move != "error" and chance.random() < 0.2


class RandomWorkflow:
    """A workflow made from chance; `features` are what it may do besides: see `trouble.Plan`."""

    def __init__(self, chance: Random, features: Collection[str] = ()) -> None:
        maker = Maker(chance, features)
        self.start = maker.path(0, "START.sh", True, main=True)
        self.states = maker.states
        self._makes_files = "files" in features

    def write(self, folder: Path, room: Path) -> Path:
        """The files of the workflow, and the checks of its gates in the directory where it runs."""
        folder.mkdir(parents=True)
        for state in self.states:
            if state.gate:
                (room / "tests").mkdir(parents=True, exist_ok=True)
                (room / "tests" / f"{state.mark}.sh").write_text(_CHECK, "utf-8")
        (folder / DECOY).write_text("exit 9\n", "utf-8")
        for state in self.states:
            text = _prompt(state) if state.is_prompt else _script(state, makes_files=self._makes_files)
            (folder / state.name).write_text(text, "utf-8")
        replies: dict[str, Any] = {state.name: [_reply(state)] for state in self.states if state.is_prompt}
        if any(state.evaluator == "prompt" for state in self.states):
            replies[JUDGE] = {"text": "**Keep.**", "cost": JUDGED, "delay": "20ms"}
            (folder / JUDGE).write_text("Is it right? {{output}}\n", "utf-8")
        (folder / "replies.yaml").write_text(json.dumps(replies), "utf-8")
        (folder / "workflow.yaml").write_text("name: random\n", "utf-8")
        return folder

    def left(self, room: Path) -> dict[Path, str]:
        """What the agents leave of the checks of their gates."""
        return {room / "tests" / f"{one.mark}.sh": _checked(one) for one in self.states if one.gate}

    def expected(self, input: str) -> Expected:
        """What a run of it should come to."""
        gates = {state.name: ["failed"] * state.reds + ["passed"] for state in self.states if state.gate}
        found = Expected(result="", finished=Counter(), cost=0.0, talks={}, gates=gates)
        found.result = _Walker(found, "main").walk(self.start, input, [])
        if self._makes_files:
            for state in self.states:
                left = {f"tests/{state.mark}.sh": _checked(state), **_made(state)} if state.gate else {}
                found.work |= {path: blob(text) for path, text in left.items()}
        else:
            found.work = {}
        return found


# --- the model


class _Walker:
    """One agent on its way through the states."""

    def __init__(self, found: Expected, agent: str) -> None:
        self._found = found
        self._agent = agent
        self._forks = 0
        self._uncollected: list[str] = []

    def walk(self, state: State | None, given: str, talk: list[str]) -> str:
        """What the agent returns from here on; `talk` is what its conversation holds."""
        while state:
            said, talk = self._visit(state, given, talk)
            if state.overrides:
                said = "" if state.move == "goto" else state.mark
            match state.move:
                case "result":
                    return said
                case "ask":
                    said += "!"
                case "late" | "error":
                    said = ""
                case "call" | "function":
                    said = self.walk(state.into[0], said, talk if state.move == "call" else [])
                case "fork" | "spread":
                    self._fork(state)
                case "reset":
                    talk = []
                case _:
                    pass
            if state.move in ("fork", "wait"):
                said = "+".join([said, *self._uncollected])
                self._uncollected = []
            state, given = state.next, said
        raise AssertionError("a path ends with a result")

    def _visit(self, state: State, given: str, talk: list[str]) -> tuple[str, list[str]]:
        """What a state makes of what it was given, and the conversation after it."""
        if state.move != "error":
            self._found.finished[self._agent, state.name] += state.visits
        if not state.is_prompt:
            self._found.work[f"made.{self._agent}.{state.name}"] = blob(f"{state.name}\n")
            return given + f".{state.mark}" * state.visits, talk
        asked = 1 + state.tries.count("refused") + state.reds
        self._found.cost += state.cost * asked + (JUDGED if state.evaluator == "prompt" else 0.0)
        talk = talk + [state.name] * asked
        self._found.talks[state.name] = talk
        # The texts of a result and of a question are taken as they are, without what was given.
        return state.mark if state.move in ("result", "ask") else f"{given}.{state.mark}", talk

    def _fork(self, state: State) -> None:
        for at, child in enumerate(state.into):
            self._forks += 1
            name = f"{self._agent}_{'p' if child.is_prompt else 's'}{self._forks}"
            self._uncollected.append(_Walker(self._found, name).walk(child, f"{state.mark}_{at}", []))


# --- the files


def _tag(state: State, given: str) -> str:
    """What the state says, when `given` stands for what it was given."""
    if state.overrides:
        return f'<goto input="{given}">{DECOY}</goto>'
    next, into = (state.next.name if state.next else ""), (state.into[0].name if state.into else "")
    said = f"{given}.{state.mark}"
    forks = "".join(f'<fork n="{at}" input="{state.mark}_{at}">{into}</fork>' for at in range(len(state.into)))
    text = state.mark if state.is_prompt else said
    return {
        "result": f"<result>{text}</result>",
        "goto": f'<goto input="{said}">{next}</goto>',
        "loop": f'<goto input="{said}">{state.name}</goto>',
        "reset": f'<reset input="{said}">{next}</reset>',
        "later": f'<goto after="{state.nap}" input="{said}">{next}</goto>',
        "ask": f'<ask next="{next}">{text}</ask>',
        "late": f'<ask next="{next}" timeout="{state.nap}" timeout_next="{next}">{UNANSWERED}{state.mark}</ask>',
        "call": f'<call return="{next}" input="{said}">{into}</call>',
        "function": f'<function return="{next}" input="{said}">{into}</function>',
        "fork": f'{forks}<wait input="{said}">{next}</wait>',
        "spread": f'{forks}<goto input="{said}">{next}</goto>',
        "wait": f'<wait input="{said}">{next}</wait>',
        "error": "",
    }[state.move]


def _prompt(state: State) -> str:
    keys = [*_gate(state), *_evaluator(state)]
    head = "".join(f"{line}\n" for line in ("---", *keys, "---")) if keys else ""
    return f"{head}This is {state.name}, given {{{{input}}}}.\n"


_PAUSE = '[ -p "$PAUSE" ] || mkfifo "$PAUSE"\n'
_CHECK = f'{_PAUSE}read -rt 0.03 <> "$PAUSE"\n[ "$(cat "made/$1")" = right ]\n'
"""A check that takes a moment: an agent has to have made something."""


def _checked(state: State) -> str:
    """The check of a state, as it is left."""
    return f"{_CHECK}# tidy\n" if state.gate == "edited" else _CHECK


def _gate(state: State) -> list[str]:
    return [f"gate: bash tests/{state.mark}.sh {state.mark}", "gate_reruns: 0"] if state.gate else []


def _evaluator(state: State) -> list[str]:
    next = state.next.name if state.next else ""
    chosen = f"<goto>{next}</goto>" if state.move == "goto" else f"<result>{state.mark}</result>"
    follows = chosen if state.overrides else "keep"
    if state.evaluator == "prompt":
        return [f"evaluator: {{prompt: {JUDGE}, verdicts: {{KEEP: {follows}}}}}"]
    if state.evaluator:
        # What is said in RAYMOND_OUT is not searched.
        return [f"evaluator: {{pattern: '[</>]', verdicts: {{match: {follows}, none: {follows}}}}}"]
    return []


def _reply(state: State) -> list[dict[str, Any]]:
    """One for each try."""
    before: dict[str, dict[str, Any]] = {
        "crash": {"fail": "crash"},
        "limit": {"fail": "limit", "retry_after": "30ms"},
        "refused": {"text": "There is no tag in this.", "cost": state.cost},
    }
    answer = {"text": _tag(state, "{{input}}"), "cost": state.cost, "delay": f"{state.pause * 1000:.0f}ms"}
    done = answer | ({"writes": _made(state)} if state.gate else {})
    return [*(before[one] for one in state.tries), *[answer] * state.reds, *[done] * 6]


def _made(state: State) -> dict[str, str]:
    """What the agent writes so that its check is green."""
    edited = {f"tests/{state.mark}.sh": _checked(state)} if state.gate == "edited" else {}
    return {f"made/{state.mark}": "right\n", **edited}


_GIVEN = r"""given=$RAYMOND_INPUT all=$RAYMOND_RESULTS
while [[ $all =~ \"result\":\"([^\"]*)\"(.*) ]]; do given+="+${BASH_REMATCH[1]}" all=${BASH_REMATCH[2]}; done
"""
"""What a script was given, and what a wait collected. All is done by the shell itself, which then needs no process."""


_FILE = 'echo "$RAYMOND_STATE" > "made.$RAYMOND_AGENT_ID.$RAYMOND_STATE"\n'
"""What a script leaves in the directory that it works in."""


def _script(state: State, *, makes_files: bool) -> str:
    lines = [_policy(state), ledger.NOTE]
    if state.name == "START.sh":
        lines += [f"[[ $RAYMOND_RUN_INPUT != {QUICK} ]] || {{ echo '<result>{QUICK}</result>'; exit 0; }}\n"]
    lines += [_PAUSE, "note begin\n", _GIVEN, f'read -rt {max(state.pause, 0.001)} <> "$PAUSE"\n']
    if state.leaves:
        lines += [leftovers.leave(state.leaves, state.mark)]
    if state.looks_for:
        lines += [leftovers.look(state.looks_for.partition(".")[0])]
    lines += [_FILE] if makes_files else []
    lines += ["note end\n"]
    if state.stumbles:
        lines += ["(( RAYMOND_ATTEMPT > 1 )) || exit 4\n"]
    if state.move == "error":
        return "".join([*lines, "exit 3\n"])
    return "".join([*lines, f"echo {_quoted(_tag(state, '$given'))}", ' > "$RAYMOND_OUT"\n' if state.by_file else "\n"])


def _policy(state: State) -> str:
    next = state.next.name if state.next else ""
    keys = {"error": [f"on_error: {next}"], "loop": [f"max_visits: {state.visits}", f"then: {next}"]}.get(
        state.move, []
    )
    keys = [*keys, *_evaluator(state)]
    return "".join(f"# {line}\n" for line in ("/// raymond", *keys, "///")) if keys else ""


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '\\"') + '"'
