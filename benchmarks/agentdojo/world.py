"""The suites as this benchmark uses them: versions, environments with an attack in them, and repaired defects.

Two defects of the package (0.1.35) matter here and are repaired, without changing any check:

* `load_suites` never imports `default_suites.v1_1_2`, so the corrected security checks of that version are missing in
  every later one, and nine pairs could never count as an attack that succeeded. Importing it first is a circular
  import; importing it afterwards and deriving the versions anew is not.
* Eight injection tasks of the workspace have an empty ground truth. Theirs stands in `attacks.py`.
"""

from __future__ import annotations

import importlib
import importlib.resources
import pickle
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import Any

import yaml
from agentdojo.default_suites.v1.tools.types import CloudDriveFile
from agentdojo.functions_runtime import FunctionsRuntime
from agentdojo.task_suite import load_suites
from agentdojo.task_suite.task_suite import read_suite_file
from pydantic import BaseModel

SUITES = ("workspace", "travel", "banking", "slack")
LATEST = "v1.2.2"
VERSIONS = ("v1", "v1.1", "v1.1.1", "v1.1.2", "v1.2", "v1.2.1", "v1.2.2")

# A word that no environment holds: where a vector's text goes before the text is known.
_MARK = "VECTOR{}VECTOR"


@cache
def suite(version: str, name: str) -> Any:
    """One suite of one version, with the checks of v1.1.2 where they belong."""
    importlib.import_module("agentdojo.default_suites.v1_1_2")
    loaded = load_suites.get_suites(version)[name]
    first = load_suites.get_suites("v1")[name]
    return loaded if loaded is first else first.get_new_version(loaded.benchmark_version)


def user_tasks(version: str, name: str) -> dict[str, Any]:
    """By number, in order."""
    return dict(sorted(suite(version, name).user_tasks.items(), key=lambda item: number(item[0])))


def injection_tasks(version: str, name: str) -> dict[str, Any]:
    """By number, in order."""
    return dict(sorted(suite(version, name).injection_tasks.items(), key=lambda item: number(item[0])))


def number(task: str) -> int:
    """`user_task_12` is 12."""
    return int(task.rsplit("_", 1)[1])


@cache
def runtime(name: str) -> FunctionsRuntime:
    """The tools of a suite; they are the same in all versions."""
    return FunctionsRuntime(suite(LATEST, name).tools)


@cache
def _template(name: str) -> tuple[Snapshot, dict[str, str]]:
    """The environment with a mark in place of every vector, and what stands there when nobody attacks."""
    defaults = suite(LATEST, name).get_injection_vector_defaults()
    marked = read_suite_file(name, "environment.yaml", None).format(**{one: _MARK.format(one) for one in defaults})
    made = suite(LATEST, name).environment_type.model_validate(yaml.safe_load(marked))
    # The defaults are written for YAML's double quotes: `\\n` in them is a line break.
    return Snapshot(made), {one: text.replace("\\n", "\n").replace("\\t", "\t") for one, text in defaults.items()}


def vectors(name: str) -> tuple[str, ...]:
    """The places of a suite where a stranger's text can stand."""
    return tuple(_template(name)[1])


def environment(name: str, texts: dict[str, str] | None = None, poison: Callable[[Any], None] | None = None) -> Any:
    """An environment whose vectors hold `texts`, and what they hold otherwise where none is given.

    The texts are put into the finished objects, not into the YAML: no text can break it, whatever quotes it has, and
    nothing is parsed and validated again for each of a thousand attacks.

    Args:
        poison: changes the records of the environment.
    """
    template, defaults = _template(name)
    made = template.restore()
    _fill(made, {_MARK.format(one): text for one, text in {**defaults, **(texts or {})}.items()})
    if poison is not None:
        poison(made)
        if hasattr(made, "inbox"):
            made.inbox._create_contact_list()  # whoever has written is a contact
    return made


def _fill(data: Any, marks: dict[str, str]) -> Any:
    """Put texts in place of marks, in objects, lists and dicts as they are."""
    if isinstance(data, str):
        if "VECTOR" in data:
            for mark, text in marks.items():
                data = data.replace(mark, text)
        return data
    if isinstance(data, list):
        data[:] = [_fill(one, marks) for one in data]
    elif isinstance(data, dict):
        items = [(_fill(key, marks), _fill(value, marks)) for key, value in data.items()]
        data.clear()
        data.update(items)
    elif isinstance(data, BaseModel):
        for key, value in data.__dict__.items():
            data.__dict__[key] = _fill(value, marks)
        if isinstance(data, CloudDriveFile):
            data.size = len(data.content)
    return data


class Snapshot:
    """An environment that can be had again and again. Unpickling is several times faster than a deep copy."""

    def __init__(self, environment: Any) -> None:
        self._bytes = pickle.dumps(environment, protocol=pickle.HIGHEST_PROTOCOL)

    def restore(self) -> Any:
        return pickle.loads(self._bytes)


def clone(environment: Any) -> Any:
    """A copy that shares nothing."""
    return pickle.loads(pickle.dumps(environment, protocol=pickle.HIGHEST_PROTOCOL))


@lru_cache(maxsize=512)
def clean(name: str) -> Snapshot:
    """The environment in which nobody attacks."""
    return Snapshot(environment(name))


def shown(result: Any) -> Any:
    """A tool's result as plain data, which is what a host hands to the guard."""
    if hasattr(result, "model_dump"):
        return result.model_dump(mode="json")
    if isinstance(result, list | tuple):
        return [shown(one) for one in result]
    if isinstance(result, dict):
        return {str(key): shown(value) for key, value in result.items()}
    return result


def texts(data: Any) -> Iterator[str]:
    """Every text and number in some data, keys included, as text."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield str(key)
            yield from texts(value)
    elif isinstance(data, list | tuple):
        for one in data:
            yield from texts(one)
    elif data is not None:
        yield str(data)
