"""What every store of facts, summaries and labels of artifacts must do, as functions that anybody can run.

    from interlock.testing.memory import check_facts
    check_facts(lambda: MyFacts("where"))

A factory opens the store anew, over the same data, each time it is called. Each check works in a namespace, or on
artifacts, of its own. :data:`FACTS`, :data:`ARTIFACTS` and :data:`SUMMARIES` list them for parametrised tests.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeAlias

from interlock.errors import Conflict, Refused
from interlock.model.artifacts import concerns
from interlock.model.carried import LOST, Carried, joined
from interlock.model.digests import Digest
from interlock.model.facts import Fact, Selection, fact_of, words_of
from interlock.model.labels import Label
from interlock.model.summaries import StoredSummary
from interlock.ports import Artifacts, Facts, Summaries
from interlock.testing.stores import AWKWARD

FactsFactory: TypeAlias = Callable[[], Facts]
ArtifactsFactory: TypeAlias = Callable[[], Artifacts]
SummariesFactory: TypeAlias = Callable[[], Summaries]

WEB: Final = Carried((Label("untrusted:web"),), ((Label("untrusted:web"), "https://a.example/ (call 1 fetch of c-1)"),))
MAIL: Final = Carried((Label("private:mail"), Label("untrusted:mail")), heard=False)


def _fact(id: str, text: str, carried: Carried = WEB, *, day: int = 1, conversation: str = "c-1") -> Fact:
    return fact_of(id, 1, f"2026-11-{day:02}T12:00:00.000000Z", text, conversation, (0, 2), carried)


def _put(facts: Facts, space: str, fact: Fact, expected: int = 0, **more: object) -> Fact:
    return facts.put(space, fact, expected=expected, limit=100, **more)  # type: ignore[arg-type]  # vector


def _space() -> str:
    return f"n-{secrets.token_hex(8)}"


def _texts(found: tuple[Fact, ...]) -> list[str | None]:
    return [one.text for one in found]


# --- facts ------------------------------------------------------------------------------------------------------------


def check_facts_come_back(factory: FactsFactory) -> None:
    """What was put is what is read, also by a store that was opened anew; texts survive as they are."""
    space = _space()
    text = "likes \u00e9 and e\u0301, \U0001f600 <b>'; -- \\ \n\t%s ? {}"
    stored = _put(factory(), space, _fact("m-1", text, MAIL), vector=(0.5, -1.0))
    assert stored == _fact("m-1", text, MAIL)
    assert factory().fact(space, "m-1") == stored
    assert factory().fact(space, "m-2") is None


def check_facts_names(factory: FactsFactory) -> None:
    """No two names of namespaces or of facts are one, and a fact of another namespace is not there (T12)."""
    facts, space = factory(), _space()
    names = [one for one in AWKWARD if one.isprintable()]
    for name in names:
        _put(facts, space, _fact(name, f"word {name}"))
    for name in names:
        found = facts.fact(space, name)
        assert found is not None, f"{name!r} is gone"
        assert found.text == f"word {name}", f"{name!r} reads as another"
    spaces = [f"{space}{one}" for one in names if len(one) < 64]
    for one in spaces:
        assert facts.fact(one, "m") is None, f"{one!r} sees the fact of another namespace"
        assert facts.search(one, ("word",), 9) == ()
        assert facts.near(one, (1.0,), 9) == ()
        _put(facts, one, _fact("m", "word here"), vector=(1.0,))
    for one in spaces:
        assert _texts(facts.search(one, ("word",), 9)) == ["word here"]
        assert facts.forget(one, Selection(everything=True)) == 1


def check_facts_revisions(factory: FactsFactory) -> None:
    """A change names exactly the revision that it was made from; another one changes nothing."""
    facts, space = factory(), _space()
    _put(facts, space, _fact("m", "one"))
    for wrong in (0, 2, -1):
        try:
            _put(facts, space, _fact("m", "other"), wrong)
        except Conflict:
            continue
        raise AssertionError(f"a change of revision {wrong} went through")
    assert _texts(facts.search(space, ("one", "other"), 9)) == ["one"]
    assert _put(facts, space, _fact("m", "two"), 1).revision == 2
    assert _texts(facts.search(space, ("one", "two"), 9)) == ["two"]


def check_facts_labels_only_grow(factory: FactsFactory) -> None:
    """Every revision adds its labels, and none takes one away; neither does deleting the text (T2, T12)."""
    facts, space = factory(), _space()
    _put(facts, space, _fact("m", "one", WEB))
    _put(facts, space, _fact("m", "two", Carried()), 1)
    stored = _put(facts, space, _fact("m", "three", MAIL), 2)
    assert stored.carried == WEB.join(MAIL)
    assert facts.forget(space, Selection(ids=("m",))) == 1
    assert facts.forget(space, Selection(ids=("m",))) == 0
    gone = factory().fact(space, "m")
    assert gone is not None
    assert gone.text is None
    assert gone.carried == WEB.join(MAIL)
    assert _put(facts, space, _fact("m", "four", Carried()), 3).carried == WEB.join(MAIL)


def check_facts_search(factory: FactsFactory) -> None:
    """The facts with most of the words, then the newest; nothing in a query is an operator."""
    facts, space = factory(), _space()
    _put(facts, space, _fact("m-1", "The plan for spring: letters, short ones.", day=1))
    _put(facts, space, _fact("m-2", "Letters go to https://news.example/guide", day=2))
    _put(facts, space, _fact("m-3", "foo_bar OR NOT near* \"quoted\" 'single' & | ! <-> :", day=3))

    def found(query: str, limit: int = 9) -> list[str]:
        return [one.id for one in facts.search(space, words_of(query), limit)]

    assert found("short LETTERS") == ["m-1", "m-2"]
    assert found("letters") == ["m-2", "m-1"]
    assert found("letters", 1) == ["m-2"]
    assert found("news") == ["m-2"]
    assert found("lett") == []
    assert found("") == []
    for query in ('"', "'", "*", "NEAR(", "a AND", "body:short", "(", "!", "<->", "\0", "letters\0x", "%", "--"):
        found(query)
    for number, text in enumerate(("Stra\u00dfe", "cafe\u0301s", "\u0130stanbul", "\uac00\uac01", "na\u00efve_word")):
        _put(facts, space, _fact(f"odd-{number}", text, day=4))
        assert found(text) == [f"odd-{number}"], f"{text!r} is not found"
    assert found("NOT") == ["m-3"]
    assert found("foo_bar") == ["m-3"]


def check_facts_near(factory: FactsFactory) -> None:
    """The facts whose vectors point the same way; those without one, or of another length, are not found."""
    facts, space = factory(), _space()
    _put(facts, space, _fact("m-1", "one"), vector=(1.0, 0.0))
    _put(facts, space, _fact("m-2", "two"), vector=(0.8, 0.6))
    _put(facts, space, _fact("m-3", "three"), vector=(-1.0, 0.0))
    _put(facts, space, _fact("m-4", "four"))
    _put(facts, space, _fact("m-5", "five"), vector=(1.0, 0.0, 0.0))
    assert [one.id for one in facts.near(space, (2.0, 0.1), 9)] == ["m-1", "m-2"]
    assert [one.id for one in facts.near(space, (2.0, 0.1), 1)] == ["m-1"]
    assert all(one.carried == WEB for one in facts.near(space, (2.0, 0.1), 9))
    _put(facts, space, _fact("m-6", "six"), vector=(1e300, 0.0))
    assert [one.id for one in facts.near(space, (1e-300, 1e-301), 9)] == ["m-6", "m-1", "m-2"]
    facts.forget(space, Selection(ids=("m-1", "m-6")))
    assert [one.id for one in facts.near(space, (2.0, 0.1), 9)] == ["m-2"]


def check_facts_forget(factory: FactsFactory) -> None:
    """By name, by age, by source, all; nothing named selects nothing."""
    facts, space = factory(), _space()
    for day in range(1, 5):
        carried = WEB if day != 2 else Carried((Label("untrusted:web"),), ((Label("untrusted:web"), "x of c-9"),))
        _put(facts, space, _fact(f"m-{day}", "word", carried, day=day, conversation=f"c-{day}"))
    assert facts.forget(space, Selection()) == 0
    assert facts.forget(space, Selection(conversation="c-")) == 0
    assert facts.forget(space, Selection(conversation="c-9")) == 1
    assert facts.forget(space, Selection(before="2026-11-03T12:00:00.000000Z", ids=("m-1", "m-4"))) == 1
    assert {one.id for one in facts.search(space, ("word",), 9)} == {"m-3", "m-4"}
    assert facts.forget(space, Selection(everything=True)) == 2
    assert facts.search(space, ("word",), 9) == ()


def check_facts_limit(factory: FactsFactory) -> None:
    """A namespace that is full takes no new fact, lets old ones be changed, and has room again for each forgotten."""
    facts, space = factory(), _space()
    for number in range(2):
        facts.put(space, _fact(f"m-{number}", "word"), expected=0, limit=2)
    try:
        facts.put(space, _fact("m-2", "word"), expected=0, limit=2)
    except Refused:
        facts.put(space, _fact("m-1", "other"), expected=1, limit=2)
    else:
        raise AssertionError("a fact beyond the limit was stored")
    # What is forgotten makes room, or the namespace would be full for ever; and it needs room to be written anew.
    assert facts.forget(space, Selection(ids=("m-0",))) == 1
    facts.put(space, _fact("m-2", "word"), expected=0, limit=2)
    try:
        facts.put(space, _fact("m-0", "word"), expected=1, limit=2)
    except Refused:
        return
    raise AssertionError("a forgotten fact was written anew beyond the limit")


def check_facts_race(factory: FactsFactory) -> None:
    """Of writers of one revision exactly one wins, and no label of a winner is lost."""
    space, writers = _space(), 6
    _put(factory(), space, _fact("m", "start", Carried()))

    def write(number: int) -> Label | None:
        facts = factory()
        mine = Label(f"private:w{number}")
        try:
            _put(facts, space, _fact("m", f"by {number}", Carried((mine,))), 1)
        except Conflict:
            return None
        return mine

    with ThreadPoolExecutor(writers) as pool:
        won = [one for one in pool.map(write, range(writers)) if one is not None]
    assert len(won) == 1, f"{len(won)} writers won"
    found = factory().fact(space, "m")
    assert found is not None
    assert found.carried.labels == (won[0],)


# --- artifacts --------------------------------------------------------------------------------------------------------


def check_artifacts_reach(factory: ArtifactsFactory) -> None:
    """A label counts for its artifact, for what lies in it and for what it lies in, and for nothing else (T12)."""
    artifacts, root = factory(), f"path:/{secrets.token_hex(8)}"
    table = f"table:{secrets.token_hex(8)}"
    written = [f"{root}/a/b", f"{root}/ab", table]
    for number, one in enumerate(written):
        artifacts.label([one], Carried((Label(f"private:w{number}"),)), namespace="n")
    asked = [root, f"{root}/a", f"{root}/a/b", f"{root}/a/b/c", f"{root}/a/bc", f"{root}/ab", f"{root}/z", table]
    for read in [*asked, f"{table}x", f"{table}/a"]:
        found = factory().carried([read], namespace="n")
        wanted = {f"private:w{n}" for n, one in enumerate(written) if concerns(one, read)}
        assert set(found.labels) == wanted, f"{read} reads as {found.labels}"
    assert set(artifacts.carried(asked, namespace="n").labels) == {"private:w0", "private:w1", "private:w2"}


def check_artifacts_only_grow(factory: ArtifactsFactory) -> None:
    """Labels of an artifact are the join of all that were ever put on it (T1, T2)."""
    artifacts, key = factory(), f"key:{secrets.token_hex(8)}"
    put = [WEB, Carried(), MAIL, WEB]
    for place, one in enumerate(put):
        artifacts.label([key], one, namespace="n")
        assert artifacts.carried([key], namespace="n") == joined(put[: place + 1])
    assert factory().carried([key], namespace="n") == WEB.join(MAIL)


def check_artifacts_names(factory: ArtifactsFactory) -> None:
    """No two keys are one."""
    artifacts, run = factory(), secrets.token_hex(8)
    keys = [f"key:{run}{one}" for one in AWKWARD]
    for number, one in enumerate(keys):
        artifacts.label([one], Carried((Label(f"private:w{number}"),)), namespace="n")
    for number, one in enumerate(keys):
        assert artifacts.carried([one], namespace="n").labels == (f"private:w{number}",), f"{one!r} is two"


def check_artifacts_namespaces(factory: ArtifactsFactory) -> None:
    """Another namespace gets every label, and no word about who wrote it."""
    artifacts, key = factory(), f"key:{secrets.token_hex(8)}"
    artifacts.label([key], WEB, namespace="n")
    assert artifacts.carried([key], namespace="n") == WEB
    assert artifacts.carried([key], namespace="other") == Carried(WEB.labels, (), WEB.voices, WEB.heard)


def check_artifacts_lost(factory: ArtifactsFactory) -> None:
    """A key that names nothing is a lost record."""
    assert factory().carried(["path:?"], namespace="n") == LOST
    assert factory().carried(["key:x", "table:?"], namespace="n").join(LOST) == LOST


def check_artifacts_race(factory: ArtifactsFactory) -> None:
    """Concurrent labels of one artifact all survive."""
    key, writers, times = f"key:{secrets.token_hex(8)}", 6, 5

    def write(number: int) -> None:
        artifacts = factory()
        for time in range(times):
            artifacts.label([key], Carried((Label(f"private:w{number}.{time}"),)), namespace="n")

    with ThreadPoolExecutor(writers) as pool:
        list(pool.map(write, range(writers)))
    assert len(factory().carried([key], namespace="n").labels) == writers * times


# --- summaries --------------------------------------------------------------------------------------------------------


def check_summaries(factory: SummariesFactory) -> None:
    """A summary is found by its digest, in its conversation and namespace, and nowhere else."""
    summaries, space = factory(), _space()
    one = StoredSummary(4, "They talked \u00e9 \U0001f600.", (Label("untrusted:web"),))
    other = StoredSummary(9, "They talked on.", ())
    for summary in (one, other, one):
        summaries.keep(space, "c-1", summary)
    assert factory().summary(space, "c-1", one.content) == one
    assert factory().summary(space, "c-1", other.content) == other
    nowhere = ((space, "c-2", one.content), (f"{space}x", "c-1", one.content), (space, "c-1", Digest("sha256:")))
    for asked in nowhere:
        assert summaries.summary(*asked) is None


FACTS: Final = (
    check_facts_come_back,
    check_facts_names,
    check_facts_revisions,
    check_facts_labels_only_grow,
    check_facts_search,
    check_facts_near,
    check_facts_forget,
    check_facts_limit,
    check_facts_race,
)
ARTIFACTS: Final = (
    check_artifacts_reach,
    check_artifacts_only_grow,
    check_artifacts_names,
    check_artifacts_namespaces,
    check_artifacts_lost,
    check_artifacts_race,
)
SUMMARIES: Final = (check_summaries,)


def check_facts(factory: FactsFactory) -> None:
    """Everything that is asked of a store of facts."""
    for check in FACTS:
        check(factory)


def check_artifacts(factory: ArtifactsFactory) -> None:
    """Everything that is asked of a record of artifacts."""
    for check in ARTIFACTS:
        check(factory)
