"""A text that decides what comes next: cleaned of secrets and read, slice by slice."""

from msgspec.structs import replace

from raymond.language.reading import Reader, Reading, read
from raymond.redaction import Secrets

SLICE = 1 << 15
"""Characters or bytes that are taken at once: other steps must go on meanwhile, however slow the text is to search."""


class Answer:
    """A complete text, and how far it is read."""

    def __init__(self, secrets: Secrets, text: str, *, script: bool = False) -> None:
        self._secrets = secrets
        self._raw = text
        self._script = script
        self._at = 0
        self._door = secrets.stream()
        self._reader = Reader(script=script)
        self._pieces: list[str] = []
        self._prints: list[str] = []
        self.text = ""
        """All of it without secrets, once it is read."""
        self.reading = Reading()
        """What it says, once it is read."""

    def go_on(self) -> bool:
        """Take the next slice; whether all of it is read."""
        if len(self._raw) <= SLICE:
            self.text = self._secrets.clean(self._raw)
            self.reading = read(self.text, script=self._script)
            return True
        self._take(self._door.feed(self._raw[self._at : self._at + SLICE]))
        self._at += SLICE
        if self._at < len(self._raw):
            return False
        self._take(self._door.close())
        self.text = "".join(self._pieces)
        reading = self._reader.close()
        self.reading = replace(reading, prints=(*self._prints, *reading.prints))
        return True

    def _take(self, cleaned: str) -> None:
        self._pieces.append(cleaned)
        self._prints += self._reader.feed(cleaned)


def glimpse(secrets: Secrets, text: str) -> str:
    """What a person is shown of a text while a step runs: at most a slice, without secrets."""
    if len(text) <= SLICE:
        return secrets.clean(text)
    # Not closed: what could become a secret at the cut is left out.
    return f"{secrets.stream().feed(text[:SLICE])} … ({len(text) - SLICE:,} more characters)"
