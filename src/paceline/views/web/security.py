"""Who may look, and what a page may do.

On this machine alone, requests must name it as the host they want: a page elsewhere whose name was pointed at
127.0.0.1 is turned away. On any other address a token is needed: once in the URL, from then on in a cookie. Every
answer forbids the browser to load, run or send anything beyond this server. Text of a journal is data wherever it goes.
"""

import hmac
import ipaddress
import secrets
from html import escape
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from paceline.errors import InputError

LEAST_TOKEN = 16  # characters
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def is_loopback(host: str) -> bool:
    """Whether an address is reached from this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def token_for(host: str, token: str | None) -> str | None:
    """The token that is asked for: the one given, or a new one where the address is open to others."""
    if token is not None and len(token) < LEAST_TOKEN:
        raise InputError(
            f"expected a token of at least {LEAST_TOKEN} characters, got {len(token)}: leave it out and one is made"
        )
    return token if token is not None or is_loopback(host) else secrets.token_urlsafe(24)


class Guard:
    """Asks every request for its host or its token, and adds the headers above to every answer.

    Args:
        app: what it guards.
        local: whether only this machine is served, so that the host must be it.
        token: what must be known; None asks for nothing.
        cookie: the name of the cookie that keeps the token.
    """

    def __init__(self, app: ASGIApp, *, local: bool, token: str | None, cookie: str = "paceline") -> None:
        self._app, self._local, self._token, self._cookie = app, local, token, cookie

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, pass on or refuse."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self._admit(scope)(scope, receive, send_guarded)
        return None

    def _admit(self, scope: Scope) -> ASGIApp:
        headers = Headers(scope=scope)
        if self._local and not is_loopback(_without_port(headers.get("host", ""))):
            return PlainTextResponse("this server answers to 127.0.0.1 and localhost alone\n", 421)
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("nothing can be changed here\n", 405, {"Allow": "GET, HEAD"})
        if self._token is None:
            return self._app
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = next((value for name, value in query if name == "token"), None)
        if given is not None and _equal(given, self._token):
            rest = urlencode([(name, value) for name, value in query if name != "token"])
            return self._welcome(quote(scope["path"]) + (f"?{rest}" if rest else ""))
        if _equal(cookie_parser(headers.get("cookie", "")).get(self._cookie, ""), self._token):
            return self._app
        return PlainTextResponse("open the address with ?token=..., as `paceline serve` printed it\n", 401)

    def _welcome(self, target: str) -> HTMLResponse:
        """Keep the token in a cookie and go where it was meant to.

        A page that leads on, not a redirect: a browser that came from another site would not send the cookie along one.
        """
        target = "/" + target.lstrip("/\\")  # never another host
        link = escape(target, quote=True)
        page = '<!doctype html><title>Paceline</title><link rel="icon" href="/static/icon.svg">'
        page += f'<meta http-equiv="refresh" content="0;url={link}">'
        response = HTMLResponse(f'{page}<a href="{link}">Go on</a>')
        response.set_cookie(self._cookie, self._token or "", httponly=True, samesite="strict", path="/")
        return response


def _without_port(host: str) -> str:
    return host[1 : host.index("]")] if host.startswith("[") and "]" in host else host.partition(":")[0]


def _equal(one: str, other: str) -> bool:
    """Whether two secrets are equal, in a time that does not tell how much of them is."""
    return hmac.compare_digest(one.encode(), other.encode())
