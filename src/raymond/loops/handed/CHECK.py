"""Run the check of an item that somebody says is done."""

# /// raymond
# retries: 2
# gate: "{{checks}}"
# gate_timeout: "{{check_timeout}}"
# seal: "{{seal}}"
# unseal: "{{may}}"
# on_review: "{{on_review}}"
# on_fail: FAILED.py
# ///

from raymond.loops.step import Step, end, tag

end(tag("goto", "PREPARE.py", {"input": Step().input}))
