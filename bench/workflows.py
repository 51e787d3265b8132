"""The workflows that are run: their scripts are minimal, so that the cost measured is the runtime's."""

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

from measure import Child, Cost, Failed, run

from raymond.store.home import Home
from raymond.store.project import Project

PYTHON = sys.executable
RAYMOND = str(Path(PYTHON).parent / "raymond")
ID = "bench"
START = 3000
"""Milliseconds after which the first agent ends; forking must be finished before."""
APART = 10
"""Milliseconds between the ends of two agents."""

_RESULT = "echo '<result>ok</result>'\n"
_DONE = "echo '<result>done</result>'\n"


class Folder:
    """A project of its own with one workflow in it, for one run."""

    def __init__(self, path: Path, states: dict[str, str]) -> None:
        self.path = path
        self.project = Project(Home(f"{os.environ['XDG_STATE_HOME']}/raymond"), os.path.realpath(path))
        (path / "flow").mkdir(parents=True)
        subprocess.run(["git", "init", "-q", "--template=", path], check=True)
        for name, text in states.items():
            (path / "flow" / name).write_text(text)

    @property
    def journal(self) -> Path:
        """The journal of the run."""
        return Path(self.project.run(ID).journal)

    def start(self, state: str = "") -> Child:
        """Start the run, at a state if one is named, and do not wait."""
        return Child([RAYMOND, "run", f"flow/{state}", "--id", ID], self.path)

    def run(self, state: str = "", *, result: str, steps: int) -> Cost:
        """Run it to the end and check its result."""
        cost = run([RAYMOND, "run", f"flow/{state}", "--id", ID], self.path)
        said = (self.path / "child.out").read_text()
        if said != f"{result}\n":
            raise Failed(f"the result of the run is {said[:60]!r}, not {result!r}")
        self.check(steps)
        return cost

    def check(self, steps: int) -> None:
        """Check that the run is completed, no agent is left, and all its steps were made."""
        state = self.state()
        found = (state["status"], len(state["agents"]), state["iteration_count"])
        if found != ("completed", 0, steps):
            raise Failed(f"the run is {found[0]}, {found[1]} agents are left after {found[2]} of {steps} steps")

    def state(self) -> dict[str, Any]:
        """The content of the state file; empty before it exists."""
        try:
            document: dict[str, Any] = json.loads(Path(self.project.run(ID).state).read_bytes())
        except FileNotFoundError:
            return {}
        return document

    def count(self, status: str) -> int:
        """How many agents have this status, as the state file says."""
        return sum(agent["status"] == status for agent in self.state().get("agents", ()))


def one_step() -> dict[str, str]:
    """A workflow of a single state."""
    return {"START.sh": _DONE}


def chain(steps: int) -> dict[str, str]:
    """`steps` different scripts, each leading to the next."""
    names = ["START", *(f"S{number:04}" for number in range(1, steps))]
    states = {f"{name}.sh": f"echo '<goto>{then}</goto>'\n" for name, then in pairwise(names)}
    return {**states, f"{names[-1]}.sh": _DONE}


def chain_that_ends(steps: int) -> dict[str, str]:
    """The same scripts, of which the first ends the run: what it costs to load and to check all of them."""
    states = chain(steps)
    return {**states, "START.sh": f"[ -z yes ] && {states['START.sh']}{_DONE}"}


def prompts(count: int) -> dict[str, str]:
    """`count` prompts, each leading to the next; the model does what they say."""
    names = ["START", *(f"S{number:03}" for number in range(1, count))]
    states = {f"{name}.md": f"REPLY: <goto>{then}</goto>\n" for name, then in pairwise(names)}
    return {**states, f"{names[-1]}.md": "REPLY: <result>done</result>\n"}


def loop(folder: Path) -> list[str]:
    """The same scripts one after another in a plain bash, which keeps no state."""
    text = "for f in flow/*.sh; do bash $f >/dev/null || exit 1; done"
    script = folder / "loop.sh"
    script.write_text(text + "\n")
    return ["bash", str(script)]


def fan_out(agents: int) -> dict[str, str]:
    """`agents` forks of two steps each, and one agent that waits for them."""
    return {
        "START.sh": f"printf '<fork>A</fork>\\n%.0s' {{1..{agents}}}\necho '<wait>END</wait>'\n",
        "A.sh": "echo '<goto>B</goto>'\n",
        "B.sh": _RESULT,
        "END.sh": _DONE,
    }


def endings(agents: int) -> dict[str, str]:
    """`agents` forks that sleep, wake up and end one after another; nobody waits for them."""
    fork = f'<fork next=\\"END\\" after=\\"$(({START} + {APART} * i))ms\\">A</fork>'
    return {
        "START.sh": f'for ((i = 0; i < {agents}; i++)); do echo "{fork}"; done\n',
        "A.sh": _RESULT,
        "END.sh": _DONE,
    }


def asleep(agents: int) -> dict[str, str]:
    """`agents` forks that sleep for an hour; without forks the first agent sleeps."""
    forks = f"printf '<fork after=\"1h\">A</fork>\\n%.0s' {{1..{agents}}}\necho '<wait>END</wait>'\n"
    return {
        "START.sh": forks if agents else "echo '<goto after=\"1h\">END</goto>'\n",
        "A.sh": _RESULT,
        "END.sh": _DONE,
    }


def held(agents: int) -> dict[str, str]:
    """`agents` forks whose steps do not end before their driver does, unless the file `go` exists; then the first
    of them writes to the pipe `first`."""
    # Opening the pipe for both reading and writing does not block when its reader is gone.
    wait = "while kill -0 $PPID 2>/dev/null; do sleep 0.05; done"
    return {
        "START.sh": f"printf '<fork>A</fork>\\n%.0s' {{1..{agents}}}\necho '<wait>END</wait>'\n",
        "A.sh": f"if [ ! -e go ]; then {wait}; exit 1; fi\necho 1<>first\n{_RESULT}",
        "END.sh": _DONE,
    }
