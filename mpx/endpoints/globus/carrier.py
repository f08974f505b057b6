"""The carrier between two collections: the service moves the data, and decides how."""

import threading

from mpx.endpoints.globus.access import GlobusAccess
from mpx.endpoints.globus.adopted_tasks import AdoptedTasks
from mpx.endpoints.globus.arrival_check import ArrivalCheck
from mpx.endpoints.globus.left_behind import LeftBehind
from mpx.endpoints.globus.task_book import TaskBook
from mpx.endpoints.globus.tasks import GlobusTasks
from mpx.endpoints.globus.worker import GlobusWorker
from mpx.engine.carrier import CarrierContext
from mpx.engine.range_scheduler import RangeScheduler
from mpx.engine.retry import Retry
from mpx.engine.worker_carrier import WorkerCarrier
from mpx.errors import UsageError

TASKS = 2  # at once: one waits while another moves; the service works on three of a user


class GlobusCarrier(WorkerCarrier):
    """Files of a collection to another one."""

    def __init__(
        self, source: GlobusAccess, destination: GlobusAccess, context: CarrierContext, key: str
    ) -> None:
        """`key`: of the copy, as its journal has it."""
        super().__init__(context)
        stop = context.failure.cancel.is_set
        tasks = GlobusTasks(
            destination.service,
            source.collection,
            destination.collection,
            context.options,
            TaskBook(key),
            context.failure,
        )
        arrivals = ArrivalCheck(source, destination, stop)
        left = LeftBehind(tasks.book.ended)
        self._adopted = adopted = AdoptedTasks(tasks, left, context.supervisor.note)
        scheduler, collecting = RangeScheduler(context), threading.Lock()
        self._workers = [
            GlobusWorker(number, tasks, arrivals, adopted, left, context, scheduler, collecting)
            for number in range(TASKS)
        ]

    def _share(self) -> None:
        """See WorkerCarrier. The service decides."""

    def join(self) -> None:
        """See Carrier. Of a copy that has come to its end no task is left."""
        super().join()
        if not (cancel := self._context.failure.cancel).is_set():
            self._adopted.end_others(Retry(0, cancel))

    def set_congestion(self, path: str, name: str) -> None:  # noqa: ARG002 the same for all
        """See Carrier."""
        raise UsageError(f"Globus is not told to use {name!r}")
