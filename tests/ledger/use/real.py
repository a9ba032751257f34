"""A real Prometheus for tests, found or installed as databases are, that scrapes an exporter of the test's own."""

from __future__ import annotations

import ssl
import urllib.error
import urllib.request
from pathlib import Path

import yaml

from tests.ledger.databases import Server, _needed


class RealPrometheus(Server):
    """Prometheus over TLS. It scrapes `targets` each second, twice: as it should be, and with labels renamed."""

    scheme = "prometheus"
    account = "prometheus"
    targets: Path

    def _prepare(self) -> None:
        self.program = _needed("prometheus", "prometheus")
        self.targets = self.folder / "targets.json"
        self.targets.write_text("[]")
        found = [{"files": [str(self.targets)], "refresh_interval": "1s"}]
        own = [{"target_label": "namespace", "replacement": "ops"}, {"target_label": "pod", "replacement": "exporter"}]
        jobs = [
            {"job_name": "honoured", "honor_labels": True, "file_sd_configs": found, "relabel_configs": own},
            {"job_name": "renamed", "file_sd_configs": found, "relabel_configs": own},
        ]
        config = {"global": {"scrape_interval": "1s"}, "scrape_configs": jobs}
        (self.folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        files = {"cert_file": str(self.folder / "tls.crt"), "key_file": str(self.folder / "tls.key")}
        (self.folder / "web.yml").write_text(yaml.safe_dump({"tls_server_config": files}))

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"https://127.0.0.1:{self.port}"

    @property
    def authority(self) -> str:
        """The file with the authority that signed its certificate."""
        return str(self.folder / "authority.crt")

    def _command(self) -> list[str]:
        return [
            str(self.program), "--config.file=prometheus.yml", "--web.config.file=web.yml", "--storage.tsdb.path=data",
            f"--web.listen-address=127.0.0.1:{self.port}",
        ]  # fmt: skip

    def _answers(self) -> bool:
        try:
            trusting = ssl.create_default_context(cafile=self.authority)
            with urllib.request.urlopen(f"{self.url}/-/ready", context=trusting, timeout=5) as answer:
                return bool(answer.status == 200)
        except (TimeoutError, urllib.error.URLError, ConnectionError):
            return False
