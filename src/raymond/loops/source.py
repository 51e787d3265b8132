"""Source: where the items of a loop come from, and where it is written down what became of them."""

from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from raymond.loops.formats.queue_item import Doubt, Item
from raymond.loops.ledger import Entry, Ledger
from raymond.loops.selection import Selection

if TYPE_CHECKING:
    from raymond.loops.item_run import ItemRun


class Looked(Struct, frozen=True):
    """What there is to do now."""

    log: str
    """The name of the newest session log; empty when there is none."""
    selection: Selection
    doubts: tuple[Doubt, ...] = ()
    """What may not mean what its author thinks."""
    text: str = ""
    """The whole log, where the items come from it."""
    trouble: str = ""
    """What a person has to repair before anybody can say what there is to do."""


class Source(Protocol):
    """The documents with the items of a loop."""

    def look(self, ledger: Ledger) -> Looked:
        """What there is to do, after what was done."""

    def settled(self) -> str:
        """That all which was asked for is done, in words; empty when it is not."""

    def doubts_of(self, looked: Looked, item: Item) -> list[Doubt]:
        """What about an item may not mean what its author thinks."""

    def done(self, work: "ItemRun", entry: Entry) -> None:
        """Write down that an item counts."""

    def failed(self, work: "ItemRun", *, verdict: str, action: str, error: str, attempt: int) -> str:
        """Write down that it does not; the item that was made to repair it, if any, in words."""
