"""Reading the files that a call names, for approvals: size and SHA-256, through links. Nothing but regular files."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from typing import Final

from interlock.model.operands import Operand, Sort

MAX_FILE: Final = 256 << 20
MAX_ALL: Final = 512 << 20
_CHUNK: Final = 1 << 20
_FLAGS: Final = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
_NOTHING_THERE: Final = frozenset({errno.ENOENT, errno.ENOTDIR})


def read_operand(path: str, base: str, room: int = MAX_ALL) -> Operand:
    """One path as it is now.

    Args:
        base: the folder that relative paths are relative to.
        room: how many bytes may be read at most.
    """
    if "\0" in path or len(path) > 4096:
        return Operand(path, "", Sort.MISSING)  # no path at all
    resolved = ""
    try:
        resolved = os.path.realpath(os.path.join(base, os.path.expanduser(path)))
        about = os.lstat(resolved)
        if stat.S_ISDIR(about.st_mode):
            return Operand(path, resolved, Sort.FOLDER)
        if not stat.S_ISREG(about.st_mode):
            return Operand(path, resolved, Sort.OTHER)
        size, content = _content(resolved, min(room, MAX_FILE))
        if os.path.realpath(resolved) != resolved:
            return Operand(path, "", Sort.UNREADABLE)  # somebody changed where it leads while it was read
        return Operand(path, resolved, Sort.FILE, size, content)
    except OSError as error:
        if error.errno in _NOTHING_THERE:
            return Operand(path, resolved, Sort.MISSING)
        # A name that is too long for a file names none; what is refused to us may still be read by the tool.
        sort = Sort.MISSING if error.errno == errno.ENAMETOOLONG else Sort.UNREADABLE
        return Operand(path, "", sort)
    except ValueError:
        return Operand(path, "", Sort.MISSING)


def _content(resolved: str, most: int) -> tuple[int, str]:
    descriptor = os.open(resolved, _FLAGS)
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_size > most:
            raise OSError(errno.EFBIG, "no regular file, or too large to be read")
        whole, size = hashlib.sha256(), 0
        while piece := os.read(descriptor, _CHUNK):
            size += len(piece)
            if size > most:
                raise OSError(errno.EFBIG, "too large to be read")
            whole.update(piece)
        return size, whole.hexdigest()
    finally:
        os.close(descriptor)
