"""`/login` and `/logout`. These pages need no script and no file: they are shown to clients without a token.

Their policy allows the one style sheet that is in the page, by its hash.
"""

from __future__ import annotations

import base64
from hashlib import sha256
from typing import Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from punchlist.kernel.clock import parse_timestamp
from punchlist.surfaces.web.context import context_of
from punchlist.surfaces.web.forms import read_form

_STYLE: Final = """
:root { color-scheme: light dark; }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; background: light-dark(#f6f5f3, #131415);
  color: light-dark(#1d1c1a, #eceae6); font: 14px/1.5 system-ui, sans-serif; }
main { box-sizing: border-box; width: min(466px, 100vw - 2rem); padding: 2rem;
  border: 1px solid light-dark(#e2e0db, #2b2e31);
  border-radius: 11px; background: light-dark(#fff, #1a1c1e); }
h1 { margin: 0 0 .5rem; font-size: 1.25rem; }
p { margin: 0 0 1rem; color: light-dark(#55524c, #b3b1ac); }
label { display: block; font-weight: 550; }
input, button { font: inherit; width: 100%; box-sizing: border-box; min-height: 40px; border-radius: 7px;
  padding: 0 .75rem; }
input { margin: .25rem 0 .75rem; border: 1px solid light-dark(#8b877e, #747b80); background: inherit; color: inherit; }
button { border: 0; background: light-dark(#1d1c1a, #eceae6); color: light-dark(#fff, #131415); font-weight: 600;
  cursor: pointer; }
:focus-visible { outline: 2px solid light-dark(#1d5bbf, #84b2ff); outline-offset: 2px; }
small { display: block; margin-top: 1rem; color: light-dark(#6b675f, #979691); }
a { color: inherit; }
"""
_STYLE_HASH: Final = base64.b64encode(sha256(_STYLE.encode()).digest()).decode()
_POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; img-src data:; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Punchlist</title><link rel="icon" href="data:,">{head}<style>{style}</style>
</head><body><main>{body}</main></body></html>
"""
_FORM: Final = """<h1>Log in to Punchlist</h1><p>{message}</p>
<form method="post" action="/login"><label for="code">Token</label>
<input id="code" name="code" type="password" autocomplete="off" required><button>Log in</button></form>
<small>Each login link works once. <code>punchlist serve --login</code> prints a new one, which is the shortest way.
<code>punchlist token create NAME --role person</code> makes a token for this form; with the role <code>viewer</code>,
one that reads and changes nothing.</small>"""
_WELCOME: Final = """<h1>Punchlist</h1><p>You are logged in. <a href="/">Continue</a></p>"""
_REFRESH = '<meta http-equiv="refresh" content="0; url=/">'


def login_page(request: Request, status: int = 200, message: str = "You are not logged in.") -> Response:
    del request
    return _page(_FORM.format(message=message), status=status)


def _page(body: str, *, head: str = "", status: int = 200) -> HTMLResponse:
    page = _PAGE.format(head=head, style=_STYLE, body=body)
    return HTMLResponse(page, status, {"Content-Security-Policy": _POLICY})


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
    return await _exchange(request, code, "This link was used before, or it has expired.")


async def _login_form(request: Request) -> Response:
    code = (await read_form(request)).get("code", "")
    return await _exchange(
        request, code, "This token is unknown here, has expired, was revoked, or was a link used before."
    )


async def _exchange(request: Request, code: str, refusal: str) -> Response:
    web = request.app.state.web
    cookie = await web.call_in_thread(web.logins.exchange, code.strip())
    if cookie is None:
        return login_page(request, 403, refusal)
    # A page and not a redirect: browsers do not send a SameSite=Strict cookie with a redirect that began on another
    # site, such as a chat with the link in it.
    response = _page(_WELCOME, head=_REFRESH)
    response.set_cookie(
        web.cookie_name,
        cookie.text,
        max_age=int(
            (parse_timestamp(cookie.token.expires_at) - parse_timestamp(cookie.token.created_at)).total_seconds()
        ),
        httponly=True,
        samesite="strict",
        secure=web.secure,
    )
    return response


async def _logout(request: Request) -> Response:
    context = context_of(request)
    web = request.app.state.web
    if context.principal.csrf is not None:
        await web.call_in_thread(web.logins.end, context.principal)
    response = RedirectResponse("/login", 303)
    response.delete_cookie(web.cookie_name, httponly=True, samesite="strict", secure=web.secure)
    return response
