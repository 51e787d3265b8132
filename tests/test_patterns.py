"""Patterns that are compiled when they are first used."""

import re
import subprocess
import sys

from raymond.patterns import regex

WORD = regex(r"(?P<word>[a-z]+)\d*", re.IGNORECASE)
BYTES = regex(rb"^b+$")


def test_a_pattern_does_what_the_compiled_one_does() -> None:
    compiled = re.compile(r"(?P<word>[a-z]+)\d*", re.IGNORECASE)
    for _ in range(2):
        found, wanted = WORD.fullmatch("Abc12"), compiled.fullmatch("Abc12")
        assert found
        assert wanted
        assert found["word"] == wanted["word"] == "Abc"
        assert WORD.sub("-", "a1 b2") == compiled.sub("-", "a1 b2") == "- -"
        assert WORD.findall("a1 b2") == ["a", "b"]
        assert WORD.flags == compiled.flags
        assert BYTES.search(b"bbb")


def test_nothing_is_compiled_before_it_is_used() -> None:
    code = (
        "import re; from raymond.patterns import regex\n"
        "re.compile = lambda *given: print(*given)\n"
        "found = regex('a+')\nprint('used')\ntry: found.match('a')\nexcept AttributeError: pass\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "used\na+ 0\n"
