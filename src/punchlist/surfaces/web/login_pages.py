"""`/login` and `/logout`. These pages need no script and no file: they are shown to clients without a token."""

from __future__ import annotations

from contextlib import suppress

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from punchlist.errors import IllegalTransition
from punchlist.surfaces.web.context import context_of
from punchlist.surfaces.web.forms import read_form
from punchlist.surfaces.web.logins import COOKIE_LIFETIME

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Punchlist</title>{head}</head><body><main>{body}</main></body></html>
"""
_FORM = """<h1>Log in to Punchlist</h1><p>{message}</p>
<form method="post" action="/login"><p><label>Token <input name="code" type="password" autocomplete="off" required>
</label> <button>Log in</button></p></form>
<p>Each login link works once. <code>punchlist serve --login</code> prints a new one;
<code>punchlist token create NAME --role person</code> makes a token for this form.</p>"""
_WELCOME = """<h1>Punchlist</h1><p>You are logged in. <a href="/">Continue</a></p>"""
_REFRESH = '<meta http-equiv="refresh" content="0; url=/">'


def login_page(request: Request, status: int = 200, message: str = "You are not logged in.") -> Response:
    del request
    return HTMLResponse(_PAGE.format(head="", body=_FORM.format(message=message)), status)


def routes() -> list[Route]:
    return [
        Route("/login", _login, methods=["GET"]),
        Route("/login", _login_form, methods=["POST"]),
        Route("/logout", _logout, methods=["POST"]),
    ]


async def _login(request: Request) -> Response:
    code = request.query_params.get("code")
    if code is None or request.method == "HEAD":
        return login_page(request)
    return await _exchange(request, code)


async def _login_form(request: Request) -> Response:
    return await _exchange(request, (await read_form(request)).get("code", ""))


async def _exchange(request: Request, code: str) -> Response:
    web = request.app.state.web
    cookie = await web.call_in_thread(web.logins.exchange, code.strip())
    if cookie is None:
        return login_page(request, 403, "This link was used before, or it has expired.")
    # A page and not a redirect: browsers do not send a SameSite=Strict cookie with a redirect that began on another
    # site, such as a chat with the link in it.
    response = HTMLResponse(_PAGE.format(head=_REFRESH, body=_WELCOME))
    response.set_cookie(
        web.cookie_name,
        cookie,
        max_age=int(COOKIE_LIFETIME.total_seconds()),
        httponly=True,
        samesite="strict",
        secure=web.secure,
    )
    return response


async def _logout(request: Request) -> Response:
    context = context_of(request)
    web = request.app.state.web
    if context.principal.csrf is not None:
        with suppress(IllegalTransition):  # It was revoked before.
            await web.call_in_thread(web.logins.end, context.principal)
    response = RedirectResponse("/login", 303)
    response.delete_cookie(web.cookie_name, httponly=True, samesite="strict", secure=web.secure)
    return response
