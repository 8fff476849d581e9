"""Who may look, and what a page may do.

If only this machine can reach the server, requests must name it as their host (Starlette's `TrustedHostMiddleware`):
another site whose name was pointed at 127.0.0.1 is refused. On any other address a token is needed, once in the URL and
from then on in a cookie. Every answer forbids the browser to load, run or send anything beyond this server. Text of a
journal is never HTML.
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

MIN_TOKEN = 16  # characters
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


def names_of_this_machine(host: str) -> list[str]:
    """The hosts that a request may name on a server that listens on `host`.

    Releases of Starlette before August 2026 refuse every IPv6 address.
    """
    names = ["localhost", "127.0.0.1", "[::1]", f"[{host}]" if ":" in host else host]
    return list(dict.fromkeys(names))


def token_for(host: str, token: str | None) -> str | None:
    """The token that is asked for: the one given, or a new one if others can reach the address."""
    if token is not None and len(token) < MIN_TOKEN:
        raise InputError(
            f"expected a token of at least {MIN_TOKEN} characters, got {len(token)}: leave it out and one is made"
        )
    return token if token is not None or is_loopback(host) else secrets.token_urlsafe(24)


class SecurityHeaders:
    """Adds the headers above to every answer.

    Args:
        app: the application that answers.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self._app(scope, receive, send_with_headers)


class Guard:
    """Lets requests through that change nothing and know the token.

    Args:
        app: the application that it guards.
        token: what must be known; None asks for nothing.
        cookie: the name of the cookie that keeps the token.
    """

    def __init__(self, app: ASGIApp, *, token: str | None, cookie: str = "paceline") -> None:
        self._app, self._token, self._cookie = app, token, cookie

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, pass on or refuse."""
        answer = self._answer_to(scope) if scope["type"] == "http" else self._app
        await answer(scope, receive, send)

    def _answer_to(self, scope: Scope) -> ASGIApp:
        headers = Headers(scope=scope)
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
        return PlainTextResponse("a token is needed: open the address that `paceline serve` printed\n", 401)

    def _welcome(self, target: str) -> HTMLResponse:
        """Keep the token in a cookie, and go on to the page.

        This is a page and not a redirect: along a redirect, a browser that came from another site sends no cookie.
        """
        target = "/" + target.lstrip("/\\")  # never another host
        link = escape(target, quote=True)
        page = '<!doctype html><title>Paceline</title><link rel="icon" href="/static/icon.svg">'
        page += f'<meta http-equiv="refresh" content="0;url={link}">'
        response = HTMLResponse(f'{page}<a href="{link}">Go on</a>')
        response.set_cookie(self._cookie, self._token or "", httponly=True, samesite="strict", path="/")
        return response


def _equal(one: str, other: str) -> bool:
    """Whether two secrets are equal. The time that it takes does not depend on where they differ."""
    return hmac.compare_digest(one.encode(), other.encode())
