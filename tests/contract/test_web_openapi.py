"""The OpenAPI document: a snapshot, and requests made from it (X12)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.conftest import SOAK
from tests.contract.missions import FILE
from tests.contract.web import WebSite, opened

from punchlist.surfaces.web.api.openapi import document
from punchlist.surfaces.web.api.routes import ENDPOINTS

SNAPSHOT = Path(__file__).parent.parent / "surfaces" / "snapshots" / "openapi.json"
EXAMPLES = 60 if SOAK else 2
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
# Those start processes of agents, the stream does not end, and a webhook is signed (`test_web_hooks.py`).
LEFT_OUT = ("startConversation", "startTurn", "streamEvents", "receiveWebhook")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebSite]:
    with opened(f"sqlite:///{tmp_path_factory.mktemp('openapi')}/store/punchlist.db") as built:
        yield built


@pytest.mark.spec("X12")
def test_the_document_is_the_one_that_clients_know() -> None:
    written = json.dumps(document(ENDPOINTS), indent=1) + "\n"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        SNAPSHOT.write_text(written)
    assert written == SNAPSHOT.read_text()


@pytest.mark.spec("X12")
def test_requests_made_from_the_document_find_nothing(site: WebSite) -> None:
    person = site.client()
    assert person.post("/missions", FILE)[0] == 201
    schema = schemathesis.openapi.from_dict(document(ENDPOINTS))
    schema.app = site.app
    tried, seen = 0, set[int]()
    for found in schema.get_all_operations():
        operation: Any = found.ok()  # type: ignore[union-attr]
        name = operation.definition.raw["operationId"]
        if name in LEFT_OUT:
            continue

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
            database=None,
            derandomize=not SOAK,
        )
        @given(case=operation.as_strategy())
        def check(case: Any) -> None:
            response = case.call(base_url="http://localhost", headers=person.headers)
            seen.add(response.status_code)
            case.validate_response(response, checks=CHECKS)

        check()
        tried += 1
    assert tried > 65
    # They got as far as the services.
    assert {200, 404} <= seen
    assert 401 not in seen
