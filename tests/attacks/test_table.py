"""The table of attacks is true: every test that it names exists. None of them is run here."""

import ast
from functools import cache
from pathlib import Path

from attacks.table import ATTACKS

TESTS = Path(__file__).resolve().parents[1]


@cache
def found_in(path: str) -> tuple[frozenset[str], frozenset[str]]:
    """The functions of a file, and the strings in it: the names of cases are among them."""
    nodes = list(ast.walk(ast.parse((TESTS / path).read_text("utf-8"), path)))
    strings = (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return frozenset(node.name for node in nodes if isinstance(node, ast.FunctionDef)), frozenset(strings)


def is_there(test: str) -> bool:
    """Whether there is such a test, and such a case of it."""
    path, _, name = test.partition("::")
    name, _, case = name.partition("[")
    if not (TESTS / path).is_file():
        return False
    functions, strings = found_in(path)
    return name.startswith("test_") and name in functions and (not case or case.removesuffix("]") in strings)


def test_every_test_that_the_table_names_exists() -> None:
    named = {test for rows in ATTACKS.values() for tests in rows.values() for test in tests}
    assert len(named) > 200
    assert sorted(test for test in named if not is_there(test)) == []


def test_no_attack_is_listed_twice_or_without_a_test() -> None:
    attacks = [attack for rows in ATTACKS.values() for attack in rows]
    assert len(attacks) == len(set(attacks))
    assert [attack for rows in ATTACKS.values() for attack, tests in rows.items() if not tests] == []
