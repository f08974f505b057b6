"""What is to be told of a task while it runs, and when it is no use to wait any longer. Pure."""

from mpx.endpoints.globus.refusals import LOG_IN, of_code
from mpx.endpoints.globus.task_state import TaskState
from mpx.errors import AuthenticationError, DestinationError, MpxError
from mpx.units import format_duration


class TaskWatch:
    """Watches one task. `patience_s`: with an error that lasts, and without progress."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._progress: tuple[int, ...] = ()
        self._grown_s = 0.0  # when it was further than before
        self._was = ("", False)  # status, and whether it was paused
        self._faults = 0

    def observe(self, now_s: float, state: TaskState) -> list[str]:
        """Take how far a task is; return what has changed that users are to know."""
        if state.progress != self._progress or state.is_paused or not self._grown_s:
            self._progress, self._grown_s = state.progress, now_s
        now = state.status, state.is_paused
        was, self._was = self._was, now
        if now == was:
            return []
        task = f"Globus task {state.task_id}"
        if state.is_paused:
            why = f" ({state.why})" if state.trouble else ""
            return [f"{task} is paused by who runs a collection{why}: it is waited for"]
        if state.status == "INACTIVE":
            how = f"run: {LOG_IN}, or log in at app.globus.org"
            return [f"{task} is suspended, as it is not let in any more: {state.why}; {how}"]
        return [f"{task} goes on"] if was[0] == "INACTIVE" or was[1] else []

    def has_new_faults(self, state: TaskState) -> bool:
        """Tell whether there are faults that were not told yet."""
        before, self._faults = self._faults, state.faults
        return state.faults > before

    def why_in_vain(self, now_s: float, state: TaskState) -> MpxError | None:
        """Return why a task is not waited for any longer; None: it is."""
        if not state.is_active or state.is_paused or now_s - self._grown_s < self._patience_s:
            return None
        for_s = format_duration(self._patience_s)
        text = f"Globus task {state.task_id} has got no further for {for_s}: {state.why}"
        if state.status == "INACTIVE":
            return AuthenticationError(f"{text}; run: {LOG_IN}, then the same command again")
        return of_code(state.trouble, text, DestinationError) if state.has_lasting_trouble else None
