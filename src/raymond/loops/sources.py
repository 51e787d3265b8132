"""Which source each loop has."""

from raymond.loops.documents import Documents
from raymond.loops.settings import STORIES, TASKS, Settings
from raymond.loops.source import Source


def source_of(documents: Documents, settings: Settings) -> Source:
    """The source of a loop."""
    if settings.loop == TASKS:
        from raymond.loops.task_source import TaskSource

        return TaskSource(documents, settings)
    if settings.loop == STORIES:
        from raymond.loops.story_source import StorySource

        return StorySource(documents, settings)
    from raymond.loops.session_source import SessionSource

    return SessionSource(documents, settings)
