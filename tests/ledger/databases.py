"""Real database servers for tests: found or installed (Debian packages, when root), started in a temporary folder.

A server runs as an unprivileged user where this process is root, listens on a loopback port and a unix socket, and is
stopped with the session. Where it cannot be had, tests that need it are skipped, in one line that says why.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import fcntl
import functools
import itertools
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bayplan.cluster.credentials import Authority, write_private
from bayplan.ledger.store.migrating import migrate

PASSWORD = "s3cret"
_NUMBERS = itertools.count()
_WAIT = 60.0
_SQLITE = "sqlite:///"


class CannotHaveError(Exception):
    """A server cannot be had on this machine; the text says why."""


def _program(name: str) -> Path | None:
    """A program of a server, on the path or where Debian puts it."""
    found = shutil.which(name)
    if found:
        return Path(found).resolve()
    places = (*Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), Path("/usr/sbin") / name)
    return next((each for each in sorted(places, reverse=True) if each.exists()), None)


def _needed(name: str, package: str) -> Path:
    """A program, installed when it is missing and this process may."""
    found = _program(name)
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        with Path(tempfile.gettempdir(), "bayplan-test-install.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # several test processes may find it missing at once
            if _program(name) is None:
                env = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
                subprocess.run(["apt-get", "update"], check=False, env=env, capture_output=True)
                subprocess.run(["apt-get", "install", "-y", package], check=False, env=env, capture_output=True)
        found = _program(name)
    if found is None:
        raise CannotHaveError(f"{name} is not installed (Debian: apt-get install {package})")
    return found


def having(name: str, package: str) -> Path:
    """A program that a test needs; skips the test where it cannot be had."""
    try:
        return _needed(name, package)
    except CannotHaveError as error:
        pytest.skip(str(error))


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class Server:
    """A database server of the tests' own."""

    scheme = ""
    account = ""
    """The unprivileged user of its package."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="bayplan-db-"))
        self.port = _free_port()
        self.user: str | None = None
        if os.geteuid() == 0:
            names = [name for name in (self.account, "nobody") if _has_account(name)]
            self.user = names[0]
            shutil.chown(self.folder, self.user)
        self._process: subprocess.Popen[bytes] | None = None
        self._certify()
        self._prepare()
        self.start()
        atexit.register(self.remove)

    def _certify(self) -> None:
        """A certificate for TLS, signed by an authority of its own (`authority.crt`)."""
        authority = Authority("test databases", datetime.now(UTC))
        certificate, key = authority.serving("127.0.0.1")
        for name, content in (("authority.crt", authority.pem), ("tls.crt", certificate), ("tls.key", key)):
            shutil.chown(write_private(self.folder / name, content), self.user or os.geteuid())

    def run(self, *command: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        """A program of the server's, as its user."""
        words = [str(word) for word in command]
        done = subprocess.run(
            words, check=False, user=self.user, cwd=self.folder, capture_output=True, text=True, timeout=120
        )
        if check and done.returncode:
            raise CannotHaveError(f"{words[0]}: {(done.stderr or done.stdout).strip().splitlines()[-1:]}")
        return done

    def start(self) -> None:
        """Run it, until it answers."""
        log = (self.folder / "log").open("ab")
        self._process = subprocess.Popen(self._command(), user=self.user, cwd=self.folder, stdout=log, stderr=log)
        log.close()
        until = time.monotonic() + _WAIT
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > until:
                last = (self.folder / "log").read_text().strip().splitlines()[-1:]
                raise CannotHaveError(f"{self.scheme} does not start: {last}")
            time.sleep(0.1)

    def stop(self) -> None:
        """Kill it, as an outage does; `start` brings it back with what it had."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def remove(self) -> None:
        """Stop it and delete its folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def create(self, name: str) -> str:
        """A new, empty database; its URL."""
        self._create(name)
        return f"{self.scheme}://ledger:{PASSWORD}@127.0.0.1:{self.port}/{name}"

    def _prepare(self) -> None:
        raise NotImplementedError

    def _command(self) -> list[str]:
        raise NotImplementedError

    def _answers(self) -> bool:
        raise NotImplementedError

    def _create(self, name: str) -> None:
        raise NotImplementedError


def _has_account(name: str) -> bool:
    with contextlib.suppress(KeyError):
        return bool(pwd.getpwnam(name))
    return False


class Postgres(Server):
    """PostgreSQL."""

    scheme = "postgresql"
    account = "postgres"

    def _prepare(self) -> None:
        self.postgres = _needed("postgres", "postgresql")
        self.data = self.folder / "data"
        bin_ = self.postgres.parent
        self.run(
            bin_ / "initdb", "-D", self.data, "-U", "super", "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C"
        )
        rules = "local all all trust\nhost all super 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n"
        (self.data / "pg_hba.conf").write_text(rules)

    def _command(self) -> list[str]:
        settings = {"listen_addresses": "127.0.0.1", "fsync": os.environ.get("BAYPLAN_TEST_FSYNC", "off"), "ssl": "on"}
        settings |= {"ssl_cert_file": f"{self.folder}/tls.crt", "ssl_key_file": f"{self.folder}/tls.key"}
        words = [str(self.postgres), "-D", str(self.data), "-k", str(self.folder), "-p", str(self.port)]
        return [*words, *(word for name, value in settings.items() for word in ("-c", f"{name}={value}"))]

    def _answers(self) -> bool:
        return self._sql("SELECT 1", check=False).returncode == 0

    def _sql(self, *statements: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        words = [word for each in statements for word in ("-c", each)]
        psql = self.postgres.parent / "psql"
        return self.run(
            psql, "-h", self.folder, "-p", str(self.port), "-U", "super", "-q", *words, "postgres", check=check
        )

    def _create(self, name: str) -> None:
        self._sql(f"CREATE ROLE ledger LOGIN PASSWORD '{PASSWORD}'", check=False)
        self._sql(f"CREATE DATABASE {name} OWNER ledger")


class MariaDb(Server):
    """MariaDB."""

    scheme = "mysql"
    account = "mysql"

    def _prepare(self) -> None:
        self.mariadbd = _needed("mariadbd", "mariadb-server")
        self.client = _needed("mariadb", "mariadb-client")
        self.data = self.folder / "data"
        install = _needed("mariadb-install-db", "mariadb-server")
        self.run(
            install, "--no-defaults", f"--datadir={self.data}", "--auth-root-authentication-method=normal",
            "--skip-test-db",
        )  # fmt: skip

    def _command(self) -> list[str]:
        # 2: a transaction survives the server's death, as PostgreSQL's do without fsync; 0 loses the last second's
        flush = "1" if os.environ.get("BAYPLAN_TEST_FSYNC") == "on" else "2"
        return [
            str(self.mariadbd), "--no-defaults", f"--datadir={self.data}", f"--socket={self.folder}/sock",
            f"--port={self.port}", "--bind-address=127.0.0.1", f"--pid-file={self.folder}/pid",
            f"--innodb-flush-log-at-trx-commit={flush}", "--skip-log-bin",
            "--innodb-buffer-pool-size=2G",  # taken as it is needed; it goes around the system's cache of files
            f"--ssl-cert={self.folder}/tls.crt", f"--ssl-key={self.folder}/tls.key",
        ]  # fmt: skip

    def _answers(self) -> bool:
        return self._sql("SELECT 1", check=False).returncode == 0

    def _sql(self, text: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return self.run(
            self.client, "--no-defaults", f"--socket={self.folder}/sock", "-u", "root", "-e", text, check=check
        )

    def _create(self, name: str) -> None:
        self._sql(
            f"CREATE USER IF NOT EXISTS ledger@'%' IDENTIFIED BY '{PASSWORD}';"
            f" CREATE DATABASE {name} CHARACTER SET utf8mb4; GRANT ALL ON {name}.* TO ledger@'%'"
        )


@functools.cache
def _started(start: Callable[[], Server], name: str) -> Server | str:
    try:
        return start()
    except (CannotHaveError, OSError, subprocess.SubprocessError) as error:
        return f"{name}: {error}"


def server(kind: type[Server]) -> Server:
    """The session's server of a kind; skips the test where there can be none."""
    start: Callable[[], Server] = kind
    found = _started(start, kind.__name__)
    if isinstance(found, str):
        pytest.skip(found)
    return found


def _empty_sqlite() -> str:
    folder = Path(tempfile.mkdtemp(prefix="bayplan-db-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return f"{_SQLITE}{folder}/ledger.db"


@functools.cache
def _with_schema() -> bytes:
    """An SQLite file with the schema and nothing else."""
    url = _empty_sqlite()
    asyncio.run(migrate(url))
    return Path(url.removeprefix(_SQLITE)).read_bytes()


def _copy(path: Path) -> None:
    with path.open("xb") as file:
        file.write(_with_schema())


async def prepared(url: str) -> str:
    """Give a new database its schema. Migrating takes a tenth of a second: SQLite files are copies of one."""
    if url.startswith(_SQLITE):
        await asyncio.to_thread(_copy, Path(url.removeprefix(_SQLITE)))
    else:
        await migrate(url)
    return url


def _name() -> str:
    return f"ledger_{os.getpid()}_{next(_NUMBERS)}"


EMPTY: dict[str, Callable[[], str]] = {
    "SQLite": _empty_sqlite,
    "PostgreSQL": lambda: server(Postgres).create(_name()),
    "MariaDB": lambda: server(MariaDb).create(_name()),
}
"""How to get the URL of a new, empty database of each kind."""


KINDS = [pytest.param(each, marks=() if each == "SQLite" else (pytest.mark.slow,)) for each in EMPTY]
"""For parametrizing; servers have to be started, so what needs them is slow."""


@pytest.fixture(params=KINDS)
def empty_database(request: pytest.FixtureRequest) -> str:
    """The URL of a database with nothing in it, of each kind in turn."""
    return EMPTY[request.param]()
