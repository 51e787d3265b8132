"""A model that answers a workflow's prompts from its replies: python tests/e2e/play.py examples/review-loop --port 8123

So a workflow can be run by a real agent's program without an account: the program asks this server, and gets for each
prompt what `replies.yaml` says, list by list, as the scripted backend would give it. Replies that are not texts are
played by their `text`; tools, delays and failures are left out.
"""

import argparse
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import yaml

from e2e.model import Answer, Model, Request, Text, serve


class Play:
    """The replies of a workflow, found by the prompts they belong to."""

    def __init__(self, folder: Path) -> None:
        replies = yaml.safe_load((folder / "replies.yaml").read_text("utf-8"))
        self._replies = {name.removesuffix(".md"): reply for name, reply in replies.items()}
        self._beginnings = {path.stem: _beginning(path.read_text("utf-8")) for path in folder.glob("*.md")}
        self._visits: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> Answer:
        """What the state whose prompt this is says to this visit; a prompt of nobody's gets no tag."""
        state = next((name for name, text in self._beginnings.items() if text and text in request.prompt), "")
        with self._lock:
            reply: Any = self._replies.get(state, "ok")
            if isinstance(reply, list):
                reply = reply[min(self._visits[state], len(reply) - 1)]
            self._visits[state] += 1
        while isinstance(reply, list):
            reply = reply[-1]
        return Text(reply if isinstance(reply, str) else reply.get("text", "ok"))


def _beginning(text: str) -> str:
    """The first words of a prompt, up to what differs from visit to visit."""
    body = text.partition("\n---\n")[2] if text.startswith("---\n") else text
    return body.strip().partition("\n")[0].partition("{{")[0].strip()


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description="Answer the prompts of a workflow from its replies.yaml.")
    parser.add_argument("workflow", type=Path)
    parser.add_argument("--port", type=int, default=0, help="0 is any free one; it is printed")
    given = parser.parse_args()
    with Model(Play(given.workflow), port=given.port) as server:
        serve(server)


if __name__ == "__main__":
    main()
