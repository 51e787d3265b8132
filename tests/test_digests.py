"""Digests without OpenSSL: the same as with it."""

import hashlib
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from raymond.digests import digest, sha1, sha256


@given(st.binary(max_size=300), st.binary(max_size=100))
def test_they_are_those_of_hashlib(content: bytes, more: bytes) -> None:
    assert sha1(content).hexdigest() == hashlib.sha1(content).hexdigest()
    found = sha256(content)
    found.update(more)
    assert found.hexdigest() == hashlib.sha256(content + more).hexdigest()


def test_a_long_content_has_the_same_digest() -> None:
    content = b"x" * 200_000
    assert digest(content) == hashlib.sha256(content).hexdigest() == sha256(content).hexdigest()


def test_a_step_of_a_loop_and_a_seal_load_no_openssl() -> None:
    """Loading it takes longer than all digests of an item."""
    for module in (
        "raymond.loops.next_item",
        "raymond.loops.attempt",
        "raymond.verifier.seal",
        "raymond.verifier.gate",
    ):
        code = f"import sys, {module}; print('_hashlib' in sys.modules)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout == "False\n", module
