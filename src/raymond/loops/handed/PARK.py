"""Wait until somebody asks for the next item."""

# /// raymond
# retries: 2
# ///

from raymond.loops.step import Step, end, tag

question = f"The next item begins with `raymond {Step().settings.loop} next`."
end(tag("ask", question, {"next": "GO.py", "choices": "continue,stop"}))
