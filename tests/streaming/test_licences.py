"""No jar that Kontrast ships lacks a licence or is under the GPL alone."""

from __future__ import annotations

import pytest

from lab.release.licences import LICENCES_FILE, LicenceError, Licensed, licensed, line_of, read_licences
from streaming.java.artifacts import LOCK_FILE, read_lock
from tests import older_releases

POM = "<project xmlns='http://maven.apache.org/POM/4.0.0'>{parent}<licenses>{licences}</licenses></project>"
PARENT = "<parent><groupId>example</groupId><artifactId>above</artifactId><version>2</version></parent>"


@pytest.mark.parametrize("lock_file", [LOCK_FILE, older_releases.LOCK_FILE])
def test_every_pinned_jar_has_a_licence_under_which_it_may_be_shipped(lock_file):
    pinned = {f"{artifact_set}/{jar}" for artifact_set, jars in read_lock(lock_file).items() for jar in jars}
    assert read_licences(lock_file.with_suffix(".licences")).keys() == pinned


def publish(cache, name, version, *licences, parent=""):
    names = "".join(f"<license><name>{licence}</name></license>" for licence in licences)
    pom = cache / "example" / name / f"ivy-{version}.xml.original"
    pom.parent.mkdir(parents=True, exist_ok=True)
    pom.write_text(POM.format(parent=parent, licences=names))


@pytest.mark.parametrize(
    "licences",
    [
        ("GNU General Public License, version 2",),
        ("GPL-3.0-only",),
        ("The GNU General Public Licence v3",),
        ("AGPL-3.0",),
        ("GPLv2", "GNU Affero General Public License"),
    ],
)
def test_a_jar_under_the_gpl_alone_is_rejected_by_name(tmp_path, licences):
    publish(tmp_path, "first", "1.0", *licences)
    with pytest.raises(
        LicenceError, match=r"example_first-1\.0\.jar is under .*, which an Apache-2\.0 program must not"
    ):
        licensed("example_first-1.0.jar", tmp_path)
    record = tmp_path / "some.licences"
    record.write_text(line_of("set/example_first-1.0.jar", Licensed("example:first:1.0", licences)))
    with pytest.raises(LicenceError, match=r"set/example_first-1\.0\.jar is under"):
        read_licences(record)


@pytest.mark.parametrize(
    "licences",
    [
        ("Apache-2.0",),
        ("CDDL 1.1", "GPL2 w/ CPE"),
        ("CDDL/GPLv2+CE",),
        ("GNU General Public License, version 2 with the Classpath Exception",),
        ("GPLv2", "The Apache License, Version 2.0"),
        ("GNU Lesser General Public License",),
        ("LGPL-2.1",),
    ],
)
def test_a_jar_that_may_be_shipped_keeps_the_names_of_its_licences(tmp_path, licences):
    publish(tmp_path, "first", "1.0", *licences)
    assert licensed("example_first-1.0.jar", tmp_path) == Licensed("example:first:1.0", licences)


def test_a_jar_without_a_licence_has_that_of_its_parent(tmp_path):
    publish(tmp_path, "first", "1.0", parent=PARENT)
    with pytest.raises(LicenceError, match=r"example_first-1\.0\.jar names no licence in its POMs"):
        licensed("example_first-1.0.jar", tmp_path)
    publish(tmp_path, "above", "2", "MIT")
    assert licensed("example_first-1.0-linux.jar", tmp_path) == Licensed("example:first:1.0", ("MIT",))


def test_a_jar_without_a_pom_is_rejected_by_name(tmp_path):
    with pytest.raises(LicenceError, match=r"example_first-1\.0\.jar has no POM"):
        licensed("example_first-1.0.jar", tmp_path)


def test_a_damaged_record_is_refused_by_line(tmp_path):
    (tmp_path / "some.licences").write_text("what is this\n")
    with pytest.raises(LicenceError, match="line 1 is damaged"):
        read_licences(tmp_path / "some.licences")
    assert read_licences(LICENCES_FILE)
