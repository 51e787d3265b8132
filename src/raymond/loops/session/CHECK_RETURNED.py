"""Internal mode: check what another program's agent did."""

# /// raymond
# retries: 2
# gate: "{{checks}}"
# gate_timeout: "{{check_timeout}}"
# seal: "{{seal}}"
# unseal: "{{may}}"
# on_review: "{{on_review}}"
# on_fail: FAILED.py
# ///

from raymond.loops.forward import forward

forward("PREPARE.py")
