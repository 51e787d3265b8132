"""A line is cleaned the same in pieces as in one."""

import pytest

from raymond.redaction import Secrets
from raymond.steps.output import LONG, Line

SECRETS = Secrets.of({"MY_TOKEN": "q7Zr2LmX9vTb4KpW"})
LINES = {
    "short": b'{"a": "q7Zr2LmX9vTb4KpW"}',
    "empty": b"",
    "long": b"x" * LONG + b" q7Zr2LmX9vTb4KpW " + b"eyJ" * LONG + b" q7Zr2LmX9vTb4KpW",
    "no text": b"\xff\xfe" * LONG + "ä".encode() * 1000 + b"q7Zr2LmX9vTb4KpW\xff",
}


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
@pytest.mark.parametrize("size", [LONG, 100_001])
def test_a_line_is_the_same_in_pieces(line: bytes, size: int) -> None:
    whole = Line(SECRETS)
    for _ in range(2):
        assert whole.is_empty
        for at in range(0, len(line), size):
            whole.add(line[at : at + size])
        assert whole.is_empty == (not line)
        assert whole.end() == SECRETS.clean_bytes(line)
    assert whole.is_empty


def test_a_long_line_is_not_kept_to_be_cleaned_at_once() -> None:
    class Counting(Secrets):
        most = 0

        def _pass(self, text: str, final: bool, before: str = "") -> tuple[str, str]:
            self.most = max(self.most, len(text))
            return super()._pass(text, final, before)

    secrets = Counting({"q7Zr2LmX9vTb4KpW": "MY_TOKEN"})
    line = Line(secrets)
    for _ in range(40):
        line.add(b"eyJ" * (LONG // 3))
    line.end()
    assert 0 < secrets.most < 3 * LONG
