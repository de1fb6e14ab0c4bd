"""Builder of the files for spark-submit in `dist/`: code for --py-files, the program, and the list for --jars.

Run it by `make dist`. It needs only the standard library. Equal code gives an equal archive, byte for byte.
"""

from __future__ import annotations

import shutil
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

PACKAGES = (
    "cli",
    "controller",
    "dashboards",
    "ingest",
    "migration",
    "outputs",
    "questions",
    "streaming",
    "transport",
    "wording",
)
_FIRST_DAY_OF_ZIP = (1980, 1, 1, 0, 0, 0)
_FILE_MODE = 0o644 << 16


def make(directory: Path) -> tuple[Path, ...]:
    """Make the files in this directory: kontrast.zip, kontrast-stream.py, jars.txt."""
    directory.mkdir(parents=True, exist_ok=True)
    code = directory / "kontrast.zip"
    with zipfile.ZipFile(code, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*") if _belongs(path)):
            info = zipfile.ZipInfo(str(file.relative_to(ROOT)), _FIRST_DAY_OF_ZIP)
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, _FILE_MODE
            archive.writestr(info, file.read_bytes())
    program = Path(shutil.copy(ROOT / "deploy" / "spark" / "kontrast-stream.py", directory))
    jars = directory / "jars.txt"
    jars.write_text("".join(f"{name}\n" for name in connector_jars()), encoding="ascii")
    return code, program, jars


def connector_jars() -> list[str]:
    """Return the jars of Spark's Kafka connector, by Maven's names, for clusters that cannot reach a repository."""
    from streaming.java.artifacts import LOCK_FILE, SPARK_KAFKA_CONNECTOR, read_lock

    return sorted(read_lock(LOCK_FILE)[SPARK_KAFKA_CONNECTOR.name])


def _belongs(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts


if __name__ == "__main__":
    for made in make(ROOT / "dist"):
        sys.stdout.write(f"{made.relative_to(ROOT)}\n")
