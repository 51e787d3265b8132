"""The label of an agent: a few words by which people tell forks apart."""

from collections.abc import Mapping

from raymond.text import visible

LABEL = "label"
"""The variable that gives it."""
LONGEST = 40
_CUT = "..."


def label_of(variables: Mapping[str, str]) -> str:
    """The label of an agent with these variables: `label`, else the first one; empty when there is none.

    It is one short line that is safe to print. A long one keeps its beginning and its end: paths differ in either.
    """
    text = variables[LABEL] if LABEL in variables else next(iter(variables.values()), "")
    text = visible(" ".join(text[: 100 * LONGEST].split()))
    if len(text) <= LONGEST:
        return text
    end = (LONGEST - len(_CUT)) // 2
    return f"{text[: LONGEST - len(_CUT) - end]}{_CUT}{text[-end:]}"


def named(agent: str, label: str) -> str:
    """How people read an agent: `name (label)`."""
    return f"{agent} ({label})" if label else agent
