"""Test tools for authors of backends: a suite of facts that hold for every backend, and a fake program."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from raymond.testing import fake_claude
    from raymond.testing.backend_contract import BackendContract

__all__ = ["BackendContract", "fake_claude"]


def __getattr__(name: str) -> object:
    """Load on demand: `fake_claude` is started as a program, many times, and has to start fast."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    if name == "fake_claude":
        return import_module("raymond.testing.fake_claude")
    found: object = import_module("raymond.testing.backend_contract").BackendContract
    return found
