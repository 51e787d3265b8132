"""Workflows whose steps try what only a person may do."""

import sys

RAYMOND = f"{sys.executable} -m raymond"
BARE = "env -i PATH=$PATH HOME=$HOME TEST_ROOM=$TEST_ROOM RAYMOND_HOME=$RAYMOND_HOME"
_ONCE = "until {raymond} status r | grep -q 'asks: '; do :; done\n"
_PTY = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) and 1)"
_DEEP = 'if [ $1 -gt 0 ]; then n=$1; shift; sh -c "$DEEP" sh $((n - 1)) "$@"; else shift; "$@"; fi; true'
_RAW = """
import json, os, socket
door = socket.socket(socket.AF_UNIX)
os.chdir(os.path.dirname(DOOR))
door.connect("socket")
sender = {"way": "face", "pid": 1, "terminal": "/dev/pts/0", "command": "raymond answer"}
request = {"id": "forged", "kind": "answer", "agent": "main", "text": "yes", "sender": sender}
door.sendall(json.dumps(request).encode() + b"\\n")
print(door.recv(1000).decode(), flush=True)
"""

KNOCK = """
import os, socket
door = socket.socket(socket.AF_UNIX)
os.chdir(os.path.dirname(DOOR))
door.connect("socket")
door.sendall(REQUEST.encode() + b"\\n")
print(door.recv(1000).decode(), flush=True)
"""
"""Asks something at a door, and prints the reply."""

DISGUISES = {
    "plain": "$R answer r main yes >> $OUT 2>&1",
    "without its mark": f"{BARE} $R answer r main yes >> $OUT 2>&1",
    "orphan": f'(setsid {BARE} bash -c "$R answer r main yes >> $OUT 2>&1; echo over >> $OUT" &) ; '
    "until grep -q over $OUT; do :; done",
    "with a terminal": f"{BARE} {sys.executable} -c '{_PTY}' $R answer r main yes >> $OUT 2>&1",
    "at the door": f"{BARE} {sys.executable} -c '{_RAW}' >> $OUT 2>&1",
    "deep below": f'export DEEP=\'{_DEEP}\'; {BARE} DEEP="$DEEP" sh -c "$DEEP" sh 260 '
    f"{sys.executable} -c '{_PTY}' $R answer r main yes >> $OUT 2>&1",
    "below a run": "mkdir -p $OUT.d; echo \"$R answer r main yes >> $OUT 2>&1; echo '<result></result>'\" > $OUT.d/START.sh; "
    "$R run $OUT.d --id inner >> $OUT 2>&1",
    "attach": f"echo yes | {BARE} {sys.executable} -c '{_PTY}' timeout 2 $R attach r >> $OUT 2>&1",
}
"""Ways to answer one's own question."""


def asking(attempt: str, *, out: str, door: str = "", tag: str = '<ask next="END">Deploy?</ask>') -> dict[str, str]:
    """Asks, and meanwhile a step makes the attempt; what it was told goes to `out`."""
    head = f"R='{RAYMOND}' OUT='{out}'\ntouch $OUT\n"
    return {
        "START.sh": "echo '<fork next=\"ASK\">EVIL</fork>'\n",
        "ASK.sh": f"echo '{tag}'\n",
        "EVIL.sh": head
        + _ONCE.format(raymond=RAYMOND)
        + (f"until [ -S '{door}' ]; do :; done\n" if door else "")
        + attempt.replace("DOOR", f'"{door}"')
        + "\necho '<result>tried</result>'\n",
        "END.sh": 'echo "<result>deployed because $RAYMOND_INPUT</result>"\n',
    }
