"""The files are not those that were checked: check them again, then go on as before."""

# /// raymond
# retries: 2
# gate: "{{checks}}"
# gate_timeout: "{{check_timeout}}"
# seal: "{{seal}}"
# unseal: "{{may}}"
# on_review: "{{on_review}}"
# on_fail: FAILED.py
# max_visits: 4
# then: FAILED.py
# ///

from raymond.loops.forward import forward

forward("PREPARE.py")
