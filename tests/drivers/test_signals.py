"""Signals are caught while a run is driven, and a second one is heard although the first was not acted on."""

import signal

import pytest

from raymond.drivers.signals import Signals
from raymond.system.processes import Poll


@pytest.mark.parametrize("acts", [True, False], ids=["acted on", "not yet acted on"])
def test_a_second_signal_is_urgent(acts: bool) -> None:
    poll, done = Poll(), list[str]()
    signals = Signals(poll, lambda: done.append("pause"), lambda _: done.append("stop"))
    urgent: list[bool] = []
    with signals.listening():
        for _ in range(2):
            signal.raise_signal(signal.SIGINT)
            urgent.append(signals.is_urgent)
            if acts and not urgent[-1]:
                signals.act()
    assert urgent == [False, True]
    assert done == (["pause"] if acts else [])
    poll.close()
