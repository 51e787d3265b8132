"""The author's files in what a failed script printed: it ran from a copy that nobody should change."""

import os

from raymond.patterns import regex
from raymond.store.home import UNPACKED

_COPY = regex(rf"(?:/[^\s/:'\"]+)+/{UNPACKED}/[0-9a-f]{{64}}/")
"""The folder of one workflow among those that are unpacked."""
PRINTED = ("out", "err", "note", "error")
"""What of a transcript is shown with the author's files; agents were sent the names of their copies, and say them."""


def authored(text: str, folder: str) -> str:
    """`text` with the files of the workflow in `folder` as one would type them here, instead of their copies."""
    if UNPACKED not in text or not folder:
        return text
    near = min(os.path.relpath(folder), folder, key=len)
    return _COPY.sub(lambda _: "" if near == "." else f"{near}/", text)
