"""The bill of materials and the licences that `make dist` makes name every pin and every jar."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from lab.release import bill_of_materials
from lab.release.licences import LICENCES_FILE, read_licences
from streaming.java.artifacts import LOCK_FILE, read_lock

pytestmark = pytest.mark.nightly

_ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def made(java: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    return bill_of_materials.make(tmp_path_factory.mktemp("dist"))


def pins(name: str = "run") -> str:
    return (_ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")


def pinned(text: str) -> set[tuple[str, str]]:
    return set(re.findall(r"^([a-z0-9-]+)==([^\s;]+)", text, re.MULTILINE))


def in_bill(file: Path) -> set[tuple[str, str]]:
    components = json.loads(file.read_text(encoding="utf-8"))["components"]
    return {(each["name"], each["version"]) for each in components if each["purl"].startswith("pkg:pypi/")}


def jar_coordinates() -> set[str]:
    return {artifact.coordinates for artifact in read_licences(LICENCES_FILE).values()}


def test_the_bill_has_every_pin_and_every_jar_with_hashes(made):
    bill = json.loads(made[0].read_text(encoding="utf-8"))
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert bill["metadata"]["component"]["name"] == "kontrast"
    packages = [each for each in bill["components"] if each["purl"].startswith("pkg:pypi/")]
    jars = [each for each in bill["components"] if each["purl"].startswith("pkg:maven/")]
    assert in_bill(made[0]) == pinned(pins())
    assert {f"{jar['group']}:{jar['name']}:{jar['version']}" for jar in jars} == jar_coordinates()
    checksums = {checksum for of_set in read_lock(LOCK_FILE).values() for checksum in of_set.values()}
    assert {jar["hashes"][0]["content"] for jar in jars} == checksums
    assert all(package["externalReferences"][0]["hashes"] for package in packages)
    assert all(each["licenses"] for each in jars)


def test_the_notice_names_the_licence_of_all_that_is_installed(made):
    _, *entries = made[1].read_text(encoding="utf-8").split(f"\n{'-' * 80}\n")
    licence_of = dict(entry.split("\n")[:2] for entry in entries if re.match(r"\S+( \S+)?\n", entry))
    assert jar_coordinates() <= licence_of.keys()
    packages = {package["Name"] for package in bill_of_materials.installed_licences(pins())}
    assert {"pyspark", "kazoo", "msgspec", "numpy"} <= packages <= {name.split(" ")[0] for name in licence_of}
    assert not [name for name, licence in licence_of.items() if licence in {"", "UNKNOWN"}]
    assert not [name for name, licence in licence_of.items() if re.search(r"\bA?GPL", licence)]


def test_equal_pins_give_equal_files(made, tmp_path):
    again = bill_of_materials.make(tmp_path)
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in made]


def test_the_image_s_bill_has_the_pins_for_kerberos_too(java, tmp_path):
    bill, _ = bill_of_materials.make(tmp_path, "requirements/run.txt", "requirements/kerberos.txt")
    assert in_bill(bill) == pinned(pins()) | pinned(pins("kerberos")) > pinned(pins())
