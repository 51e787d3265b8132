"""The check before any work: how it ends is all that matters."""

# /// raymond
# gate: "{{check}}"
# gate_timeout: "{{check_timeout}}"
# on_fail: NEXT.py
# ///

from raymond.loops.step import end, tag

end(tag("goto", "NEXT.py"))
