"""The shipped controls in plain Python: slow, obviously right, and the oracle of the agreement tests (T13).

It answers *any* JSON document as Rego would: a missing field, a field of another type and a test that is false are the
same thing, namely no proof. So each control is its objection and the proofs that lift it, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from interlock.errors import EngineUnavailable
from interlock.model.answers import ControlText
from interlock.model.canonical import pack, unpack

_MISSING: Final = object()


def at(value: Any, path: str) -> Any:
    """The value at a dotted path, or a marker that equals nothing."""
    for key in path.split("."):
        if not isinstance(value, dict) or key not in value:
            return _MISSING
        value = value[key]
    return value


def same(value: Any, wanted: str | bool | list[Any]) -> bool:
    """Rego's ``==`` for the constants that the controls compare with: no type is ever converted."""
    return type(value) is type(wanted) and bool(value == wanted)


Control = Callable[[Any, Mapping[str, Any]], dict[str, Any]]


def _objection(verdict: str, *remedies: str) -> dict[str, Any]:
    return {"verdict": verdict, "remedies": list(remedies)} if remedies else {"verdict": verdict}


ALLOW: Final = {"verdict": "allow"}


def trifecta(document: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    lifted = (
        same(at(document, "tool.egress"), "none")
        or same(at(document, "tool.egress"), "blind")
        or same(at(document, "forecast.untrusted"), [])
        or same(at(document, "forecast.private"), [])
        or same(at(document, "call.grounded"), True)
    )
    if lifted:
        return ALLOW
    verdict = "ask" if same(at(settings, "trifecta"), "ask") else "deny"
    return _objection(verdict, "name_destination", "new_conversation")


def leak_guard(document: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    lifted = (
        same(at(settings, "leak_guard"), "off")
        or (same(at(document, "tool.egress"), "none") and same(at(document, "tool.opens"), []))
        or same(at(document, "forecast.private"), [])
    )
    if lifted:
        return ALLOW
    return _objection("ask" if same(at(settings, "leak_guard"), "ask") else "deny", "new_conversation")


def open_channel(document: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    lifted = (
        same(at(document, "forecast.egress"), [])
        or same(at(document, "forecast.untrusted"), [])
        or same(at(document, "forecast.private"), [])
        or (
            same(at(document, "call.labels.private"), [])
            and same(at(document, "tool.opens"), [])
            and same(at(document, "tool.effect"), "none")
        )
    )
    if lifted:
        return ALLOW
    return _objection("ask" if same(at(settings, "open_channel"), "ask") else "deny", "new_conversation")


def credential_egress(document: Any, _settings: Mapping[str, Any]) -> dict[str, Any]:
    lifted = (same(at(document, "tool.egress"), "none") and same(at(document, "tool.opens"), [])) or same(
        at(document, "forecast.credentials"), False
    )
    return ALLOW if lifted else _objection("ask", "new_conversation")


def control_plane(document: Any, _settings: Mapping[str, Any]) -> dict[str, Any]:
    effect = at(document, "tool.effect")
    if same(at(document, "call.control"), "none") and any(
        same(effect, one) for one in ("none", "add", "write", "destroy")
    ):
        return ALLOW
    asked = (
        same(at(document, "call.control"), "agent")
        and same(effect, "control")
        and same(at(document, "forecast.untrusted"), [])
    )
    return _objection("ask" if asked else "deny")


def destructive(document: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    lifted = (
        same(at(settings, "destructive"), "off")
        or same(at(document, "tool.effect"), "none")
        or same(at(document, "tool.effect"), "add")
        or same(at(document, "forecast.untrusted"), [])
        or same(at(document, "call.grounded"), True)
        or same(at(document, "call.vouched.targets"), True)
    )
    return ALLOW if lifted else _objection("ask", "name_target")


def talks_back(document: Any, _settings: Mapping[str, Any]) -> dict[str, Any]:
    lifted = (
        same(at(document, "tool.egress"), "none")
        or same(at(document, "tool.egress"), "blind")
        or same(at(document, "forecast.private"), [])
        or _all_silent(at(document, "call.destinations"))
    )
    return ALLOW if lifted else _objection("ask", "new_conversation")


def _all_silent(destinations: Any) -> bool:
    """A list of at least one, and none of them talks back."""
    return (
        isinstance(destinations, list)
        and bool(destinations)
        and all(same(at(one, "talks_back"), False) for one in destinations)
    )


def unclassified_arguments(document: Any, _settings: Mapping[str, Any]) -> dict[str, Any]:
    lifted = (
        same(at(document, "tool.egress"), "none")
        or same(at(document, "call.unclassified"), [])
        or same(at(document, "forecast.untrusted"), [])
    )
    return ALLOW if lifted else _objection("ask", "drop_argument")


def unknown_tool(document: Any, _settings: Mapping[str, Any]) -> dict[str, Any]:
    return ALLOW if same(at(document, "tool.known"), True) else _objection("ask", "declare_tool")


def _tuned(settings: Mapping[str, Any], code: str, *remedies: str) -> dict[str, Any]:
    """The objection of a control whose verdict the operator chooses."""
    return _objection("ask" if same(at(settings, code), "ask") else "deny", *remedies)


def _sends_nothing(document: Any) -> bool:
    return same(at(document, "tool.egress"), "none") and same(at(document, "tool.opens"), [])


def steered_destination(document: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    lifted = (
        same(at(settings, "steered_destination"), "off")
        or same(at(document, "tool.egress"), "none")
        or same(at(document, "tool.egress"), "blind")
        or same(at(document, "forecast.untrusted"), [])
        or same(at(document, "call.vouched.receivers"), True)
    )
    return ALLOW if lifted else _tuned(settings, "steered_destination", "name_destination")


def steered_object(document: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    lifted = (
        same(at(settings, "steered_object"), "off")
        or same(at(document, "forecast.untrusted"), [])
        or same(at(document, "call.vouched.objects"), True)
    )
    return ALLOW if lifted else _tuned(settings, "steered_object", "name_target")


def steered_party(document: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    lifted = (
        same(at(settings, "steered_party"), "off")
        or same(at(document, "forecast.untrusted"), [])
        or same(at(document, "call.vouched.parties"), True)
    )
    return ALLOW if lifted else _tuned(settings, "steered_party", "name_target")


def steered_link(document: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    lifted = (
        same(at(settings, "steered_link"), "off")
        or (same(at(document, "tool.egress"), "none") and same(at(document, "tool.effect"), "none"))
        or same(at(document, "forecast.untrusted"), [])
        or same(at(document, "call.vouched.links"), True)
    )
    return ALLOW if lifted else _tuned(settings, "steered_link", "name_destination")


def self_only(document: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    lifted = (
        same(at(settings, "self_only"), "off")
        or same(at(document, "tool.audience"), "")
        or same(at(document, "tool.audience"), "closed")
        or same(at(document, "forecast.untrusted"), [])
        or (same(at(document, "call.vouched.parties"), True) and same(at(document, "call.vouched.links"), True))
    )
    return ALLOW if lifted else _tuned(settings, "self_only", "name_target")


def split_exfiltration(document: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    lifted = (
        same(at(settings, "split_exfiltration"), "off")
        or same(at(document, "tool.egress"), "none")
        or same(at(document, "tool.egress"), "blind")
        or same(at(document, "forecast.private"), [])
        or same(at(document, "call.grounded"), True)
        or same(at(document, "call.drip"), False)
    )
    return ALLOW if lifted else _tuned(settings, "split_exfiltration", "name_destination", "new_conversation")


def secret_read(document: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    lifted = (
        same(at(settings, "secret_read"), "off")
        or same(at(document, "forecast.untrusted"), [])
        or same(at(document, "call.credentials"), False)
    )
    return ALLOW if lifted else _tuned(settings, "secret_read", "new_conversation")


def secret_egress(document: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    lifted = (
        _sends_nothing(document)
        or same(at(document, "forecast.untrusted"), [])
        or same(at(document, "forecast.credentials"), False)
    )
    return ALLOW if lifted else _tuned(settings, "secret_egress", "new_conversation")


def lockdown(document: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    lifted = (
        same(at(settings, "lockdown"), "off")
        or same(at(document, "forecast.untrusted"), [])
        or (_sends_nothing(document) and same(at(document, "tool.effect"), "none"))
    )
    return ALLOW if lifted else _tuned(settings, "lockdown", "new_conversation")


CONTROLS: Final[Mapping[str, Control]] = {
    "control_plane": control_plane,
    "credential_egress": credential_egress,
    "destructive": destructive,
    "leak_guard": leak_guard,
    "lockdown": lockdown,
    "open_channel": open_channel,
    "secret_egress": secret_egress,
    "secret_read": secret_read,
    "self_only": self_only,
    "split_exfiltration": split_exfiltration,
    "steered_destination": steered_destination,
    "steered_link": steered_link,
    "steered_object": steered_object,
    "steered_party": steered_party,
    "talks_back": talks_back,
    "trifecta": trifecta,
    "unclassified_arguments": unclassified_arguments,
    "unknown_tool": unknown_tool,
}


class ReferenceEngine:
    """The shipped controls without Rego. For tests: it knows no control that a user added."""

    name: Final = "reference"
    looks_at = None

    def __init__(
        self, settings: Mapping[str, Any], texts: Mapping[str, ControlText], revision: str = "reference"
    ) -> None:
        self._settings = dict(settings)
        self.controls: Mapping[str, ControlText] = {code: texts[code] for code in CONTROLS}
        self.revision = revision

    def evaluate(self, document: bytes) -> bytes:
        """See :meth:`interlock.ports.Engine.evaluate`."""
        try:
            value = unpack(document)
        except ValueError:
            raise EngineUnavailable("the document is no JSON") from None
        return pack({code: control(value, self._settings) for code, control in CONTROLS.items()})
