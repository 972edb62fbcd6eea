"""Messages and Markdown as one line of plain text, for lists."""

from __future__ import annotations

import re
from typing import Final

from punchlist.agent.message_kinds import REPLY
from punchlist.agent.transcript import from_stored
from punchlist.conversations.model import Message, MessageRole
from punchlist.errors import StoreDamaged
from punchlist.models.model import Reply

_MARKS: Final = re.compile(
    r"^[ \t]{0,3}(?:#{1,6}[ \t]+|>[ \t]?|[-*+][ \t]+(?:\[[ xX]\][ \t]+)?|`{3,}.*$|[-*_=]{3,}[ \t]*$)|\*\*|~~|`",
    re.MULTILINE,
)
"""Headings, quotes, bullets, fences, rules, and emphasis."""
_LINK: Final = re.compile(r"!?\[([^\]\n]*)\]\([^)\n]*\)")


def plain_line(text: str) -> str:
    """Without the marks of Markdown, on one line."""
    return " ".join(_MARKS.sub("", _LINK.sub(r"\1", text)).split())


def message_text(message: Message) -> str:
    """What a message says; nothing for one that only calls tools."""
    if message.role != MessageRole.ASSISTANT or message.kind != REPLY:
        return message.content
    try:
        reply = from_stored(message)
    except StoreDamaged:
        return ""
    return reply.text if isinstance(reply, Reply) else ""
