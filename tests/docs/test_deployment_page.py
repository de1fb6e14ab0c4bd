"""Prometheus's example on the page on deployment, which is a valid configuration."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.programs import program

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "deploy.md"


def test_promtool_reads_the_scrape_configuration(tmp_path):
    (shown,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    config = tmp_path / "prometheus.yml"
    config.write_text(shown)
    command = [program("promtool"), "check", "config", "--syntax-only", str(config)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
