"""Tools that carry their own declaration, and refuse to run outside of a guard.

Runs offline: ``python examples/decorated_tools.py``. No manifest file: the decorator says what a manifest would say.
"""

from __future__ import annotations

from interlock import Conversation, Interlock, MemoryJournal, NotPermitted, tool


@tool(returns=["untrusted:web"], egress="chosen", destinations={"url": "url"})
def fetch_page(url: str) -> str:
    """Fetch a web page."""
    return f"the text of {url}, by somebody whom nobody knows"


@tool(returns=["private:calendar"], egress="none")
def read_calendar(day: str) -> str:
    """Read the person's calendar."""
    return f"{day}: see the doctor"


@tool(returns=[], egress="chosen", destinations={"to": "email"}, content=["body"])
def send_email(to: str, body: str) -> str:
    """Send a mail."""
    return f"sent {len(body)} characters to {to}"


def main() -> None:
    lock = Interlock(tools=[fetch_page, read_calendar, send_email], journal=MemoryJournal())
    guard = lock.guard(Conversation.user("Read https://news.example/ferry and tell ana@corp.example when I am free."))

    with guard:  # in here the functions are called as ever, and each call passes the guard
        fetch_page(url="https://news.example/ferry")
        plans = read_calendar("Monday")
        print("typed:", send_email(to="ana@corp.example", body=plans))
        try:
            send_email(to="drop@collector.example", body=plans)
        except NotPermitted as refused:
            print("stranger:", refused.for_model)

    try:
        send_email(to="ana@corp.example", body="outside of the guard")
    except NotPermitted as refused:
        print("outside:", refused)


if __name__ == "__main__":
    main()
