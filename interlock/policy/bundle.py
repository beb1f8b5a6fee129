"""Loading controls: all of a bundle, or nothing.

A bundle is the shipped controls, the user's controls and the settings. Every rule below exists because an engine would
otherwise accept the file and be silent, loose or dead later: each refusal names file, line and what to do.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from interlock.errors import PolicyError
from interlock.model.answers import CODE, ControlText
from interlock.model.canonical import pack
from interlock.model.decisions import GATE_CODES
from interlock.model.digests import Digest, digest
from interlock.model.document import document_schema
from interlock.model.look import Paths
from interlock.model.markup import read
from interlock.policy.builtins import ALLOWED, RESERVED
from interlock.policy.rego_ast import Module, Ref, Rule, absolute, constant, looks_at, parse_module, until_computed
from interlock.policy.user_settings import user_settings

if TYPE_CHECKING:
    from interlock.model.settings import Settings

MAX_FILES: Final = 1000
MAX_FILE_BYTES: Final = 256 << 10
MAX_ARCHIVE_BYTES: Final = 16 << 20


@dataclass(frozen=True, slots=True, order=True)
class Source:
    """One Rego file, with the path that errors show.

    ``own`` is True for what Interlock ships, ``guest`` for what a workspace brings: that may add controls, and nothing
    to what the operator's controls use.
    """

    path: str
    text: str
    own: bool = False
    guest: bool = False


@dataclass(frozen=True, slots=True)
class Bundle:
    """Controls that passed every check, ready for any engine.

    Attributes:
        sources: the files, in order of their paths: the order in which they were given makes no difference (T3).
        controls: what each control says about itself, by code.
        data: JSON text of Rego's ``data``: the settings.
        revision: digest of all of it; every decision carries it.
        looks_at: paths of the document that answers depend on; by default the whole of it.
    """

    sources: tuple[Source, ...]
    controls: Mapping[str, ControlText]
    data: bytes
    revision: Digest
    looks_at: Paths = ((),)


def shipped_directory() -> Path:
    """Where the shipped policies are: inside an installed package, or beside it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    for place in (package / "_policies", package.parent / "policies"):
        if (place / "interlock" / "controls").is_dir():
            return place
    raise PolicyError("the shipped policies are not installed; install interlock again")


SCHEMA: Final = "settings.schema.json"


@dataclass(frozen=True, slots=True)
class Folder:
    """What a directory or archive holds: Rego files without tests, and the schema of its settings if it has one."""

    sources: tuple[Source, ...]
    schemas: tuple[Source, ...]


def read_folder(place: str | Path, *, own: bool = False) -> Folder:
    """Read all controls below a directory, or in a ``.tar.gz`` archive, tests left out.

    Raises:
        PolicyError: no such place, nothing in it, a file too large, not UTF-8, or data files, which would silently
            override rules.
    """
    root = Path(place)
    if not root.exists():
        raise PolicyError(f"{root}: no such directory of controls")
    files = _directory(root) if root.is_dir() else _archive(root)
    sources: list[Source] = []
    schemas: list[Source] = []
    for name, data in files:
        shown = name if own else f"{root}/{name}"
        base = name.rpartition("/")[2]
        if base in ("data.json", "data.yaml", "data.yml"):
            raise PolicyError(f"{shown}: data files are not loaded, they could override rules; use settings instead")
        if base != SCHEMA and (not base.endswith(".rego") or base.endswith("_test.rego")):
            continue
        if len(data) > MAX_FILE_BYTES:
            raise PolicyError(f"{shown}: larger than {MAX_FILE_BYTES} bytes")
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            raise PolicyError(f"{shown}: not UTF-8; no part of the bundle is loaded") from None
        (schemas if base == SCHEMA else sources).append(Source(shown, text, own))
        if len(sources) > MAX_FILES:
            raise PolicyError(f"{root}: more than {MAX_FILES} files")
    if not sources:
        raise PolicyError(f"{root}: no .rego file with a control in it")
    return Folder(tuple(sources), tuple(schemas))


def _directory(root: Path) -> Iterator[tuple[str, bytes]]:
    """Every file below a directory, in order. What would be passed over in silence is refused instead."""
    try:
        for folder, folders, files in os.walk(root, onerror=_raised):
            # Mounted configuration keeps its versions in hidden folders; hidden ones hold no controls.
            folders[:] = sorted(one for one in folders if not one.startswith("."))
            for name in folders:
                if os.path.islink(os.path.join(folder, name)):
                    raise PolicyError(
                        f"{folder}/{name}: a link to a folder is not followed; its controls would be missing"
                    )
            for name in sorted(files):
                path = Path(folder, name)
                if name.casefold().endswith(".rego") and not name.endswith(".rego"):
                    raise PolicyError(
                        f"{path}: a control's file ends in .rego, in lower case; this one would not be loaded"
                    )
                if path.suffix in (".rego", ".json", ".yaml", ".yml"):
                    if not path.is_file():
                        raise PolicyError(f"{path}: not a file that can be read (a dangling link?)")
                    yield path.relative_to(root).as_posix(), path.read_bytes()
    except OSError as error:
        raise PolicyError(f"{error.filename or root}: can't be read ({error.strerror}); nothing is loaded") from None


def _raised(error: OSError) -> None:
    raise error


def _archive(root: Path) -> Iterator[tuple[str, bytes]]:
    """Members are read in memory and nothing is unpacked, so that no name in an archive can reach the file system."""
    import tarfile  # loaded late: few bundles are archives

    total = 0
    try:
        with tarfile.open(root, "r:*") as archive:
            for member in archive:
                name = member.name.removeprefix("./").lstrip("/")
                if not member.isfile():
                    continue
                total += member.size
                if total > MAX_ARCHIVE_BYTES:
                    raise PolicyError(f"{root}: unpacks to more than {MAX_ARCHIVE_BYTES} bytes")
                handle = archive.extractfile(member)
                if handle is not None and Path(name).suffix in (".rego", ".json", ".yaml", ".yml"):
                    yield name, handle.read(MAX_FILE_BYTES + 1)
    except (tarfile.TarError, EOFError, OSError) as error:
        raise PolicyError(
            f"{root}: not a directory, and not an archive that can be read ({type(error).__name__})"
        ) from None


def read_sources(directory: str | Path, *, own: bool = False) -> list[Source]:
    """The Rego files of :func:`read_folder`."""
    return list(read_folder(directory, own=own).sources)


def shipped_sources() -> list[Source]:
    """What Interlock ships: its controls and the entry point."""
    return read_sources(shipped_directory(), own=True)


def assemble(sources: Iterable[Source], settings: Settings, schemas: Iterable[Source] = ()) -> Bundle:
    """Check everything and make a bundle.

    Args:
        schemas: JSON schemas of the users' own settings, which stand under ``controls``.

    Raises:
        PolicyError: with every problem found, one per line; nothing was loaded.
        SettingsError: a setting of the user's controls is unknown, missing or wrong.
    """
    ordered = sorted(sources)
    modules: list[tuple[Source, Module]] = []
    problems: list[str] = []
    for source in ordered:
        try:
            modules.append((source, parse_module(source.path, source.text)))
        except PolicyError as error:
            problems.append(str(error))
    if problems:
        raise PolicyError("\n".join(problems))  # the rest can't be judged without every file
    values = settings.model_dump()
    values["controls"] = user_settings(values["controls"], schemas)
    problems.extend(_Checks(modules, values).all())
    if problems:
        raise PolicyError("\n".join(dict.fromkeys(problems)))
    controls = {code: text for source, module in modules for code, text in _texts(source, module)}
    data = pack({"settings": values})
    content = [[source.path, source.text] for source in ordered]
    revision = digest("bundle", b"\0".join(pack(one) for one in content) + b"\0" + data)
    seen = looks_at(module for _, module in modules)
    return Bundle(tuple(ordered), MappingProxyType(dict(sorted(controls.items()))), data, revision, seen)


def code_of(module: Module) -> str | None:
    """Code of the control that a file belongs to, or None for the entry point and libraries."""
    if module.package[:2] == ("interlock", "controls") and len(module.package) == 3:
        return module.package[2]
    if module.package[:1] == ("controls",) and len(module.package) == 2:
        return module.package[1]
    return None


def _texts(source: Source, module: Module) -> Iterator[tuple[str, ControlText]]:
    code = code_of(module)
    if code is None:
        return
    metadata = _metadata(source.path, source.text)
    found = metadata.get("custom")
    custom: dict[str, Any] = found if isinstance(found, dict) else {}
    if custom.get("code", code) != code:
        raise PolicyError(f"{source.path}:{module.line}: METADATA says code {custom['code']!r}, the package {code!r}")
    title = str(metadata.get("title") or code)
    yield (
        code,
        ControlText(
            code=code,
            title=title,
            description=" ".join(str(metadata.get("description") or title).split()),
            for_model=" ".join(str(custom.get("model") or f"The operator's control {code} objects.").split()),
            own=source.own,
        ),
    )


_BLOCK: Final = re.compile(r"^# METADATA\n((?:#.*\n)+)", re.MULTILINE)


def _metadata(path: str, text: str) -> dict[str, Any]:
    """The first METADATA block of a file."""
    block = _BLOCK.search(text)
    if block is None:
        return {}
    line = text[: block.start()].count("\n") + 1
    return read(
        "\n".join(line[2:] for line in block.group(1).splitlines()), "yaml", f"{path}:{line}: METADATA", PolicyError
    )


class _Checks:
    """Every rule that a bundle must keep. Each method yields one line per problem."""

    def __init__(self, modules: Sequence[tuple[Source, Module]], settings: Mapping[str, Any]) -> None:
        self._modules = modules
        self._settings = settings
        self._schema = document_schema()
        self._rules: dict[tuple[str, ...], set[str]] = {}
        self._functions: dict[tuple[str, ...], set[str]] = {}
        for _, module in modules:
            self._rules.setdefault(module.package, set()).update(module.rule_names)
            functions = {rule.name for rule in module.rules if rule.is_function}
            self._functions.setdefault(module.package, set()).update(functions)

    def all(self) -> Iterator[str]:
        yield from self._packages()
        yield from self._controls()
        for source, module in self._modules:
            yield from self._reserved(module)
            for rule in module.rules:
                yield from self._rule(source, module, rule)
        yield from self._recursion()

    def _packages(self) -> Iterator[str]:
        owners: dict[str, str] = {}
        for source, module in self._modules:
            where = f"{module.path}:{module.line}"
            name = ".".join(module.package)
            if source.own:
                continue
            first = module.package[0]
            if source.guest and first != "controls":
                yield f"{where}: a workspace may add controls only, not package {name}; write package controls.<code>"
            elif first not in ("controls", "lib"):
                yield f"{where}: package {name} is not yours to define; write package controls.<code> (or lib.<name>)"
            elif len(module.package) != 2 or not CODE.fullmatch(module.package[1]):
                yield f"{where}: package {name} must be {first}.<name>, one lower-case name with _ and digits"
        for _, module in self._modules:
            code = code_of(module)
            if code is None:
                continue
            kind = module.package[0]
            if code in GATE_CODES:
                yield f"{module.path}:{module.line}: code {code!r} is the gate's own; choose another name"
            other = owners.setdefault(code, kind)
            if other != kind:
                yield f"{module.path}:{module.line}: code {code!r} is a shipped control; choose another name"

    def _controls(self) -> Iterator[str]:
        by_code: dict[str, list[Module]] = {}
        for _, module in self._modules:
            code = code_of(module)
            if code is not None:
                by_code.setdefault(code, []).append(module)
        if not by_code:
            yield "no control is loaded: an interlock without controls would decide nothing"
        for code, modules in sorted(by_code.items()):
            path, line = modules[0].path, modules[0].line
            defaults = [(module, rule) for module in modules for rule in module.rules if rule.is_default]
            verdicts = [(module, rule) for module, rule in defaults if rule.name == "verdict"]
            if not verdicts:
                yield (
                    f"{path}:{line}: control {code} has no `default verdict`;"
                    ' write default verdict := {"verdict": "deny"} (or "ask"): its objection when nothing is proved'
                )
            if len(verdicts) > 1 and len(modules) == 1:
                second = verdicts[1][1]
                yield f"{path}:{second.line}: control {code} has a second `default verdict`; keep one"
            for module in modules:
                for rule in module.rules:
                    if rule.name == "verdict" and rule.head != ("verdict",):
                        yield f"{path}:{rule.line}: `verdict` is one value; a rule can't define a part of it"
            for module, rule in verdicts:
                yield from self._default(module, rule, code)
            if len(modules) > 1:
                files = ", ".join(module.path for module in modules)
                yield f"{path}:{line}: control {code} is spread over {files}; keep it in one file"

    def _default(self, module: Module, rule: Rule, code: str) -> Iterator[str]:
        try:
            value = constant(rule.default)
        except (ValueError, KeyError, AttributeError, TypeError):
            value = None
        verdict = value.get("verdict") if isinstance(value, dict) else None
        if verdict not in ("ask", "deny"):
            yield (
                f"{module.path}:{rule.line}: the default verdict of {code} must be an objection,"
                ' {"verdict": "ask"} or {"verdict": "deny"}: what is not proved is not allowed'
            )

    def _rule(self, source: Source, module: Module, rule: Rule) -> Iterator[str]:
        for line in rule.withs:
            yield (
                f"{module.path}:{line}: `with` has no place in a control: it swaps what is being judged;"
                " use it in tests"
            )
        for call in rule.calls:
            yield from self._call(module, call)
        for ref in rule.refs:
            yield from self._ref(source, module, rule, ref)

    def _call(self, module: Module, call: Ref) -> Iterator[str]:
        if self._is_function(module, call):
            return
        name = ".".join(part or "?" for part in call.parts)
        if name not in ALLOWED:
            yield (
                f"{module.path}:{call.line}: builtin {name} is not allowed in controls: decisions must depend on the"
                " document only (time is input.now); see docs/writing-policies.md for the list"
            )

    def _is_function(self, module: Module, call: Ref) -> bool:
        """Does a call name a function that these files define? Names of builtins can't be taken, see `_reserved`."""
        root = call.parts[0] or ""
        if len(call.parts) == 1 and root in self._functions.get(module.package, ()):
            return True
        full = call.parts if root == "data" else (*module.imports.get(root, ("",)), *call.parts[1:])
        names = tuple(part or "" for part in full[1:])
        return full[0] == "data" and bool(names) and names[-1] in self._functions.get(names[:-1], ())

    def _reserved(self, module: Module) -> Iterator[str]:
        for rule in module.rules:
            if rule.name in RESERVED:
                yield f"{module.path}:{rule.line}: a rule can't be called {rule.name!r}, like a builtin; rename it"
        for alias in module.imports:
            if alias in RESERVED or alias in ("input", "data"):
                yield f"{module.path}:{module.line}: an import can't be called {alias!r} like a builtin; use `as`"

    def _ref(self, source: Source, module: Module, rule: Rule, ref: Ref) -> Iterator[str]:
        full = absolute(module, rule, ref)
        if full is None:
            return
        if full[0] == "input":
            yield from self._input(module, ref.line, full)
        elif full[0] == "data":
            yield from self._data(source, module, ref.line, full)

    def _input(self, module: Module, line: int, path: tuple[str | None, ...]) -> Iterator[str]:
        schema: Any = self._schema
        for place, part in enumerate(path[1:], 1):
            if "$ref" in schema:
                schema = self._schema["$defs"][schema["$ref"].rpartition("/")[2]]
            if schema.get("type") == "array":
                schema = schema.get("items", {})
                continue
            properties = schema.get("properties")
            if properties is None and schema.get("type") in ("string", "boolean", "integer"):
                shown = ".".join(one or "_" for one in path[:place])
                yield f"{module.path}:{line}: {shown} is a {schema['type']}; there is nothing below it"
                return
            if properties is None or part is None:
                return  # opaque from here on (call.arguments), or computed
            if part not in properties:
                shown = ".".join(one or "_" for one in path[: place + 1])
                known = ", ".join(sorted(properties))
                yield f"{module.path}:{line}: the document has no {shown}; there is {known}"
                return
            schema = properties[part]

    def _data(self, source: Source, module: Module, line: int, path: tuple[str | None, ...]) -> Iterator[str]:
        shown = ".".join(part or "_" for part in path)
        if path[1:2] == ("settings",):
            value: Any = self._settings
            for part in path[2:]:
                if not isinstance(value, Mapping) or part is None:
                    return
                if part not in value:
                    yield f"{module.path}:{line}: there is no setting {shown.removeprefix('data.settings.')}"
                    return
                value = value[part]
            return
        names = until_computed(path[1:])
        if not any(self._defines(package, rules, names) for package, rules in self._rules.items()):
            if source.own and names == ("controls",):
                return  # the user's controls, of which there may be none
            yield f"{module.path}:{line}: nothing defines {shown}; it would always be undefined"

    @staticmethod
    def _defines(package: tuple[str, ...], rules: set[str], names: tuple[str, ...]) -> bool:
        if names[: len(package)] == package:
            return len(names) == len(package) or names[len(package)] in rules
        return package[: len(names)] == names

    def _recursion(self) -> Iterator[str]:
        """A cycle of rules kills the process inside the engine, so it is refused from the syntax tree."""
        nodes: dict[tuple[str, ...], tuple[Module, int]] = {}
        edges: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
        for _, module in self._modules:
            for rule in module.rules:
                node = (*module.package, rule.name)
                nodes.setdefault(node, (module, rule.line))
                edges.setdefault(node, set()).update(self._targets(module, rule))
        resolved = {
            node: {
                other
                for target in targets
                for other in nodes
                if other[: len(target)] == target or target[: len(other)] == other
            }
            for node, targets in edges.items()
        }
        done: set[tuple[str, ...]] = set()
        for start in sorted(resolved):
            cycle = _cycle(start, resolved, done)
            if cycle:
                module, line = nodes[cycle[0]]
                names = " → ".join(".".join(node) for node in cycle)
                yield f"{module.path}:{line}: rules refer to each other in a circle: {names}; break it"
                return

    def _targets(self, module: Module, rule: Rule) -> Iterator[tuple[str, ...]]:
        for ref in (*rule.refs, *rule.calls):
            root = ref.parts[0] or ""
            if root in self._rules[module.package] and root not in rule.bindings:
                yield (*module.package, root)
                continue
            full = absolute(module, rule, ref)
            if full is not None and full[0] == "data":
                yield until_computed(full[1:])


def _cycle(
    start: tuple[str, ...], edges: Mapping[tuple[str, ...], set[tuple[str, ...]]], done: set[tuple[str, ...]]
) -> list[tuple[str, ...]]:
    """A cycle that can be reached from ``start``, or an empty list. Depth-first without recursion of our own."""
    path: list[tuple[str, ...]] = []
    stack: list[tuple[tuple[str, ...], Iterator[tuple[str, ...]]]] = []
    if start not in done:
        path, stack = [start], [(start, iter(sorted(edges.get(start, ()))))]
    while stack:
        node, successors = stack[-1]
        following = next(successors, None)
        if following is None:
            stack.pop()
            path.pop()
            done.add(node)
        elif following in path:
            return [*path[path.index(following) :], following]
        elif following not in done:
            path.append(following)
            stack.append((following, iter(sorted(edges.get(following, ())))))
    return []
