"""The check before any work: how it ends is all that matters."""

# /// raymond
# retries: 2
# gate: "{{check}}"
# gate_timeout: "{{check_timeout}}"
# on_fail: NEXT.py
# ///

from raymond.loops.forward import forward

forward("NEXT.py", "")
