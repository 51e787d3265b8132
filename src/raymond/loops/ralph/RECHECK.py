"""The files are not those that were checked: check them again, then go on as before."""

# /// raymond
# retries: 2
# gate: "{{checks}}"
# gate_timeout: "{{check_timeout}}"
# on_review: "{{on_review}}"
# on_fail: RED.py
# max_visits: 3
# then: RED.py
# ///

from raymond.loops.forward import forward

forward("PREPARE.py")
