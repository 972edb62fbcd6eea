"""Which texts name the same task (W3): an unfinished item is not ended by the text of another one."""

from __future__ import annotations

import pytest

from punchlist.checklist.identity import SIMILAR_AT_SAME_POSITION
from punchlist.checklist.similarity import SIMILAR, similarity

SAME = [
    ("Fix the parser", "Fix the parser and its tests"),
    ("Write the documentation", "Write documentation for the API"),
    ("Write the documentation", "Write the docs"),
    ("Run tests", "Run all tests"),
    ("Run tests", "Ran the tests"),
    ("Update `a.py`", "Update a.py with type hints"),
    ("Deploy", "Deploy to staging"),
    ("Write tests for parser", "Wrote tests for the parser"),
    ("Write tests for the parser", "Write the parser tests"),
    ("Write tests for the parser", "Add tests for the parser"),
    ("Fix the login bug", "Fixed the login bug"),
    ("Fix the login bug", "Fix login bug (done)"),
    ("Fix the login bug", "Repair the login bug"),
    ("Add endpoint for users", "Added the users endpoint"),
    ("Update dependencies", "Updating dependency"),
    ("Configure auth", "Configure authentication"),
    ("Drop the old tables", "Dropped the old tables"),
    ("Create config", "Create the configuration file"),
    ("Refactor module", "Refactor the module"),
    ("1. Refactor module", "Refactor module"),
    ("Check the release", "Verify the release"),
    ("Update README", "Update README.md with usage examples"),
    ("Refactor utils", "Refactor utils.py into modules"),
    ("Refactor utils.py", "Refactor utils"),
    ("Document the Dockerfile", "Document the dockerfile.yml"),
    ("Create the user model", "Define User model in models.py"),
    ("Buy oat milk", "Purchase oat milk at the shop"),
    ("Investigate the crash", "Analyse the crash on Windows"),
    ("配置数据库连接", "配置数据库的连接"),
    ("配置数据库连接", "配置数据库连接并测试"),
    ("修复登录错误", "修复登录错误。"),
    ("データベースを設定する", "データベース設定する"),
    ("更新 README", "更新 README.md"),
]
OTHER = [
    ("Write tests for parser", "Write tests for lexer"),
    ("Add endpoint for users", "Add endpoint for orders"),
    ("Fix the login bug", "Fix the logout bug"),
    ("Refactor module", "Say hello"),
    ("Fix the bug in module 1", "Fix the bug in module 2"),
    ("Write src/a.py", "Write src/b.py"),
    ("Step A", "Step B"),
    ("Deploy", "Say done"),
    ("Test the importer", "Announce the release"),
    ("Write the docs", "Write the tests"),
    ("Write the docs", "Read the docs"),
    ("Implement the cache", "Describe the cache"),
    ("Implement the cache", "Delete the cache"),
    ("Run the tests", "Do not run the tests"),
    ("Fix the login bug", "Skip the login bug fix"),
    ("Migrate from SQLite to PostgreSQL", "Migrate from PostgreSQL to SQLite"),
    ("Back up users before orders", "Back up orders before users"),
    ("Fix the user form", "Fix the username form"),
    ("Write tests for the parser module", "Write tests for the parser package"),
    ("Add caching to the API client", "Add logging to the API client"),
    ("Fix parser.py", "Fix parser.c"),
    ("Fix src/utils.py", "Fix tests/utils.py"),
    ("Update readme.md", "Update license.md"),
    ("Port utils.py to utils.ts", "Port utils.ts to utils.py"),
    ("Buy oat milk", "Buy soy milk"),
    ("配置数据库连接", "配置服务器连接"),
    ("配置数据库连接", "不要配置数据库连接"),
    ("配置数据库连接", "取消配置数据库连接"),
    ("把数据从旧库迁移到新库", "把数据从新库迁移到旧库"),
    ("编写测试", "运行测试"),
    ("データベースを設定する", "データベースを削除する"),
    ("テストを実行する", "テストを実行しない"),
    ("日本", "日本語"),
    ("删除用户", "删除用户组"),
    ("测试", "测试登录"),
]
PARTS = [
    ("Fix the parser and its tests", "Fix the parser"),
    ("Deploy to staging and production", "Deploy to staging"),
    ("Update a.py and b.py", "Update a.py"),
    ("Write docs, tests", "Write tests"),
    ("修复解析器和测试", "修复解析器"),
]


@pytest.mark.spec("W3")
@pytest.mark.parametrize("ends", [True, False], ids=["ended", "open"])
@pytest.mark.parametrize(("before", "after"), SAME)
def test_other_words_for_a_task_mean_the_same_task(before: str, after: str, ends: bool) -> None:
    assert similarity(before, after, ends=ends) >= SIMILAR


@pytest.mark.spec("W3")
@pytest.mark.parametrize("ends", [True, False], ids=["ended", "open"])
@pytest.mark.parametrize(("before", "after"), [*OTHER, *((after, before) for before, after in OTHER)])
def test_another_word_in_the_place_of_one_makes_another_task(before: str, after: str, ends: bool) -> None:
    assert similarity(before, after, ends=ends) == 0


@pytest.mark.spec("W3")
@pytest.mark.parametrize(("whole", "part"), PARTS)
def test_a_part_of_a_task_does_not_end_the_whole(whole: str, part: str) -> None:
    assert similarity(whole, part, ends=True) == 0
    assert similarity(whole, part, ends=False) >= SIMILAR_AT_SAME_POSITION
    assert similarity(part, whole, ends=True) >= SIMILAR_AT_SAME_POSITION
