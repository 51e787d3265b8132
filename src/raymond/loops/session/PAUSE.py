"""Let a person decide whether the loop goes on."""

# /// raymond
# retries: 2
# ///

from raymond.loops.step import Step, end, tag

step = Step()
how = {"next": "ANSWER.py", "choices": "continue,stop", "approve": step.settings.approve}
end(tag("ask", step.variable("question"), how))
