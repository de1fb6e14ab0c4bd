"""Builder of Kontrast's bill of materials and of its third parties' licences in `dist/`.

Run it by `make dist`. cyclonedx-py lists the packages from the pins of `requirements/run.txt`, or of other given files.
pip-licenses reads their licences from the installed packages. The jars come from `artifacts.lock` and
`artifacts.licences`. Equal pins give equal files, byte for byte.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import License
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from cyclonedx.validation import make_schemabased_validator
from packageurl import PackageURL
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from lab.release.licences import LICENCES_FILE, Licensed, read_licences  # noqa: E402
from streaming.java.artifacts import LOCK_FILE, SETS, jars, read_lock  # noqa: E402 (the checkout's own)

_RUN = "requirements/run.txt"
_TEXT_IN_JAR = re.compile(r"META-INF/(?:LICEN[CS]E|NOTICE)(?:\.(?:txt|md))?", re.IGNORECASE)
_UNKNOWN = "UNKNOWN"
_RULE = "-" * 80


def make(directory: Path, *files: str) -> tuple[Path, ...]:
    """Write kontrast.cdx.json and NOTICE into this directory. Raise LicenceError or CalledProcessError."""
    pins = "".join((ROOT / file).read_text(encoding="utf-8") for file in files or [_RUN])
    directory.mkdir(parents=True, exist_ok=True)
    bill, notice = directory / "kontrast.cdx.json", directory / "NOTICE"
    packages = installed_licences(pins)
    bill.write_text(bill_of_materials(pins, packages), encoding="utf-8")
    notice.write_text("".join(_notice(packages)), encoding="utf-8")
    return bill, notice


def installed_licences(pins: str) -> Sequence[Mapping[str, str]]:
    """Return the pinned packages that this Python needs, with the names and texts of their licences."""
    pinned = re.findall(r"^([a-z0-9-]+)==", pins, re.MULTILINE)
    texts = ("--with-license-file", "--no-license-path", "--with-notice-file")
    return json.loads(_run("piplicenses", "--format=json", "--with-urls", *texts, "--packages", *sorted({*pinned})))


def bill_of_materials(pins: str, packages: Sequence[Mapping[str, str]]) -> str:
    """Return the bill of materials in CycloneDX's JSON, which is valid by CycloneDX's schema."""
    options = ("--pyproject", str(ROOT / "pyproject.toml"), "--output-reproducible")
    from_json: Callable[[object], Any] = Bom.from_json  # type: ignore[attr-defined] # a decorator makes it
    bill = from_json(json.loads(_run("cyclonedx_py", "requirements", "-", *options, read=pins)))
    licences = {(canonicalize_name(each["Name"]), each["Version"]): each["License"] for each in packages}
    for component in bill.components:
        name = licences.get((component.name, component.version), _UNKNOWN)
        component.licenses.update(_licences([] if name == _UNKNOWN else [name]))
    bill.components.update(_jars())
    bill.register_dependency(bill.metadata.component, bill.components)
    bill.metadata.timestamp = bill.serial_number = None  # equal pins give equal bytes
    text = make_outputter(bill, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=2)
    problem = make_schemabased_validator(OutputFormat.JSON, SchemaVersion.V1_6).validate_str(text)
    assert problem is None, problem
    return f"{text}\n"


def _jars() -> Iterator[Component]:
    lock, licences = read_lock(LOCK_FILE), read_licences(LICENCES_FILE)
    by_coordinates = {
        licences[f"{artifact_set}/{jar}"]: checksum
        for artifact_set, checksums in lock.items()
        for jar, checksum in checksums.items()
    }
    for artifact, checksum in by_coordinates.items():
        group, name, version = artifact.coordinates.split(":")
        url = PackageURL("maven", group, name, version)
        yield Component(
            name=name,
            group=group,
            version=version,
            type=ComponentType.LIBRARY,
            purl=url,
            bom_ref=str(url),
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=checksum)],
            licenses=_licences(artifact.licences),
        )


def _licences(names: Iterable[str]) -> list[License]:
    return [LicenseFactory().make_from_string(name) for name in names]


def _notice(packages: Sequence[Mapping[str, str]]) -> Iterator[str]:
    yield "Kontrast needs the following packages and jars. They are under licences of their own.\n"
    for package in packages:
        texts = (package["LicenseText"], package["NoticeText"])
        yield from _entry(f"{package['Name']} {package['Version']}", package["License"], package["URL"], texts)
    licences = read_licences(LICENCES_FILE)
    noticed: set[Licensed] = set()
    for artifact_set in SETS:
        for jar in jars(artifact_set):
            artifact = licences[f"{artifact_set.name}/{jar.name}"]
            if artifact not in noticed:
                noticed.add(artifact)
                yield from _entry(artifact.coordinates, "; ".join(artifact.licences), "", _texts_in(jar))


def _entry(name: str, licence: str, url: str, texts: Iterable[str]) -> Iterator[str]:
    yield f"\n{_RULE}\n{name}\n{licence}\n"
    yield from (f"{line}\n" for line in (url,) if line)
    yield from (f"\n{text.strip()}\n" for text in texts if text.strip() not in {"", _UNKNOWN})


def _texts_in(jar: Path) -> list[str]:
    with zipfile.ZipFile(jar) as archive:
        names = sorted(name for name in archive.namelist() if _TEXT_IN_JAR.fullmatch(name))
        return [archive.read(name).decode(errors="replace") for name in names]


def _run(module: str, *arguments: str, read: str = "") -> str:
    # Ignore cyclonedx-py's warning that a requirements file has no graph of dependencies.
    command = [sys.executable, "-W", "ignore::UserWarning", "-m", module, *arguments]
    return subprocess.run(command, input=read, stdout=subprocess.PIPE, check=True, text=True).stdout


if __name__ == "__main__":
    for made in make(ROOT / "dist", *sys.argv[1:]):
        sys.stdout.write(f"{made.relative_to(ROOT)}\n")
