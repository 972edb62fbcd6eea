"""The starter mission file of `mission init` and of the page that creates a mission."""

from __future__ import annotations

from typing import Final

STARTER: Final = """\
{
  "name": "Developer Experience",
  "slug": "developer-experience",
  "description": "Changes reach users within a day, and builds are fast.",
  "todo": { "activeTodoLimit": 10, "backlogTodoLimit": 50 },
  "cadence": { "cron": "0 9 * * 1", "timezone": "UTC" },
  "pillars": [
    {
      "name": "Build Performance",
      "slug": "build-performance",
      "description": "Builds take less than a minute.",
      "metrics": [
        {
          "name": "Local build time",
          "slug": "local-build-time",
          "unit": "s",
          "target": 60,
          "warning": 90,
          "direction": "down",
          "collector": { "type": "manual" }
        }
      ],
      "strategies": [{ "description": "Find the slowest step and replace it", "status": "active" }]
    }
  ]
}
"""
