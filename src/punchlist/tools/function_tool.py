"""Makes tools from typed Python functions: schema from the types, description from the docstring.

    @tool
    async def weather(city: str, days: int = 3) -> dict[str, float]:
        \"\"\"The forecast for a city.\"\"\"

A parameter annotated with `ToolContext` receives the running call (live output, its id) and is not part
of the schema. Synchronous functions run in a thread, so that a slow one does not block the event loop.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Final, overload

from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic_core import to_json

from punchlist.errors import InvalidInput
from punchlist.kernel.text import excerpt, field_path, visible_block
from punchlist.toolcalls.tool import NO_RESOURCES, Arguments, BaseTool, Effect, Resources, Schema, ToolContext

_STRICT: Final = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=False)
_PLAIN: Final = (str, int, bool, str | None, int | None, list[str], dict[str, Any], Any)

Function = Callable[..., Any]


class FunctionTool(BaseTool):
    def __init__(
        self,
        function: Function,
        *,
        name: str | None = None,
        description: str | None = None,
        effect: Effect = Effect.EXECUTE,
        time_limit: float | None = None,
        resources: Callable[..., Resources] | None = None,
        preview: Callable[..., str] | None = None,
        command: Callable[..., str] | None = None,
    ) -> None:
        self.function = function
        self.name = name or function.__name__
        self.description = description or inspect.getdoc(function) or ""
        self.effect = effect
        self.time_limit = time_limit
        self._resources = resources
        self._preview = preview
        self._command = command
        self._model, self._running = _parameters(self.name, function)
        self._names = list(self._model.model_fields)
        self._plain = all(
            field.annotation in _PLAIN and not field.metadata for field in self._model.model_fields.values()
        )
        self._asynchronous = inspect.iscoroutinefunction(function)

    @cached_property
    def input_schema(self) -> Schema:
        schema = self._model.model_json_schema()
        schema.pop("title", None)
        for field in schema.get("properties", {}).values():
            field.pop("title", None)
        return schema

    def problems(self, arguments: Arguments) -> Sequence[str]:
        try:
            self._validated(arguments)
        except ValidationError as error:
            return [
                f"{field_path(each['loc']) or 'arguments'}: {_message(each)}"
                for each in error.errors(include_url=False)
            ]
        return ()

    def _validated(self, arguments: Arguments) -> BaseModel:
        try:
            return self._model.model_validate(arguments)
        except ValidationError:
            # As JSON, which has fewer types than Python: a date is a string there.
            return self._model.model_validate_json(to_json(arguments))

    def _values(self, arguments: Arguments) -> dict[str, Any]:
        if self._plain:
            # Valid arguments have the types of the function already.
            return dict(arguments)
        model = self._validated(arguments)
        return {name: getattr(model, name) for name in self._names}

    def resources(self, arguments: Arguments) -> Resources:
        return NO_RESOURCES if self._resources is None else self._resources(**self._values(arguments))

    def preview(self, arguments: Arguments) -> str:
        if self._preview is None:
            return super().preview(arguments)
        return visible_block(self._preview(**self._values(arguments)))

    def command(self, arguments: Arguments) -> str | None:
        return None if self._command is None else self._command(**self._values(arguments))

    async def run(self, arguments: Arguments, running: ToolContext) -> Any:
        values = self._values(arguments)
        if self._running is not None:
            values[self._running] = running
        value = await (self.function(**values) if self._asynchronous else run_in_thread(self.function, values))
        return value.model_dump(mode="json") if isinstance(value, BaseModel) else value


@overload
def tool(function: Function, /) -> FunctionTool: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    effect: Effect = Effect.EXECUTE,
    time_limit: float | None = None,
    resources: Callable[..., Resources] | None = None,
    preview: Callable[..., str] | None = None,
    command: Callable[..., str] | None = None,
) -> Callable[[Function], FunctionTool]: ...
def tool(function: Function | None = None, /, **settings: Any) -> FunctionTool | Callable[[Function], FunctionTool]:
    """Make a tool from a function: `@tool`, or `@tool(effect=Effect.READ)`."""
    if function is not None:
        return FunctionTool(function)
    return lambda decorated: FunctionTool(decorated, **settings)


def _parameters(name: str, function: Function) -> tuple[type[BaseModel], str | None]:
    """A model of the parameters, and the name of the parameter that receives the `ToolContext`."""
    fields: dict[str, Any] = {}
    running: str | None = None
    signature = inspect.signature(function, eval_str=True)
    for parameter in signature.parameters.values():
        if parameter.annotation is ToolContext:
            running = parameter.name
        elif parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise InvalidInput(f"{name}: a tool takes named parameters only; {parameter} is not one.")
        elif parameter.annotation is parameter.empty:
            raise InvalidInput(
                f"{name}: parameter {parameter.name} needs a type annotation, so that the model knows what to send."
            )
        else:
            default = ... if parameter.default is parameter.empty else parameter.default
            fields[parameter.name] = (parameter.annotation, default)
    try:
        return create_model(name, __config__=_STRICT, **fields), running
    except PydanticUserError as error:
        raise InvalidInput(f"{name}: cannot become a tool ({excerpt(str(error), 300)})") from error


def _message(problem: Mapping[str, Any]) -> str:
    match problem["type"]:
        case "missing":
            return "is required"
        case "extra_forbidden":
            return "is not a parameter of this tool"
    message = str(problem["msg"])
    return message[:1].lower() + message[1:]


def run_in_thread(function: Function, values: Mapping[str, Any]) -> Awaitable[Any]:
    """Run a function in a daemon thread. A cancelled call leaves its thread running: threads cannot be stopped."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def finish(value: Any, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is None:
            done.set_result(value)
        else:
            done.set_exception(error)

    def work() -> None:
        value: Any = None
        failed: BaseException | None = None
        try:
            value = function(**values)
        except StopIteration as error:
            failed = RuntimeError(f"StopIteration: {error}")
        except BaseException as error:
            failed = error
        # The loop is closed when the program ended before the tool did.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(finish, value, failed)

    threading.Thread(target=work, name=getattr(function, "__name__", "tool"), daemon=True).start()
    return done
