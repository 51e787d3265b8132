"""The item is said to be done: check it before an agent is paid for it."""

# /// raymond
# retries: 2
# gate: "{{checks}}"
# gate_timeout: "{{check_timeout}}"
# seal: "{{seal}}"
# unseal: "{{may}}"
# on_review: "{{on_review}}"
# on_fail: UNVERIFIED.py
# ///

from raymond.loops.forward import forward

forward("PREPARE.py", "")
