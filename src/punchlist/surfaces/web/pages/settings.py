"""`/settings`: who is logged in, which project and database the server uses, and the access tokens."""

from __future__ import annotations

from punchlist.kernel.events import Role
from punchlist.notify.push import is_installed
from punchlist.surfaces.web.pages.page import Page, PageRequest, Redirect
from punchlist.tokens.model import LOGIN_CODE, LOGIN_COOKIE, TokenValidity


def settings(request: PageRequest) -> Page:
    services = request.services
    values = {
        "role": request.actor.role.value,
        "project": str(services.workspace),
        "push": is_installed(),
        "database": services.settings.database.rpartition("@")[2],
        "tokens": _tokens(request) if request.actor.role is Role.PERSON else None,
    }
    return Page("settings.html", "Settings", values, section="settings")


def _tokens(request: PageRequest) -> list[dict[str, object]]:
    """The valid ones, newest first."""
    kinds = {LOGIN_CODE: "login link, not used yet", LOGIN_COOKIE: "browser"}
    listed = sorted(request.services.tokens.list(), key=lambda each: each[0].created_at, reverse=True)
    names = {token.id: token.name for token, _ in listed}
    return [
        {
            "token": token,
            "kind": next((kind for name, kind in kinds.items() if token.name.startswith(name)), "token"),
            "parent": names.get(token.parent_id or ""),
            "is_own": token.id == request.token_id,
        }
        for token, validity in listed
        if validity is TokenValidity.VALID
    ]


def revoke_token(request: PageRequest) -> Redirect:
    token = request.services.tokens.revoke(request.scope(), request.parameters["token"])
    return Redirect("/settings", f"{token.name} is revoked: its clients are refused from now on.")
