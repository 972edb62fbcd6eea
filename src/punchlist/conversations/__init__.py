"""Conversations, their turns, messages and traces: what every list hangs on.

A session is a conversation: `--session ID` names the conversation's id.
"""
