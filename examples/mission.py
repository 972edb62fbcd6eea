"""A mission todo from creation to follow-up, changed by each role: `python examples/mission.py`."""

import tempfile
from pathlib import Path

from punchlist import (
    Actor,
    Conversations,
    Metrics,
    Missions,
    MissionScope,
    MissionTodos,
    NewMissionTodo,
    PunchlistError,
    Role,
    open_store,
    parse_mission,
)
from punchlist.missions.todos.lifecycle import TodoAction

FILE = """{"name": "Developer Experience", "pillars": [{"name": "Build Performance", "metrics": [
  {"name": "Local build time", "unit": "s", "target": 60, "warning": 90, "direction": "down"}]}]}"""

store = open_store(str(Path(tempfile.mkdtemp()) / "punchlist.db"))
todos, metrics = MissionTodos(store), Metrics(store)
person, lead, owner = (
    MissionScope("example", Actor(role, role.value)) for role in (Role.PERSON, Role.LEAD, Role.OWNER)
)
mission = Missions(store, Conversations(store)).apply(person, parse_mission(FILE), FILE).mission.slug
for seconds in (55, 63, 72):
    metrics.record(person, mission, "local-build-time", seconds)
(build,) = metrics.views(mission)
print(f"Build time is {build.status} and {build.trend}.")

profile = NewMissionTodo("build-performance", "Profile webpack build", completion_criteria="The top 3 plugins")
todo = todos.create(owner, mission, profile).todo
todos.update(lead, mission, todo.id, TodoAction.START, "Three readings in a row confirm it.")
todos.report(owner, mission, todo.id, "ts-loader 39 %, css-loader 17 %, terser 12 %")
try:
    todos.complete(owner, mission, todo.id, "Done.")
except PunchlistError as error:
    print(error)
done = todos.complete(lead, mission, todo.id, "ts-loader dominates.", metrics_impacted=["local-build-time"])
todos.create(lead, mission, NewMissionTodo("build-performance", "Evaluate esbuild-loader"))
print(f"{done.todo.status}. Active now: {todos.capacity(mission).active} of {todos.capacity(mission).active_limit}.")
