"""What the command line says of a request that was refused."""

import pytest

from raymond.cli import delivery
from raymond.errors import UsageError
from raymond.language.refusal import Refusal, RefusalKind


@pytest.mark.parametrize(
    ("kind", "agent", "hint"),
    [
        ("not_asking", "main", "raymond status r shows what its agents are doing"),
        ("several_asking", "", "say which one: raymond answer r AGENT TEXT"),
        ("agent_running", "main", "stop it first: raymond stop r --agent main"),
        ("not_driven", "main", "raymond resume r runs it again"),
        ("run_ended", "", ""),
    ],
)
def test_a_refusal_comes_with_the_command_that_helps(kind: RefusalKind, agent: str, hint: str) -> None:
    with pytest.raises(UsageError, match="no") as raised:
        delivery.words(Refusal(kind, "no"), "r", agent)
    assert raised.value.hint == hint


def test_a_hint_of_the_refusal_itself_counts_first() -> None:
    with pytest.raises(UsageError, match="no") as raised:
        delivery.words(Refusal("unknown_state", "no", "did you mean `A.md`?"), "r")
    assert raised.value.hint == "did you mean `A.md`?"
