"""Your own functions as tools, with approval by a person: `python examples/own_tools.py`."""

import asyncio

from punchlist import ApprovalOutcome, CallStatus, CoreToolScheduler, Effect, Listeners, ToolCallRequest, tool


@tool(effect=Effect.READ)
async def price(city: str) -> int:
    """The price of a ticket to a city."""
    return {"Lisbon": 120, "Oslo": 90}[city]


@tool
def book(city: str, seats: int = 1) -> str:
    """Book seats. This costs money, so it needs approval."""
    return f"{seats} booked to {city}"


async def main() -> None:
    listeners = Listeners(on_tool_calls_update=lambda calls: print(calls[0].request.tool, calls[0].status))
    scheduler = CoreToolScheduler([price, book], listeners=listeners)
    batch = scheduler.schedule([ToolCallRequest("price", {"city": "Oslo"}), ToolCallRequest("book", {"city": "Oslo"})])
    _, booking = await batch.settled()  # the price is known; the booking waits for approval
    changed = {"arguments": {"city": "Oslo", "seats": 2}}
    await scheduler.handle_confirmation_response(booking.request.call_id, None, ApprovalOutcome.MODIFY, payload=changed)
    print([call.result.text for call in await batch if call.status is CallStatus.SUCCESS])


asyncio.run(main())
