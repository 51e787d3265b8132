"""A crowd at the door of a real driver keeps nobody out who really asks."""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from socket import AF_UNIX, socket

import pytest

from raymond.machine.events import AskEnded, RequestTaken
from running import GO, until
from trust.places import Place

WAITS = {
    "START.sh": "echo '<fork next=\"ASK\">OTHER</fork>'",
    "ASK.sh": "echo '<ask next=\"END\">Which?</ask>'",
    "OTHER.sh": f"{GO}\necho '<result></result>'",
    "END.sh": 'echo "<result>told $RAYMOND_INPUT</result>"',
}
"""Asks while another agent keeps the run going."""
MANY = 50
"""Several times as many as are let in at once."""


class Crowd:
    """Processes that connect and do not ask anything; what they do goes on until they leave."""

    def __init__(self, path: str) -> None:
        # The path itself may be too long for an address.
        self._folder = os.open(os.path.dirname(path), os.O_RDONLY)
        self._door = f"/proc/self/fd/{self._folder}/{os.path.basename(path)}"
        self.open: list[socket] = []
        self.begun, self._over = threading.Event(), threading.Event()

    def come(self, says: bytes = b"") -> None:
        """Everybody connects, says this and stays."""
        for _ in range(MANY):
            self.open.append(self._connect())
            with contextlib.suppress(OSError):  # shown out meanwhile
                self.open[-1].sendall(says)

    def drip(self) -> None:
        """Everybody says one byte after the other, and never all of it."""
        self.come(b"{")
        self._keep(self._say)

    def flicker(self) -> None:
        """Everybody leaves at once, and comes again."""
        self._keep(lambda: self._connect().close())

    def _connect(self) -> socket:
        one = socket(AF_UNIX)
        one.connect(self._door)  # waits for room, and is the first to get it
        return one

    def _say(self) -> None:
        for one in self.open:
            with contextlib.suppress(OSError):
                one.sendall(b" ")

    def _keep(self, act: Callable[[], object]) -> None:
        with contextlib.suppress(OSError):
            while not self._over.is_set():
                act()
                self.begun.set()

    @contextlib.contextmanager
    def there(self, how: str) -> Iterator[None]:
        """The crowd is at the door."""
        ways: dict[str, Callable[[], None]] = {
            "silent": self.come,
            "one byte": lambda: self.come(b"{"),
            "dripping": self.drip,
            "coming and going": self.flicker,
        }
        threads = [threading.Thread(target=ways[how]) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            until(lambda: self.begun.is_set() or not any(one.is_alive() for one in threads), "the crowd")
            yield
        finally:
            self._over.set()
            for thread in threads:
                thread.join()
            for one in self.open:
                one.close()
            os.close(self._folder)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["silent", "one byte", "dripping", "coming and going"])
def test_an_answer_gets_through_a_crowd_that_does_not_ask(room: Place, how: str) -> None:
    with room.start("run", room.flow(WAITS), "--id", "r") as live:
        door = room.project.run("r").socket
        until(lambda: "asks: Which?" in live.err and room.part("socket").exists(), "the question")
        with Crowd(door).there(how):
            done = room.raymond("answer", "r", "main", "yes", "--no-resume")
        room.go()
        assert (done.returncode, live.wait().out) == (0, "told yes\n"), done.stderr
    assert [one.problem for one in room.events() if isinstance(one, RequestTaken)] == [""]
    assert len([one for one in room.events() if isinstance(one, AskEnded)]) == 1
