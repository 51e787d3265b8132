"""Text as a terminal may show it."""


def visible(text: str) -> str:
    """`text` with what a terminal would not show, or would obey, written out."""
    return text if text.isprintable() else "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)
