"""What the person has trusted by name, to the letter."""

from __future__ import annotations

from pathlib import Path

import pytest

from punchlist.missions.config.trust import trust_name
from punchlist.trust import Trust


@pytest.mark.spec("M7")
def test_a_text_is_trusted_as_it_was(tmp_path: Path) -> None:
    trust = Trust(tmp_path)
    assert not trust.trusts_text("mission:fast", "a")
    trust.trust_text("mission:fast", "a")
    assert Trust(tmp_path).trusts_text("mission:fast", "a")
    assert not trust.trusts_text("mission:fast", "a ")
    assert not trust.trusts_text("mission:slow", "a")
    trust.trust_text("mission:fast", "b")
    assert not trust.trusts_text("mission:fast", "a")
    trust.trust_text("mission:slow", "a")
    trust.forget_text("mission:fast")
    assert not trust.trusts_text("mission:fast", "b")
    assert trust.trusts_text("mission:slow", "a")


@pytest.mark.spec("M7")
def test_texts_and_files_are_trusted_apart(tmp_path: Path) -> None:
    file = tmp_path / "mission:fast"
    file.write_text("a")
    trust = Trust(tmp_path / "trust")
    trust.trust_text("mission:fast", "a")
    assert not trust.trusts(file)
    trust.trust(file)
    trust.forget_text("mission:fast")
    assert trust.trusts(file)


@pytest.mark.spec("M7")
def test_a_missions_file_is_trusted_for_its_folder(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert trust_name("fast", tmp_path / "a") == trust_name("fast", tmp_path / "link")
    assert trust_name("fast", tmp_path / "a") != trust_name("fast", tmp_path)
