"""Checks of this machine: configuration, installation, permissions of files, disk.

Tested in tests/acceptance/servers/test_doctor_cli.py.
"""

from __future__ import annotations

import os
import platform
import stat
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from shlex import quote

from noetl import __version__
from noetl.cli.doctor.finding import Finding, ok, problem, warning
from noetl.cli.runtime.contexts import contexts_file
from noetl.cli.runtime.environment import environment, setting_problems, unknown_variables
from noetl.client.local_server import token_folder
from noetl.extras import install_command
from noetl.settings import FILE, IN_FILES, SANDBOX, Settings, config_file

_MIB = 1024 * 1024
_FULL_MIB = 64  # less free space than this is a problem
_LOW_MIB = 1024  # less is a warning
_LOW_INODES = 1_000


def configuration() -> Iterator[Finding]:
    """Check the settings of file and environment, as services do at their start."""
    wrong = setting_problems()
    for line in wrong:
        yield problem("configuration", line, "Correct it; `noetl config show --origin` shows what holds.")
    for name, hint in unknown_variables():
        yield warning(
            "configuration",
            f"The environment variable {name} is no setting.{hint}",
            f"Correct its name, or unset {name}.",
        )
    if not wrong:
        yield ok("configuration", f"the settings are valid ({_config_source()})")


def _config_source() -> str:
    file = config_file(environment(), Path.cwd())
    return f"{file} and the environment" if file.exists() else "the environment; no configuration file"


def installation(settings: Settings) -> Iterator[Finding]:
    """Check versions, the extras that the settings need, and the sandbox."""
    yield ok(
        "versions", f"noetl {__version__}, Python {platform.python_version()}, {platform.system()} {os.uname().release}"
    )
    if settings.database and find_spec("asyncpg") is None:
        yield problem(
            "installation",
            "The store is PostgreSQL, and its library is not installed.",
            f"Run `{install_command('postgres')}`.",
        )
    if settings.sandbox not in ("auto", "none"):
        from noetl.worker.processes import sandbox

        reason = sandbox.problem(settings.sandbox)
        if reason is not None:
            yield problem("sandbox", reason, f"Install it, or choose another with {SANDBOX}.")


def permissions(settings: Settings) -> Iterator[Finding]:
    """Check that only this user can use the files that hold data and secrets."""
    exposed = [path for path in _private_places(settings) if path.exists() and _is_exposed(path)]
    for path in exposed:
        mode = stat.S_IMODE(path.stat().st_mode)
        yield problem(
            "permissions",
            f"Other users of this machine can access {path} (mode {mode:04o}).",
            f"Run `chmod {'-R ' if path.is_dir() else ''}go= {quote(str(path))}`.",
        )
    foreign = [path for path in _private_places(settings) if path.exists() and path.stat().st_uid != os.geteuid()]
    for path in foreign:
        yield problem(
            "permissions",
            f"{path} belongs to another user (uid {path.stat().st_uid}).",
            "Run NoETL as that user, or give the file to this one: `chown`.",
        )
    folder = settings.store.parent
    if folder.exists() and not os.access(folder, os.W_OK | os.X_OK):
        foreign.append(folder)
        yield problem("permissions", f"This user cannot write to {folder}.", f"Run `chmod u+wx {quote(str(folder))}`.")
    if not exposed and not foreign:
        yield ok("permissions", "only this user can use the files of the store, keys and tokens")


def _private_places(settings: Settings) -> Iterator[Path]:
    file = config_file(environment(), Path.cwd())
    if file.exists() and _holds_secrets(file):
        yield file
    if not settings.database:
        yield from (settings.store, *(Path(f"{settings.store}{end}") for end in ("-wal", "-shm")))
    yield from (settings.store.with_name("key"), settings.blobs, contexts_file())
    yield from sorted(token_folder().glob("*.token"))
    for name in IN_FILES:
        named = os.environ.get(name + FILE, "").strip()
        if named:
            yield Path(named)


def _holds_secrets(file: Path) -> bool:
    from noetl.configuration import read
    from noetl.model.errors import InvalidInput

    try:
        entries = read(file.read_bytes(), str(file))
    except (InvalidInput, OSError):
        return False  # the check of the configuration reports it
    return any(name in IN_FILES for name in entries)


def _is_exposed(path: Path) -> bool:
    return bool(stat.S_IMODE(path.stat().st_mode) & (stat.S_IRWXG | stat.S_IRWXO))


def disk(settings: Settings) -> Iterator[Finding]:
    """Check the free space of the store's file system and of temporary files."""
    places = {"the store": _existing(settings.store.parent), "temporary files": Path(tempfile.gettempdir())}
    seen: set[int] = set()
    for what, place in places.items():
        device = place.stat().st_dev
        if device in seen:
            continue
        seen.add(device)
        found = os.statvfs(place)
        free, whole = (blocks * found.f_frsize // _MIB for blocks in (found.f_bavail, found.f_blocks))
        text = f"{free:,} of {whole:,} MiB are free for {what} ({place})"
        fix = "Free space, or move the store (NOETL_HOME); `noetl admin prune --older-than 30d` and `noetl admin gc` remove old data."
        if found.f_flag & os.ST_RDONLY:
            yield problem(
                "disk", f"The file system of {place} is read-only.", "Mount it for writing; see `dmesg` for why it is."
            )
        elif free < _FULL_MIB or (found.f_files and found.f_favail < _LOW_INODES // 10):
            yield problem("disk", f"The disk is full: {text}, with {found.f_favail:,} inodes.", fix)
        elif free < _LOW_MIB or (found.f_files and found.f_favail < _LOW_INODES):
            yield warning("disk", f"The disk is nearly full: {text}, with {found.f_favail:,} inodes.", fix)
        else:
            yield ok("disk", text)


def _existing(folder: Path) -> Path:
    while not folder.exists() and folder.parent != folder:
        folder = folder.parent
    return folder
