"""Logins: a link with a one-time code is exchanged for a cookie.

Code and cookie are access tokens (`tokens/`): stored as hashes, sealed with the user's key, listed, revocable, and
named in the event log. A code is revoked when it is used, so that the link works once, also with several servers on
one database. A named token can be exchanged too: its cookie is its child. The cookie is HttpOnly and SameSite=Strict;
a change with it also needs a CSRF token, which is derived from the user's key and the cookie's token.
"""

from __future__ import annotations

import hmac
import re
import secrets
from datetime import timedelta
from typing import Final

from punchlist.app import Services
from punchlist.config import current_user
from punchlist.conversations.model import Scope
from punchlist.errors import IllegalTransition
from punchlist.kernel.events import Actor, Role
from punchlist.surfaces.web.context import WebPrincipal
from punchlist.tokens.model import LOGIN_CODE, LOGIN_COOKIE, AccessToken, IssuedToken, TokenValidity

CODE_LIFETIME: Final = timedelta(hours=1)
COOKIE_LIFETIME: Final = timedelta(days=30)


class Logins:
    def __init__(self, services: Services) -> None:
        self._services = services

    def new_code(self) -> str:
        """A code for one login as the person who runs the server."""
        self._end_expired()
        return self._issue(LOGIN_CODE, CODE_LIFETIME).text

    def exchange(self, code: str) -> IssuedToken | None:
        """A new cookie; None if the code is unknown, expired or used.

        A named token works as well, as often as it is used: a way in without a link. Its cookie has its role, acts in
        its name and ends with it.
        """
        tokens = self._services.tokens
        try:
            if token := tokens.find_valid(code):
                return self._issue(LOGIN_COOKIE, COOKIE_LIFETIME, token)
            token = tokens.find_login(code)
            if token is None or not token.name.startswith(LOGIN_CODE):
                return None
            tokens.revoke(self._scope(), token.id)
        except IllegalTransition:
            # Another request used the code first, or revoked the token.
            return None
        return self._issue(LOGIN_COOKIE, COOKIE_LIFETIME)

    def end(self, principal: WebPrincipal) -> None:
        """Log out: the cookie is refused from now on."""
        self._services.tokens.log_out(Scope(self._services.settings.session, principal.actor), principal.token_id)

    def find_cookie(self, text: str) -> WebPrincipal | None:
        token = self._services.tokens.find_login(text)
        if token is None or not token.name.startswith(LOGIN_COOKIE):
            return None
        name = self._services.tokens.owner_name(token)
        return WebPrincipal(token.id, name, token.role, self._services.trust.sign("csrf", token.id))

    def find_bearer(self, text: str) -> WebPrincipal | None:
        token = self._services.tokens.find_valid(text)
        return None if token is None else WebPrincipal(token.id, token.name, token.role, None)

    def _issue(self, prefix: str, lifetime: timedelta, parent: AccessToken | None = None) -> IssuedToken:
        """As the person who runs the server, or in the name of a token."""
        owner = parent.name if parent else current_user()
        user = re.sub(r"[^A-Za-z0-9]+", "-", owner).strip("-")[:24].rstrip("-") or "user"
        name = f"{prefix}{user}-{secrets.token_hex(4)}"
        role, parent_id = (parent.role, parent.id) if parent else (Role.PERSON, None)
        return self._services.tokens.create(self._scope(), name, role, lifetime, login=True, parent_id=parent_id)

    def _end_expired(self) -> None:
        """Expired codes and cookies count toward the limit of tokens until they are revoked."""
        for token, validity in self._services.tokens.list():
            if validity is TokenValidity.EXPIRED and token.is_login:
                self._services.tokens.revoke(self._scope(), token.id)

    def _scope(self) -> Scope:
        return Scope(self._services.settings.session, Actor(Role.PERSON, current_user()))


def is_csrf_token(principal: WebPrincipal, given: str | None) -> bool:
    return principal.csrf is not None and hmac.compare_digest(principal.csrf.encode(), (given or "").encode())
