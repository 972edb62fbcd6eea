"""`/settings`: who is logged in, and notifications of this browser."""

from __future__ import annotations

from punchlist.surfaces.web.pages.page import Page, PageRequest


def settings(request: PageRequest) -> Page:
    services = request.services
    values = {
        "role": request.actor.role.value,
        "project": str(services.workspace),
        "database": services.settings.database.rpartition("@")[2],
        "push_key": "",
    }
    return Page("settings.html", "Settings", values, section="settings")
