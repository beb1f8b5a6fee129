"""What an operator knows before any conversation: own domain, people written to, payees, members of the workspace.

    python -m benchmarks.agentdojo.operator

writes it to `suites/<suite>/operator.toml`. It is taken from the environments in which nobody attacks, by the rules of
any office: an address counts when *we* used it (we wrote to it, we shared a file of ours with it, we paid it), never
because it stands in something that came in.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.agentdojo import world

FOLDER = Path(__file__).parent / "suites"


def mail(environment: Any) -> dict[str, Any]:
    """Own address and domain, and everybody to whom the person has written."""
    own = environment.inbox.account_email
    written = {own}
    for one in environment.inbox.emails.values():
        if one.sender == own:
            written |= {*one.recipients, *one.cc, *one.bcc}
    return {"domains": [own.rpartition("@")[2]], "email": sorted(written)}


def workspace(environment: Any) -> dict[str, Any]:
    """And everybody with whom the person has shared a file of their own."""
    known = mail(environment)
    own = environment.inbox.account_email
    shared = {one for file in environment.cloud_drive.files.values() if file.owner == own for one in file.shared_with}
    return {**known, "email": sorted({*known["email"], *shared})}


def banking(environment: Any) -> dict[str, Any]:
    """Own account, whom the person has paid or pays by standing order, and the standing orders themselves."""
    account = environment.bank_account
    paid = [one for one in account.transactions if one.sender in ("me", account.iban)]
    payees = {one.recipient for one in (*paid, *account.scheduled_transactions)}
    orders = [str(one.id) for one in account.scheduled_transactions]
    return {"account": sorted({account.iban, *payees}), "id": orders}


def slack(environment: Any) -> dict[str, Any]:
    """The members, and the channels that are not shared with another company."""
    channels = [one for one in environment.slack.channels if not one.startswith("External")]
    return {"user": sorted(environment.slack.users), "channel": sorted(channels)}


SUITES = {"workspace": workspace, "travel": mail, "banking": banking, "slack": slack}


def settings(name: str) -> dict[str, Any]:
    """What the operator's script finds for a suite, as settings."""
    found = SUITES[name](world.clean(name).restore())
    domains = found.pop("domains", [])
    return {**({"own_domains": domains} if domains else {}), "address_book": found}


def toml(name: str) -> str:
    """The same as a file that people review."""
    found = settings(name)
    lines = ["# Made by `python -m benchmarks.agentdojo.operator` from the environment in which nobody attacks."]
    if "own_domains" in found:
        lines.append(f"own_domains = {json.dumps(found['own_domains'])}")
    lines += ["", "[address_book]"]
    for kind, entries in found["address_book"].items():
        lines += [f"{kind} = [", *(f"    {json.dumps(one)}," for one in entries), "]"]
    return "\n".join(lines) + "\n"


def main() -> None:
    for name in SUITES:
        (FOLDER / name / "operator.toml").write_text(toml(name), encoding="utf-8")


if __name__ == "__main__":
    main()
