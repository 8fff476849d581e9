"""The routes: two pages, the data that fills them, and a stream per page that announces new revisions."""

import json
from collections.abc import AsyncGenerator, Callable, Iterable
from html import escape
from typing import Any

from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from paceline.safe_text import safe_text
from paceline.study import UNREADABLE
from paceline.views.export import as_python, csv_parts
from paceline.views.web.cache import AnswerCache
from paceline.views.web.catalogue import Catalogue, StillReadingError
from paceline.views.web.files import own_file, plotly_script
from paceline.views.web.page_data import best_schedule, decisions_page, forks_page, summary, thin_view
from paceline.views.web.security import Guard, SecurityHeaders, is_loopback, names_of_this_machine
from paceline.views.web.study_reader import StudyReader
from paceline.views.web.watcher import Watcher, list_revision

MAX_COMPARED = 12  # studies in the figure of costs
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
    """Answers requests. Data of a study are made once for each of its revisions.

    Args:
        catalogue: the studies.
        ended: whether the server is to stop, so that streams end.
        compress: whether to compress plotly's script, which is worth it over a network only.
    """

    def __init__(self, catalogue: Catalogue, *, ended: Callable[[], bool], compress: bool) -> None:
        self._catalogue, self._compress = catalogue, compress
        self._watcher, self._cache = Watcher(catalogue, ended=ended), AnswerCache()

    def routes(self) -> list[Route]:
        """Paths and what answers them."""
        return [
            Route("/", self.list),
            Route("/study/{name:path}", self.study),
            Route("/static/plotly.js", self.plotly),
            Route("/static/{file}", self.static),
            Route("/studies.json", self.studies),
            Route("/summary/{name:path}", self._of_study(_summary)),
            Route("/forks/{name:path}", self._of_study(_forks)),
            Route("/decisions/{name:path}", self._of_study(_decisions)),
            Route("/figure/{kind}/{name:path}", self._of_study(_figure)),
            Route("/costs.json", self.costs),
            Route("/schedule/{format}/{name:path}", self.schedule),
            Route("/events/{name:path}", self.events),
            Route("/events", self.events),
        ]

    async def list(self, request: Request) -> Response:
        """The page with all studies."""
        return HTMLResponse(own_file("list.html"))

    async def study(self, request: Request) -> Response:
        """The page of one study. Its script fills it in, so that it shows before a long journal is read."""
        name = request.path_params["name"]
        if name not in await run_sync(self._catalogue.studies):
            return _missing(name)
        return HTMLResponse(own_file("study.html").replace("{{name}}", escape(name, quote=True)))

    async def static(self, request: Request) -> Response:
        """Our own scripts and styles."""
        file = request.path_params["file"]
        if file not in STATIC:
            return PlainTextResponse("no such file\n", 404)
        return Response(own_file(file), media_type=STATIC[file], headers={"Cache-Control": "no-cache"})

    async def plotly(self, request: Request) -> Response:
        """Plotly's script, from the installed package."""
        encoding = "gzip" if self._compress else "identity"
        body, tag = await run_sync(plotly_script, encoding)
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers={"ETag": tag})
        headers = {"ETag": tag, "Cache-Control": "private, max-age=86400", "Content-Encoding": encoding}
        return Response(body, media_type="text/javascript", headers=headers)

    async def studies(self, request: Request) -> Response:
        """The studies, the one written last first, each with a version that changes with its journal."""

        def answer() -> dict[str, Any]:
            revision = list_revision(self._catalogue, look=True)
            versions = {name: study.version for name, study in self._catalogue.studies().items()}
            return {"names": [*versions], "versions": versions, "compared": MAX_COMPARED, "revision": revision}

        return JSONResponse(await run_sync(answer))

    async def costs(self, request: Request) -> Response:
        """Cost and value of the studies written last, as a figure."""

        def answer() -> bytes:
            studies = {name: self._catalogue.get(name) for name in [*self._catalogue.studies()][:MAX_COMPARED]}
            readers = {name: study for name, study in studies.items() if study is not None and study.state.count}
            revisions = tuple((name, study.revision) for name, study in readers.items())
            key = "costs", _is_dark(request)
            return self._cache.get(key, revisions, lambda: _cost_figure(readers, request))

        return await _answer(answer)

    async def schedule(self, request: Request) -> Response:
        """The best schedule of a study, as a file. A table is made piece by piece while it is sent."""
        kind, name = request.path_params["format"], request.path_params["name"]
        task = request.query_params.get("task", "")
        if kind not in FORMATS:
            return _missing(name)
        try:
            study = await run_sync(self._catalogue.get, name)
            if study is None:
                return _missing(name)
            parts = await run_sync(lambda: _schedule_parts(study, name, task, kind))
        except UNREADABLE as error:
            return PlainTextResponse(f"{safe_text(str(error))}\n", 409)
        file = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in name.rpartition("/")[2])
        headers = {"Content-Disposition": f'attachment; filename="{file.strip(".") or "study"}-schedule.{kind}"'}
        return StreamingResponse(parts, media_type=FORMATS[kind], headers=headers)

    async def events(self, request: Request) -> Response:
        """Server-sent events: the revision of a study whenever its journal has grown, or of the list."""
        name = request.path_params.get("name")
        known = request.headers.get("last-event-id", request.query_params.get("since", ""))
        study = None if name is None else await run_sync(self._catalogue.find, name)
        if name is not None and study is None:
            return _missing(name)
        headers = {"X-Accel-Buffering": "no"}
        return StreamingResponse(self.messages(study, known), media_type="text/event-stream", headers=headers)

    async def messages(self, study: StudyReader | None, known: str) -> AsyncGenerator[str]:
        """A message for each revision that is not known, and a comment now and then to keep the connection open."""
        yield "retry: 1000\n\n"
        async for revision in self._watcher.revisions(study, known):
            if revision is None:
                yield ": still here\n\n"
            else:
                yield f"event: grown\nid: {revision}\ndata: {json.dumps({'revision': revision})}\n\n"

    def _of_study(self, make: Callable[[StudyReader, Request], bytes]) -> Callable[[Request], Any]:
        """An endpoint that answers with data of a study, made once for each revision."""

        async def endpoint(request: Request) -> Response:
            name = request.path_params["name"]
            try:
                study = await run_sync(self._catalogue.get, name)
            except StillReadingError as error:
                return _wait(error)
            if study is None:
                return _missing(name)
            revision, version = study.revision, study.version
            key = study.folder, request.url.path, request.url.query
            response = await _answer(lambda: self._cache.get(key, (revision, version), lambda: make(study, request)))
            response.headers["Paceline-Revision"] = revision  # the answer holds it, and perhaps more
            return response

        return endpoint


def make_app(
    catalogue: Catalogue,
    *,
    host: str = "127.0.0.1",
    token: str | None = None,
    cookie: str = "paceline",
    ended: Callable[[], bool] = lambda: False,
) -> Starlette:
    """The application.

    Args:
        catalogue: the studies.
        host: the address that is listened on. If others cannot reach it, requests must name this machine as their host.
        token: what a browser must know; None asks for nothing.
        cookie: the name of the cookie that keeps the token.
        ended: whether the server is to stop.
    """
    local = is_loopback(host)
    middleware = [Middleware(SecurityHeaders)]
    if local:
        hosts = names_of_this_machine(host)
        middleware.append(Middleware(TrustedHostMiddleware, allowed_hosts=hosts, www_redirect=False))
    middleware += [
        Middleware(Guard, token=token, cookie=cookie),
        Middleware(GZipMiddleware, minimum_size=2_000, compresslevel=3),
    ]
    return Starlette(routes=Pages(catalogue, ended=ended, compress=not local).routes(), middleware=middleware)


def _schedule_parts(study: StudyReader, name: str, task: str, kind: str) -> Iterable[str]:
    schedule, _ = best_schedule(study.view(), name, task)
    if kind == "csv":
        return csv_parts(schedule)
    return [as_python(schedule) if kind == "py" else json.dumps(schedule.to_json(), indent=1) + "\n"]


def _summary(study: StudyReader, request: Request) -> bytes:
    return _json(summary(study))


def _forks(study: StudyReader, request: Request) -> bytes:
    return _json(forks_page(study, _before(request)))


def _decisions(study: StudyReader, request: Request) -> bytes:
    return _json(decisions_page(study, _before(request)))


def _figure(study: StudyReader, request: Request) -> bytes:
    from paceline.views.figures import FIGURES

    kind, decision = request.path_params["kind"], request.query_params.get("decision")
    if kind not in FIGURES:
        raise LookupError(f"unknown figure {kind!r}: expected one of {', '.join(FIGURES)}")
    if study.problem or not study.state.count:
        return b"null"  # its summary says what is wrong
    view = study.view(decision=None if decision is None else int(decision))
    return _figure_json(FIGURES[kind](thin_view(view) if kind == "traces" else view), request)


def _cost_figure(studies: dict[str, StudyReader], request: Request) -> bytes:
    from paceline.views.figures import costs

    views = dict[str, Any]()
    for name, study in studies.items():
        try:
            views[name] = study.view()
        except UNREADABLE:
            continue  # its own page says what is wrong
    return _figure_json(costs(views) if views else None, request)


def _json(data: dict[str, Any]) -> bytes:
    return json.dumps(_safe(data), ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _safe(data: Any) -> Any:
    """Plain data whose text no page has to fear."""
    if isinstance(data, str):
        return safe_text(data, keep="\n")
    if isinstance(data, dict):
        return {_safe(name): _safe(value) for name, value in data.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(data, list | tuple):
        return [_safe(item) for item in data]  # pyright: ignore[reportUnknownVariableType]
    return data


def _figure_json(figure: Any, request: Request) -> bytes:
    """A figure in the colours that were asked for; null if there is nothing to draw."""
    from paceline.views.figures import recolour

    return b"null" if figure is None else str(recolour(figure, dark=_is_dark(request)).to_json()).encode()


async def _answer(make: Callable[[], bytes]) -> Response:
    """JSON that is made in a thread; a study that cannot be read gives the reason."""
    try:
        return Response(await run_sync(make), media_type="application/json")
    except StillReadingError as error:
        return _wait(error)
    except UNREADABLE as error:
        return JSONResponse({"error": safe_text(str(error))}, 422)


def _wait(error: StillReadingError) -> Response:
    return JSONResponse({"error": str(error)}, 503, {"Retry-After": "1"})


def _missing(name: str) -> Response:
    return PlainTextResponse(f"there is no study {name!r} here\n", 404)


def _before(request: Request) -> int | None:
    given = request.query_params.get("before")
    return None if given is None else int(given)


def _is_dark(request: Request) -> bool:
    return request.query_params.get("dark") == "1"
