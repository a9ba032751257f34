"""Where the database is and how to speak to it: the URL people give, read once, and what else may be set.

    sqlite:///ledger.db               a file below the working folder; sqlite:////var/lib/ledger.db from the root
    postgresql://user@host/database   ?host=/run/postgresql for a unix socket
    mysql://user@host/database        ?unix_socket=/run/mysqld/mysqld.sock; mariadb:// is the same

The password never leaves `Address.url`: what is shown is `Address.shown`.
"""

from __future__ import annotations

import enum
import ssl
from pathlib import Path
from typing import Annotated

import msgspec
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from bayplan.model.errors import PermanentError

Positive = Annotated[int, msgspec.Meta(ge=1)]
Span = Annotated[float, msgspec.Meta(gt=0)]


class DatabaseUrlError(PermanentError):
    """The URL of a database cannot be read, or names a database that bayplan does not speak."""

    code = "BP-D004"

    def __init__(self, message: str) -> None:
        super().__init__(
            message,
            hint="sqlite:///FILE, postgresql://USER@HOST/DATABASE or mysql://USER@HOST/DATABASE (mariadb:// too)",
        )


class Dialect(enum.Enum):
    """The three databases."""

    SQLITE = "sqlite"
    POSTGRESQL = "postgresql"
    MYSQL = "mysql"
    """MariaDB too: they differ in collations and in one variable."""


class Tls(enum.Enum):
    """How much of a network connection is proved."""

    OFF = "off"
    REQUIRED = "required"
    """Encrypted, but the server's certificate is not looked at."""
    VERIFIED = "verified"
    """Encrypted, and the certificate must be signed by a known authority and name the host."""


class StoreSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What may be set about a database, besides its URL."""

    pool_size: Positive = 4
    """Connections at most, for reading and writing; one more waits for its turn."""
    connect_timeout: Span = 10.0
    """Seconds."""
    statement_timeout: Span = 60.0
    """Seconds for a statement; on SQLite, for its turn to write."""
    tls: Tls = Tls.OFF
    tls_authority: str = ""
    """File with the authorities that may sign the server's certificate; empty: the system's."""

    def tls_context(self) -> ssl.SSLContext | None:
        """How to encrypt; None: not at all. Raises DatabaseUrlError when a file cannot be read."""
        if self.tls is Tls.OFF:
            return None
        try:
            context = ssl.create_default_context(cafile=self.tls_authority or None)
            if self.tls is Tls.REQUIRED:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
        except (OSError, ssl.SSLError) as error:
            raise DatabaseUrlError(f"TLS files for the database cannot be read: {error}") from error
        return context


class Address(msgspec.Struct, frozen=True):
    """A database's URL, understood."""

    dialect: Dialect
    url: URL

    @property
    def shown(self) -> str:
        """The URL without its password."""
        return self.url.render_as_string(hide_password=True)

    @property
    def path(self) -> Path:
        """The file of an SQLite database."""
        return Path(self.url.database or "")

    def without_secret(self, text: str) -> str:
        """A text in which the password, should a driver have quoted it, is hidden."""
        return text.replace(str(self.url.password), "***") if self.url.password else text


_DIALECTS = {
    "sqlite": Dialect.SQLITE,
    "postgresql": Dialect.POSTGRESQL,
    "postgres": Dialect.POSTGRESQL,
    "mysql": Dialect.MYSQL,
    "mariadb": Dialect.MYSQL,
}
_OPTIONS = {Dialect.SQLITE: frozenset[str](), Dialect.POSTGRESQL: {"host"}, Dialect.MYSQL: {"unix_socket"}}


def parse_url(text: str) -> Address:
    """Read a database's URL. Raises DatabaseUrlError, in one line and without the password."""
    try:
        url = make_url(text)
        _ = url.port
    except (ArgumentError, ValueError) as error:
        raise DatabaseUrlError("the database's URL cannot be read") from error
    dialect = _DIALECTS.get(url.drivername)
    if dialect is None:
        raise DatabaseUrlError(f"{url.drivername}: is no database that bayplan speaks")
    address = Address(dialect, url.set(drivername=dialect.value))
    unknown = sorted(set(url.query) - _OPTIONS[dialect])
    if unknown:
        raise DatabaseUrlError(f"{address.shown}: unknown option {unknown[0]!r}")
    if not url.database:
        raise DatabaseUrlError(f"{address.shown}: names no database")
    if dialect is Dialect.SQLITE and (url.database == ":memory:" or url.host):
        raise DatabaseUrlError(f"{address.shown}: a ledger is a file; three slashes, then its path")
    return address
