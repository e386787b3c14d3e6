"""Updates are tested on one thread, like agents."""

from tests.fog.agent.conftest import one_thread

__all__ = ["one_thread"]
