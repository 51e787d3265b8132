"""What is too long for an environment is written in slices, and is the same text."""

import json

import pytest

from raymond.steps import output

LONG = 'x"\\\n\0é😀' * 400_000
"""The borders of its slices are at every character that needs more than one byte."""


@pytest.mark.parametrize("values", [{}, {"input": ""}, {"a": "b", "c": ""}, {"input": LONG, "result": LONG, "n": "1"}])
def test_slices_of_json_are_one_document(values: dict[str, str]) -> None:
    parts = list(output.as_json(values))
    assert json.loads(b"".join(parts)) == values
    assert max(map(len, parts)) < 8 << 20


def test_slices_of_a_text_are_the_text() -> None:
    assert b"".join(output.plain(LONG + "\udcff")) == LONG.encode() + b"\xff"
