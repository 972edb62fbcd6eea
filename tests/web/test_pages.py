"""Mission control in a real browser: a todo's life by clicks, drag and keyboard, and changes of others."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Dialog, Page, expect
from tests.contract.missions import BUILD, SLUG
from tests.web.conftest import PERSON, LogIn, Serve
from tests.web.site import PHONE, Server

from punchlist.app import Services
from punchlist.kernel.events import Actor, Role
from punchlist.missions.model import Mission, MissionScope, NewMissionTodo
from punchlist.missions.todos.edits import EditedFields
from punchlist.missions.todos.lifecycle import TodoAction, TodoPriority, TodoStatus

BOARD = f"/missions/{SLUG}/board"
TITLE = "Profile webpack build to identify top 3 slow plugins"
ONE_DATABASE = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
"""The browser is what these tests are about; the life of a todo runs on both databases."""
LEAD = MissionScope("s", Actor(Role.LEAD, "lead"), SLUG)


def column(page: Page, status: str, title: str = TITLE) -> None:
    """Wait until the card is in the column."""
    expect(page.locator(f"#column-{status} .card", has_text=title)).to_be_visible()


def make(services: Services, title: str = TITLE, target: TodoStatus = TodoStatus.PENDING) -> str:
    new = NewMissionTodo(BUILD, title, completion_criteria="A list of three plugins", target=target)
    return services.mission_todos.create(MissionScope("s", PERSON), SLUG, new).todo.id


@pytest.mark.spec("M1", "M5", "M6", "M15")
def test_a_person_takes_a_todo_from_its_creation_to_its_completion(
    serve: Serve, person: LogIn, services: Services
) -> None:
    """Section 8 of the source document, by clicks."""
    server = serve("--no-worker")
    page = person(server)
    page.get_by_role("link", name="Create a mission").click()
    page.get_by_label("Name").first.fill("Developer Experience")
    page.get_by_label("Goal").fill("Builds are fast.")
    page.locator("#pillar-1").fill("Build Performance")
    page.locator("#metric-1").fill("Local build time")
    page.locator("#unit-1").fill("s")
    page.locator("#target-1").fill("60")
    page.locator("#warning-1").fill("90")
    page.get_by_role("button", name="Create the mission").click()
    expect(page.get_by_role("heading", name="Developer Experience", exact=True)).to_be_visible()
    page.wait_for_selector("body.ready")
    for reading in ("55", "63", "72"):
        page.get_by_label("New reading of Local build time").fill(reading)
        page.get_by_role("button", name="Record").click()
        expect(page.locator("#metric-local-build-time .value")).to_contain_text(reading)
    expect(page.locator("#metric-local-build-time")).to_contain_text("degrading")

    page.keyboard.press("Escape")
    page.locator("h1").click()
    page.keyboard.press("c")
    page.get_by_label("Title").fill(TITLE)
    page.get_by_label("What to do").fill("Run webpack --profile --json")
    page.get_by_label("Done when").fill("The top 3 plugins with their share")
    page.get_by_label("Why now").fill("Build time is 72s, 12s above the 60s target")
    page.get_by_label("Deadline").fill((datetime.now(UTC) + timedelta(days=3)).date().isoformat())
    page.get_by_role("button", name="Create").click()
    column(page, "pending")
    page.wait_for_selector("body.ready")
    # On narrower screens the completed column is a rail beside the drawer.
    page.set_viewport_size({"width": 1440, "height": 900})
    drawer = page.locator("#drawer")
    expect(drawer).to_contain_text("Run webpack --profile --json")

    drawer.locator("summary", has_text="Edit").click()
    drawer.get_by_label("Done when").fill("The top 3 plugins with their share, and a recommendation for each")
    drawer.get_by_label("Labels, with commas").fill("build")
    drawer.locator("form[action$='/edit']").get_by_label("Reason").fill("A list alone decides nothing")
    drawer.get_by_role("button", name="Save").click()
    expect(drawer.locator(".prose", has_text="a recommendation for each")).to_be_visible()
    expect(page.locator("#column-pending .tag", has_text="build")).to_be_visible()

    drawer.locator("summary", has_text="Start").click()
    drawer.locator("form[action$='/start']").get_by_label("Reason").fill(
        "Degradation confirmed by 3 consecutive readings."
    )
    drawer.locator("form[action$='/start'] button").click()
    column(page, "in_progress")

    drawer.locator("summary", has_text="Complete").click()
    drawer.get_by_label("What was done").fill("Identified ts-loader (39%), css-loader (17%), terser (12%).")
    drawer.get_by_label("Local build time").check()
    drawer.locator("form[action$='/complete'] button").click()
    column(page, "completed")
    expect(drawer.locator(".marks li.yes", has_text="Accepted")).to_be_visible()
    expect(drawer).to_contain_text("Degradation confirmed by 3 consecutive readings.")
    (todo,) = services.mission_todos.list(SLUG, status=[TodoStatus.COMPLETED]).items
    assert todo.outcome == "Identified ts-loader (39%), css-loader (17%), terser (12%)."
    (collection,) = [run for run in services.runs.list(limit=10) if run.kind == "collect"]
    assert collection.parameters == {"metrics": ["local-build-time"]}


@pytest.mark.spec("M4", "M15")
@ONE_DATABASE
def test_a_card_moves_by_drag_and_by_keys_with_a_reason(
    serve: Serve, person: LogIn, services: Services, mission: Mission
) -> None:
    id = make(services)
    page = person(serve("--no-worker"))
    page.goto(page.url.rstrip("/") + BOARD)
    page.wait_for_selector("body.ready")
    card = page.locator(f"#card-{id}")
    card.drag_to(page.locator("#column-backlog"))
    dialog = page.locator("#move")
    expect(dialog).to_be_visible()
    # It is drawn in its new column before the server was asked.
    column(page, "backlog")
    assert services.mission_todos.get(id).status is TodoStatus.PENDING
    dialog.get_by_label("Reason").fill("Later")
    dialog.get_by_label("Reason").press("Enter")
    expect(dialog).to_be_hidden()
    column(page, "backlog")
    assert services.mission_todos.get(id).status is TodoStatus.BACKLOG

    # An impossible move is not offered and says why.
    card.locator("a").focus()
    page.keyboard.press("m")
    expect(dialog.locator("input[value=in_progress]")).to_be_disabled()
    expect(dialog).to_contain_text("Promote it first; only pending todos can start.")
    dialog.locator("input[value=pending]").check()
    dialog.get_by_label("Reason").fill("Now")
    dialog.get_by_role("button", name="Promote").click()
    expect(dialog).to_be_hidden()
    column(page, "pending")
    assert services.mission_todos.get(id).status is TodoStatus.PENDING


@pytest.mark.spec("M15", "X5")
@ONE_DATABASE
def test_two_browsers_see_each_others_changes_also_after_a_restart_of_the_server(
    serve: Serve, person: LogIn, services: Services, mission: Mission
) -> None:
    server = serve("--no-worker")
    id = make(services)
    ada = person(server)
    another_link(services, server)
    ben = person(server)
    for page in (ada, ben):
        page.goto(server.url + BOARD)
        page.wait_for_selector("body.ready")
    ben.get_by_label("Filter todos").focus()
    ben.keyboard.type("Pro")
    ada.locator(f"#card-{id} a").focus()
    ada.keyboard.press("m")
    ada.locator("#move").locator("input[value=in_progress]").check()
    ada.locator("#move").get_by_label("Reason").fill("Start")
    ada.locator("#move").get_by_role("button", name="Start").click()
    column(ben, "in_progress")
    # Neither the focus nor the half-typed text was taken.
    assert ben.evaluate("document.activeElement.name") == "search"
    expect(ben.get_by_label("Filter todos")).to_have_value("Pro")

    server.stop()
    services.mission_todos.update(LEAD, SLUG, id, TodoAction.CANCEL, "While the server was down")
    server.start()
    for page in (ada, ben):
        column(page, "cancelled")
    make(services, "Profile again")
    column(ben, "pending", "Profile again")


def another_link(services: Services, server: Server) -> None:
    """Each link works once."""
    from punchlist.surfaces.web.logins import Logins

    server.link = f"{server.url}/login?code={Logins(services).new_code()}"


@pytest.mark.spec("M15")
@ONE_DATABASE
def test_a_card_that_another_person_moves_while_its_dialog_is_open_says_why_it_cannot_move(
    serve: Serve, person: LogIn, services: Services, mission: Mission
) -> None:
    id = make(services)
    page = person(serve("--no-worker"))
    page.goto(page.url.rstrip("/") + BOARD)
    page.wait_for_selector("body.ready")
    page.locator(f"#card-{id} a").focus()
    page.keyboard.press("m")
    dialog = page.locator("#move")
    services.mission_todos.update(LEAD, SLUG, id, TodoAction.CANCEL, "Not this quarter")
    column(page, "cancelled")
    dialog.locator("input[value=backlog]").check()
    dialog.get_by_label("Reason").fill("Later")
    dialog.get_by_role("button", name="Move to backlog").click()
    expect(dialog.locator("[data-move-error]")).to_contain_text("cancelled")


@pytest.mark.spec("M15", "X12")
@ONE_DATABASE
def test_a_half_written_edit_neither_overwrites_others_nor_is_lost(
    serve: Serve, person: LogIn, services: Services, mission: Mission
) -> None:
    id, other = make(services), make(services, "Another todo")
    scope = MissionScope("s", PERSON)
    page = person(serve("--no-worker"))
    page.goto(page.url.rstrip("/") + f"{BOARD}?todo={id}")
    page.wait_for_selector("body.ready")
    drawer = page.locator("#drawer")
    drawer.locator("summary", has_text="Edit").click()
    drawer.get_by_label("Done when").fill("My text")
    drawer.get_by_label("Priority", exact=True).select_option("high")
    # Changed and changed back, so that the browser no longer sets it from the page.
    drawer.get_by_label("Title").fill("Something")
    drawer.get_by_label("Title").fill(TITLE)
    drawer.get_by_label("Labels, with commas").focus()
    changed = EditedFields(completion_criteria="Another text", title="Another title", priority=TodoPriority.LOW)
    services.mission_todos.edit(scope, SLUG, id, changed, "meanwhile")
    expect(drawer.get_by_role("heading", name="Another title")).to_be_visible()
    expect(drawer.get_by_label("Title")).to_have_value("Another title")
    expect(drawer.get_by_label("Done when")).to_have_value("My text")
    drawer.locator("form[action$='/edit']").get_by_label("Reason").fill("Why not")
    drawer.get_by_role("button", name="Save").click()
    expect(page.locator(".toast.failed")).to_contain_text("was changed by another person or an agent")
    stored = services.mission_todos.get(id)
    assert (stored.completion_criteria, stored.title, stored.priority) == (
        "Another text", "Another title", TodoPriority.LOW,
    )  # fmt: skip

    # The first Esc leaves the field; closing the drawer or opening another card asks.
    said: list[str] = []

    def refuse(dialog: Dialog) -> None:
        said.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", refuse)
    drawer.get_by_label("Done when").focus()
    page.keyboard.press("Escape")
    expect(drawer.get_by_label("Done when")).to_have_value("My text")
    assert said == []
    page.keyboard.press("Escape")
    page.locator(f"#card-{other} a").click()
    assert said == ["Discard what you wrote about this todo?"] * 2
    expect(drawer.get_by_label("Done when")).to_have_value("My text")
    page.remove_listener("dialog", refuse)
    page.once("dialog", lambda dialog: dialog.accept())
    page.locator(f"#card-{other} a").click()
    expect(drawer.get_by_role("heading", name="Another todo")).to_be_visible()


@pytest.mark.spec("M13", "S5", "I1")
@ONE_DATABASE
def test_an_escalation_is_answered_with_a_thumb(
    serve: Serve, person: LogIn, services: Services, mission: Mission
) -> None:
    from punchlist.kernel.events import SYSTEM
    from punchlist.missions.changes import lock_mission
    from punchlist.missions.escalations.service import escalate_stuck_work

    id = make(services)
    with services.store.write() as tx:
        write = lock_mission(tx, MissionScope("s", SYSTEM), SLUG)
        escalate_stuck_work(write, services.mission_todos.get(id), "Two tests depend on the order of transformers.")
    page = person(serve("--no-worker"), **PHONE)
    request = page.locator("[data-request=escalation]")
    expect(request).to_contain_text("Two tests depend on the order of transformers.")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    button = request.get_by_role("button", name="Extend")
    box = button.bounding_box()
    assert box is not None
    assert box["height"] >= 44
    until = (datetime.now(UTC) + timedelta(days=9)).date().isoformat()
    request.get_by_label("New deadline").fill(until)
    button.tap()
    expect(request).to_be_hidden()
    expect(page.locator(".toast")).to_contain_text(f"The deadline is now {until}.")
    assert services.mission_todos.get(id).deadline == until


@pytest.mark.spec("S5", "I1")
@ONE_DATABASE
def test_an_approval_is_answered_on_a_phone_and_the_call_runs(
    serve: Serve, person: LogIn, services: Services, mission: Mission, project: Path
) -> None:
    """A worker in the server executes a todo; its command waits for the person."""
    rehearsal = project / "rehearsal.yaml"
    rehearsal.write_text(REHEARSAL)
    id = make(services)
    server = serve("--model", f"rehearsal:{rehearsal}", "--mode", "default")
    page = person(server, **PHONE)
    services.mission_todos.update(LEAD, SLUG, id, TodoAction.START, "Now")
    request = page.locator("[data-request=approval]")
    expect(request).to_contain_text("touch profiled")
    request.get_by_role("button", name="Approve", exact=True).tap()
    expect(request).to_be_hidden()
    page.goto(f"{server.url}/todos/{id}")
    expect(page.locator(".badge.done", has_text="completed")).to_be_visible()
    assert (project / "profiled").exists()


@pytest.mark.spec("M15")
@ONE_DATABASE
def test_search_shows_where_words_are_in_todos_and_messages(
    serve: Serve, person: LogIn, services: Services, mission: Mission
) -> None:
    from punchlist.conversations.model import MessageRole, Scope

    id = make(services, "Measure the bundler")
    scope = Scope("bundles", PERSON)
    turn = services.conversations.open_turn(scope)
    services.conversations.add_message(scope, MessageRole.USER, "Why is the bundler so slow?", turn_id=turn.id)
    server = serve("--no-worker")
    page = person(server)
    page.goto(f"{server.url}/search?q=bundl")
    page.wait_for_selector("body.ready")
    expect(page.locator("main [data-result] mark")).to_have_text(["bundl", "bundl"])
    page.get_by_role("link", name="Todos", exact=True).click()
    page.locator("main [data-result]", has_text="Measure the bundler").click()
    page.wait_for_url(f"{server.url}/todos/{id}")
    page.wait_for_selector("body.ready")
    page.keyboard.press("Control+k")
    page.locator("#palette input[type=search]").fill("slow bund")
    page.locator("#palette [data-result]", has_text="Why is the bundler so slow?").click()
    page.wait_for_url(f"{server.url}/chats/bundles?*")
    expect(page.locator("article.message:target")).to_contain_text("Why is the bundler so slow?")


@pytest.mark.spec("M10", "I3")
@ONE_DATABASE
def test_a_recommendation_is_decided_and_a_missing_worker_is_reported(
    serve: Serve, person: LogIn, services: Services, mission: Mission
) -> None:
    owner = MissionScope("s", Actor(Role.OWNER, "owner"), SLUG)
    first = services.recommendations.add(owner, SLUG, "Raise the limit of the backlog.").number
    second = services.recommendations.add(owner, SLUG, "Collect the build time every hour.").number
    server = serve("--no-worker", "--model", "rehearsal:unused.yaml")
    page = person(server)
    page.goto(f"{server.url}/missions/{SLUG}")
    page.wait_for_selector("body.ready")
    expect(page.locator("[data-problem]").first).to_contain_text("Start one with punchlist worker or punchlist serve")
    for number, do in ((first, "Accept"), (second, "Decline")):
        row = page.locator(f"#recommendation-{number}")
        row.get_by_label("Reason").fill("It is time")
        row.get_by_role("button", name=do).click()
        expect(row).to_have_count(0)
    decided = [each.recommendation for each in services.recommendations.list(SLUG, decided=True)]
    assert [(one.status, one.decision) for one in decided] == [("accepted", "It is time"), ("declined", "It is time")]


@pytest.mark.spec("M15")
@ONE_DATABASE
def test_a_third_party_agent_is_listed_while_it_runs(
    serve: Serve, person: LogIn, project: Path, environment: dict[str, str], database: str
) -> None:
    import json
    import os

    from punchlist.config import load
    from punchlist.host_sessions import FILE_NAME, session_folder
    from punchlist.kernel.processes import process_identity

    settings = load(environment={**environment, "PUNCHLIST_DATABASE_URL": database}, cwd=project)
    file = session_folder(settings, environment) / FILE_NAME
    owners = {"claude-1": process_identity(os.getpid()), "claude-2": process_identity(2**22 + 1)}
    # Before the file names this process: an agent may not start a server.
    server = serve("--no-worker")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"taken": owners, "agents": dict.fromkeys(owners, "claude-code"), "known": {}}))
    page = person(server)
    page.goto(f"{server.url}/agents")
    expect(page.locator("#agent-claude-1")).to_contain_text("claude-code")
    expect(page.locator("#agent-claude-2")).to_have_count(0)


@pytest.mark.spec("M15")
@ONE_DATABASE
def test_text_is_shown_while_it_is_written_and_replaced_by_the_message(
    serve: Serve, person: LogIn, services: Services
) -> None:
    from punchlist.conversations import live_repository
    from punchlist.conversations.live_repository import NewLiveText
    from punchlist.conversations.model import MessageRole, Scope

    scope = Scope("words", Actor(Role.SYSTEM, "agent"))
    turn = services.conversations.open_turn(scope)

    def write(text: str, position: int, ended: int = 0) -> None:
        with services.store.write() as tx:
            live_repository.add_text(tx, NewLiveText("words", turn.id, "", position, text, ended, tx.now()))

    write("Tests 😀", 0)
    server = serve("--no-worker")
    page = person(server)
    page.goto(f"{server.url}/chats/words")
    live = page.locator("[data-live-text] .prose")
    expect(live).to_have_text("Tests 😀")
    write(" pass <b>now</b>", 7)
    expect(live).to_have_text("Tests 😀 pass <b>now</b>")
    services.conversations.add_message(scope, MessageRole.ASSISTANT, "All tests pass.", turn_id=turn.id)
    write("", 23, ended=1)
    expect(page.locator("#live .message")).to_contain_text("All tests pass.")
    expect(live).to_have_count(0)


@pytest.mark.spec("M15")
@ONE_DATABASE
def test_forms_work_without_scripts_and_one_that_fails_returns_to_its_page(
    serve: Serve, person: LogIn, services: Services, mission: Mission
) -> None:
    server = serve("--no-worker")
    context = person(server).context
    assert context.browser is not None
    plain = context.browser.new_context(java_script_enabled=False, storage_state=context.storage_state())
    page = plain.new_page()
    address = f"{server.url}/missions/{SLUG}?from=here"
    page.goto(address)
    for reading, answer in (("fast", "number"), ("72", "Recorded.")):
        page.locator("#reading-local-build-time").fill(reading)
        page.locator("#metric-local-build-time").get_by_role("button", name="Record").click()
        expect(page.locator("main > .notice")).to_contain_text(answer)
        assert page.url == (address if reading == "fast" else f"{server.url}/missions/{SLUG}")
    plain.close()


@pytest.mark.spec("M15")
@ONE_DATABASE
def test_a_conversation_is_started_and_continued(serve: Serve, person: LogIn, project: Path) -> None:
    rehearsal = project / "rehearsal.yaml"
    rehearsal.write_text(
        "scenes: [{when: Say hello, replies: [Hello there.]}, {when: Say goodbye, replies: [Farewell.]}]"
    )
    server = serve("--no-worker", "--model", f"rehearsal:{rehearsal}")
    page = person(server)
    page.goto(f"{server.url}/conversations")
    page.wait_for_selector("body.ready")
    page.locator("summary", has_text="New conversation").click()
    page.get_by_label("Goal").fill("Say hello")
    page.get_by_role("button", name="Start").click()
    page.wait_for_url(f"{server.url}/chats/*")
    expect(page.locator("#live .message", has_text="Hello there.")).to_be_visible()
    # The API starts turns with the server's model, too.
    answer = page.evaluate(
        """fetch("/api/v1/conversations", {method: "POST", body: JSON.stringify({goal: "Say goodbye"}), headers: {
        "Content-Type": "application/json", "X-CSRF-Token": document.body.dataset.csrf}}).then((told) => told.status)"""
    )
    assert answer == 202
    page.get_by_label("Message").fill("Say goodbye")
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#live .message", has_text="Farewell.")).to_be_visible()


@pytest.mark.spec("X5", "M15")
@ONE_DATABASE
def test_the_history_goes_back_to_any_moment_of_a_list(
    serve: Serve, person: LogIn, services: Services, mission: Mission
) -> None:
    id = make(services)
    services.mission_todos.update(LEAD, SLUG, id, TodoAction.START, "Confirmed by three readings")
    services.mission_todos.complete(LEAD, SLUG, id, "ts-loader takes 39 %")
    server = serve("--no-worker")
    page = person(server)
    page.goto(f"{server.url}/missions/{SLUG}/replay")
    page.wait_for_selector("body.ready")
    column(page, "completed")
    page.get_by_role("link", name="Previous change").click()
    expect(page.locator("[data-moment] p")).to_contain_text("Confirmed by three readings")
    column(page, "in_progress")
    page.locator(".changes a", has_text="create").first.click()
    column(page, "pending")
    page.locator("#moment").focus()
    page.keyboard.press("End")
    column(page, "completed")
    page.keyboard.press("Home")
    expect(page.locator(".board .card")).to_have_count(0)
    # Playing goes through the changes to the newest one.
    page.get_by_role("button", name="Play").click()
    column(page, "completed")
    expect(page.get_by_role("button", name="Play")).to_be_visible()


@pytest.mark.spec("M15")
@ONE_DATABASE
def test_filters_are_saved_as_a_view(serve: Serve, person: LogIn, services: Services, mission: Mission) -> None:
    make(services)
    make(services, "Measure the bundler")
    server = serve("--no-worker")
    page = person(server)
    page.goto(server.url + BOARD)
    page.wait_for_selector("body.ready")
    page.get_by_label("Filter todos").fill("bundler")
    expect(page.locator(".card")).to_have_count(1)
    page.get_by_label("Name of the view").fill("Bundling")
    page.get_by_role("button", name="Save view").click()
    page.get_by_role("link", name="Clear").click()
    expect(page.locator(".card")).to_have_count(2)
    expect(page.get_by_label("Filter todos")).to_have_value("")
    page.reload()
    page.get_by_role("link", name="Bundling").click()
    expect(page.locator(".card")).to_have_count(1)
    assert "search=bundler" in page.url
    expect(page.get_by_label("Filter todos")).to_have_value("bundler")
    page.get_by_role("button", name="Forget “Bundling”").click()
    expect(page.get_by_role("link", name="Bundling")).to_have_count(0)


@pytest.mark.spec("M15")
@ONE_DATABASE
def test_without_a_model_no_conversation_is_offered(serve: Serve, person: LogIn) -> None:
    server = serve("--no-worker")
    page = person(server)
    page.goto(f"{server.url}/conversations")
    expect(page.get_by_role("heading", name="Conversations", exact=True)).to_be_visible()
    expect(page.locator("#new-conversation")).to_have_count(0)
    expect(page.locator("[data-missing-model]")).to_contain_text("set ANTHROPIC_API_KEY or OPENAI_API_KEY")


@pytest.mark.spec("W10")
@ONE_DATABASE
def test_hostile_text_is_text_on_every_page(serve: Serve, person: LogIn, services: Services, mission: Mission) -> None:
    attack = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    scope = MissionScope("s", PERSON)
    new = NewMissionTodo(BUILD, attack, description=attack, justification=attack, completion_criteria=attack)
    id = services.mission_todos.create(scope, SLUG, new).todo.id
    services.directives.add(scope, SLUG, attack)
    server = serve("--no-worker")
    page = person(server)
    page.on("dialog", lambda dialog: pytest.fail(f"A script ran: {dialog.message}"))
    for path in (
        f"{BOARD}?todo={id}",
        f"/todos/{id}",
        f"/missions/{SLUG}",
        "/search?q=img",
        f"{BOARD}?search={attack}",
    ):
        page.goto(server.url + path)
        page.wait_for_selector("body.ready")
        expect(page.get_by_text(attack).first).to_be_attached()
        assert page.locator("main img[src='x'], main script").count() == 0, path


@pytest.mark.spec("M15")
@ONE_DATABASE
def test_axe_finds_nothing_serious(serve: Serve, person: LogIn, services: Services, mission: Mission) -> None:
    from axe_playwright_python.sync_playwright import Axe

    id = make(services)
    services.metrics.record(MissionScope("s", PERSON), SLUG, "local-build-time", 72.0)
    services.recommendations.add(MissionScope("s", PERSON), SLUG, "Raise the limit of the backlog.")
    server = serve("--no-worker", "--model", "rehearsal:unused.yaml")
    page = person(server)
    paths = (
        "/",
        f"{BOARD}?todo={id}",
        f"/todos/{id}",
        f"/missions/{SLUG}",
        f"/missions/{SLUG}/flow",
        "/runs",
        f"/missions/{SLUG}/replay",
    )
    more = ("/search?q=profile", "/agents", "/conversations", "/settings", "/missions/new", f"/missions/{SLUG}/new")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme="light" if scheme == "light" else "dark")
        for path in (*paths, *more, f"/chats/{mission.conversation_id}"):
            page.goto(server.url + path)
            page.wait_for_selector("body.ready")
            found = Axe().run(page).response["violations"]
            serious = [
                (each["id"], each["nodes"][0]["html"][:200])
                for each in found
                if each["impact"] in ("serious", "critical") or each["id"] in ("heading-order", "empty-table-header")
            ]
            assert serious == [], (scheme, path)


REHEARSAL = """
scenes:
  - agent: pillar-owner
    when: "Execute: Profile"
    replies:
      - calls:
          - {tool: run_command, arguments: {command: touch profiled}}
      - text: ts-loader takes 39 % of the time.
  - agent: mission-lead
    when: "Review: Profile.*todoId (?P<todo>[0-9a-f-]+)"
    replies:
      - calls:
          - tool: mission_todo_complete
            arguments:
              missionSlug: developer-experience
              todoId: "{{ todo }}"
              outcome: ts-loader takes 39 % of the time.
      - text: Completed.
"""
