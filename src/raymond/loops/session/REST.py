"""Internal mode: wait until the next item is asked for."""

# /// raymond
# retries: 2
# ///

from raymond.loops.step import Step, document, end, tag

step = Step()
if step.visit > 1:
    end(tag("result", document(step.input)))
question = f"The next item begins with `raymond {step.settings.loop} next`."
end(tag("ask", question, {"next": "REST.py", "choices": "continue,stop"}))
