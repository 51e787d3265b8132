"""Somebody says that the item is done: check it before an agent is paid for it."""

# /// raymond
# retries: 2
# gate: "{{checks}}"
# gate_timeout: "{{check_timeout}}"
# seal: "{{seal}}"
# unseal: "{{may}}"
# on_review: "{{on_review}}"
# on_fail: UNVERIFIED.py
# ///

from raymond.loops.step import Step, end, tag

Step()
end(tag("goto", "PREPARE.py", {"input": ""}))
