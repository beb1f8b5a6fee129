"""The agent's tools. They do what they say: nothing here knows of Interlock, of an attack or of a secret."""

from __future__ import annotations

import json
import smtplib
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from email.message import EmailMessage
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from interlock.cli.demo.scenarios import Places
from interlock.cli.demo.world import Folder, base_of, get, serving

_SENDER: Final = "agent@corp.example"
_SECONDS: Final = 10.0


class Toolbox:
    """Six tools that work in one folder. ``run(name, arguments)`` is all that an agent loop needs.

    A mail's body may say ``${read_file}``: the result of that tool, put in when the mail is sent. Frameworks that plan
    several calls at once have such references, and they are why calls of one turn must be judged together: the text
    that leaves is not in the call that was proposed.
    """

    def __init__(self, folder: Path, places: Places) -> None:
        self._folder = folder
        self._places = places
        self._results: dict[str, str] = {}
        self._open = ExitStack()
        self.ports: list[str] = []
        self._tools: dict[str, Callable[..., str]] = {
            "fetch": self.fetch,
            "read_file": self.read_file,
            "write_file": self.write_file,
            "send_email": self.send_email,
            "share_file": self.share_file,
            "serve_folder": self.serve_folder,
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def run(self, name: str, arguments: dict[str, Any]) -> str:
        """Run one tool. Raises whatever it raises; an unknown name is a KeyError."""
        result = self._tools[name](**arguments)
        self._results[name] = result
        return result

    def fetch(self, url: str) -> str:
        return get(url).decode("utf-8", "replace")

    def read_file(self, path: str) -> str:
        return self._inside(path).read_text(encoding="utf-8")

    def write_file(self, path: str, text: str) -> str:
        file = self._inside(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return f"wrote {len(text)} characters"

    def send_email(self, to: str, subject: str, body: str) -> str:
        for name, result in self._results.items():
            body = body.replace(f"${{{name}}}", result)
        message = EmailMessage()
        message["From"], message["To"], message["Subject"] = _SENDER, to, subject
        message.set_content(body)
        # The name is given because smtplib would ask the resolver for this machine's, which may take seconds.
        with smtplib.SMTP(
            self._places.mail_host, self._places.mail_port, local_hostname="localhost", timeout=_SECONDS
        ) as server:
            server.send_message(message)
        return "sent"

    def share_file(self, path: str, to: str) -> str:
        self.send_email(to, f"shared with you: {path}", self.read_file(path))
        return "shared"

    def serve_folder(self, path: str) -> str:
        server = self._open.enter_context(serving(partial(Folder, directory=str(self._inside(path)))))
        self.ports.append(base_of(server))
        return f"serving at {base_of(server)}"

    def _inside(self, path: str) -> Path:
        """The file of this name in the folder; a path that leads out of it is refused."""
        file = (self._folder / path).resolve()
        if not file.is_relative_to(self._folder):
            raise PermissionError("outside of the folder")
        return file


def start_configured_servers(folder: Path) -> None:
    """What coding agents do with ``.mcp.json``: start every server that it names, before anybody looks at it.

    So whoever can write this file runs commands, without any tool call that could be refused later.
    """
    file = folder / ".mcp.json"
    if not file.is_file():
        return
    for server in json.loads(file.read_text(encoding="utf-8"))["mcpServers"].values():
        command = [server["command"], *server["args"]]
        # S603: running what the file says is the point; its only author is the demo's own page.
        subprocess.run(  # noqa: S603
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=_SECONDS, check=False
        )
