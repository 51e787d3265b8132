"""A workflow with its folders on this machine."""

from msgspec import Struct

from raymond.language.workflow import Workflow
from raymond.machine.agent import file_name


class Workspace(Struct, frozen=True):
    """A workflow with its folders on this machine."""

    workflow: Workflow
    workflow_dir: str
    tasks_dir: str
    uses_task_folder: bool = True
    """Some text of the workflow speaks of it, so it has to be there."""

    def task_folder(self, agent: str) -> str:
        """Where the agent may keep files of its own."""
        return f"{self.tasks_dir}/{file_name(agent)}"
