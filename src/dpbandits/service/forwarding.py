"""How the keyring is told, in a thread of its own: a slow disk must not hold decisions up."""

import logging
import threading
import time

from dpbandits.errors import ServiceError
from dpbandits.service.sealing import Keyring, Seal

log = logging.getLogger("dpbandits.service")

_EVERY = 10.0  # seconds
_WITHIN = 60.0  # seconds that it may fail before nothing more is decided


class Forwarder:
    """Lets the keyring forget the keys of what was folded, and know how far answers went."""

    def __init__(self, keyring: Keyring) -> None:
        self._keyring = keyring
        # How far answers went, as the writer says; what of it the keyring knows is ours alone.
        self._reached: dict[int, tuple[Seal, int]] = {}
        self._told: dict[int, tuple[Seal, int]] = {}
        self._ended_experiments: set[int] = set()  # whose keys it has yet
        self._behind_since: float | None = None
        self._one_at_a_time = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="keyring", daemon=True)

    def start(self) -> None:
        """Tell the keyring now and then."""
        self._thread.start()

    def stop(self) -> None:
        """Tell it once more, and end."""
        self._stop.set()
        self._thread.join()

    @property
    def is_late(self) -> bool:
        """Whether the keyring could not be told for so long that nothing more may be decided."""
        since = self._behind_since
        return since is not None and time.monotonic() - since > _WITHIN

    def reached(self, experiment: int, seal: Seal, head: int) -> None:
        """This log entry was answered, under this key."""
        self._reached[experiment] = seal, head

    def forget(self, experiment: int) -> None:
        """An experiment has ended: its key goes at once, or as soon as the keyring can be written."""
        with self._one_at_a_time:
            self._reached.pop(experiment, None)
            self._ended_experiments.add(experiment)
        self.tell()

    def tell(self) -> None:
        """Bring the keyring up to date."""
        with self._one_at_a_time:
            reached = dict(self._reached)  # the writer may add to it meanwhile
            moved = {one: to for one, to in reached.items() if self._told.get(one) is not to}
            try:
                if moved:
                    self._keyring.advance(moved)
                for experiment in list(self._ended_experiments):
                    self._keyring.forget(experiment)
                    self._ended_experiments.discard(experiment)
            except ServiceError as error:
                log.error("%s; old keys are not forgotten", error)
                self._behind_since = self._behind_since or time.monotonic()
                return
            self._behind_since, self._told = None, reached

    def _run(self) -> None:
        while not self._stop.wait(_EVERY):
            self.tell()
        self.tell()
