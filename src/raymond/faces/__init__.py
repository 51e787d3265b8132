"""Who tells people and programs what happens."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from raymond.drivers.face import Face, Quiet

__all__ = ["Face", "Quiet"]


def __getattr__(name: str) -> Any:
    """Load on demand: every face is in this package, and few need what is offered here."""
    if name in __all__:
        from raymond.drivers import face

        return getattr(face, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
