"""Whether a script can be parsed, and prints what can be read."""

import warnings
from collections.abc import Iterator

from raymond.errors import Diagnostic
from raymond.language import frontmatter
from raymond.language.frontmatter import Mark
from raymond.language.workflow import State, Workflow

_SAME = "`python3 -m py_compile` says the same"


def check(workflow: Workflow, state: State) -> Iterator[Diagnostic]:
    """Syntax errors of a Python script, and what is wrong with the tags that a script prints."""
    if "</" in state.body:
        from raymond.language.lint import printed  # many scripts of a workflow print no tag themselves

        yield from printed.check(workflow, state)
    # Another interpreter may know another syntax.
    if not state.name.endswith(".py") or workflow.settings.python:
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(state.body, state.name, "exec", dont_inherit=True)
    except SyntaxError as error:
        line, column = error.lineno or 0, max(error.offset or 1, 1)
        length = (error.end_offset or 0) - column if error.end_lineno == error.lineno else 1
        mark = frontmatter.mark(state.name, state.body, line, column, length)
        yield frontmatter.diagnose(mark, "script-syntax", f"not valid Python: {error.msg}", _SAME)
    except (ValueError, RecursionError, MemoryError) as error:
        yield frontmatter.diagnose(Mark(state.name), "script-syntax", f"not valid Python: {error}", _SAME)
