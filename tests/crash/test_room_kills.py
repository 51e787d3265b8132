"""Killed at any call of git while a check is made ready, a run with a workspace loses nothing, and is checked once more."""

from pathlib import Path

import pytest

from crash import nothing_lost, runs, workshop
from crash.nothing_lost import Expected
from crash.workshop import Workshop

PARTS = 6
WORK = "---\ngate: test -e turned && test -e sub/deep/made\n---\nGo on: `<goto>END.sh</goto>`\n"


class Checked(Workshop):
    """A workshop whose turn is checked."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        runs.workflow(self.flow, WORK_md=WORK)


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> tuple[Expected, list[str]]:
    return workshop.unbroken(tmp_path_factory.mktemp("unbroken"), Checked)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_driver_or_verifier_is_killed_at_any_call_of_git(
    part: int, unbroken: tuple[Expected, list[str]], tmp_path: Path
) -> None:
    expected, asked = unbroken
    for number in range(1, len(asked) + 1)[part::PARTS]:
        place = Checked(tmp_path / str(number))
        print(f"call {number}, git {asked[number - 1]}: everything is in {place.flow.parent}")
        place.strike("before", number)
        struck = place.begin().wait()
        assert struck.code in (-9, 0), struck.err  # the driver was killed; or its verifier, and it started another one
        place.strike("never", 0)
        endings = place.finish() if struck.code else [struck]
        if "run completed" in struck.err and struck.code:
            endings += place.finish()
        nothing_lost.check(place, expected, endings, paid_once=True)
        place.clear()
