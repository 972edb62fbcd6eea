"""Forms are done once. Each rendered form has a request id. A form that is sent again under its id, after a click on
"back", by a browser that lost the answer or as a copy of the request, gets the first answer and changes nothing.

The id belongs to one content: two tabs that were rendered together may send different things under the same id.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from punchlist.idempotency.model import Answer, fingerprint
from punchlist.surfaces.web.pages.page import FormFunction, PageRequest, Redirect

REQUEST_ID: Final = "requestId"


def do_once(form: FormFunction, request: PageRequest, body: bytes, *, alone: bool) -> Redirect:
    """`alone`: the form waits for a process, so that it cannot be part of a transaction."""
    if not request.posted(REQUEST_ID):
        return form(request)
    content = fingerprint([request.path.encode(), body])
    requests = request.services.idempotent_requests
    answer: Callable[..., tuple[Answer, bool]] = requests.answer_alone if alone else requests.answer
    given, _ = answer(request.token_id, f"form {content}", content, lambda: _answer(form(request)))
    return Redirect(**json.loads(given.body))


def _answer(done: Redirect) -> Answer:
    return Answer(303, {}, json.dumps({"to": done.to, "message": done.message, "warning": done.warning}))
