"""Hand an item out: what decides its check is sealed before, and whoever does it says how it ended."""

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

question = f"The item is handed out; `raymond {Step().settings.loop} record` takes what became of it."
end(tag("ask", question, {"next": "HANDED.py"}))
