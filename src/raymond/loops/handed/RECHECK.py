"""The files are not those that were checked: check them again, then go on as before."""

# /// raymond
# retries: 2
# gate: "{{checks}}"
# gate_timeout: "{{check_timeout}}"
# seal: "{{seal}}"
# unseal: "{{may}}"
# on_review: "{{on_review}}"
# on_fail: FAILED.py
# max_visits: 30
# then: FAILED.py
# ///

from raymond.loops.step import Step, end, tag

end(tag("goto", "PREPARE.py", {"input": Step().input}))
