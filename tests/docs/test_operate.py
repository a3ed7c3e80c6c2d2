"""The files in `deploy/`: each is run, or checked by the program that reads it."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
import yaml

from noetl import __version__
from noetl.configuration import keys
from noetl.settings import VARIABLES
from tests.acceptance.run import noetl
from tests.acceptance.running import until
from tests.certificates import self_signed
from tests.databases import empty_database
from tests.docs.pages import ROOT
from tests.server.serving import ONE, PATIENCE_S, bearer, playbook, process
from tests.services import free_port

DEPLOY = ROOT / "deploy"
UNITS = DEPLOY / "systemd"
BIG = playbook(
    "  - step: big\n    tool: {kind: python, code: \"result = 'x' * 300_000\", output: {store: {kind: file}}}\n", "big"
)


def ok(*arguments: str, cwd: Path, **environment: str) -> str:
    ran = noetl(*arguments, cwd=cwd, stdin=None, **environment)
    assert ran.code == 0, ran.err
    return ran.out


def test_units_are_valid(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("this machine has no systemd-analyze")
    program = tmp_path / "noetl"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    names = []
    for unit in UNITS.iterdir():
        text = unit.read_text().replace("/opt/noetl/bin/noetl", str(program))
        name = unit.name.replace("@.", "@1.")
        (tmp_path / name).write_text(text.replace("/opt/noetl/backup.sh", str(DEPLOY / "backup.sh")))
        names.append(str(tmp_path / name))
    done = subprocess.run(["systemd-analyze", "verify", *names], capture_output=True, text=True, check=False)
    assert (done.returncode, [line for line in done.stderr.splitlines() if str(tmp_path) in line]) == (0, [])
    (broken := tmp_path / "broken.service").write_text("[Service]\nExecStart=/no/such/program\n")
    assert subprocess.run(["systemd-analyze", "verify", broken], capture_output=True, check=False).returncode


def started_commands() -> Iterator[list[str]]:
    """Yield every call of noetl in a unit, the image and the Compose file."""
    for unit in UNITS.glob("*.service"):
        for line in re.findall(r"^Exec\w+=/opt/noetl/bin/noetl (.*)$", unit.read_text(), re.MULTILINE):
            yield shlex.split(line)
    image = (DEPLOY / "docker" / "Dockerfile").read_text()
    yield json.loads(re.findall(r"^CMD (.*)$", image, re.MULTILINE)[0])
    for service in compose()["services"].values():
        if "command" in service:
            yield [str(word) for word in list(service["command"])]  # type: ignore[call-overload]
    text = (DEPLOY / "docker" / "compose.yaml").read_text()
    for line in re.findall(r"run --rm server (.*?)(?: >.*)?$", text, re.MULTILINE):
        yield shlex.split(line)


def compose() -> dict[str, dict[str, dict[str, object]]]:
    found: dict[str, dict[str, dict[str, object]]] = yaml.safe_load((DEPLOY / "docker" / "compose.yaml").read_text())
    return found


@pytest.mark.parametrize("arguments", list(started_commands()), ids=" ".join)
def test_a_command_exists_with_its_options(arguments: list[str], tmp_path: Path) -> None:
    options = [word for word in arguments if word.startswith("--")]
    words = [word for word in arguments if re.fullmatch(r"[a-z]+", word)]
    depth = 2 if words[0] in ("config", "db", "token") else 1
    shown = ok(*(["worker", "start"] if words[0] == "worker" else words[:depth]), "--help", cwd=tmp_path)
    assert all(re.search(rf"{option}\b", shown) for option in options)


def test_containers_name_only_settings_and_secrets_that_there_are() -> None:
    found = compose()
    names = {name for one in found["services"].values() for name in dict(one.get("environment", {}))}  # type: ignore[call-overload]
    ours = {name for name in names if name.startswith("NOETL_")}
    assert ours
    assert ours <= {*VARIABLES, *keys()}
    secrets = {name for one in found["services"].values() for name in list(one.get("secrets", []))}  # type: ignore[call-overload]
    assert secrets == set(found["secrets"])
    for unit in UNITS.glob("*.service"):
        assert set(re.findall(r"\b(NOETL_\w+)=", unit.read_text())) <= {*VARIABLES, *keys()}


def test_the_image_installs_what_a_wheel_has() -> None:
    """No engine builds it here: its steps are checked one by one."""
    text = (DEPLOY / "docker" / "Dockerfile").read_text().replace("\\\n", " ")
    steps = [line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#")]
    assert [step[0] for step in steps] == [
        "FROM",
        "COPY",
        "RUN",
        "USER",
        "WORKDIR",
        "ENV",
        "EXPOSE",
        "ENTRYPOINT",
        "CMD",
    ]
    project = (ROOT / "pyproject.toml").read_text()
    extras = re.findall(r"\[([\w,]+)\]\"", steps[2][1])[0].split(",")
    assert all(re.search(rf"^{extra} = \[", project, re.MULTILINE) for extra in extras)
    shell = subprocess.run(["sh", "-n", "-c", steps[2][1]], capture_output=True, check=False)
    assert (shell.returncode, shell.stderr) == (0, b"")


@pytest.fixture(scope="session")
def nginx() -> Path:
    """Return the program of Debian's package, which is unpacked, not installed."""
    found = shutil.which("nginx", path="/usr/sbin:/usr/bin") or str(ROOT / ".venv" / "nginx" / "usr" / "sbin" / "nginx")
    if not Path(found).exists():
        subprocess.run([ROOT / "scripts" / "nginx.sh", ROOT / ".venv" / "nginx"], check=True)
    if not Path(found).exists():
        pytest.skip("this machine has no nginx, and no Debian packages")
    return Path(found)


def listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def proxy(program: Path, folder: Path, server: str) -> Iterator[tuple[str, Path]]:
    """Run nginx in front of a server; yield its URL and certificate."""
    _, certificate = self_signed(folder)
    port = free_port()
    site = (DEPLOY / "nginx" / "noetl.conf").read_text()
    for shown, real in {
        "127.0.0.1:8082": server.removeprefix("http://"),
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        "noetl.example.com;": "127.0.0.1;",
        "/etc/nginx/tls/noetl.crt": str(certificate),
        "/etc/nginx/tls/noetl.key": str(certificate.with_suffix(".key")),
    }.items():
        assert shown in site
        site = site.replace(shown, real)
    (folder / "site.conf").write_text(site)
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off; user root; pid {folder}/pid; error_log {folder}/error.log;\nevents {{}}\n"
        f"http {{ access_log off; {temporary} include {folder}/site.conf; }}\n"
    )
    command = [str(program), "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "start.log")]
    checked = subprocess.run([*command, "-t"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    running = subprocess.Popen(command)
    try:
        until(lambda: listens(port), "the start of nginx")  # the check of its file has made the pid file
        yield f"https://127.0.0.1:{port}", certificate
    finally:
        running.send_signal(signal.SIGTERM)
        running.wait()


def test_tls_behind_nginx(tmp_path: Path, nginx: Path) -> None:
    (tmp_path / "proxy").mkdir()
    tokens = {
        role: json.loads(ok("token", "create", "--role", role, "--json", cwd=tmp_path)) for role in ("admin", "worker")
    }
    admin = tokens["admin"]["secret"] if "secret" in tokens["admin"] else tokens["admin"]["token"]
    working = tokens["worker"]["secret"] if "secret" in tokens["worker"] else tokens["worker"]["token"]
    with (
        process(tmp_path, "serve", auth="token", environment={"NOETL_ALLOWED_HOSTS": "127.0.0.1"}) as (server, _serve),
        proxy(nginx, tmp_path / "proxy", server) as (url, certificate),
        httpx.Client(
            base_url=url,
            verify=ssl.create_default_context(cafile=certificate),
            headers=bearer(admin),
            timeout=PATIENCE_S,
        ) as client,
    ):
        assert client.get("/ready").json()["status"] == "ready"
        assert client.get("/api/me", headers={"Authorization": ""}).status_code == 401
        path = client.post("/api/catalog", json={"content": ONE}).json()["path"]
        execution = client.post("/api/execute", json={"path": path}).json()["execution_id"]
        given = {**os.environ, "SSL_CERT_FILE": str(certificate), "NOETL_TOKEN": working, "NOETL_SERVER_URL": url}
        worker = subprocess.Popen(
            [sys.executable, "-m", "noetl", "worker"], env=given, cwd=tmp_path, stderr=subprocess.PIPE
        )
        try:
            with client.stream("GET", f"/api/executions/{execution}/events/stream") as answer:
                seen = [line for line in answer.iter_lines() if line.startswith("event:")]
            assert seen[-1] == "event: end"
            assert client.get(f"/api/executions/{execution}").json()["status"] == "completed"
            assert len(client.get("/api/workers").json()["workers"]) == 1
        finally:
            worker.send_signal(signal.SIGTERM)
            _, errors = worker.communicate(timeout=PATIENCE_S)
        assert worker.returncode == 0, errors.decode()


def test_a_restored_backup_has_lost_nothing(tmp_path: Path) -> None:
    home, kept = tmp_path / ".noetl", tmp_path / "backups"
    (tmp_path / "big.yaml").write_text(BIG)
    (tmp_path / "one.yaml").write_text(ONE)
    for file in ("big.yaml", "one.yaml", "one.yaml"):
        ok("run", file, cwd=tmp_path)
    ok("credential", "put", "api", "--data", '{"token": "abc"}', cwd=tmp_path)
    program = tmp_path / "bin" / "noetl"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m noetl "$@"\n')
    program.chmod(0o755)
    given = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "NOETL_HOME": str(home), "KEEP": "1"}
    with process(tmp_path, "up") as (url, _up):  # it is in use
        command = [DEPLOY / "backup.sh", kept]
        subprocess.run(command, env=given, check=True)
        until(lambda: f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}" != next(kept.iterdir()).name, "the next second")
        done = subprocess.run(command, env=given, capture_output=True, text=True, check=True)
        assert httpx.get(f"{url}/health").is_success
    before = ok("runs", "--json", cwd=tmp_path)
    events = [ok("events", json.loads(row)["execution_id"], "--json", cwd=tmp_path) for row in before.splitlines()]
    made = Path(done.stdout.splitlines()[-1])
    assert list(kept.iterdir()) == [made]  # one is kept
    shutil.rmtree(home)
    home.mkdir(mode=0o700)
    shutil.copy(made / "key", home / "key")
    shutil.copytree(made / "blobs", home / "blobs")
    ok("admin", "restore", str(made / "noetl.db"), cwd=tmp_path)
    assert ok("runs", "--json", cwd=tmp_path) == before
    assert [
        ok("events", json.loads(row)["execution_id"], "--json", cwd=tmp_path) for row in before.splitlines()
    ] == events
    assert ok("admin", "rebuild", "--check", cwd=tmp_path) is not None
    assert json.loads(ok("doctor", "--json", cwd=tmp_path))["problems"] == 0
    big = json.loads(before.splitlines()[-1])["execution_id"]
    assert "x" * 1000 in ok("replay", big, cwd=tmp_path) or (home / "blobs").exists()


def test_two_versions_run_side_by_side(tmp_path: Path) -> None:
    """A mixed set-up loses nothing; the newer one is this one with another number."""
    newer = tmp_path / "newer"
    shutil.copytree(ROOT / "src", newer, ignore=shutil.ignore_patterns("__pycache__"))
    text = (newer / "noetl" / "__init__.py").read_text()
    (newer / "noetl" / "__init__.py").write_text(text.replace(f'"{__version__}"', '"99.0.0"'))
    with empty_database() as database:
        key = ok("credential", "key", cwd=tmp_path).strip()
        given = {"NOETL_DB_URL": database, "NOETL_ENCRYPTION_KEY": key}
        with process(tmp_path, "up", environment=given) as (old, up):
            run_ten(old)
            with process(tmp_path, "up", environment={**given, "PYTHONPATH": str(newer)}) as (new, _up):
                assert [httpx.get(f"{one}/health").json()["version"] for one in (old, new)] == [__version__, "99.0.0"]
                assert "has version 99.0.0" in noetl("doctor", "--server", new, cwd=tmp_path).out
                run_ten(old)
                run_ten(new)
                up.send_signal(signal.SIGTERM)
                assert up.wait(PATIENCE_S) == 0
                run_ten(new)
                listed = httpx.get(f"{new}/api/executions", params={"limit": 100}).json()["executions"]
                assert [one["status"] for one in listed] == ["completed"] * 40
        assert ok("db", "check", "--deep", cwd=tmp_path, NOETL_DB_URL=database) == ""


def run_ten(url: str) -> None:
    """Run ten executions at a server to their end."""
    with httpx.Client(base_url=url, timeout=PATIENCE_S) as client:
        path = client.post("/api/catalog", json={"content": ONE}).json()["path"]
        asked = {"path": path, "payloads": [{"n": n} for n in range(10)], "wait_ms": 20_000}
        assert client.post("/api/execute/many", json=asked).json()["counts"] == {"completed": 10}
