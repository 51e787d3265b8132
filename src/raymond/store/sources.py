"""A workflow's snapshot, kept with the run and unpacked for its scripts."""

import os

from raymond.errors import JournalError
from raymond.machine.run import Run
from raymond.machine.workspace import Workspace
from raymond.store import loader
from raymond.store.loader import Loaded
from raymond.store.project import Project
from raymond.system import files


def keep(project: Project, loaded: Loaded) -> None:
    """Write the snapshot, unless it exists."""
    project.folder("sources")
    source = project.source(loaded.digest)
    if not os.path.exists(source):
        files.replace(source, loaded.source, durable=True)


def place(project: Project, run: Run, loaded: Loaded | None = None) -> Workspace:
    """The workflow of a run from its snapshot, unpacked in a private folder."""
    start = run.start
    if loaded is None:
        try:
            with open(project.source(start.source), "rb") as file:
                data = file.read()
        except OSError as error:
            path, why = project.source(start.source), (error.strerror or "").lower()
            raise JournalError(
                f"the snapshot of the workflow cannot be read: {path}: {why}",
                path=path,
                hint=f"restore the file, then `raymond resume {start.workflow_id}`",
            ) from None
        workflow = loader.from_source(data, name=start.name, entry=start.entry, overrides=start.overrides)
    else:
        workflow = loaded.workflow
    # Named for its content, so that runs of the same workflow share it; changes made to it are undone here.
    folder = project.path("work", start.source[:16])
    try:
        loader.lay_out(loaded.files, folder) if loaded else loader.unpack(data, folder)
    except OSError as error:
        raise JournalError(
            f"{folder}: {(error.strerror or '').lower()}",
            path=folder,
            hint=f"scripts run from there: fix this, then `raymond resume {start.workflow_id}`",
        ) from None
    uses = any("task_folder" in state.body.lower() for state in workflow.states.values())
    uses = uses or any("task_folder" in text.lower() for text in workflow.lib.values())
    return Workspace(workflow, folder, project.path("tasks", start.workflow_id), uses)
