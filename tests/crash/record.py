"""The lines of a journal, with and without their checksums."""

import zlib


def line(body: bytes) -> bytes:
    """A line of a journal: its JSON with the checksum of what stands before it."""
    body = body.rstrip(b"\n").removesuffix(b"}")
    return b'%b,"sum":"%08x"}\n' % (body, zlib.crc32(body))


def bare(text: bytes) -> bytes:
    """The JSON of a line without its checksum."""
    return text[: text.rindex(b',"sum":"')] + b"}"
