"""Values that are too long for an environment, on their way to a file: slice by slice, never encoded whole."""

from collections.abc import Iterator, Mapping

import msgspec

_SLICE = 1 << 20


def plain(text: str) -> Iterator[bytes]:
    """`text` as it is."""
    for at in range(0, len(text), _SLICE):
        yield text[at : at + _SLICE].encode("utf-8", "surrogateescape")


def as_json(values: Mapping[str, str]) -> Iterator[bytes]:
    """`values` as one JSON document; a long text is often in it under several names."""
    sign = b"{"
    for name, value in values.items():
        yield sign + msgspec.json.encode(name) + b':"'
        for at in range(0, len(value), _SLICE):
            yield msgspec.json.encode(value[at : at + _SLICE])[1:-1]
        sign = b'",'
    yield b'"}' if values else b"{}"
