"""The workflow of a run, from its snapshot, with the folders it has on this machine."""

from collections.abc import Mapping

from raymond.machine.placed_workflow import PlacedWorkflow
from raymond.machine.run import Run
from raymond.store import blobs, exports, loader, sources
from raymond.store.loader import Loaded
from raymond.store.project import Project
from raymond.store.unpacked import Unpacked


def placed(project: Project, run: Run, loaded: Loaded | None = None) -> PlacedWorkflow:
    """The workflow of `run`; `loaded` saves reading it."""
    start = run.start
    if loaded is None:
        files = sources.read(project.run(start.workflow_id), start.source)
        workflow = loader.from_files(files, name=start.name, entry=start.entry, overrides=start.overrides)
    else:
        workflow = loaded.workflow
    uses = any("task_folder" in state.body.lower() for state in workflow.states.values())
    uses = uses or any("task_folder" in text.lower() for text in workflow.lib.values())
    folder = f"{project.home.work}/{start.source}"
    tasks = exports.tasks(project.tree, start.workflow_id)
    return PlacedWorkflow(workflow, folder, tasks, uses, whole=blobs.whole(project.run(start.workflow_id).blobs))


def unpacked(project: Project, run: Run, loaded: Loaded | None = None) -> Unpacked:
    """The files of the workflow, which scripts are started from."""
    folder, digest = project.run(run.start.workflow_id), run.start.source

    def files() -> Mapping[str, bytes]:
        return loaded.files if loaded else sources.read(folder, digest)

    return Unpacked(project.home, digest, files)
