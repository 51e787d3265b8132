"""What is too long to be handed on from step to step is cut or passed over, and the loop goes on."""

import json
from pathlib import Path

import pytest

from planned import Planned
from raymond.loops import ledger, task_source
from raymond.loops.ledger import Ledger
from raymond.loops.settings import Settings
from raymond.loops.source import refused

LONG = f"""### 1.4.1. {"very long " * 30_000}

**Verification:** `sh check.sh`

{"word " * 300_000}

### 1.4.2. Much to judge

**Verification:**
- type: manual
{"".join(f"- criteria: {'c' * 500}{one}{chr(10)}" for one in range(2_000))}

### 1.4.3. A long check

**Verification:** `true {"x" * 10_000}`

### 1.4.4. The end

**Verification:** `sh check.sh`
"""


@pytest.mark.slow
def test_a_loop_over_long_tasks_comes_to_its_end(tmp_path: Path) -> None:
    night = Planned(tmp_path, spec=LONG, prd="## User Stories\n\n### US-1: All\n\n**Implemented by:** 1\n")
    done = night.tasks()
    assert done.code == 0, done.err[-2000:]
    assert night.fields("1.4.4")["Verified"].startswith("true (")
    assert (
        "1.4.3. A long check: its check cannot be read: it has more than 10,000 characters: put it into a script"
        in done.out
    )
    assert done.err.count("Selected item") == 3


def test_what_is_left_is_handed_on_in_part_and_counted() -> None:
    found = Ledger(ended="limit")
    found.note_left([f"{one} {'x' * 500}" for one in range(10_000)], [("y" * 500, "z" * 500)] * 300)
    assert len(found.write()) < 200_000
    assert (len(found.left), found.left[-1]) == (201, "and 9,800 more")
    assert found.skipped[-1][0] == "and 100 more"
    again = ledger.read(found.write())
    assert again.text == "0 of 10000 done"
    again.note_left(["a"], [])
    assert (again.left, again.skipped, again.text) == (["a"], [], "0 of 1 done")


def test_all_that_an_agent_is_given_has_an_end_that_says_where_the_rest_is() -> None:
    assert task_source.joined(["a", "", "b"], "docs") == "a\n\nb"
    assert task_source.joined(["a" * 99_999, "b"], "docs/implementation").endswith(
        "\n\n(The rest is in docs/implementation.)"
    )
    assert len(json.dumps(task_source.joined(["ä" * 200_000], "docs"))) < 400_000


def test_a_check_of_ten_thousand_characters_is_the_longest() -> None:
    assert refused("true " + "x" * 9_995, Settings()) == ""
    assert refused("true " + "x" * 9_996, Settings()).startswith("its check has more than 10,000 characters")
