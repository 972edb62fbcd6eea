"""`/settings`: who is logged in, and which project and database the server uses."""

from __future__ import annotations

from punchlist.notify.push import is_installed
from punchlist.surfaces.web.pages.page import Page, PageRequest


def settings(request: PageRequest) -> Page:
    services = request.services
    values = {
        "role": request.actor.role.value,
        "project": str(services.workspace),
        "push": is_installed(),
        "database": services.settings.database.rpartition("@")[2],
    }
    return Page("settings.html", "Settings", values, section="settings")
