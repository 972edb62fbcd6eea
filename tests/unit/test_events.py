"""An event's text and hash: the same for the same change, another for any other."""

from __future__ import annotations

import json
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.examples import examples

from punchlist.kernel.events import GENESIS, Change, canonical_json, chain_hash

AT = "2026-02-21T09:00:00.000000Z"
CHANGE = Change("plan:t", "s", "supervisor:a", "start", "id", "pending", "in_progress", "because", {})

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
payloads = st.dictionaries(st.text(max_size=5), values, max_size=5)


def _hash(change: Change = CHANGE, *, previous: str = GENESIS, version: int = 1, at: str = AT, data: str = "{}") -> str:
    return chain_hash(previous, version, at, change, data)


@examples(80)
@given(payloads, st.randoms(use_true_random=False))
def test_canonical_text_does_not_depend_on_the_order_of_keys(data: dict[str, Any], random: Any) -> None:
    keys = list(data)
    random.shuffle(keys)
    assert canonical_json({key: data[key] for key in keys}) == canonical_json(data)


@examples(80)
@given(payloads)
def test_canonical_text_can_be_read_back(data: dict[str, Any]) -> None:
    assert json.loads(canonical_json(data)) == data


def test_canonical_text_has_no_blanks_and_keeps_letters() -> None:
    assert canonical_json({"b": [1, 2], "a": "ü日"}) == '{"a":"ü日","b":[1,2]}'


def test_a_hash_is_sha_256_in_hexadecimal() -> None:
    assert len(_hash()) == len(GENESIS) == 64
    assert int(_hash(), 16)


@pytest.mark.spec("X5")
def test_the_hash_covers_every_part_of_an_event() -> None:
    fields: dict[str, Any] = {
        "stream": "plan:u",
        "conversation_id": "r",
        "actor": "person:a",
        "action": "complete",
        "subject": "other",
        "from_status": None,
        "to_status": "completed",
        "reason": "",
    }
    hashes = {
        _hash(),
        _hash(previous="1" * 64),
        _hash(version=2),
        _hash(at="2026-02-21T09:00:00.000001Z"),
        _hash(data='{"a":1}'),
        *(_hash(CHANGE._replace(**{name: value})) for name, value in fields.items()),
    }
    assert len(hashes) == 5 + len(fields)


@pytest.mark.spec("X5")
def test_text_cannot_be_moved_from_one_part_to_the_next() -> None:
    variants = [
        CHANGE._replace(actor="ab", action="c"),
        CHANGE._replace(actor="a", action="bc"),
        CHANGE._replace(actor='a","b', action="c"),
        CHANGE._replace(from_status=None),
        CHANGE._replace(from_status="null"),
        CHANGE._replace(from_status=""),
    ]
    assert all(_hash(one) != _hash(other) for one, other in combinations(variants, 2))
