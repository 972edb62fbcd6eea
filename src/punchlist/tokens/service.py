"""Create, list, revoke and recognise access tokens."""

from __future__ import annotations

import hmac
from datetime import timedelta

from punchlist.conversations.model import Scope
from punchlist.errors import Conflict, IllegalTransition, InvalidInput, NotFound
from punchlist.kernel.clock import timestamp
from punchlist.kernel.events import Change, Role
from punchlist.kernel.lifecycle import NEW
from punchlist.kernel.text import excerpt
from punchlist.storage import event_log
from punchlist.storage.store import Store, Transaction
from punchlist.tokens import repository, validation
from punchlist.tokens.lifecycle import TOKEN, TokenAction, TokenStatus
from punchlist.tokens.model import (
    LOGINS,
    TOKEN_ROLES,
    AccessToken,
    IssuedToken,
    ListedToken,
    TokenValidity,
    new_token_text,
    token_digest,
    token_id,
)


class AccessTokens:
    def __init__(self, store: Store, seal: validation.Seal) -> None:
        """`seal` signs a text with the user's key."""
        self._store = store
        self._seal = seal

    def create(
        self,
        scope: Scope,
        name: str,
        role: Role,
        lifetime: timedelta | None,
        *,
        login: bool = False,
        parent_id: str | None = None,
    ) -> IssuedToken:
        """A new token. Its text is returned here and never again.

        `login` is for codes and cookies. `parent_id` is the token that a browser logged in with.
        """
        status = TOKEN.advance(NEW, TokenAction.CREATE, scope.actor.role)
        validation.check_name(name)
        if name.startswith(LOGINS) is not login:
            raise InvalidInput(f"name: {' and '.join(LOGINS)} are for logins of the web server; choose another name")
        if role not in TOKEN_ROLES:
            raise InvalidInput(f"role: must be one of {', '.join(TOKEN_ROLES)}, got {excerpt(role)!r}")
        id, text = new_token_text()
        with self._store.write() as tx:
            if any(other.status is TokenStatus.ACTIVE for other in repository.find_named(tx, name)):
                raise Conflict(f"There is a token {name!r} already. Revoke it first: punchlist token revoke {name}")
            if repository.count_unrevoked(tx) >= validation.MAX_TOKENS:
                raise Conflict(f"Limit of {validation.MAX_TOKENS} tokens reached. Revoke one first.")
            expires_at = self._expiry(tx, lifetime, parent_id)
            unsealed = AccessToken(
                id, name, role, token_digest(text), "", str(scope.actor), tx.now(), expires_at, None, parent_id
            )
            token = unsealed._replace(seal=self._seal(unsealed.sealed_text))
            repository.insert_token(tx, token)
            event_log.append(
                tx, _change(scope, token, TokenAction.CREATE, None, status, f"token {name}", token.event_data())
            )
        return IssuedToken(token, text)

    def _expiry(self, tx: Transaction, lifetime: timedelta | None, parent_id: str | None) -> str | None:
        expires_at = timestamp(self._store.clock() + lifetime) if lifetime else None
        if parent_id is None:
            return expires_at
        # Inside the transaction: the parent may have been revoked since it was found.
        parent = repository.find(tx, parent_id)
        if parent is None or validation.validity(parent, tx.now(), self._seal) is not TokenValidity.VALID:
            raise IllegalTransition(f"The token {excerpt(parent_id)!r} is not valid any more.")
        return min((at for at in (expires_at, parent.expires_at) if at is not None), default=None)

    def list(self) -> list[ListedToken]:
        with self._store.read() as tx:
            tokens = repository.find_all(tx)
        by_id = {token.id: token for token in tokens}
        return [ListedToken(token, self._validity(token, by_id.get(token.parent_id or ""))) for token in tokens]

    def revoke(self, scope: Scope, name_or_id: str) -> AccessToken:
        """Revoke a token; clients that use it are refused from their next request on."""
        TOKEN.check_role(TokenAction.REVOKE, scope.actor.role)
        with self._store.write() as tx:
            token = _find(tx, name_or_id)
            if token.status is TokenStatus.REVOKED or not repository.revoke(tx, token.id):
                raise IllegalTransition(f"The token {token.name!r} was revoked before.")
            event_log.append(tx, _ending(scope, token, TokenAction.REVOKE, f"token {token.name}"))
            for child in repository.find_children(tx, token.id):
                repository.revoke(tx, child.id)
                event_log.append(tx, _ending(scope, child, TokenAction.REVOKE, f"logged in with token {token.name}"))
            return token._replace(revoked_at=tx.now())

    def log_out(self, scope: Scope, id: str) -> None:
        """End the login that the caller uses."""
        TOKEN.check_role(TokenAction.LOG_OUT, scope.actor.role)
        with self._store.write() as tx:
            token = repository.find(tx, id)
            if token is not None and token.is_login and repository.revoke(tx, id):
                event_log.append(tx, _ending(scope, token, TokenAction.LOG_OUT, f"token {token.name}"))

    def owner_name(self, token: AccessToken) -> str:
        """Who acts with a token: of the cookie of a named token, that one."""
        if token.parent_id is None:
            return token.name
        with self._store.read() as tx:
            parent = repository.find(tx, token.parent_id)
        return token.name if parent is None else parent.name

    def is_valid(self, id: str) -> bool:
        """Whether the token with this id is valid now."""
        return self._valid(id) is not None

    def find_for_webhook(self, id: str) -> AccessToken | None:
        """The valid token that a webhook belongs to. A viewer and a login have none."""
        token = self._valid(id)
        return None if token is None or token.is_login or token.role is Role.VIEWER else token

    def _valid(self, id: str) -> AccessToken | None:
        with self._store.read() as tx:
            token = repository.find(tx, id)
            parent = repository.find(tx, token.parent_id) if token and token.parent_id else None
        return token if token and self._validity(token, parent) is TokenValidity.VALID else None

    def _validity(self, token: AccessToken, parent: AccessToken | None) -> TokenValidity:
        """Of the cookie of a named token: only as long as that one is valid."""
        now = timestamp(self._store.clock())
        found = validation.validity(token, now, self._seal)
        if found is not TokenValidity.VALID or token.parent_id is None:
            return found
        return validation.validity(parent, now, self._seal) if parent else TokenValidity.NOT_YOURS

    def find_valid(self, text: str) -> AccessToken | None:
        """The bearer token that a client sent, if it is valid now."""
        token = self._find_valid(text)
        return None if token is None or token.is_login else token

    def find_login(self, text: str) -> AccessToken | None:
        """The one-time code or the cookie that a browser sent, if it is valid now."""
        token = self._find_valid(text)
        return token if token is not None and token.is_login else None

    def _find_valid(self, text: str) -> AccessToken | None:
        id = token_id(text)
        token = self._valid(id) if id is not None else None
        return token if token and hmac.compare_digest(token.digest, token_digest(text)) else None


def _find(tx: Transaction, name_or_id: str) -> AccessToken:
    named = repository.find_named(tx, name_or_id)
    found = next((token for token in named if token.status is TokenStatus.ACTIVE), None)
    token = found or repository.find(tx, name_or_id) or (named[0] if named else None)
    if token is None:
        raise NotFound(f"There is no token {excerpt(name_or_id)!r}. `punchlist token list` shows all.")
    return token


def _ending(scope: Scope, token: AccessToken, action: TokenAction, reason: str) -> Change:
    return _change(scope, token, action, TokenStatus.ACTIVE, TokenStatus.REVOKED, reason, {})


def _change(
    scope: Scope,
    token: AccessToken,
    action: TokenAction,
    before: TokenStatus | None,
    after: TokenStatus,
    reason: str,
    data: dict[str, str | None],
) -> Change:
    stream, actor = f"token:{token.id}", str(scope.actor)
    return Change(stream, scope.conversation_id, actor, action, token.id, before, after, reason, data)
