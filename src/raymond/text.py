"""Text that is safe to print on a terminal."""


def visible(text: str) -> str:
    """`text` with control and other unprintable characters written as escapes."""
    return text if text.isprintable() else "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)
