"""Hand on what the person said."""

from raymond.loops.step import Step, document, end, tag

end(tag("result", document(Step().input)))
