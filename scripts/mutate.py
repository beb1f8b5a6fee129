"""Break the core on purpose, one line at a time, and see which test notices.

    python scripts/mutate.py                 every mutation, as a table in Markdown
    python scripts/mutate.py forecast T8     those whose name or file holds one of these words

Each mutation is made in a temporary copy, never here. A mutation that no test notices is a hole in the tests; one that
no longer applies is out of date: correct it here. Exit code 1 in both cases.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "*.pyc", "docs", "benchmarks", "dist", "build")


@dataclass(frozen=True, slots=True)
class Mutation:
    """Replace ``old``, which must stand there once, by ``new``, and run some of the tests."""

    name: str
    file: str
    old: str
    new: str
    tests: str


M, G, S, C = "interlock/model", "interlock/gate", "interlock/stores", "policies/interlock/controls"
STORES = "tests/conformance -k sqlite"
STORED = "tests/laws/test_stored_chain.py"
DOCUMENT = "tests/unit/model/test_document.py tests/laws/test_batches.py"
STATE = "tests/laws/test_state.py tests/machines"
ANSWERS = "tests/laws/test_answers.py"
ARGUMENTS = "tests/faults/test_arguments.py"
CHAIN = "tests/laws/test_chain.py"
STEPS = "tests/faults/test_nth_effect.py tests/unit/gate/test_steps.py"
FACE = "tests/faults/test_face.py"
PERMITS = "tests/unit/gate/test_permits.py"
HOLES = "tests/laws/test_holes.py"
ENGINES = "tests/agreement"
CONVERSATION = "tests/unit/gate/test_conversation.py tests/regressions tests/laws/test_forks.py"
ONE_YES = "tests/approvals/test_one_yes.py"
GRANTS = "tests/laws/test_grants.py"
SESSION = "tests/faults/test_session_file.py tests/faults/test_session_crashes.py"

MUTATIONS = [
    # --- what a document says
    Mutation(
        "own private labels left out of the forecast",
        f"{M}/document.py",
        "*setting.exposure, *one.labels, *sorted(coming)",
        "*setting.exposure, *sorted(coming)",
        DOCUMENT,
    ),
    Mutation(
        "sibling labels left out of the forecast",
        f"{M}/document.py",
        "*setting.exposure, *one.labels, *sorted(coming)",
        "*setting.exposure, *one.labels",
        "tests/laws/test_batches.py",
    ),
    Mutation(
        "only siblings that come before count",
        f"{G}/steps.py",
        "siblings = valid[:place] + valid[place + 1 :]",
        "siblings = valid[:place]",
        "tests/laws/test_batches.py",
    ),
    Mutation(
        "an empty list of destinations is grounded",
        f"{M}/document.py",
        "grounded = bool(one.destinations) and not one.unclassified",
        "grounded = not one.unclassified",
        DOCUMENT,
    ),
    Mutation(
        "unclassified arguments do not unground",
        f"{M}/document.py",
        "grounded = bool(one.destinations) and not one.unclassified",
        "grounded = bool(one.destinations)",
        DOCUMENT,
    ),
    Mutation(
        "a sending call that names nobody goes nowhere",
        f"{M}/destinations.py",
        "if not found and spec.egress is not Egress.NONE:",
        "if not found and spec.egress is Egress.BLIND:",
        "tests/unit/model/test_destinations.py",
    ),
    Mutation(
        "one grounded destination is enough",
        f"{M}/document.py",
        "grounded = grounded and setting.grounds(destination, origin)",
        "grounded = origin in setting.grounding",
        DOCUMENT,
    ),
    Mutation(
        "unknown private data are no credentials",
        f"{M}/document.py",
        'not {"credentials", "unknown"}.isdisjoint',
        'not {"credentials"}.isdisjoint',
        DOCUMENT,
    ),
    Mutation(
        "an unknown destination does not talk back",
        f"{M}/document.py",
        "or (one.kind is Kind.UNKNOWN and bool(self.voices))",
        "or False",
        DOCUMENT,
    ),
    Mutation(
        "a pasted text counts as typed",
        f"{G}/conversation.py",
        "self._pasted(text) if pasted else self._typed(text)",
        "self._typed(text)",
        "tests/unit/model/test_origins.py tests/laws/test_taint.py tests/machines",
    ),
    Mutation(
        "an unknown destination can be vouched for",
        f"{M}/origins.py",
        "if kind is Kind.UNKNOWN:",
        "if False:",
        "tests/unit/model/test_origins.py",
    ),
    Mutation(
        "a stranger's words are not written down",
        f"{M}/state.py",
        "index = hearing(index, entry.words)",
        "pass",
        "tests/laws/test_provenance.py",
    ),
    Mutation(
        "what the conversation wrote itself may come back as trusted",
        f"{M}/provenance.py",
        "    own, heard = _with_words(index.said, words), _with_words(index.heard, words)",
        "    own, heard = index.said, index.heard",
        "tests/laws/test_provenance.py",
    ),
    Mutation(
        "a forgotten name grounds the next record that bears it",
        f"{M}/provenance.py",
        "forgotten = holder is None and _bit(index.heard, bit)",
        "forgotten = False",
        "tests/laws/test_provenance.py",
    ),
    Mutation(
        "two records of one name are both the one that was meant",
        f"{M}/origins.py",
        "index.holder(claim_mark(noun, name)) == Claim(own)",
        "index.holder(claim_mark(noun, name)) is not None",
        "tests/unit/model/test_fields.py",
    ),
    Mutation(
        "a typed place is a grounded receiver",
        f"{M}/document.py",
        "typed = frozenset[Digest]() if one.kind is Kind.ID else self.typed",
        "typed = self.typed",
        "tests/unit/test_replay.py",
    ),
    Mutation(
        "a field that nobody named does not taint",
        f"{M}/fields.py",
        '_SILENT: Final = FieldSpec("", Trust.TOOL)',
        '_SILENT: Final = FieldSpec("", Trust.PRIVATE)',
        "tests/unit/model/test_fields.py",
    ),
    Mutation(
        "a clause holds of nothing at all",
        f"{M}/narrowing.py",
        "if not values or len(values) > MAX_VALUES:",
        "if len(values) > MAX_VALUES:",
        "tests/unit/model/test_narrowing.py",
    ),
    Mutation(
        "links in a payload are not looked for",
        f"{M}/links.py",
        "for one in in_text(text, path):",
        "for one in ():",
        "tests/unit/model/test_links.py",
    ),
    Mutation(
        "a link hides the file that it leads to",
        f"{G}/steps.py",
        "paths=tuple(sorted({*one.paths, *resolved}))",
        "paths=one.paths",
        "tests/unit/model/test_control_plane.py",
    ),
    # --- what a conversation has seen
    Mutation(
        "in-flight labels left out of the exposure",
        f"{M}/state.py",
        "            if flight.labels:\n",
        "            if False:\n",
        STATE,
    ),
    Mutation(
        "results are never external",
        f"{M}/state.py",
        "*(flight.untrusted if external else ()), *labels",
        "*labels",
        "tests/laws/test_state.py",
    ),
    Mutation(
        "external=False ignored",
        f"{G}/steps.py",
        "external = result.external is not False",
        "external = True",
        "tests/unit/gate/test_steps.py tests/machines",
    ),
    Mutation(
        "a cancelled call was not external",
        f"{M}/state.py",
        "entry.external or entry.doubt",
        "entry.external",
        "tests/laws/test_state.py",
    ),
    Mutation(
        "more calls in flight than are remembered are forgotten",
        f"{M}/state.py",
        "changed = replace(_loud(state, lost), taint=_joined(state.taint, lost.labels, source))",
        "changed = state",
        "tests/laws/test_state.py",
    ),
    Mutation(
        "a second decision under one number replaces the first",
        f"{M}/state.py",
        "if entry.number in in_flight or len(in_flight) >= MAX_IN_FLIGHT:",
        "if len(in_flight) >= MAX_IN_FLIGHT:",
        "tests/laws/test_state.py tests/regressions/test_repeated_decision.py",
    ),
    Mutation(
        "a late result joins nothing",
        f"{M}/state.py",
        "taint = _joined(state.taint, labels, source)\n        deafening",
        "taint = state.taint\n        deafening",
        "tests/laws/test_state.py",
    ),
    Mutation(
        "admitted content does not bump the version",
        f"{M}/state.py",
        "replace(_doubted(heard, entry.doubts), version=state.version + 1, taint=taint)",
        "replace(_doubted(heard, entry.doubts), version=state.version, taint=taint)",
        "tests/laws/test_state.py",
    ),
    Mutation(
        "calls that were only asked add their labels",
        f"{M}/state.py",
        'if entry.verdict != "allow":',
        'if entry.verdict == "deny":',
        "tests/laws/test_state.py",
    ),
    Mutation(
        "too many voices are forgotten",
        f"{M}/state.py",
        "replace(state, deafening=True) if len(together) > MAX_VOICES",
        "state if len(together) > MAX_VOICES",
        "tests/laws/test_state.py",
    ),
    Mutation(
        "join keeps its right side",
        f"{M}/labels.py",
        "return Taint(self.items + other.items)",
        "return other",
        "tests/laws/test_taint.py",
    ),
    Mutation(
        "a later source replaces the first",
        f"{M}/labels.py",
        "source < known",
        "source > known",
        "tests/laws/test_taint.py",
    ),
    Mutation(
        "the unknown of a leg answers for itself only",
        f"{M}/labels.py",
        "known in (wanted, top)",
        "known == wanted",
        "tests/laws/test_taint.py",
    ),
    Mutation(
        "a second journal is accepted",
        f"{G}/conversation.py",
        "elif self._journal != journal and self._keeper is None:",
        "elif False:",
        "tests/unit/gate/test_conversation.py",
    ),
    # --- answers and decisions
    Mutation(
        "default allow in combined()",
        f"{M}/decisions.py",
        "return Verdict.DENY, (nobody, *objections)",
        "return Verdict.ALLOW, objections",
        ANSWERS,
    ),
    Mutation(
        "the mildest answer wins",
        f"{M}/decisions.py",
        "(-reason.verdict.strictness, reason.code)",
        "(reason.verdict.strictness, reason.code)",
        ANSWERS,
    ),
    Mutation("a silent control is passed over", f"{M}/answers.py", "    if silent:\n", "    if False:\n", ANSWERS),
    Mutation(
        "an unknown key in an answer is accepted",
        f"{M}/answers.py",
        'if not value.keys() <= {"verdict", "remedies"}:',
        "if False:",
        ANSWERS,
    ),
    Mutation(
        "a repeated key in an answer is accepted",
        f"{M}/canonical.py",
        "        if key in found:\n",
        "        if False:\n",
        f"{ANSWERS} {ARGUMENTS}",
    ),
    Mutation(
        "ALLOW on error",
        f"{G}/steps.py",
        "verdict, reasons = Verdict.DENY, (failure(ENGINE_ERROR, problem),)",
        "verdict, reasons = Verdict.ALLOW, ()",
        STEPS,
    ),
    Mutation(
        "schema check dropped",
        f"{G}/steps.py",
        "        check_document(document)  # before any engine sees it (T6)\n",
        "",
        HOLES,
    ),
    # --- calls
    Mutation(
        "lookalike check dropped",
        f"{M}/calls.py",
        "    if double is not None:\n",
        "    if False:\n",
        "tests/laws/test_undeclared.py",
    ),
    Mutation(
        "digest without domain",
        f"{M}/digests.py",
        'hashlib.sha256(f"interlock/{kind}/v1\\0".encode())',
        "hashlib.sha256()",
        CHAIN,
    ),
    Mutation(
        "the digest of a call leaves out its server",
        f"{M}/calls.py",
        'f"{tool.server}\\0{tool.name}\\0"',
        'f"{tool.name}\\0"',
        "tests/unit/model/test_calls.py",
    ),
    Mutation("NUL in text", f"{M}/canonical.py", 'if "\\0" in text:', "if False:", ARGUMENTS),
    Mutation("NaN and infinities", f"{M}/canonical.py", "if value != value or value in", "if value in", ARGUMENTS),
    Mutation(
        "integers beyond 2**53",
        f"{M}/canonical.py",
        "if not -MAX_INTEGER <= value <= MAX_INTEGER:",
        "if not -(10**18) <= value <= 10**18:",
        ARGUMENTS,
    ),
    Mutation("65 levels", f"{M}/canonical.py", "if depth >= MAX_DEPTH:", "if depth > MAX_DEPTH:", ARGUMENTS),
    Mutation(
        "keys that are no text",
        f"{M}/canonical.py",
        "                if type(key) is not str:\n",
        "                if False:\n",
        ARGUMENTS,
    ),
    Mutation(
        "one byte more than 1 MiB",
        f"{M}/canonical.py",
        "MAX_BYTES: Final = 1 << 20",
        "MAX_BYTES: Final = (1 << 20) + 1",
        ARGUMENTS,
    ),
    Mutation(
        "tools may keep silent about what they return",
        f"{M}/manifest_file.py",
        "    returns: list[str]\n",
        "    returns: list[str] = []\n",
        "tests/laws/test_undeclared.py",
    ),
    Mutation(
        "an undeclared tool is known",
        f"{M}/tools.py",
        "known=False,",
        "known=True,",
        "tests/laws/test_undeclared.py",
    ),
    Mutation(
        "blind for everybody",
        f"{M}/manifest_entries.py",
        'if egress is Egress.BLIND and (roles["destinations"] or entry.audience != "closed"):',
        'if egress is Egress.BLIND and roles["destinations"]:',
        "tests/unit/model/test_manifest.py",
    ),
    Mutation(
        "protected files are compared with regard to case",
        f"{M}/control_plane.py",
        "posixpath.normpath(plain.casefold())",
        "posixpath.normpath(plain)",
        "tests/unit/model/test_control_plane.py",
    ),
    # --- the path of a call
    Mutation(
        "compare-and-set dropped in the journal",
        "interlock/stores/memory.py",
        "if expected is not None and record.state.version != expected:",
        "if False:",
        f"{STATE} {FACE}",
    ),
    Mutation(
        "compare-and-set not asked for",
        f"{G}/steps.py",
        "yield Append(conversation, entries, state.version, _pages(decided))",
        "yield Append(conversation, entries, None, _pages(decided))",
        "tests/machines",
    ),
    Mutation(
        "a lost race is not decided anew",
        f"{G}/steps.py",
        "            continue  # the labels changed",
        "            pass  # the labels changed",
        STEPS,
    ),
    Mutation(
        "executing before recording",
        f"{G}/steps.py",
        "            yield Append(conversation, entries, state.version, _pages(decided))\n",
        "            pass\n",
        STEPS,
    ),
    Mutation("a preview records", f"{G}/steps.py", "        if not record:\n", "        if False:\n", STEPS),
    Mutation(
        "Bug swallowed while deciding",
        f"{G}/steps.py",
        "    except Bug:\n        raise\n    except Exception as error:  # an engine's silence",
        "    except Exception as error:  # an engine's silence",
        STEPS,
    ),
    Mutation(
        "a second result is shown",
        f"{G}/steps.py",
        "if flight is None or flight.call != allowed.call.digest:",
        "if False:",
        "tests/machines",
    ),
    Mutation(
        "a result that is not on record is shown",
        f"{G}/steps.py",
        "    except Exception as error:  # not on record: the content must not reach the model\n"
        "        return _withheld(outcome, result, error)\n",
        "    except Exception:\n        flight = allowed\n        object.__setattr__(allowed, 'call', allowed.call)\n"
        "        return replace(outcome, result=result.content, for_model=text)\n",
        STEPS,
    ),
    Mutation(
        "a call that was interrupted leaves no entry",
        f"{G}/steps.py",
        "        yield from _in_doubt(conversation, allowed, error)\n",
        "",
        f"{STEPS} {FACE}",
    ),
    Mutation(
        "voices of calls in flight are not heard",
        f"{M}/state.py",
        "voices = self.voices.union(*(flight.voices for flight in asked)) if asked else self.voices",
        "voices = self.voices",
        "tests/regressions/test_voices_in_flight.py",
    ),
    Mutation(
        "permit reusable",
        f"{G}/permits.py",
        "(PermitState.ENTERED, PermitInput.FINISH): PermitState.SPENT",
        "(PermitState.ENTERED, PermitInput.FINISH): PermitState.ISSUED",
        PERMITS,
    ),
    Mutation(
        "a permit opens twice",
        f"{G}/permits.py",
        "(PermitState.RUNNING, PermitInput.ENTER): PermitState.ENTERED",
        "(PermitState.RUNNING, PermitInput.ENTER): PermitState.RUNNING",
        f"{PERMITS} {FACE}",
    ),
    Mutation(
        "the digest is not checked at execution",
        f"{G}/permits.py",
        "    if not same(permit.allowed.call):\n",
        "    if False:\n",
        PERMITS,
    ),
    Mutation(
        "the door asks for the name only",
        f"{M}/calls.py",
        "return frozen.digest == call_digest(tool, canonical(dict(arguments)))",
        "return frozen.tool == tool",
        PERMITS,
    ),
    Mutation(
        "a port may answer anything",
        f"{G}/drivers.py",
        "    raise _translated(effect, TypeError())\n",
        "    return reply\n",
        "tests/laws/test_answers.py tests/regressions/test_coroutine_ports.py",
    ),
    Mutation(
        "the async driver does not throw back what a port raised",
        f"{G}/drivers.py",
        "                    reply = _checked(effect, reply)\n            except BaseException as error:\n"
        "                effect = steps.throw(error)\n",
        "                    reply = _checked(effect, reply)\n            except BaseException:\n"
        "                raise\n",
        "tests/laws/test_drivers.py",
    ),
    # --- engines and remembered answers
    Mutation(
        "the engine object is kept after an error",
        "interlock/policy/embedded.py",
        "engine = engines.pop(self.revision, None)",
        "engine = engines.get(self.revision)",
        FACE,
    ),
    Mutation(
        "engines are shared between threads",
        "interlock/policy/embedded.py",
        "_LOCAL = threading.local()",
        "from types import SimpleNamespace\n_LOCAL = SimpleNamespace()",
        FACE,
    ),
    Mutation(
        "a missing key looks like null",
        f"{M}/look.py",
        'return ["\\x00missing", ',
        "return None and [",
        "tests/laws/test_look.py",
    ),
    Mutation(
        "brackets in Rego are not looked at",
        "interlock/policy/rego_ast.py",
        'if kind in ("Var", "RefDot", "RefBrack"):',
        'if kind in ("Var", "RefDot"):',
        "tests/laws/test_look.py",
    ),
    Mutation(
        "the last remembered answer answers everything",
        f"{G}/drivers.py",
        "known = self.remembered.get(look)",
        "known = next(iter(self.remembered.values()), None)",
        "tests/laws/test_look.py",
    ),
    # --- the chain
    Mutation(
        "a link leaves out the one before it",
        f"{M}/chain.py",
        "(sequence, previous.encode(), body)",
        '(sequence, b"", body)',
        CHAIN,
    ),
    Mutation(
        "a link leaves out its place",
        f"{M}/chain.py",
        "(sequence, previous.encode(), body)",
        "(0, previous.encode(), body)",
        CHAIN,
    ),
    Mutation(
        "the head is not compared",
        f"{M}/chain.py",
        "if place == held.sequence and entry.digest != held.digest:",
        "if False:",
        CHAIN,
    ),
    Mutation("a cut tail is not found", f"{M}/chain.py", "if len(entries) < held.sequence:", "if False:", CHAIN),
    Mutation(
        "a chain may go on after its head",
        f"{M}/chain.py",
        "        if place > held.sequence:\n",
        "        if False:\n",
        CHAIN,
    ),
    Mutation(
        "the key of a head is not checked",
        f"{M}/chain.py",
        "if not hmac.compare_digest(",
        "if False and not hmac.compare_digest(",
        CHAIN,
    ),
    Mutation(
        "entries are read in any form",
        f"{M}/entries.py",
        "    if encode(entry) != body:\n",
        "    if False:\n",
        CHAIN,
    ),
    # --- what the model is told, and what is remembered of a result
    Mutation(
        "an outcome carries only its own labels",
        f"{G}/steps.py",
        "labels = tuple(sorted({*spec.private, *spec.opens, *declared, *extra}))",
        "labels = extra",
        "tests/machines",
    ),
    Mutation(
        "an exception of a tool was not external",
        f"{G}/steps.py",
        "return Failed(at, allowed.number, external=True,",
        "return Failed(at, allowed.number, external=False,",
        STEPS,
    ),
    Mutation(
        "a refused round allows",
        f"{G}/steps.py",
        "decision = Decision(Verdict.DENY, (reason,), revision=rules.revision",
        "decision = Decision(Verdict.ALLOW, (), revision=rules.revision",
        STEPS,
    ),
    Mutation(
        "Bug swallowed by a round",
        f"{G}/steps.py",
        "    except Bug:\n        raise\n    except Exception as error:  # fail closed",
        "    except Exception as error:  # fail closed",
        STEPS,
    ),
    Mutation(
        "the interruption of a tool is lost when the journal is gone",
        f"{G}/steps.py",
        "    except Exception:\n        pass  # still in flight",
        "    except ZeroDivisionError:\n        pass  # still in flight",
        STEPS,
    ),
    Mutation(
        "an id that was given is given away",
        f"{G}/steps.py",
        "_free_id(place, taken | given)",
        "_free_id(place, taken)",
        f"{ARGUMENTS} tests/regressions/test_ids_of_a_round.py",
    ),
    Mutation(
        "a failure quotes the exception",
        f"{M}/results.py",
        "Nothing of its message is shown here.",
        "{error}",
        "tests/unit/model/test_results.py",
    ),
    Mutation(
        "admit takes content without a label",
        f"{G}/guard.py",
        "        if not parsed:\n",
        "        if False:\n",
        "tests/unit/gate/test_guard.py",
    ),
    Mutation(
        "text is shown before it is on record",
        f"{G}/conversation.py",
        "        self.record(self._pasted(text) if pasted else self._typed(text))\n"
        "        with self._lock:\n"
        "            self._transcript = self._transcript.said(text, self._cover())\n",
        "        self._transcript = self._transcript.said(text, self._cover())\n"
        "        self.record(self._pasted(text) if pasted else self._typed(text))\n",
        "tests/unit/gate/test_conversation.py",
    ),
    Mutation(
        "arguments go into the journal",
        f"{G}/steps.py",
        "call_id=proposal.call_id,",
        "call_id=proposal.call_id + one.call.arguments.decode(),",
        "tests/unit/model/test_entries.py",
    ),
    Mutation(
        "a URL's user part is passed over",
        f"{M}/destinations.py",
        "_AUTHORITY.fullmatch(plain.netloc)",
        "_AUTHORITY.search(plain.netloc)",
        "tests/unit/model/test_destinations.py",
    ),
    Mutation(
        "two dots in a path are resolved by text",
        f"{M}/destinations.py",
        ' or ".." in text.split("/")',
        "",
        "tests/unit/model/test_destinations.py",
    ),
    Mutation(
        "the kind of a value is left out of its digest",
        f"{M}/origins.py",
        'f"{kind.value}\\0{normal}"',
        'f"{normal}"',
        "tests/unit/model/test_origins.py tests/unit/model/test_destinations.py",
    ),
    Mutation(
        "the journal's lock is dropped",
        "interlock/stores/memory.py",
        "        with LOCK:\n            record = self._records.get(conversation)",
        "        if True:\n            record = self._records.get(conversation)",
        FACE,
    ),
    # --- controls
    Mutation(
        "a control stops answering",
        "policies/interlock/entrypoint/entrypoint.rego",
        "some code, control in data.interlock.controls",
        'some code, control in data.interlock.controls; code != "leak_guard"',
        ENGINES,
    ),
    Mutation(
        "trifecta: a negation in a proof",
        f"{C}/trifecta/trifecta.rego",
        "lifted if input.call.grounded == true",
        "lifted if not input.call.grounded == false",
        f"{HOLES} tests/laws/test_monotone.py",
    ),
    Mutation(
        "destructive: an inequality in a proof",
        f"{C}/destructive/destructive.rego",
        "lifted if input.forecast.untrusted == []",
        'lifted if input.forecast.untrusted != ["web"]',
        f"{HOLES} tests/laws/test_monotone.py",
    ),
    Mutation(
        "talks_back: every without at least one",
        f"{C}/talks_back/talks_back.rego",
        "\tinput.call.destinations[0].talks_back == false\n",
        "",
        f"{HOLES} tests/laws/test_monotone.py",
    ),
    Mutation(
        "credential_egress: one constant changed",
        f"{C}/credential_egress/credential_egress.rego",
        '"verdict": "ask"',
        '"verdict": "deny"',
        ENGINES,
    ),
    Mutation(
        "open_channel: one condition of a proof dropped",
        f"{C}/open_channel/open_channel.rego",
        "\tinput.tool.opens == []\n",
        "",
        f"{ENGINES} tests/laws/test_monotone.py",
    ),
    Mutation(
        "leak_guard: a proof turned round",
        f"{C}/leak_guard/leak_guard.rego",
        "lifted if input.forecast.private == []",
        "lifted if input.forecast.private != []",
        "tests/laws/test_monotone.py",
    ),
    Mutation(
        "control_plane: asked under untrusted content too",
        f"{C}/control_plane/control_plane.rego",
        "\tinput.forecast.untrusted == []\n",
        "",
        f"{ENGINES} tests/laws/test_monotone.py",
    ),
    Mutation(
        "unclassified_arguments: number of labels instead of none",
        f"{C}/unclassified_arguments/unclassified_arguments.rego",
        "lifted if input.forecast.untrusted == []",
        "lifted if count(input.forecast.untrusted) < 2",
        "tests/laws/test_monotone.py tests/agreement",
    ),
    # --- conversations that never forget
    Mutation(
        "resuming forgets what was in flight",
        f"{M}/state.py",
        "    whole = state.exposure\n    if len(whole) > MAX_LABELS:",
        "    whole = state.taint\n    if len(whole) > MAX_LABELS:",
        STATE,
    ),
    Mutation(
        "resuming leaves no doubts",
        f"{M}/state.py",
        "        _doubted(heard, calls),\n        provenance",
        "        heard,\n        provenance",
        STATE,
    ),
    Mutation(
        "what a conversation began with is not joined",
        f"{M}/state.py",
        "taint=_noted(state.taint, entry.labels, entry.notes, source),\n        typed=",
        "taint=state.taint,\n        typed=",
        STATE,
    ),
    Mutation(
        "a joined child brings nothing",
        f"{M}/state.py",
        "taint = _noted(state.taint, entry.labels, entry.notes, Source(entry.at, 0, entry.conversation))",
        "taint = state.taint",
        STATE,
    ),
    Mutation(
        "delegated work is not in the exposure",
        f"{M}/state.py",
        "            coming += [(one, source) for one in delegation.labels]",
        "            coming += []",
        STATE,
    ),
    Mutation(
        "a fork begins without what is in flight",
        f"{M}/state.py",
        "        bounded(state.exposure),\n        tuple(sorted(state.typed))",
        "        bounded(state.taint),\n        tuple(sorted(state.typed))",
        STATE,
    ),
    Mutation(
        "beginning anew takes typed values along",
        f"{M}/state.py",
        "open_still, heard=True, doubts=doubts)",
        "open_still, tuple(state.typed), heard=True, doubts=doubts)",
        STATE,
    ),
    Mutation(
        "a failed turn takes results of a round with it",
        f"{M}/transcript.py",
        "return message.role is Role.USER and all(_typed",
        "return message.role in (Role.USER, Role.TOOL) and any(_typed",
        CONVERSATION,
    ),
    Mutation(
        "a failed turn leaves calls without a result",
        f"{M}/transcript.py",
        "messages, covers = answered(before.messages, before.covers, cover)",
        "messages, covers = before.messages, before.covers",
        CONVERSATION,
    ),
    Mutation(
        "text lands between a call and its result",
        f"{M}/transcript.py",
        "        if open_uses(self.messages):\n            raise",
        "        if not self.messages:\n            raise",
        CONVERSATION,
    ),
    Mutation(
        "what covers a message after a rewrite is guessed",
        f"{M}/transcript.py",
        "before[key] == after[key] == 1",
        "key in known",
        "tests/unit/model/test_transcript.py tests/machines",
    ),
    Mutation(
        "a rewrite may part a call from its result",
        f"{G}/conversation.py",
        "            alone = parted(old.messages, new)",
        "            alone = ()",
        CONVERSATION,
    ),
    Mutation(
        "beginning anew copies pasted text",
        f"{G}/conversation.py",
        "isinstance(block, Text) and content_digest(block.text) in state.texts",
        "isinstance(block, Text)",
        CONVERSATION,
    ),
    Mutation(
        "a late result does not reach forks",
        f"{G}/conversation.py",
        "        if self._heirs:\n            for entry in entries:",
        "        if self._heirs and not entries:\n            for entry in entries:",
        CONVERSATION,
    ),
    Mutation(
        "a late result does not reach forks of forks",
        f"{G}/conversation.py",
        "        for old in self._expects:",
        "        for old in ():",
        "tests/regressions/test_conversation_forks_of_forks.py",
    ),
    Mutation(
        "a child's surprises wait for the join",
        f"{G}/conversation.py",
        "                self._parent._from_child(self, labels, voices, anybody)\n",
        "                pass\n",
        CONVERSATION,
    ),
    Mutation(
        "what a child learns while it is joined is lost",
        f"{G}/conversation.py",
        "        self.learn(now, child.id, notes=child._notes(now))\n",
        "",
        "tests/regressions/test_conversation_join_of_a_running_child.py",
    ),
    Mutation(
        "calls that nobody knows are clean",
        f"{G}/identity.py",
        '                chosen.learn(_STRANGER, "calls that nobody knows")\n',
        "",
        "tests/cases tests/unit/gate/test_identity.py",
    ),
    # --- the session file
    Mutation(
        "a line after the head is believed to be a crash, however many there are",
        f"{S}/session_file.py",
        "if len(after) + bool(rest) > 1:",
        "if len(after) + bool(rest) > 9:",
        SESSION,
    ),
    Mutation(
        "a damaged head is overlooked",
        f"{S}/session_file.py",
        "        if not whole and not after:",
        "        if False and not after:",
        SESSION,
    ),
    Mutation(
        "labels of a line that is cut off are lost",
        f"{S}/session_file.py",
        "return missing | {one for line in after for one in labels_in(line)}",
        "return missing",
        SESSION,
    ),
    Mutation(
        "the head is not made durable",
        f"{S}/session_file.py",
        "        self._disk.sync(self._head)\n",
        "",
        SESSION,
    ),
    Mutation(
        "damage loads clean",
        f"{S}/session_file.py",
        'Resumed(at, f"damaged, {why}", EVERY_LEG)',
        'Resumed(at, f"damaged, {why}", ())',
        SESSION,
    ),
    Mutation(
        "a file is written though its name leads elsewhere",
        f"{S}/session_file.py",
        "same_file(self._descriptor, self.path) and same_file(self._head, head_of(self.path))",
        "self._place > 0",
        "tests/regressions/test_session_second_writer.py",
    ),
    Mutation(
        "a forked process writes",
        f"{S}/session_file.py",
        "        if self._pid != os.getpid():\n            raise",
        "        if self._pid == 0:\n            raise",
        "tests/faults/test_session_processes.py",
    ),
    Mutation(
        "a line is read in another form than it was written",
        f"{M}/records.py",
        "line_of(sealed) != line",
        "len(line) == 0",
        "tests/unit/model/test_records.py tests/faults/test_session_file.py",
    ),
    # --- stores
    Mutation(
        "names of conversations are compared without case",
        f"{S}/sql_store.py",
        'return self._prefix, conversation.encode("utf-8", "surrogatepass")',
        'return self._prefix, conversation.lower().encode("utf-8", "surrogatepass")',
        STORES,
    ),
    Mutation(
        "messages are read without their namespace",
        f"{S}/statements.py",
        "SELECT place, entry, slot, body, retired FROM interlock_messages WHERE namespace = ?",
        "SELECT place, entry, slot, body, retired FROM interlock_messages WHERE ? IS NOT NULL",
        STORES,
    ),
    Mutation(
        "a store does not look at the expected version",
        f"{S}/sql_store.py",
        "            if expected is not None and fold.state.version != expected:",
        "            if False:",
        STORES,
    ),
    Mutation("two turns end from one version", f"{S}/turns.py", "if turn != state.turn:", "if False:", STORES),
    Mutation(
        "the labels of the turn that lost are dropped",
        f"{S}/turns.py",
        "return Plan(tuple(facts), conflict=",
        "return Plan((), conflict=",
        STORES,
    ),
    Mutation(
        "the labels of a head are not compared",
        f"{S}/sql_store.py",
        "if fold.digest != held.digest or tuple(sorted(fold.state.exposure)) != held.labels:",
        "if fold.digest != held.digest:",
        STORED,
    ),
    Mutation(
        "a message is not held against its digest",
        f"{S}/sql_store.py",
        "if message_digest(body) != named[slot]:",
        "if False:",
        STORED,
    ),
    Mutation(
        "a checkpoint is believed without its entry",
        f"{S}/folds.py",
        "if not followed or not named or before.sequence",
        "if before.sequence",
        STORED,
    ),
    Mutation("the key of a head is not asked for", f"{S}/sql_store.py", "authentic(held, self._key)", "pass", STORED),
    Mutation(
        "a store that went back is taken as it is",
        f"{S}/sql_store.py",
        "if fold.sequence > held.sequence:",
        "if False:",
        STORED,
    ),
    Mutation(
        "a failed transaction is not undone",
        f"{S}/sqlite.py",
        "            if connection.in_transaction:",
        "            if False:",
        "tests/faults/test_store_faults.py",
    ),
    Mutation(
        "writers do not wait for each other",
        f"{S}/sqlite.py",
        'connection.execute("BEGIN IMMEDIATE")',
        'connection.execute("BEGIN")',
        STORES,
    ),
    Mutation(
        "instructions are stored",
        "interlock/conversations.py",
        "        if message.role is not Role.SYSTEM\n",
        "",
        "tests/unit/test_conversations.py",
    ),
    # --- what outlives a conversation
    Mutation(
        "fields of a tainted artifact are believed",
        f"{G}/artifact_steps.py",
        "    if not brought or not isinstance(entry, Observed):",
        "    if True:",
        "tests/regressions/test_artifacts_vouch_for_nothing.py",
    ),
    Mutation(
        "what an artifact or a memory holds is not heard",
        f"{M}/carried.py",
        'words=words if _untrusted(labels) else "",',
        'words="-",',
        "tests/regressions/test_artifacts_vouch_for_nothing.py",
    ),
    Mutation(
        "a checkpoint forgets the words that were heard",
        f"{M}/checkpoints.py",
        "value[name] = b64encode(value[name]).decode()",
        'value[name] = ""',
        "tests/regressions/test_artifacts_vouch_for_nothing.py tests/laws/test_stored_chain.py",
    ),
    Mutation(
        "memory: a recall admits nothing",
        "interlock/memory.py",
        '            conversation.take_in(fact.recalled, f"memory {fact.id}", fact.text)',
        "            pass",
        "tests/cases/test_case_021_memory_of_another_conversation.py",
    ),
    Mutation(
        "memory: recalled memory is trusted",
        "interlock/model/facts.py",
        "return self.carried.under(MEMORY)",
        "return self.carried",
        "tests/cases/test_case_021_memory_of_another_conversation.py",
    ),
    Mutation(
        "memory: a fact has the labels of its sources only",
        "interlock/memory.py",
        "return first, end, conversation.carried().join(joined(sources))",
        "return first, end, joined(sources)",
        "tests/cases/test_case_021_memory_of_another_conversation.py tests/machines/test_memory_machine.py",
    ),
    Mutation(
        "memory: a correction drops the labels before it",
        "interlock/stores/memory_facts.py",
        "carried = fact.carried.join(known[0].carried) if known else fact.carried",
        "carried = fact.carried",
        "tests/cases/test_case_021_memory_of_another_conversation.py tests/conformance/test_memory.py",
    ),
    Mutation(
        "memory: a label record that is missing is clean",
        "interlock/stores/sql_facts.py",
        "if whole else LOST",
        "if whole else Carried()",
        "tests/conformance/test_memory.py",
    ),
    Mutation(
        "memory: the seal of a fact is not looked at",
        "interlock/stores/sql_facts.py",
        "if not right or bytes(row[9]) != seal(space.decode(), fact).encode():",
        "if not right:",
        "tests/conformance/test_memory.py",
    ),
    Mutation(
        "memory: the namespace is left out of a search",
        "interlock/stores/sql_facts.py",
        '" WHERE interlock_fact_words MATCH CAST(? AS TEXT) AND f.namespace = ? ORDER',
        '" WHERE interlock_fact_words MATCH CAST(? AS TEXT) AND f.namespace <> ? ORDER',
        "tests/conformance/test_memory.py",
    ),
    Mutation(
        "memory: a revision is not compared",
        "interlock/stores/sql_facts.py",
        "            if revision != expected:",
        "            if False:",
        "tests/conformance/test_memory.py",
    ),
    Mutation(
        "memory: a mark is not looked for in the text",
        "interlock/model/quoting.py",
        "    if mark.casefold() in text.casefold():",
        "    if False:",
        "tests/laws/test_windows.py tests/unit/test_windows.py",
    ),
    Mutation(
        "memory: whatever can be read is a record",
        "interlock/model/carried.py",
        "return read if read.encode() == body else LOST",
        "return read",
        "tests/laws/test_carried.py",
    ),
    Mutation(
        "memory: a join keeps one side's heard",
        "interlock/model/carried.py",
        "self.heard and other.heard,",
        "self.heard,",
        "tests/laws/test_carried.py",
    ),
    Mutation(
        "memory: a late source does not say where from",
        "interlock/model/carried.py",
        'return f"{page} ({call})" if page else call',
        "return call",
        "tests/cases/test_case_021_memory_of_another_conversation.py",
    ),
    Mutation(
        "artifacts: written without labels",
        "interlock/gate/artifact_steps.py",
        "    if one.writes:\n        spec",
        "    if False:\n        spec",
        "tests/cases/test_case_031_file_between_two_agents.py",
    ),
    Mutation(
        "artifacts: labels are left out of the decision",
        "interlock/gate/artifact_steps.py",
        "return replace(one, carried=carried, spec=carrying(one.spec, carried))",
        "return replace(one, carried=carried)",
        "tests/cases/test_case_031_file_between_two_agents.py",
    ),
    Mutation(
        "artifacts: no second look after the call",
        "interlock/gate/artifact_steps.py",
        "    if not allowed.reads:",
        "    if True:",
        "tests/cases/test_case_031_file_between_two_agents.py",
    ),
    Mutation(
        "artifacts: only the labels of the call, not of the conversation",
        "interlock/gate/drivers.py",
        "carried.join(effect.more)",
        "effect.more",
        "tests/cases/test_case_031_file_between_two_agents.py",
    ),
    Mutation(
        "artifacts: a folder is not what is in it",
        "interlock/model/artifacts.py",
        'while (cut := normal.rfind("/", 0, cut)) > root:',
        'while (cut := normal.rfind("/", 0, cut)) > len(normal):',
        "tests/cases/test_case_031_file_between_two_agents.py tests/laws/test_carried.py",
    ),
    Mutation(
        "artifacts: a link is another file",
        "interlock/gate/artifact_steps.py",
        'keys[key(kind, text, found[0] if found else "")] = None',
        'keys[key(kind, text, "")] = None',
        "tests/cases/test_case_031_file_between_two_agents.py",
    ),
    Mutation(
        "artifacts: a record that was never begun can vouch",
        "interlock/stores/sql_artifacts.py",
        '            return "the record of artifacts was never begun"',
        '            return ""',
        "tests/cases/test_case_031_file_between_two_agents.py",
    ),
    Mutation(
        "artifacts: the chain is not verified",
        "interlock/stores/sql_artifacts.py",
        "if sequence != after + 1 or last != bytes(link):",
        "if sequence != after + 1:",
        "tests/cases/test_case_031_file_between_two_agents.py",
    ),
    Mutation(
        "parcels: the seal is not looked at",
        "interlock/model/parcels.py",
        "whole = seal == _seal(parts) and parts[1]",
        "whole = parts[1]",
        "tests/cases/test_case_165_run_that_begins_with_its_labels.py",
    ),
    Mutation(
        "parcels: a run begins clean",
        "interlock/gate/conversation.py",
        "            parcel.conversation,\n            brought.labels,",
        "            parcel.conversation,\n            (),",
        "tests/cases/test_case_165_run_that_begins_with_its_labels.py",
    ),
    Mutation(
        "windows: a cut inside a round",
        "interlock/model/windows.py",
        "        if not waiting and message.role is not Role.TOOL:",
        "        if message.role is not Role.TOOL:",
        "tests/laws/test_windows.py tests/unit/test_windows.py",
    ),
    Mutation(
        "windows: the summary before is left out",
        "interlock/model/summaries.py",
        "set() if previous is None else set(previous.labels)",
        "set()",
        "tests/laws/test_windows.py tests/unit/test_windows.py",
    ),
    Mutation(
        "windows: what nobody knows is clean",
        "interlock/model/summaries.py",
        "EVERY_LEG if cover is None else cover",
        "() if cover is None else cover",
        "tests/laws/test_windows.py tests/unit/test_windows.py",
    ),
    Mutation(
        "windows: another text is in force",
        "interlock/model/summaries.py",
        " or stored.content != known.content",
        "",
        "tests/laws/test_windows.py tests/unit/test_windows.py",
    ),
    Mutation(
        "windows: a summary joins nothing",
        "interlock/model/state.py",
        '    taint = _joined(state.taint, entry.labels, Source(entry.at, 0, "summary", entry.content))',
        "    taint = state.taint",
        "tests/laws/test_windows.py tests/laws/test_state.py",
    ),
    Mutation(
        "windows: what is required is not raised",
        "interlock/model/windows.py",
        "        if self.required:",
        "        if False:",
        "tests/laws/test_windows.py tests/unit/test_windows.py",
    ),
    Mutation(
        "windows: a pass costs nothing",
        "interlock/windows.py",
        "        budget.passes -= 1\n",
        "",
        "tests/laws/test_windows.py tests/unit/test_windows.py",
    ),
    Mutation(
        "windows: a rewrite in between is not noticed",
        "interlock/windows.py",
        "            if messages[: len(begun.prefix)] != begun.prefix:",
        "            if False:",
        "tests/laws/test_windows.py tests/unit/test_windows.py",
    ),
    # --- approvals
    Mutation(
        "a grant is never used up",
        f"{M}/grants.py",
        "replace(one, left=one.left - 1) if one.left > 1 else replace(one, left=0).took(Step.CONSUME)",
        "one",
        ONE_YES,
    ),
    Mutation(
        "a used question may be answered again",
        f"{M}/grants.py",
        "        (Status.GRANTED, Step.CONSUME): Status.USED,",
        "        (Status.GRANTED, Step.CONSUME): Status.PENDING,",
        GRANTS,
    ),
    Mutation(
        "a grant of another conversation counts",
        f"{M}/grants.py",
        "one.approved and entry.conversation == conversation and",
        "one.approved and",
        GRANTS,
    ),
    Mutation("a grant for other arguments", f"{M}/grants.py", "            and own.call == wanted.call\n", "", ONE_YES),
    Mutation(
        "a grant for another declaration of the tool",
        f"{M}/grants.py",
        "            and own.spec == wanted.spec\n",
        "",
        GRANTS,
    ),
    Mutation(
        "a grant outlives its policy", f"{M}/grants.py", "            and own.revision == wanted.revision\n", "", GRANTS
    ),
    Mutation(
        "labels that were not shown", f"{M}/grants.py", "            and wanted.labels <= own.labels\n", "", GRANTS
    ),
    Mutation(
        "controls that did not ask before", f"{M}/grants.py", "            and wanted.codes <= own.codes\n", "", GRANTS
    ),
    Mutation("a grant has no end", f"{M}/grants.py", "            and self.at <= at < self.expires\n", "", GRANTS),
    Mutation(
        "files are not part of the binding",
        f"{M}/grants.py",
        "return self.fits_but_operands(wanted, at) and self.bound.operands == wanted.operands",
        "return self.fits_but_operands(wanted, at)",
        "tests/laws/test_grants.py tests/cases/test_case_054_file_changed_after_the_yes.py",
    ),
    Mutation(
        "an expiry that a clock undoes", f"{M}/grants.py", "        if at >= one.expires:", "        if False:", ONE_YES
    ),
    Mutation(
        "new labels leave a grant alive",
        f"{M}/grants.py",
        "elif not one.bound.labels.issuperset(labels):",
        "elif False:",
        "tests/machines/test_grant_machine.py",
    ),
    Mutation(
        "a rewind leaves a grant alive",
        f"{M}/state.py",
        "            held = grants.voided(held, grants.REWOUND)",
        "            pass",
        ONE_YES,
    ),
    Mutation(
        "what ends a grant leaves the version",
        f"{M}/state.py",
        "version=max(state.version, before.version + 1))",
        "version=state.version)",
        GRANTS,
    ),
    Mutation(
        "a standing approval outlives a page",
        f"{M}/state.py",
        "over = grew or _takes_back(before, entry) or _brings_untrusted(before, entry)",
        "over = grew or _takes_back(before, entry)",
        "tests/approvals/test_standing.py",
    ),
    Mutation(
        "a standing approval answers the trifecta",
        f"{M}/standing.py",
        " or not NEVER.isdisjoint(entry.codes)",
        "",
        "tests/approvals/test_standing.py",
    ),
    Mutation(
        "a consumption that is not written",
        f"{G}/steps.py",
        "            entries += proposal.settled.before if proposal.settled is not None else ()\n",
        "",
        ONE_YES,
    ),
    Mutation(
        "the last look at files is left out",
        f"{G}/steps.py",
        "        if sorted(now) == sorted(allowed.operands):",
        "        if True:",
        "tests/cases/test_case_054_file_changed_after_the_yes.py",
    ),
    Mutation(
        "siblings in flight count against their batch",
        f"{G}/steps.py",
        "seen = _as_of(state, beside) if beside else state",
        "seen = state",
        ONE_YES,
    ),
    Mutation(
        "a doubt is not said when the policy asks anyway",
        f"{G}/steps.py",
        "    if decision.verdict is Verdict.DENY or not state.doubts:",
        "    if decision.verdict is not Verdict.ALLOW or not state.doubts:",
        "tests/cases/test_case_145_repetition_is_a_question.py",
    ),
    Mutation(
        "an answer that came too late",
        f"{G}/asking_steps.py",
        "if answer is not None and (ended - begun)",
        "if False and (ended - begun)",
        ONE_YES,
    ),
    Mutation(
        "silence leaves the question open",
        f"{G}/asking_steps.py",
        "            yield from approval_steps.answer(conversation, question.id, said, by)",
        "            pass",
        ONE_YES,
    ),
    Mutation(
        "an edit into another tool",
        f"{G}/asking_steps.py",
        "        if meant != (question.server, question.tool):",
        "        if False:",
        "tests/regressions/test_approvals_edit_of_another_tool.py",
    ),
    Mutation(
        "a provider is told yes about another call",
        "interlock/loops.py",
        "    if not same_call(decided, ToolId(proposed.server, proposed.name), proposed.arguments):",
        "    if False:",
        "tests/regressions/test_approvals_edit_of_another_tool.py",
    ),
    Mutation(
        "a yes outlives the denial of its call",
        f"{G}/asking_steps.py",
        '        yield from _closed(conversation, [question.id], "denied")',
        "        pass",
        "tests/regressions/test_approvals_round_that_is_over.py",
    ),
    Mutation(
        "a question is shown anew for fewer calls",
        f"{M}/grants.py",
        "not one.approved and one.left == uses",
        "not one.approved and one.left >= uses",
        "tests/regressions/test_approvals_round_that_is_over.py",
    ),
    Mutation(
        "a folder that is named is not looked into",
        f"{G}/approval_steps.py",
        "        wanted = tuple(sorted({*below(new.values(), paths)} - known))",
        "        wanted = ()",
        "tests/regressions/test_approvals_files_not_bound.py",
    ),
    Mutation(
        "a look empties a question that is not on record yet",
        "interlock/approvals/elsewhere.py",
        "        return body is not None and now >= until(body)",
        "        return True",
        "tests/regressions/test_approvals_list_that_loses_questions.py",
    ),
    Mutation(
        "a long line is broken by the screen",
        f"{M}/escaping.py",
        "    if cells(line) <= columns:",
        "    if True:",
        "tests/regressions/test_approvals_screen_that_is_forged.py",
    ),
    Mutation(
        "callbacks without a secret",
        "interlock/approvals/signing.py",
        "    if type(secret) is not bytes or len(secret) < MIN_SECRET:",
        "    if False:",
        "tests/regressions/test_approvals_webhook_that_trusts.py",
    ),
    Mutation(
        "whoever has a yes already is asked for again",
        f"{G}/approval_steps.py",
        " if other >= place]",
        "]",
        "tests/cases/test_case_153_same_question_many_times.py",
    ),
    Mutation(
        "three denials are not enough",
        f"{G}/approval_steps.py",
        "    if enough(this.state.denials, one.call.tool, shape):",
        "    if False:",
        "tests/regressions/test_approvals_denials_in_new_shapes.py",
    ),
    Mutation(
        "a file that can't be read is approved",
        f"{G}/approval_steps.py",
        "    if unreadable(operands):",
        "    if False:",
        "tests/cases/test_case_054_file_changed_after_the_yes.py",
    ),
    Mutation(
        "a folded question that was exchanged is shown",
        f"{M}/question.py",
        "if len(body) > MAX_QUESTION or question_digest(body) != wanted:",
        "if len(body) > MAX_QUESTION:",
        "tests/approvals/test_elsewhere.py",
    ),
    Mutation(
        "bidirectional marks are shown",
        f"{M}/escaping.py",
        'frozenset({"Cc", "Cf",',
        'frozenset({"Cc",',
        "tests/cases/test_case_068_question_that_hides_the_argument.py",
    ),
    Mutation(
        "a yes before the last page",
        "interlock/approvals/terminal.py",
        'if word == "yes" and last:',
        'if word == "yes":',
        "tests/approvals/test_terminal.py",
    ),
    Mutation(
        "what was typed ahead counts",
        "interlock/approvals/terminal.py",
        "        _forget_what_was_typed(source)\n",
        "",
        "tests/approvals/test_terminal.py",
    ),
    Mutation(
        "a pipe is a terminal",
        "interlock/approvals/terminal.py",
        "if not real or os.name",
        "if os.name",
        "tests/approvals/test_terminal.py",
    ),
    Mutation(
        "a signature of a question answers",
        "interlock/approvals/signing.py",
        'message = f"interlock/{purpose}/v1\\0{timestamp}\\0".encode()',
        'message = f"interlock/v1\\0{timestamp}\\0".encode()',
        "tests/approvals/test_webhook.py",
    ),
    Mutation(
        "an old answer is taken",
        "interlock/approvals/signing.py",
        "    if abs(now - int(timestamp)) > WINDOW:",
        "    if False:",
        "tests/approvals/test_webhook.py",
    ),
]


def caught_by(mutation: Mutation) -> str:
    """The first test that fails in a mutated copy; empty when all pass; a sentence when it can't be tried."""
    with tempfile.TemporaryDirectory(prefix="interlock-mutant-") as folder:
        copy = Path(folder) / "checkout"
        shutil.copytree(ROOT, copy, ignore=LEFT_OUT)
        file = copy / mutation.file
        text = file.read_text(encoding="utf-8")
        if text.count(mutation.old) != 1:
            return f"DOES NOT APPLY ({text.count(mutation.old)} places)"
        file.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *mutation.tests.split()],
            cwd=copy,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "INTERLOCK_PROFILE": "mutants", "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
        )
    if done.returncode == 0:
        return ""
    failed = re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
    return failed[0] if failed else f"pytest ended with {done.returncode}: {done.stdout[-300:]}{done.stderr[-300:]}"


def main(words: list[str]) -> int:
    chosen = [one for one in MUTATIONS if not words or any(word in f"{one.name} {one.file}" for word in words)]
    bad = 0
    print("| mutation | file | caught by |\n|---|---|---|")
    for mutation in chosen:
        found = caught_by(mutation)
        bad += not found or found.startswith(("DOES NOT APPLY", "pytest ended"))
        print(f"| {mutation.name} | `{mutation.file}` | {f'`{found}`' if found else '**nothing**'} |", flush=True)
    print(f"\n{len(chosen)} mutations, {bad} not caught", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
