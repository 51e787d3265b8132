"""Texts that will be journaled, shown and sent to a model: refused when they contain a secret."""

import os

from raymond.errors import UsageError


def check(text: str, what: str) -> str:
    """`text`, unless it contains a secret; `what` names it in the error."""
    if not isinstance(text, str):
        raise UsageError(f"{what} must be text, not {type(text).__name__}")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise UsageError(f"{what} is not text that can be stored: it has half a surrogate pair") from None
    if text:
        from raymond.redaction import Secrets

        found = Secrets.of(os.environ).find(text)
        if found:
            raise UsageError(
                f"{what} contains {found}", hint="it would be stored: a step reads secrets from its environment"
            )
    return text
