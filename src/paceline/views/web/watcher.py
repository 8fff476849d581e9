"""Looks at the journals of the pages that are open: once for all pages, and not at all while none is open."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import contextmanager

from anyio.to_thread import run_sync

from paceline.views.web.catalogue import Catalogue
from paceline.views.web.study_reader import StudyReader

JOURNAL_PAUSE = 0.25  # seconds between two looks at the journal of an open page
LIST_PAUSE = 1.0  # seconds between two looks at all journals, for an open list, ...
LOOK_FACTOR = (
    200  # ... or so many times the time that a look takes: with thousands of studies, half a percent of a core
)
HEARTBEAT = 10.0  # seconds without news after which a page is sent a sign of life

Page = StudyReader | None  # the page of a study, or the list of all


class Watcher:
    """The revisions of studies, for any number of pages.

    A look at a journal is one `stat`. Only one that has grown is read.

    Args:
        catalogue: the studies.
        ended: whether the server is to stop, so that streams end.
    """

    def __init__(self, catalogue: Catalogue, *, ended: Callable[[], bool]) -> None:
        self._catalogue, self._ended = catalogue, ended
        self._open = dict[Page, int]()
        self._revisions = dict[Page, str]()
        self._next_list_look = 0.0
        self._task: asyncio.Task[None] | None = None
        self._news = asyncio.Event()

    async def revisions(self, page: Page, known: str) -> AsyncGenerator[str | None]:
        """Each new revision of a study, or of the list; None after a while without one.

        Args:
            page: the study, or None for the list.
            known: the revision that the browser has.
        """
        with self._opened(page):
            while not self._ended():
                news = self._news
                revision = self._revisions.get(page, known)
                if revision != known:
                    yield (known := revision)
                    continue
                try:
                    await asyncio.wait_for(news.wait(), HEARTBEAT)
                except TimeoutError:
                    yield None

    @contextmanager
    def _opened(self, page: Page) -> Generator[None]:
        """Count an open page. The first one starts the looking, the last one ends it."""
        self._open[page] = self._open.get(page, 0) + 1
        if page is None:
            self._next_list_look = 0.0
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._keep_looking())
        try:
            yield
        finally:
            self._open[page] -= 1
            if not self._open[page]:
                del self._open[page]
                self._revisions.pop(page, None)
            if not self._open:
                self._stop_looking()

    def _stop_looking(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _keep_looking(self) -> None:
        while not self._ended():
            revisions = await run_sync(self._look, list(self._open))
            if revisions != self._revisions:
                self._revisions = revisions
                self._wake_pages()
            await asyncio.sleep(JOURNAL_PAUSE)
        self._wake_pages()

    def _wake_pages(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    def _look(self, pages: list[Page]) -> dict[Page, str]:
        revisions = dict[Page, str]()
        for page in pages:
            if page is None:
                revisions[page] = self._list_revision()
            else:
                page.refresh(patience=0)  # a long one that is being read has news when that is done
                revisions[page] = page.revision
        return revisions

    def _list_revision(self) -> str:
        began = time.monotonic()
        if None in self._revisions and began < self._next_list_look:
            return self._revisions[None]
        revision = list_revision(self._catalogue, look=True)
        now = time.monotonic()
        self._next_list_look = max(began + LIST_PAUSE, now + LOOK_FACTOR * (now - began))
        return revision


def list_revision(catalogue: Catalogue, *, look: bool = False) -> str:
    """Changes whenever a study comes, goes or grows. With `look`, journals are looked at first, but not read."""
    studies = catalogue.studies().values()
    for study in studies if look else ():
        study.has_changed()
    return f"{len(studies)}.{sum(study.size for study in studies)}"
