"""Internal mode: wait until the next item is asked for."""

# /// raymond
# retries: 2
# ///

from raymond.loops.step import Step, end, tag

question = f"The next item begins with `raymond {Step().settings.loop} next`."
end(tag("ask", question, {"next": "ANSWER.py", "choices": "continue,stop"}))
