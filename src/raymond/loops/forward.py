"""Hand on what a state was given: all that a state does which has nothing but a gate. It runs where agents work."""

import os


def forward(state: str, text: str | None = None) -> None:
    """End the step with a goto to `state`, with what this step was given, or with a text."""
    if text is None:
        with open(os.environ["RAYMOND_INPUT_FILE"], encoding="utf-8", errors="surrogateescape") as file:
            text = file.read()
    for sign, escaped in (("&", "&amp;"), ('"', "&quot;"), ("<", "&lt;"), (">", "&gt;"), ("{{", "{{loop_braces}}")):
        text = text.replace(sign, escaped)
    with open(os.environ["RAYMOND_OUT"], "w", encoding="utf-8", errors="surrogatepass") as file:
        file.write(f'<goto input="{text}">{state}</goto>')
