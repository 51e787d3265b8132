"""Let a person decide whether the loop goes on."""

# /// raymond
# retries: 2
# ///

from raymond.loops.step import Step, end, tag

end(tag("ask", Step().variable("question"), {"next": "ANSWER.py", "choices": "continue,stop", "approve": "person"}))
