"""Models over their real wires: a scripted server on loopback stands in for the providers."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from tests.contract.scripted_http import SECRET, Answer, Asked, Break, ScriptedServer

from punchlist.agent.model_resolver import model_named
from punchlist.errors import ConfigError
from punchlist.models.model import (
    REPLY_BROKEN,
    CallReturn,
    FinishReason,
    Message,
    ModelBusy,
    ModelError,
    ModelInfo,
    ModelRefused,
    ModelRequest,
    Reply,
    RequestedCall,
    RequestRefused,
    ToolOffer,
    Usage,
    UserText,
)
from punchlist.models.provider_model import ProviderModel, ReplyLimits
from punchlist.models.providers import default_model, resolve_model
from punchlist.models.retry import RetryingModel

NAMES = ("anthropic:claude-x", "openai:gpt-x", "openai-chat:gpt-x", "ollama:llama-x")
KEYS = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "OLLAMA_BASE_URL")
LOOK = ToolOffer("look", "Looks.", {"type": "object", "properties": {"at": {"type": "string"}}})
HELLO = ModelRequest("Be brief.", [UserText("Hello?")], [LOOK])
BOUND = 30.0
WITH_KEYS = {"OPENAI_API_KEY": SECRET, "ANTHROPIC_API_KEY": SECRET}

every_provider = pytest.mark.parametrize("name", NAMES)


@pytest.fixture(autouse=True)
def _no_keys_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in KEYS:
        monkeypatch.delenv(key, raising=False)


def direct(name: str, environment: Mapping[str, str], bounds: ReplyLimits | None = None) -> ProviderModel:
    return ProviderModel(resolve_model(name, environment), bounds)


def asked(server: ScriptedServer, name: str, request: ModelRequest = HELLO, bounds: ReplyLimits | None = None) -> Reply:
    model = direct(name, server.environment(), bounds)
    return asyncio.run(asyncio.wait_for(model.ask(request), BOUND))


def reply_to(name: str, answer: Answer) -> Reply:
    with ScriptedServer([answer]) as server:
        return asked(server, name)


def failure_of(name: str, answer: Answer, bounds: ReplyLimits | None = None) -> ModelError:
    with ScriptedServer([answer]) as server, pytest.raises(ModelError) as caught:
        asked(server, name, bounds=bounds)
    assert SECRET not in str(caught.value)
    assert len(server.asked) == 1
    return caught.value


def sent(name: str, messages: Sequence[Message]) -> Asked:
    with ScriptedServer([Answer("Fine.")]) as server:
        asked(server, name, ModelRequest("Be brief.", messages, [LOOK], max_tokens=99))
    return server.asked[0]


async def _at_once(seconds: float) -> None:
    assert seconds >= 0


# --- replies ----------------------------------------------------------------------------------------------


@every_provider
def test_a_text_is_heard_as_it_comes_and_returned_whole(name: str) -> None:
    heard: list[str] = []
    with ScriptedServer([Answer("Good morning.", tokens=(21, 4))]) as server:
        model = direct(name, server.environment())
        reply = asyncio.run(model.ask(HELLO, heard.append))
    assert reply == Reply("Good morning.", (), FinishReason.STOP, Usage(21, 4))
    assert len(heard) > 1
    assert "".join(heard) == reply.text


def test_a_server_on_this_machine_may_read_a_long_prompt_before_it_answers() -> None:
    def timeout(name: str, **environment: str) -> float:
        return resolve_model(name, {"OPENAI_API_KEY": "k", **environment}).idle_timeout

    assert timeout("openai-chat:x", OPENAI_BASE_URL="http://127.0.0.1:8913/v1") == timeout("ollama:x") == 600
    assert timeout("openai-chat:x", OPENAI_BASE_URL="https://models.example/v1") == timeout("openai:x") == 120


@every_provider
def test_small_models_on_this_machine_have_a_low_temperature_and_an_agent_can_set_another(name: str) -> None:
    with ScriptedServer([Answer("Fine."), Answer("Fine.")]) as server:
        asked(server, name)
        asked(server, name, replace(HELLO, temperature=0.7))
    first, second = [request.body.get("temperature") for request in server.asked]
    assert first == (0.2 if name.startswith(("ollama:", "openai-chat:")) else None)
    assert second == 0.7


@pytest.mark.spec("T11")
@every_provider
def test_cached_tokens_are_counted_and_are_part_of_the_input(name: str) -> None:
    written = 100 if name.startswith("anthropic") else 0
    reply = reply_to(name, Answer("Yes.", tokens=(1_000, 4), cached=800, cache_written=written))
    assert reply.usage == Usage(1_000, 4, 800, written)


@every_provider
def test_parallel_calls_come_with_parsed_arguments(name: str) -> None:
    reply = reply_to(name, Answer("I look.", [("look", {"at": "a"}), ("look", {"at": "b"})]))
    assert reply.text == "I look."
    assert reply.finish is FinishReason.TOOL_CALLS
    assert reply.calls == (RequestedCall("call_1", "look", {"at": "a"}), RequestedCall("call_2", "look", {"at": "b"}))


@every_provider
@pytest.mark.parametrize("written", ['{"at": "a', "[1, 2]", '{"at": NaN}', "look there"])
def test_arguments_that_are_no_object_stay_text(name: str, written: str) -> None:
    reply = reply_to(name, Answer(calls=[("look", written)]))
    assert reply.calls == (RequestedCall("call_1", "look", written),)


@every_provider
def test_no_arguments_are_an_empty_object(name: str) -> None:
    assert reply_to(name, Answer(calls=[("look", "")])).calls == (RequestedCall("call_1", "look", {}),)


@every_provider
@pytest.mark.parametrize("finish", [FinishReason.LENGTH, FinishReason.CONTENT_FILTER])
def test_a_reply_cut_short_says_why(name: str, finish: FinishReason) -> None:
    reply = reply_to(name, Answer("Half a", finish=finish))
    assert (reply.text, reply.finish) == ("Half a", finish)


@every_provider
def test_ten_calls_at_once_all_arrive_known_or_not(name: str) -> None:
    calls = [("look", {"at": str(number)}) for number in range(9)] + [("no_such_tool", {})]
    reply = reply_to(name, Answer(calls=calls))
    assert [(call.tool, call.arguments) for call in reply.calls] == calls
    assert len({call.id for call in reply.calls}) == 10


@every_provider
def test_an_empty_reply_is_a_reply(name: str) -> None:
    assert reply_to(name, Answer("")) == Reply("", (), FinishReason.STOP, Usage(11, 7))


@every_provider
def test_a_call_cut_off_by_length_is_not_taken_for_a_finished_one(name: str) -> None:
    reply = reply_to(name, Answer(calls=[("look", '{"at": "a')], finish="length"))
    assert (reply.finish, reply.calls[0].arguments) == (FinishReason.LENGTH, '{"at": "a')


@every_provider
@pytest.mark.parametrize("calls", [(), (("look", {"at": "a"}),)])
def test_a_server_that_gives_no_reason_for_its_end_is_believed_when_it_ends_in_form(
    name: str, calls: Sequence[tuple[str, Any]]
) -> None:
    reply = reply_to(name, Answer("Well.", calls, finish=""))
    assert reply.text == "Well."
    assert reply.finish is (FinishReason.TOOL_CALLS if calls else FinishReason.STOP)


# --- requests ---------------------------------------------------------------------------------------------


TRANSCRIPT: Sequence[Message] = (
    UserText("Look at both."),
    Reply("", (RequestedCall("one", "look", {"at": "a"}), RequestedCall("two", "look", '{"at": "b'))),
    CallReturn("two", "look", "Arguments are no JSON.", failed=True),
    CallReturn("one", "look", ""),
    UserText("Go on."),
    UserText("Please."),
)


def test_a_transcript_reaches_chat_completions_in_order() -> None:
    body = sent("openai-chat:gpt-x", TRANSCRIPT).body
    assert [message["role"] for message in body["messages"]] == [
        *("system", "user", "assistant", "tool", "tool", "user", "user"),
    ]
    calls = body["messages"][2]["tool_calls"]
    assert [call["function"]["arguments"] for call in calls] == ['{"at":"a"}', '{"not_json":"{\\"at\\": \\"b"}']
    assert body["tools"][0]["function"]["name"] == "look"
    assert 99 in (body.get("max_tokens"), body.get("max_completion_tokens"))


def test_a_transcript_reaches_responses_in_order() -> None:
    body = sent("openai:gpt-x", TRANSCRIPT).body
    assert body["instructions"] == "Be brief."
    kinds = [item.get("type", item.get("role")) for item in body["input"]]
    assert [kind for kind in kinds if kind.startswith("function")] == [
        *("function_call", "function_call", "function_call_output", "function_call_output"),
    ]
    assert body["max_output_tokens"] == 99


def test_a_transcript_reaches_anthropic_with_results_first_and_failures_marked() -> None:
    body = sent("anthropic:claude-x", TRANSCRIPT).body
    assert "Be brief." in str(body["system"])
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    first, second, *rest = body["messages"][2]["content"]
    assert (first["type"], first["tool_use_id"], first["is_error"]) == ("tool_result", "two", True)
    assert (second["type"], second["tool_use_id"], second["is_error"]) == ("tool_result", "one", False)
    assert [part["type"] for part in rest] == ["text", "text"]
    assert [part["input"] for part in body["messages"][1]["content"]] == [{"at": "a"}, {"not_json": '{"at": "b'}]


@every_provider
def test_ids_that_a_provider_would_refuse_are_changed_in_call_and_result_alike(name: str) -> None:
    strange = "a call|with: " + "x" * 80
    again: Sequence[Message] = (
        Reply("", (RequestedCall(strange, "look", {}), RequestedCall("call_0", "look", {}))),
        CallReturn("call_0", "look", "b"),
        CallReturn(strange, "look", "a"),
    )
    body = str(sent(name, (UserText("Look."), *again, *again, UserText("Go on."))).body)
    assert strange not in body
    ids = re.findall(r"'(?:tool_call_id|tool_use_id|call_id)': '([^']*)'", body)
    made = {id for id in ids if re.fullmatch(r"[\w-]{1,64}", id)}
    assert len(made) == 4
    assert set(ids) == made


@every_provider
def test_what_a_model_got_wrong_can_be_sent_back_to_it(name: str) -> None:
    messages: Sequence[Message] = (
        UserText("half a \ud800 pair"),
        Reply("\udfff", (RequestedCall("1", "", {"at": "\ud800"}), RequestedCall("2", "functions.look at", "{\ud800"))),
        CallReturn("1", "", "There is no tool \ud800."),
        CallReturn("2", "functions.look at", "There is no such tool."),
    )
    body = str(sent(name, messages).body)
    assert "half a \ufffd pair" in body
    assert "'name': '_'" in body
    assert "'name': 'functions_look_at'" in body


@every_provider
@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ((UserText("Go."), Reply("", (RequestedCall("one", "look", {}),)), UserText("Well?")), "'one' has no result"),
        ((UserText("Go."), CallReturn("one", "look", "a")), "'one' answers no open call"),
        (
            (
                Reply("", (RequestedCall("one", "look", {}),)),
                CallReturn("one", "look", "a"),
                CallReturn("one", "look", "b"),
            ),
            "'one' answers no open call",
        ),
        (
            (UserText("Go."), Reply("", (RequestedCall("one", "look", {}), RequestedCall("one", "look", {})))),
            "Two calls",
        ),
        ((UserText(" "), Reply()), "has no messages"),
    ],
)
def test_a_transcript_that_does_not_add_up_is_never_sent(name: str, messages: Sequence[Message], said: str) -> None:
    with ScriptedServer([]) as server, pytest.raises(ModelRefused, match=said):
        asked(server, name, ModelRequest("", messages))
    assert server.asked == []


# --- failures ---------------------------------------------------------------------------------------------


@every_provider
@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_a_busy_provider_is_worth_another_try(name: str, status: int) -> None:
    with ScriptedServer([Answer(status=status), Answer("Too early.")]) as server:
        with pytest.raises(ModelBusy, match=str(status)) as caught:
            asked(server, name)
        assert caught.value.retry_after is None
    assert len(server.asked) == 1


@every_provider
@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, "(?s)refused.*too odd"),
        (401, "rejected the key"),
        (403, "is not allowed to use"),
        (404, "no model '"),
        (422, "(?s)refused.*too odd"),
        (307, "redirects to another address"),
    ],
)
def test_a_refusal_says_what_to_do_and_no_secret(name: str, status: int, said: str) -> None:
    error = f"too odd,\n{SECRET}"
    failure = failure_of(name, Answer(status=status, error=error, headers={"Location": "/v1/messages"}))
    assert isinstance(failure, ModelRefused)
    assert isinstance(failure, RequestRefused) == (status in (400, 422))
    assert re.search(said, str(failure))
    assert "\n" not in str(failure)


@pytest.mark.parametrize("name", NAMES[1:3])
def test_an_empty_account_is_not_asked_again(name: str) -> None:
    failure = failure_of(name, Answer(status=429, code="insufficient_quota"))
    assert isinstance(failure, ModelRefused)
    assert "no quota" in str(failure)


@pytest.mark.parametrize("name", NAMES[1:3])
def test_a_request_that_is_too_long_is_called_so(name: str) -> None:
    failure = failure_of(name, Answer(status=400, code="context_length_exceeded"))
    assert isinstance(failure, RequestRefused)
    assert "longer than gpt-x takes" in str(failure)


@every_provider
def test_a_wait_in_seconds_is_passed_on(name: str) -> None:
    failure = failure_of(name, Answer(status=429, headers={"Retry-After": "7"}))
    assert isinstance(failure, ModelBusy)
    assert failure.retry_after == 7.0


@every_provider
def test_a_wait_until_a_date_is_passed_on(name: str) -> None:
    until = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    failure = failure_of(name, Answer(status=503, headers={"Retry-After": until}))
    assert isinstance(failure, ModelBusy)
    assert failure.retry_after is not None
    assert 60 < failure.retry_after <= 101


@pytest.mark.parametrize(
    ("name", "key"),
    [("anthropic:x", "ANTHROPIC_API_KEY"), ("openai:x", "OPENAI_API_KEY"), ("openai-chat:x", "OPENAI_API_KEY")],
)
def test_a_missing_key_is_named_before_anything_is_asked(name: str, key: str) -> None:
    with pytest.raises(ConfigError, match=f"^{key} is not set; {name} needs it.$"):
        model_named(name, {})


@every_provider
def test_a_server_that_is_not_there_is_worth_another_try(name: str) -> None:
    with ScriptedServer([]) as gone:
        environment = gone.environment()
    with pytest.raises(ModelBusy, match=r"No connection to 127\.0\.0\.1:"):
        asyncio.run(direct(name, environment).ask(HELLO))


@every_provider
@pytest.mark.parametrize("broken", [Break.CUT, Break.END])
@pytest.mark.parametrize("answer", [Answer("A long story"), Answer(calls=[("look", {"at": "a"})])])
def test_a_stream_that_breaks_off_is_no_reply(name: str, broken: Break, answer: Answer) -> None:
    broken_off = Answer(answer.text, answer.calls, broken=broken)
    failure = failure_of(name, broken_off)
    assert isinstance(failure, ModelBusy)
    assert str(failure) == "The server closed the stream before the reply was complete."


@every_provider
def test_an_error_within_a_stream_is_no_reply(name: str) -> None:
    assert isinstance(failure_of(name, Answer("A long story", broken=Break.ERROR)), ModelBusy)


@every_provider
def test_a_stream_that_falls_silent_is_given_up(name: str) -> None:
    failure = failure_of(name, Answer("A long story", broken=Break.HANG), ReplyLimits(idle=0.3))
    assert isinstance(failure, ModelBusy)
    assert "sent nothing for 0.3 s" in str(failure)


def test_a_reply_that_takes_too_long_is_given_up() -> None:
    failure = failure_of(NAMES[2], Answer("A long story", broken=Break.HANG), ReplyLimits(total=0.5))
    assert isinstance(failure, ModelBusy)
    assert "took longer than 0.5 s" in str(failure)


def test_a_persistent_model_gets_over_a_broken_stream() -> None:
    with ScriptedServer([Answer("Half", broken=Break.CUT), Answer(status=529), Answer("Whole.")]) as server:
        model = RetryingModel(direct(NAMES[0], server.environment()), sleep=_at_once)
        assert asyncio.run(model.ask(HELLO)).text == "Whole."
    assert len(server.asked) == 3


def test_what_hear_raises_is_not_taken_for_the_model() -> None:
    def hear(text: str) -> None:
        raise RuntimeError(text)

    with ScriptedServer([Answer("Hello.")]) as server, pytest.raises(RuntimeError, match="Hel"):
        asyncio.run(direct(NAMES[0], server.environment()).ask(HELLO, hear))


@every_provider
def test_text_of_a_reply_that_broke_off_is_called_void(name: str) -> None:
    heard: list[str] = []
    with ScriptedServer([Answer("A long story", broken=Break.CUT), Answer("Whole.")]) as server:
        model = RetryingModel(direct(name, server.environment()), sleep=_at_once)
        assert asyncio.run(model.ask(HELLO, heard.append)).text == "Whole."
    void, _, whole = "".join(heard).rpartition(REPLY_BROKEN)
    assert "A long story".startswith(void)
    assert whole == "Whole."


@every_provider
def test_a_reply_that_never_ends_is_cut_off(name: str) -> None:
    failure = failure_of(name, Answer("x" * 20_000, broken=Break.ENDLESS), ReplyLimits(max_bytes=1_000_000))
    assert isinstance(failure, ModelRefused)
    assert str(failure) == f"{name} sent more than 1 MB for one reply. The request was aborted."


@every_provider
def test_a_refusal_that_never_ends_is_cut_off(name: str) -> None:
    refusal = Answer(status=400, content="x" * 200_000, kind="text/plain")
    assert "sent more than 0.1 MB" in str(failure_of(name, refusal, ReplyLimits(max_bytes=100_000)))


@every_provider
def test_signs_of_life_do_not_keep_a_reply_waiting_forever(name: str) -> None:
    failure = failure_of(name, Answer("A long story", broken=Break.TRICKLE), ReplyLimits(idle=30.0, total=0.5))
    assert isinstance(failure, ModelBusy)
    assert "took longer than 0.5 s" in str(failure)


@every_provider
@pytest.mark.parametrize("kind", ["text/html; charset=utf-8", "application/json"])
def test_what_is_no_stream_is_told_with_the_address_to_check(name: str, kind: str) -> None:
    failure = failure_of(name, Answer(content="<html>Please log in.</html>", kind=kind))
    assert isinstance(failure, ModelRefused)
    assert re.search(
        rf"answered with {kind.partition(';')[0]} instead of an event stream\. Check \w+_BASE_URL\.$", str(failure)
    )


@every_provider
@pytest.mark.parametrize("status", [400, 403, 502])
def test_the_page_of_a_proxy_is_not_repeated(name: str, status: int) -> None:
    assert "<" not in str(failure_of(name, Answer(status=status, content="<html>Please log in.</html>")))


@every_provider
@pytest.mark.parametrize(
    "content",
    [
        *("", "\x00\x01é", "data: {oops\n\n", "data: [1, 2]\n\n", 'data: {"choices": 7, "type": 3}\n\n'),
        'event: message_start\ndata: {"type": "message_start", "message": null}\n\n',
        'data: {"choices": [{"delta": {"tool_calls": [{"index": "x", "function": 3}]}}]}\n\n',
    ],
)
def test_a_stream_of_nonsense_is_no_reply(name: str, content: str) -> None:
    failure = failure_of(name, Answer(content=content, kind="text/event-stream"))
    assert isinstance(failure, ModelBusy)
    assert "\n" not in str(failure)


# --- leaving ----------------------------------------------------------------------------------------------


def open_sockets() -> int:
    links = Path("/proc/self/fd").iterdir()
    return sum(1 for link in links if os.path.lexists(link) and "socket:" in _target(link))


def _target(link: Path) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts what is open in /proc")
@every_provider
def test_cancelling_closes_the_stream_at_once(name: str) -> None:
    async def cancel(server: ScriptedServer) -> None:
        before = open_sockets()
        asking = asyncio.ensure_future(direct(name, server.environment()).ask(HELLO))
        assert await asyncio.to_thread(server.hanging.wait, BOUND)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(asking, BOUND)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert await asyncio.to_thread(server.left.wait, BOUND)
        assert await asyncio.to_thread(server.idle.wait, BOUND)
        assert open_sockets() == before

    with ScriptedServer([Answer("A long story", broken=Break.HANG)]) as server:
        asyncio.run(cancel(server))


def test_the_scripted_server_runs_as_a_process(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text('[{"text": "Hello.", "calls": [["look", {"at": "a"}]]}]')
    command = [sys.executable, "-m", "tests.contract.scripted_http", str(script)]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        reply = asyncio.run(direct("openai-chat:x", {"OPENAI_BASE_URL": f"{url}/v1"}).ask(HELLO))
        process.communicate(timeout=BOUND)
    assert (reply.text, reply.calls) == ("Hello.", (RequestedCall("call_1", "look", {"at": "a"}),))
    assert process.returncode == 0


def test_one_model_serves_several_event_loops_and_questions_at_once() -> None:
    with ScriptedServer([Answer("Yes.")] * 6) as server:
        model = direct(NAMES[1], server.environment())

        async def thrice() -> list[Reply]:
            return list(await asyncio.gather(*(model.ask(HELLO) for _ in range(3))))

        replies = asyncio.run(thrice()) + asyncio.run(thrice())
    assert [reply.text for reply in replies] == ["Yes."] * 6


# --- choosing ---------------------------------------------------------------------------------------------


def test_the_environment_given_is_the_one_that_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-machine")
    with ScriptedServer([Answer("Here.")]) as server:
        assert asked(server, "openai-chat:gpt-x").text == "Here."
    assert server.asked[0].headers["authorization"] == f"Bearer {SECRET}"


def test_an_own_server_needs_no_key() -> None:
    with ScriptedServer([Answer("Here.")] * 2) as server:
        for name, variable in (("openai-chat:x", "OPENAI_BASE_URL"), ("ollama:x", "OLLAMA_BASE_URL")):
            model = direct(name, {variable: f"{server.url}/v1"})
            assert asyncio.run(model.ask(HELLO)).text == "Here."


def test_ollama_is_found_by_the_address_its_own_tools_use() -> None:
    with ScriptedServer([Answer("Here.")]) as server:
        assert asyncio.run(direct("ollama:x", {"OLLAMA_BASE_URL": server.url}).ask(HELLO)).text == "Here."


@pytest.mark.parametrize("name", ["gpt-x", "acme:gpt-x", "openai:", "", ":x"])
def test_a_name_that_leads_nowhere_is_told_what_there_is(name: str) -> None:
    with pytest.raises(ConfigError, match=r"anthropic:MODEL, openai:MODEL, .*rehearsal:FILE"):
        model_named(name, {})


def test_a_model_file_is_refused_with_the_servers_that_can_run_it() -> None:
    with pytest.raises(ConfigError, match=r"Ollama and use ollama:NAME, .* openai-chat:NAME with OPENAI_BASE_URL"):
        model_named("local:tiny.gguf", {})


@pytest.mark.parametrize("url", ["localhost:80", "ftp://host/", "http://", "http://host:x/", "http://[::1/"])
def test_an_address_that_is_none_is_told_by_its_variable(url: str) -> None:
    with pytest.raises(ConfigError, match="OPENAI_BASE_URL"):
        model_named("openai:x", {"OPENAI_BASE_URL": url})


def test_a_rehearsal_is_chosen_by_its_file(tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text("- Hello.\n")
    model = model_named(f"rehearsal:{script}", {})
    assert asyncio.run(model.ask(HELLO)).text == "Hello."


@pytest.mark.spec("X4")
def test_a_rehearsal_can_have_prices(tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text("prices: {input: 3, output: 15}\nreplies: [{text: Hello., tokens: 1000}]\n")
    model = model_named(f"rehearsal:{script}", {})
    assert model.info.cost(Usage(1_000_000, 100_000)) == pytest.approx(4.5)
    for wrong in ("[3, 15]", "{input: 3}", "{input: 3, output: -1}", "{input: 3, output: x}"):
        script.write_text(f"prices: {wrong}\nreplies: [Hello.]\n")
        with pytest.raises(ConfigError, match="prices: must be"):
            model_named(f"rehearsal:{script}", {})


@pytest.mark.parametrize("name", ["anthropic:claude-sonnet-4-5", "openai:gpt-4o-mini", "openai-chat:gpt-4o-mini"])
def test_window_and_prices_are_known_for_known_models(name: str) -> None:
    info = model_named(name, WITH_KEYS).info
    assert info.context_window
    assert info.context_window >= 100_000
    assert info.cost(Usage(1_000_000, 0))


@pytest.mark.spec("T11")
@pytest.mark.parametrize("name", ["anthropic:claude-sonnet-4-5", "openai:gpt-4o", "openai-chat:gpt-5"])
def test_cached_tokens_cost_less_than_others(name: str) -> None:
    info = model_named(name, WITH_KEYS).info
    fresh, cached = info.cost(Usage(1_000_000)), info.cost(Usage(1_000_000, 0, 1_000_000))
    assert fresh
    assert cached
    assert cached <= fresh / 2


@pytest.mark.spec("T11")
def test_what_anthropic_writes_to_its_cache_costs_a_quarter_more() -> None:
    info = model_named("anthropic:claude-sonnet-4-5", WITH_KEYS).info
    assert info.cost(Usage(1_000_000, 0, 0, 1_000_000)) == pytest.approx(1.25 * (info.cost(Usage(1_000_000)) or 0))


@pytest.mark.spec("T11")
def test_the_cost_of_a_request_adds_fresh_cached_and_written_tokens() -> None:
    info = ModelInfo(None, 10.0, 20.0, 1.0, 12.5)
    assert info.cost(Usage(1_000_000, 100_000, 600_000, 300_000)) == pytest.approx(1 + 2 + 0.6 + 3.75)


@pytest.mark.parametrize("name", ["anthropic:nobody", "openai:nobody", "ollama:llama3"])
def test_nothing_is_made_up_about_unknown_models(name: str) -> None:
    info = model_named(name, WITH_KEYS).info
    assert (info.context_window, info.input_price, info.output_price) == (None, None, None)


def test_choosing_imports_nothing_heavy() -> None:
    program = "import sys; from punchlist.agent.model_resolver import model_named; "
    program += "model_named('openai:x', {'OPENAI_API_KEY': 'x'}); "
    program += "sys.exit(bool({'pydantic_ai', 'httpx2', 'openai', 'anthropic', 'genai_prices'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=BOUND).returncode == 0


@pytest.mark.parametrize(
    ("environment", "named"),
    [
        ({"ANTHROPIC_API_KEY": "k"}, "anthropic:"),
        ({"OPENAI_API_KEY": "k"}, "openai:"),
        ({"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}, "anthropic:"),
        ({"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, None),
        ({"ANTHROPIC_API_KEY": " "}, None),
        ({}, None),
    ],
)
def test_a_key_is_enough_to_have_a_model(environment: dict[str, str], named: str | None) -> None:
    found = default_model(environment)
    assert found is None if named is None else str(found).startswith(named)
