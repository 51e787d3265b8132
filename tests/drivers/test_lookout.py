"""Programs that nobody named before their first turn."""

from raymond.drivers.recovery import Lookout
from raymond.machine.events import Program

CODEX = Program(name="codex", version="0.170.0")


class Machine:
    """A machine on which a look takes a while, and on which programs are installed."""

    def __init__(self, takes: float) -> None:
        self.now = 1000.0
        self.problem = "there is no program `codex` on the PATH"
        self.looks = 0
        self._takes = takes

    def clock(self) -> float:
        return self.now

    def look(self, name: str) -> tuple[Program, str]:
        self.looks += 1
        self.now += self._takes
        return CODEX, self.problem


def test_a_program_that_cannot_be_used_is_looked_at_again_and_used_once_it_can() -> None:
    machine = Machine(takes=0.0)
    lookout = Lookout(machine.look, machine.clock)
    assert lookout.find("codex") is None
    assert lookout.unusable == {"codex": machine.problem}
    machine.problem = ""
    assert (lookout.find("codex"), lookout.unusable) == (CODEX, {})


def test_a_look_that_takes_long_is_not_repeated_for_every_turn() -> None:
    machine = Machine(takes=10.0)
    lookout = Lookout(machine.look, machine.clock)
    for _ in range(5):
        assert lookout.find("codex") is None
    assert (machine.looks, lookout.unusable) == (1, {"codex": machine.problem})
    machine.now += 100.0
    lookout.find("codex")
    assert machine.looks == 2
