"""A real Alertmanager on loopback, which tests start, stop and ask."""

from __future__ import annotations

import base64
import json
import shutil
import ssl
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from cli.embedded.process import ChildProcess, accepts_connections, free_port
from dashboards.alerting.message import NEWS, OTHER_BROKER
from tests.programs import program

_CONFIG = "route: {receiver: nobody, group_wait: 1s}\nreceivers: [{name: nobody}]\n"
_START_SECONDS = 60


class AlertmanagerServer:
    """One Alertmanager without a cluster of its own.

    `web` is its web configuration. Clients need `scheme` and `login` for it.
    """

    def __init__(
        self, directory: Path, *, config: str = _CONFIG, web: str = "", scheme: str = "http", login: str = ""
    ) -> None:
        directory.mkdir()
        self.port = free_port()
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        self._directory = directory
        self._login = login
        (directory / "alertmanager.yml").write_text(config)
        arguments = ["--config.file=alertmanager.yml", f"--web.listen-address=127.0.0.1:{self.port}"]
        arguments += ["--cluster.listen-address=", f"--storage.path={directory / 'data'}"]
        if web:
            (directory / "web.yml").write_text(web)
            arguments.append("--web.config.file=web.yml")
        command = [program("alertmanager"), *arguments]
        self._process = ChildProcess("Alertmanager", command, directory / "alertmanager.log")

    def start(self) -> AlertmanagerServer:
        """Start Alertmanager without a memory of earlier alerts."""
        self._process.launch()
        self._process.wait_until(lambda: accepts_connections(self.port), timeout_seconds=_START_SECONDS)
        return self

    def kill(self) -> None:
        """Kill Alertmanager at once, and delete its data."""
        self._process.kill()
        shutil.rmtree(self._directory / "data", ignore_errors=True)

    def restart(self) -> None:
        """Stop Alertmanager cleanly, and start it again. It remembers its notifications, but no alerts."""
        self._process.stop()
        self.start()

    def pause(self) -> None:
        """Pause Alertmanager, so that it accepts connections without an answer."""
        self._process.pause()

    def resume(self) -> None:
        """Let Alertmanager go on after a pause."""
        self._process.resume()

    def alerts(self) -> dict[str, dict[str, Any]]:
        """Return the alerts that are not over, by Kontrast's id. Fail if two share an id, but for further brokers."""
        request = urllib.request.Request(f"{self.url}/api/v2/alerts")
        if self._login:
            request.add_header("Authorization", f"Basic {base64.b64encode(self._login.encode()).decode()}")
        context = ssl._create_unverified_context() if self.url.startswith("https") else None
        with urllib.request.urlopen(request, timeout=30, context=context) as answer:
            found = [alert for alert in json.load(answer) if not {OTHER_BROKER, NEWS} & alert["labels"].keys()]
        by_id = {unquote(alert["annotations"]["alert_id"]): alert for alert in found}
        assert len(by_id) == len(found), found
        return by_id
