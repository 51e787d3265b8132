"""Patterns of paths, as `seal` and `unseal` have them."""

import re
from collections.abc import Callable, Sequence


def matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Whether a path matches one of `patterns`.

    One without a slash is compared with the name, one with a slash with the whole path; `**` stands for any folders,
    and a pattern that ends in a slash for everything below a folder.
    """
    if not patterns:
        return lambda _: False
    found = re.compile("|".join(_regex(one) for one in patterns), re.DOTALL)
    return lambda path: found.fullmatch(path) is not None


def _regex(pattern: str) -> str:
    pattern = pattern.removeprefix("./")
    below = pattern.endswith("/")
    pattern = pattern.strip("/")
    anywhere = "/" not in pattern
    parts = "".join(_piece(piece) for piece in re.split(r"(\*\*/|\*\*|\*|\?)", pattern) if piece)
    return f"(?:{'(?:.*/)?' if anywhere else ''}{parts}{'/.*' if below else '(?:/.*)?'})"


def _piece(piece: str) -> str:
    return {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}.get(piece) or re.escape(piece)
