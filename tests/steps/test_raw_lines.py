"""What is kept of the lines of a program has no secret that the whole of them would not have."""

import pytest

from raymond.redaction import Secrets
from raymond.steps.output import Line, RawLines

SECRETS = Secrets.of({})
KEY = ["-----BEGIN RSA PRIVATE KEY-----", *(f"{number}{'kQ7x+Zr2' * 7}abcdef=" for number in range(1, 5))]
PRINTED = ["I have found", *KEY, "-----END RSA PRIVATE KEY-----", "<result>ok</result>"]


def kept(printed: list[str]) -> list[str]:
    """What is shown of these lines, one by one."""
    line, raw = Line(SECRETS), RawLines(SECRETS)
    shown: list[str] = []
    for text in printed:
        line.add(text.encode())
        shown += raw.add(line.end(), line.original)
    return [*shown, *raw.close()]


@pytest.mark.parametrize("before", ["", "> ", "{"])
def test_a_key_in_several_lines_is_not_kept(before: str) -> None:
    printed = [before + text for text in PRINTED]
    assert kept(printed) == SECRETS.clean("\n".join(printed)).split("\n")
    assert not any("kQ7x" in text for text in kept(printed))


def test_a_key_that_is_not_complete_is_held_to_the_end() -> None:
    assert kept(PRINTED[:4]) == SECRETS.clean("\n".join(PRINTED[:4])).split("\n")


def test_a_line_of_json_is_a_whole() -> None:
    printed = ['{"type": "a"}', "plain", "", ' {"type": "b"}']
    assert kept(printed) == printed
