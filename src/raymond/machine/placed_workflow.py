"""A workflow with its folders on this machine, and what this machine allows it."""

from msgspec import Struct

from raymond.language.workflow import Workflow
from raymond.machine.agent import file_name
from raymond.machine.outcome import Outcome, Whole


def _held(outcome: Outcome) -> str:
    return outcome.result


class PlacedWorkflow(Struct, frozen=True):
    """A workflow with its folders on this machine."""

    workflow: Workflow
    workflow_dir: str
    tasks_dir: str
    uses_task_folder: bool = True
    """Whether the workflow mentions the task folder, which then has to exist."""
    models: tuple[str, ...] = ()
    """The only models that the site rules of this machine allow; empty for any."""
    whole: Whole = _held

    def task_folder(self, agent: str) -> str:
        """Where the agent may keep its own files."""
        return f"{self.tasks_dir}/{file_name(agent)}"
