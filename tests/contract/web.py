"""The web server in this process, on a real database, and clients with tokens of any role."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from starlette.testclient import TestClient

from punchlist.app import Services
from punchlist.config import Settings
from punchlist.conversations.model import Scope
from punchlist.kernel.events import Actor, Role
from punchlist.surfaces.web.server import WebServer, build_app

Json = dict[str, Any]
API = "/api/v1"


class WebSite:
    def __init__(self, database: str) -> None:
        self.services = Services(Settings(database, "s", "normal", None))
        self.web = WebServer(self.services)
        self.app = build_app(self.web)
        self.http = TestClient(self.app, base_url="http://localhost", raise_server_exceptions=True)

    def token(self, name: str, role: Role, lifetime: timedelta | None = None) -> str:
        person = Scope("s", Actor(Role.PERSON, "ada"))
        return self.services.tokens.create(person, name, role, lifetime).text

    def client(self, role: Role = Role.PERSON, name: str | None = None) -> ApiClient:
        return ApiClient(self.http, self.token(name or f"the-{role}", role))


class ApiClient:
    """Sends requests with a token. Every method returns status and JSON."""

    def __init__(self, http: TestClient, token: str) -> None:
        self.http = http
        self.headers = {"Authorization": f"Bearer {token}"}

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        given = {**self.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
        return self.http.request(method, API + path, json=body, headers=given)

    def get(self, path: str, **headers: str) -> tuple[int, Any]:
        return self._told(self.send("GET", path, **headers))

    def post(self, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        return self._told(self.send("POST", path, body, **headers))

    def put(self, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        return self._told(self.send("PUT", path, body, **headers))

    def patch(self, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        return self._told(self.send("PATCH", path, body, **headers))

    @staticmethod
    def _told(response: Any) -> tuple[int, Any]:
        return response.status_code, response.json() if response.content else None


@contextmanager
def opened(database: str) -> Iterator[WebSite]:
    site = WebSite(database)
    try:
        with site.http:
            yield site
    finally:
        site.services.close()
