"""Tickets: which round a reward is for, in 32 characters that nobody can make up.

base64url(experiment: 3 bytes, round: 6 bytes, keyed BLAKE2b: 15 bytes). Checked without looking anything
up. A ticket is not secret: the number in it is public. It is only unforgeable.
"""

import base64
import binascii
import hashlib
import hmac

_MAC = 15  # bytes
_LENGTH = 32  # characters


class Tickets:
    """Gives tickets out and takes them back, under one key.

    >>> tickets = Tickets(bytes(32))
    >>> tickets.read(tickets.give(3, 70_000))
    (3, 70000)
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def give(self, experiment: int, number: int) -> str:
        """That of a round."""
        body = experiment.to_bytes(3, "big") + number.to_bytes(6, "big")
        return base64.urlsafe_b64encode(body + self._mac(body)).decode()

    def read(self, ticket: object) -> tuple[int, int] | None:
        """The experiment and the number of its round; None if it was not given out here."""
        if not isinstance(ticket, str) or len(ticket) != _LENGTH:
            return None
        try:
            data = base64.urlsafe_b64decode(ticket.encode("ascii"))
        except (UnicodeEncodeError, binascii.Error):
            return None
        body, mac = data[:-_MAC], data[-_MAC:]
        if len(data) != _LENGTH * 3 // 4 or not hmac.compare_digest(mac, self._mac(body)):
            return None
        return int.from_bytes(body[:3], "big"), int.from_bytes(body[3:], "big")

    def _mac(self, body: bytes) -> bytes:
        return hashlib.blake2b(body, key=self._key, digest_size=_MAC).digest()
