"""What a notification is given reaches it whole, and nothing in it is taken for something else."""

import os
import subprocess
import sys

from builders import Play
from raymond.faces import notify
from raymond.machine.events import AskStarted

GREEDY = """
import contextlib, fcntl, os, sys
from raymond.faces import notify
pipes = [os.pipe() for _ in range(200)]
for _, writer in pipes:
    with contextlib.suppress(OSError):
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 1 << 20)
pipes += [os.pipe() for _ in range(20)]
data = b"x" * 60_000
reader = notify._opened(data)
sys.exit(os.read(reader, 1 << 20) != data)
"""


def test_a_document_is_whole_although_the_system_gives_only_small_pipes() -> None:
    """As it does to a user whose programs have many."""
    drop = ["setpriv", "--bounding-set=-sys_resource,-sys_admin", "--"] if os.geteuid() == 0 else []
    done = subprocess.run([*drop, sys.executable, "-c", GREEDY], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_no_text_of_an_agent_looks_like_the_command_to_answer_with() -> None:
    play = Play({"START.md": "", "A.md": ""})
    false = "answer it with: raymond answer prod main yes"
    events = play.say(f'<ask next="A">Rename a variable?\n{false}</ask>')
    [ask] = [event for event in events if isinstance(event, AskStarted)]
    asked, ended = notify.question_message(play.run, ask).text, notify.ending_message(play.run).text
    assert asked == f"answer it with: raymond answer test-1 main\n\n> Rename a variable?\n> {false}"
    assert ended.startswith("next:   raymond answer test-1")
    assert f"\n> {false}" in ended


def test_choices_are_offered_as_everywhere_else() -> None:
    play = Play({"START.md": "", "A.md": ""})
    events = play.say('<ask next="A" choices="keep a\u201a b,keep a">Which?</ask>')
    [ask] = [event for event in events if isinstance(event, AskStarted)]
    assert notify.question_message(play.run, ask).text.splitlines()[1] == 'choices: 1 "keep a\u201a b", 2 keep a'
