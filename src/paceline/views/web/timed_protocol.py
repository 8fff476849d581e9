"""HTTP connections that do not wait for ever: one whose request never comes to an end is closed."""

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_TIMEOUT = (
    10.0  # seconds from the start of a connection, or from the last answer, to the end of a request's head
)


class TimedProtocol(H11Protocol):
    """A connection that is closed if it has waited too long for a whole request, however slowly bytes trickle in.

    Uvicorn closes a connection on which nothing comes after an answer, but waits for ever for the rest of a request.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start to wait for the first request."""
        super().connection_made(transport)
        self._waits_since = self.loop.time()
        self._look_later()

    def _look_later(self) -> None:
        self.loop.call_later(REQUEST_TIMEOUT / 4, self._look)

    def _look(self) -> None:
        if self.transport.is_closing():
            return
        if self.cycle is not None and not self.cycle.response_complete:  # pyright: ignore[reportUnnecessaryComparison]
            self._waits_since = self.loop.time()
        if self.loop.time() - self._waits_since >= REQUEST_TIMEOUT:
            self.transport.close()
        else:
            self._look_later()
