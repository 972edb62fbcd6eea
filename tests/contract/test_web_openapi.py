"""The OpenAPI document: a snapshot, and requests made from it (X12)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    ignored_auth,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)
from tests.conftest import SOAK
from tests.contract.missions import FILE
from tests.contract.web import ApiClient, WebSite, opened
from tests.postgres import Databases

from punchlist.surfaces.web.api.openapi import document
from punchlist.surfaces.web.api.routes import ENDPOINTS

SNAPSHOT = Path(__file__).parent.parent / "surfaces" / "snapshots" / "openapi.json"
EXAMPLES, WRONG_EXAMPLES = (60, 30) if SOAK else (10, 3)
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
# Those start processes of agents, the stream does not end, and a webhook is signed (`test_web_hooks.py`).
LEFT_OUT = ("startConversation", "startTurn", "streamEvents", "receiveWebhook")


@pytest.fixture(
    scope="module",
    params=["sqlite", pytest.param("postgresql", marks=pytest.mark.soak)],
)
def site(
    request: pytest.FixtureRequest, databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WebSite]:
    if request.param == "sqlite":
        with opened(f"sqlite:///{tmp_path_factory.mktemp('openapi')}/store/punchlist.db") as built:
            yield built
        return
    url = databases.create()
    with opened(url) as built:
        yield built
    databases.drop(url)


@pytest.fixture
def person(site: WebSite, request: pytest.FixtureRequest) -> ApiClient:
    client = site.client(name=request.node.originalname[5:25])
    assert client.post("/missions", FILE)[0] in (200, 201)
    return client


@pytest.mark.spec("X12")
def test_the_document_is_the_one_that_clients_know() -> None:
    written = json.dumps(document(ENDPOINTS), indent=1) + "\n"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        SNAPSHOT.write_text(written)
    assert written == SNAPSHOT.read_text()


def untyped(value: Any, path: str = "") -> Iterator[str]:
    """Objects of which the document says only that they are objects."""
    if isinstance(value, dict):
        named = value.keys() & {"properties", "patternProperties"} or isinstance(
            value.get("additionalProperties"), dict
        )
        if value.get("type") == "object" and not named:
            yield path
        for name, each in value.items():
            yield from untyped(each, f"{path}/{name}")
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from untyped(each, f"{path}/{index}")


@pytest.mark.spec("X12")
def test_every_object_has_its_fields_but_what_tools_and_kinds_of_work_define() -> None:
    found = {path.removeprefix("/components/schemas/") for path in untyped(document(ENDPOINTS))}
    assert found == {
        "ApprovalBody/properties/arguments/anyOf/0",
        "InboxAnswerBody/properties/arguments/anyOf/0",
        "ListedRecommendationShape/properties/arguments",
        "RecommendationShape/properties/arguments",
        "RunShape/properties/request",
    }


def send_all(
    site: WebSite, person: ApiClient, mode: GenerationMode, examples: int, checks: Sequence[Any]
) -> tuple[int, set[int]]:
    """Send requests that are made from the document; how many operations there are, and the statuses."""
    schema = schemathesis.openapi.from_dict(document(ENDPOINTS))
    schema.app = site.app
    tried, seen = 0, set[int]()
    for found in schema.get_all_operations():
        operation: Any = found.ok()  # type: ignore[union-attr]
        if operation.definition.raw["operationId"] in LEFT_OUT:
            continue

        @settings(
            max_examples=examples,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
            database=None,
            derandomize=not SOAK,
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def check(case: Any) -> None:
            response = case.call(base_url="http://localhost", headers=person.headers)
            seen.add(response.status_code)
            # The check of schemathesis does not know refusals of what is too long.
            applied = [
                each for each in checks if each is not negative_data_rejection or response.status_code not in (413, 414)
            ]
            case.validate_response(response, checks=applied)

        check()
        tried += 1
    return tried, seen


@pytest.mark.spec("X12", "X11")
def test_requests_made_from_the_document_find_nothing_and_are_refused_without_a_token(
    site: WebSite, person: ApiClient
) -> None:
    tried, seen = send_all(site, person, GenerationMode.POSITIVE, EXAMPLES, [*CHECKS, ignored_auth])
    assert tried > 65
    # They got as far as the services.
    assert {200, 404} <= seen
    assert 401 not in seen


@pytest.mark.spec("X12")
def test_requests_that_the_document_does_not_allow_are_refused(site: WebSite, person: ApiClient) -> None:
    tried, seen = send_all(site, person, GenerationMode.NEGATIVE, WRONG_EXAMPLES, [*CHECKS, negative_data_rejection])
    assert tried > 65
    assert 422 in seen
