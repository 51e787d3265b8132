"""A room where prompts are answered by the real Claude Code, and the model behind it is a script of the test."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from e2e.model import Model, Request, Script, claude_environment, program, subscribed, turns
from e2e.responses import Responses, codex_environment
from raymond.machine.events import SessionNamed, StepStarted
from running import Live, Ran, Room, until

SILENT = "lint: {ignore: {no-transition: the model is a script, dead-end: the model is a script}}\n"


class Desk(Room):
    """A room of a person who has Claude Code, an empty home and nothing else in the environment."""

    def __init__(self, path: Path, server: Model, *, subscription: bool = False) -> None:
        super().__init__(path)
        self.server = server
        self.user = path / "home"
        own = claude_environment(self.user, server)
        # Whoever skips permissions as root has to be told by Raymond that it is allowed.
        del own["IS_SANDBOX"]
        own["PATH"] = f"{os.path.dirname(program('claude') or '')}:{os.environ['PATH']}"
        self.environment = (subscribed(own) if subscription else own) | {"TEST_ROOM": str(self.path)}

    def flow(self, files: Mapping[str, str], name: str = "flow") -> str:
        """A workflow whose model knows from the test how to end."""
        return super().flow({"workflow.yaml": SILENT, **files}, name)

    def claude(self, files: Mapping[str, str], *args: str) -> Ran:
        """Run a workflow to its end."""
        return self.command(files, "--backend", "claude", *args)

    def begin(self, files: Mapping[str, str], *args: str) -> list[str]:
        """The command that runs a workflow."""
        return ["run", self.flow(files), "--id", "r", "--backend", "claude", *args]

    def asked(self, agent: str, state: str, visit: int = 1) -> list[Request]:
        """What the model was asked in one turn of an agent in a state."""
        session = self.turns(agent, state)[visit - 1].session
        return [request for request in self.server.requests if request.session == session]

    def conversation(self, state: str, agent: str = "main", visit: int = 1) -> list[tuple[str, str]]:
        """All that the model saw when it was first asked in that turn."""
        return turns(self.asked(agent, f"{state}.md", visit)[0])

    def turns(self, agent: str = "", state: str = "") -> list[StepStarted]:
        """The turns that were started, in order: all, or those of an agent in a state."""
        found: list[tuple[str, str, StepStarted]] = []
        states: dict[str, str] = {}
        for event in self.events():
            moved_to = getattr(event, "state", "")
            if moved_to and hasattr(event, "agent"):
                states[event.agent] = moved_to
            elif isinstance(event, StepStarted) and event.backend:
                found.append((event.agent, states[event.agent], event))
        return [turn for who, where, turn in found if not agent or (who, where) == (agent, state)]

    def leader(self, spool: str) -> int:
        """The process of a turn in flight, from its spool."""
        path = Path(self.project.run("r").spool, spool, "pid")
        return int(until(lambda: path.read_text("ascii") if path.exists() else "", f"the pid in {path}").split()[0])

    def kill(self, live: Live) -> None:
        """`kill -9` of Raymond alone."""
        live.process.kill()
        live.process.wait()


class Coder(Desk):
    """A room of a person who has Codex, an empty home and nothing else in the environment."""

    server: Responses

    def __init__(self, path: Path, server: Responses) -> None:
        Room.__init__(self, path)
        self.server = server
        self.user = path / "home"
        own = codex_environment(self.user, server)
        own["PATH"] = f"{os.path.dirname(program('codex') or '')}:{os.environ['PATH']}"
        self.environment = own | {"TEST_ROOM": str(self.path)}

    def begin(self, files: Mapping[str, str], *args: str) -> list[str]:
        return ["run", self.flow(files), "--id", "r", "--backend", "codex", *args]

    def threads(self) -> list[str]:
        """The conversations, as Codex named them, in the order they were journaled."""
        return [event.session for event in self.events() if isinstance(event, SessionNamed)]

    def saw(self, prompt: str) -> list[str]:
        """The prompts and replies of the conversation that was asked `prompt`, as the model got it."""
        (question,) = [one for one in self.server.requests if one.prompt.startswith(prompt)]
        return [text for _, text in question.turns]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Callable[..., Desk]]:
    """Makes the one desk of a test; nothing may have been asked of another host than the model's."""
    made: list[Desk] = []

    def make(script: Script | None = None, **given: bool) -> Desk:
        server = Model(script)
        server.start()
        made.append(Desk(tmp_path, server, **given))
        return made[0]

    yield make
    for one in made:
        one.clear()
        one.server.close()
        assert one.server.others == []


@pytest.fixture
def coder(tmp_path: Path) -> Iterator[Callable[[Script], Coder]]:
    """Makes the one room of a test with Codex; nothing may have been asked of another host than the model's."""
    made: list[Coder] = []

    def make(script: Script) -> Coder:
        server = Responses(script)
        server.start()
        made.append(Coder(tmp_path, server))
        return made[0]

    yield make
    for one in made:
        one.clear()
        one.server.close()
        assert one.server.others == []
