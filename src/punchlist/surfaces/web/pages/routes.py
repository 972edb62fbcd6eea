"""Routes of the pages: a request becomes a `PageRequest`, and what a page returns becomes a response."""

from __future__ import annotations

import base64
import json
import re
import secrets
from collections.abc import Awaitable, Callable
from datetime import timedelta
from mimetypes import guess_type
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from punchlist.errors import PunchlistError
from punchlist.kernel.clock import parse_timestamp, timestamp
from punchlist.kernel.events import Role
from punchlist.kernel.text import excerpt
from punchlist.surfaces.web.context import RequestContext, context_of
from punchlist.surfaces.web.pages import (
    agents,
    attention,
    board,
    chat,
    conversations,
    flow,
    inbox_answers,
    mission,
    mission_settings,
    new_mission,
    queued_messages,
    replay,
    runs,
    search,
    session_lists,
    settings,
    todo,
    todo_forms,
    todo_relations,
    turns,
)
from punchlist.surfaces.web.pages.compression import accepts_gzip, compressed, compressed_file
from punchlist.surfaces.web.pages.form_requests import do_once
from punchlist.surfaces.web.pages.page import FormFunction, Page, PageFunction, PageRequest, Redirect
from punchlist.surfaces.web.pages.render import STATIC, render
from punchlist.surfaces.web.problems import STATUS, error_problem
from punchlist.views.live import newest_event

Handler = Callable[[Request], Awaitable[Response]]

FLASH: Final = "punchlist-flash"
SEEN: Final = "punchlist-seen"
_NEW_VISIT: Final = timedelta(minutes=30)
"""Time without a look at the attention page after which the next look is a new visit."""
_MAX_FLASH: Final = 2_000
_YEAR: Final = 365 * 24 * 3_600
FRAGMENT_HEADER: Final = "fragment"

PAGES: Final[dict[str, PageFunction]] = {
    "/": attention.attention,
    "/search": search.search,
    "/agents": agents.agents,
    "/settings": settings.settings,
    "/conversations": conversations.conversations,
    "/chats/{chat}": chat.chat,
    "/chats/{chat}/todos": session_lists.lists,
    "/chats/{chat}/replay": replay.checklist_replay,
    "/runs": runs.runs,
    "/runs/{run}": runs.run,
    "/turns/{turn}": runs.turn,
    "/turns/{turn}/replay": replay.plan_replay,
    "/todos/{todo}": todo.todo,
    "/todos/{todo}/history": todo.history,
    "/todos/{todo}/evidence": todo.evidence,
    "/missions/new": new_mission.new_mission,
    "/missions/{mission}": mission.mission,
    "/missions/{mission}/board": board.board,
    "/missions/{mission}/chats": mission.chats,
    "/missions/{mission}/runs": runs.runs,
    "/missions/{mission}/flow": flow.flow,
    "/missions/{mission}/replay": replay.mission_replay,
    "/missions/{mission}/settings": mission_settings.settings,
    "/missions/{mission}/new": todo_forms.new_todo,
}
FORMS: Final[dict[str, FormFunction]] = {
    "/inbox/{id}": inbox_answers.answer,
    "/conversations": turns.start_conversation,
    "/chats/{chat}": chat.write,
    "/chats/{chat}/todos": session_lists.change_items,
    "/chats/{chat}/queue/{message}": queued_messages.change_queued,
    "/settings/tokens/{token}/revoke": settings.revoke_token,
    "/runs/{run}": chat.control_run,
    "/todos/{todo}/edit": todo_forms.edit_todo,
    "/todos/{todo}/comment": todo_forms.comment,
    "/todos/{todo}/relate": todo_relations.relate,
    "/todos/{todo}/message": todo_forms.message,
    "/todos/{todo}/{action}": todo_forms.change_todo,
    "/missions": new_mission.create_mission,
    "/missions/{mission}/todos": todo_forms.create_todo,
    "/missions/{mission}/bulk": todo_forms.change_many,
    "/missions/{mission}/cycle": mission.start_cycle,
    "/missions/{mission}/collect": mission_settings.collect_metrics,
    "/missions/{mission}/settings": mission_settings.change_settings,
    "/missions/{mission}/state": mission_settings.change_state,
    "/missions/{mission}/strategies": mission_settings.change_strategies,
    "/missions/{mission}/directives": mission.add_directive,
    "/missions/{mission}/directives/{number:int}/end": mission.end_directive,
    "/missions/{mission}/recommendations/{number:int}": mission.decide_recommendation,
    "/missions/{mission}/metrics/{metric}": mission.record_reading,
}
"""By path, most specific first."""
WAITING_FORMS: Final = frozenset({turns.start_conversation, chat.write, todo_forms.change_todo})
"""They start a process or wait for one, so that they are not part of a transaction."""


def page_routes() -> list[BaseRoute]:
    return [
        *(Route(path, _page_handler(page), methods=["GET"]) for path, page in PAGES.items()),
        *(Route(path, _form_handler(form), methods=["POST"]) for path, form in FORMS.items()),
        Route("/static/{name}", _static, methods=["GET"]),
        Route("/manifest.webmanifest", _manifest, methods=["GET"]),
        Route("/service-worker.js", _service_worker, methods=["GET"]),
    ]


# --- pages ------------------------------------------------------------------------------------------------


def _page_handler(page: PageFunction) -> Handler:
    async def handler(request: Request) -> Response:
        context = context_of(request)
        fragment = FRAGMENT_HEADER in request.headers
        gzipped = accepts_gzip(request)
        visit = _seen(request, context)
        flash = request.cookies.get(FLASH, "")

        def work() -> tuple[Page, dict[str, str], bytes]:
            # Read first: an event that the page does not show yet arrives after it.
            last = newest_event(context.services.store)
            made = _page_request(request, context, {}, visit[0])
            try:
                found = page(made)
            except PunchlistError as error:
                found = _error_page(error)
            missing = turns.missing_model(made)
            waiting = attention.count_waiting(made)
            values = {
                **found.values,
                "title": found.title,
                "section": found.section,
                "frame": _frame(context, found, waiting, last, _flash(flash)) | {"missing_model": missing},
            }
            html = render(found.template, values, context.now, fragment=fragment)
            return found, {"Waiting": str(waiting), "Vary": "Fragment, Accept-Encoding"}, html.encode()

        def finish(html: bytes) -> tuple[bytes, dict[str, str]]:
            own = html.replace(context.web.request_id_mark.encode(), secrets.token_urlsafe(12).encode())
            return compressed(own, gzipped)

        def fragment_work() -> tuple[Page, dict[str, str], bytes]:
            found, headers, html = work()
            body, encoding = finish(html)
            return found, {**headers, **encoding}, body

        key = (request.url.path, request.url.query, context.principal, fragment, gzipped, visit[0], flash)
        read = fragment_work if fragment else work
        found, headers, body = await context.web.answers.get(key, lambda: context.web.call_in_thread(read))
        if not fragment:
            # Not kept: two tabs must not have forms with the same id. The script of a fragment makes its own ids.
            body, encoding = await context.web.call_in_thread(finish, body)
            headers = {**headers, **encoding}
        response = HTMLResponse(body, found.status, headers)
        if not fragment:
            if FLASH in request.cookies:
                response.delete_cookie(FLASH, httponly=True, samesite="strict", secure=context.web.secure)
            if found.marks_seen:
                _set_cookie(response, context, SEEN, "|".join(each or "" for each in visit), _YEAR)
        return response

    return handler


def _page_request(
    request: Request, context: RequestContext, form: dict[str, list[str]], seen_until: str | None
) -> PageRequest:
    return PageRequest(
        context.services,
        context.principal.actor,
        context.principal.csrf or "",
        request.url.path,
        {name: str(value) for name, value in request.path_params.items()},
        context.principal.token_id,
        parse_qs(request.url.query, max_num_fields=100),
        form,
        seen_until,
        context.web.model,
        context.web.mode,
        context.web.hosts_worker,
    )


def _frame(
    context: RequestContext, page: Page, waiting: int, last_event: int, flash: dict[str, Any] | None
) -> dict[str, Any]:
    missions = context.services.missions.list(archived=True)
    archived = any(each.slug == page.mission and each.status != "active" for each in missions)
    may_write = context.principal.can_write and context.principal.role is not Role.VIEWER
    return {
        "csrf": context.principal.csrf or "",
        "request_id": context.web.request_id_mark,
        "person": context.principal.name,
        "may_write": may_write,
        # Nothing in an archived mission changes.
        "can_write": may_write and not archived,
        "archived": archived,
        "missions": [each for each in missions if each.status == "active"],
        "names": {each.slug: each.name for each in missions},
        "mission": page.mission,
        "waiting": waiting,
        "flash": flash,
        "events": f"/api/v1/events?after={last_event}{'&text=true' if page.live_text else ''}",
    }


def _error_page(error: PunchlistError) -> Page:
    return _failure(STATUS.get(error.code, 500), str(error))


def _failure(status: int, message: str) -> Page:
    title = {404: "Not found", 403: "Not allowed"}.get(status, "That did not work")
    return Page("error.html", title, {"message": message, "back": "/"}, status=status)


async def answer_without_page(request: Request, status: int) -> Response:
    """For a logged-in person who opens an address that has no page."""
    message = f"There is no page at {excerpt(request.url.path, 200)}."
    return await _page_handler(lambda _: _failure(status, message))(request)


# --- forms ------------------------------------------------------------------------------------------------


def _form_handler(form: FormFunction) -> Handler:
    """A redirect for browsers without scripts, JSON for our own script."""

    async def handler(request: Request) -> Response:
        context = context_of(request)
        content = await request.body()
        fields = parse_qs(content.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=2_000)
        made = _page_request(request, context, fields, None)
        scripted = "application/json" in request.headers.get("accept", "")
        try:
            done = await context.web.call_in_thread(do_once, form, made, content, alone=form in WAITING_FORMS)
        except PunchlistError as error:
            if scripted:
                return error_problem(error)
            done = Redirect(_back(request), str(error), warning=True)
        if scripted:
            return JSONResponse({"to": done.to, "message": done.message, "warning": done.warning})
        response = RedirectResponse(_drawer_or_page(request, _own_path(done.to)), 303)
        if done.message:
            flash = json.dumps({"message": done.message[:_MAX_FLASH], "warning": done.warning})
            _set_cookie(response, context, FLASH, base64.urlsafe_b64encode(flash.encode()).decode(), 60)
        return response

    return handler


def _back(request: Request) -> str:
    """The page that has the form: the browser names it."""
    try:
        referrer = urlsplit(request.headers.get("referer", ""))
    except ValueError:
        return "/"
    if referrer.netloc != request.headers["host"]:
        return "/"
    return _own_path(f"{referrer.path}?{referrer.query}" if referrer.query else referrer.path)


def _drawer_or_page(request: Request, to: str) -> str:
    """The page of a todo, or the board that has it as a drawer if the form was sent from there."""
    back = _back(request)
    return back if to in {f"/todos/{todo}" for todo in parse_qs(urlsplit(back).query).get("todo", [])} else to


def _own_path(to: str) -> str:
    """A path of this server; `//name` would be another one."""
    return to if re.match(r"/(?![/\\])", to) else "/"


def _flash(cookie: str) -> dict[str, Any] | None:
    try:
        found = json.loads(base64.urlsafe_b64decode(cookie))
        return {"message": str(found["message"]), "warning": bool(found["warning"])}
    except (ValueError, KeyError, TypeError):
        return None


def _seen(request: Request, context: RequestContext) -> tuple[str | None, str]:
    """When the visit before this one ended, and now."""
    now = context.now
    before, _, last = request.cookies.get(SEEN, "").partition("|")
    try:
        idle = now - parse_timestamp(last)
        since = last if idle > _NEW_VISIT else before
        return (timestamp(parse_timestamp(since)) if since else None), timestamp(now)
    except (ValueError, TypeError):
        return None, timestamp(now)


def _set_cookie(response: Response, context: RequestContext, name: str, value: str, seconds: int) -> None:
    response.set_cookie(name, value, max_age=seconds, httponly=True, samesite="strict", secure=context.web.secure)


# --- files ------------------------------------------------------------------------------------------------


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    file = STATIC / name
    if file.parent != STATIC or not file.is_file():
        return Response("Not found", 404)
    # Addresses contain the hash of the content.
    forever = "public, max-age=31536000, immutable" if request.url.query else "no-cache"
    headers = {"Cache-Control": forever, "Vary": "Accept-Encoding"}
    if not accepts_gzip(request):
        return FileResponse(file, headers=headers)
    headers["Content-Encoding"] = "gzip"
    return Response(compressed_file(file), headers=headers, media_type=guess_type(file.name)[0])


async def _service_worker(request: Request) -> Response:
    del request
    return FileResponse(STATIC / "service-worker.js", headers={"Cache-Control": "no-cache"})


async def _manifest(request: Request) -> Response:
    del request
    content = {
        "name": "Punchlist",
        "short_name": "Punchlist",
        "start_url": "/",
        "scope": "/",
        "display": "standalone",
        "background_color": "#f6f5f3",
        "theme_color": "#c2410c",
        "icons": [
            {"src": "/static/icon.svg", "sizes": "any", "type": "image/svg+xml", "purpose": "any"},
            {"src": "/static/icon-maskable.svg", "sizes": "any", "type": "image/svg+xml", "purpose": "maskable"},
        ],
    }
    return Response(json.dumps(content), media_type="application/manifest+json")
