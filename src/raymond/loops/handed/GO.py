"""Somebody has asked for the next item."""

# /// raymond
# retries: 2
# ///

from raymond.loops.step import Step, document, end, tag

end(tag("result", document(Step().input)))
