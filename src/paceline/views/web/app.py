"""The routes: two pages, what they are filled with, and a stream per study that says when there is more."""

import json
from collections.abc import AsyncGenerator, Callable
from functools import partial
from html import escape
from typing import Any

import anyio
from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from paceline.errors import PacelineError
from paceline.views.export import as_csv, as_python
from paceline.views.web.catalogue import Catalogue
from paceline.views.web.files import own, plotly
from paceline.views.web.page_data import decisions_page, forks_page, offered, summary, thinned
from paceline.views.web.security import Guard
from paceline.views.web.study_reader import StudyReader

PAUSE, HEARTBEAT = 0.25, 10.0  # seconds between two looks at a file's size, and between two signs of life
MOST_COMPARED = 12  # studies in the figure of costs
UNREADABLE = (PacelineError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError, OSError)
FORMATS = {"json": "application/json", "csv": "text/csv", "py": "text/x-python"}
STATIC = {
    "style.css": "text/css",
    "controls.js": "text/javascript",
    "page.js": "text/javascript",
    "list.js": "text/javascript",
    "study.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}


class Pages:
    """Answers to requests.

    Args:
        shelf: the studies.
        ended: whether the server is to stop, so that streams end.
        local: whether only this machine looks: plotly's script is then not worth compressing.
    """

    def __init__(self, shelf: Catalogue, *, ended: Callable[[], bool], local: bool) -> None:
        self._shelf, self._ended, self._local = shelf, ended, local

    def routes(self) -> list[Route]:
        """Where each is found."""
        return [
            Route("/", self.list),
            Route("/study/{name:path}", self.study),
            Route("/static/plotly.js", self.plotly),
            Route("/static/{file}", self.static),
            Route("/studies.json", self.studies),
            Route("/summary/{name:path}", self._of_study(lambda study, request: summary(study))),
            Route("/forks/{name:path}", self._of_study(lambda study, request: forks_page(study, _before(request)))),
            Route("/decisions/{name:path}", self._of_study(lambda s, request: decisions_page(s, _before(request)))),
            Route("/figure/{kind}/{name:path}", self._of_study(_figure)),
            Route("/costs.json", self.costs),
            Route("/schedule/{format}/{name:path}", self.schedule),
            Route("/events/{name:path}", self.events),
            Route("/events", self.events),
        ]

    async def list(self, request: Request) -> Response:
        """The page with all studies."""
        return HTMLResponse(own("list.html"))

    async def study(self, request: Request) -> Response:
        """The page of one study: filled in by its script, so that it shows before a long journal is read."""
        name = request.path_params["name"]
        if name not in await run_sync(self._shelf.names):
            return _missing(name)
        return HTMLResponse(own("study.html").replace("{{name}}", escape(name, quote=True)))

    async def static(self, request: Request) -> Response:
        """Our own scripts and styles."""
        file = request.path_params["file"]
        if file not in STATIC:
            return PlainTextResponse("no such file\n", 404)
        return Response(own(file), media_type=STATIC[file], headers={"Cache-Control": "no-cache"})

    async def plotly(self, request: Request) -> Response:
        """Plotly's script, out of the installed package."""
        encoding = "identity" if self._local else "gzip"
        body, tag = await run_sync(plotly, encoding)
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers={"ETag": tag})
        headers = {"ETag": tag, "Cache-Control": "private, max-age=86400", "Content-Encoding": encoding}
        return Response(body, media_type="text/javascript", headers=headers)

    async def studies(self, request: Request) -> Response:
        """The names of the studies, the latest first."""
        revision = await run_sync(self._all_revisions)
        names = [*await run_sync(self._shelf.names)]
        return JSONResponse({"names": names, "compared": MOST_COMPARED, "revision": revision})

    async def costs(self, request: Request) -> Response:
        """Cost against value of the studies written last."""

        def drawn() -> str:
            from paceline.views.figures import costs, recolour

            views = dict[str, Any]()
            for name in [*self._shelf.names()][:MOST_COMPARED]:
                try:
                    study = self._shelf.get(name)
                    if study is not None and study.state.count:
                        views[name] = study.view()
                except UNREADABLE:
                    continue  # its own page says what is wrong
            return _json(recolour(costs(views), dark=_dark(request))) if views else "null"

        return await _answer(drawn)

    async def schedule(self, request: Request) -> Response:
        """The schedule that a study offers, to keep."""
        kind, name = request.path_params["format"], request.path_params["name"]
        study = await run_sync(self._shelf.get, name)
        if study is None or kind not in FORMATS:
            return _missing(name)
        try:
            view = await run_sync(study.view)
            schedule, origin = offered(view, name, request.query_params.get("task", ""))
            text = {
                "json": lambda: json.dumps(schedule.to_json(), indent=1) + "\n",
                "csv": lambda: as_csv(schedule),
                "py": lambda: as_python(schedule, origin),
            }[kind]()
        except UNREADABLE as error:
            return PlainTextResponse(f"{error}\n", 409)
        file = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in name.rpartition("/")[2])
        headers = {"Content-Disposition": f'attachment; filename="{file.strip(".") or "study"}-schedule.{kind}"'}
        return Response(text, media_type=FORMATS[kind], headers=headers)

    async def events(self, request: Request) -> Response:
        """Server-sent events: the revision of a study whenever its journal has grown, or of all of them."""
        name = request.path_params.get("name")
        known = request.headers.get("last-event-id", request.query_params.get("since", ""))
        if name is None:
            return _stream(self.messages(self._all_revisions, known))
        study = await run_sync(self._shelf.get, name)
        return _missing(name) if study is None else _stream(self.messages(partial(_revision, study), known))

    async def messages(self, revision: Callable[[], str], known: str) -> AsyncGenerator[str]:
        """One message whenever the revision is not the one known; a comment now and then keeps the line open."""
        yield "retry: 1000\n\n"
        sent, quiet = known, 0.0
        while not self._ended():
            now = await run_sync(revision)
            if now != sent:
                yield f"event: grown\nid: {now}\ndata: {json.dumps({'revision': now})}\n\n"
                sent, quiet = now, 0.0
            elif quiet >= HEARTBEAT:
                yield ": still here\n\n"
                quiet = 0.0
            await anyio.sleep(PAUSE)
            quiet += PAUSE

    def _all_revisions(self) -> str:
        """Grows with the journals, which are only looked at, not read."""
        sizes = [s.path.stat().st_size if s.path.exists() else 0 for s in self._shelf.names().values()]
        return f"{len(sizes)}.{sum(sizes)}"

    def _of_study(self, make: Callable[[StudyReader, Request], Any]) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            study = await run_sync(self._shelf.get, request.path_params["name"])
            if study is None:
                return _missing(request.path_params["name"])
            revision = study.revision
            answer = await _answer(lambda: make(study, request))
            answer.headers["Paceline-Revision"] = revision  # the answer holds it, and perhaps more
            return answer

        return endpoint


def make_app(
    shelf: Catalogue,
    *,
    local: bool = True,
    token: str | None = None,
    cookie: str = "paceline",
    ended: Callable[[], bool] = lambda: False,
) -> Starlette:
    """The application: pages behind a guard."""
    guard = Middleware(Guard, local=local, token=token, cookie=cookie)
    zipped = Middleware(GZipMiddleware, minimum_size=2_000, compresslevel=3)
    return Starlette(routes=Pages(shelf, ended=ended, local=local).routes(), middleware=[guard, zipped])


def _figure(study: StudyReader, request: Request) -> str:
    from paceline.views.figures import FIGURES, recolour

    kind, decision = request.path_params["kind"], request.query_params.get("decision")
    if kind not in FIGURES:
        raise LookupError(f"unknown figure {kind!r}: expected one of {', '.join(FIGURES)}")
    if study.problem or not study.state.count:
        return "null"  # its summary says what is wrong
    view = study.view(decision=None if decision is None else int(decision))
    figure = FIGURES[kind](thinned(view) if kind == "traces" else view)
    return "null" if figure is None else _json(recolour(figure, dark=_dark(request)))


def _json(figure: Any) -> str:
    return str(figure.to_json())


def _revision(study: StudyReader) -> str:
    if study.grown():
        study.refresh()
    return study.revision


async def _answer(make: Callable[[], Any]) -> Response:
    """What `make` says, as JSON; a study that cannot be read says why."""
    try:
        made = await run_sync(make)
    except UNREADABLE as error:
        return JSONResponse({"error": str(error)}, 422)
    return Response(made, media_type="application/json") if isinstance(made, str) else JSONResponse(made)


def _stream(messages: AsyncGenerator[str]) -> Response:
    return StreamingResponse(messages, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


def _missing(name: str) -> Response:
    return PlainTextResponse(f"there is no study {name!r} here\n", 404)


def _before(request: Request) -> int | None:
    given = request.query_params.get("before")
    return None if given is None else int(given)


def _dark(request: Request) -> bool:
    return request.query_params.get("dark") == "1"
