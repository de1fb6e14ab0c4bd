"""Build the image's file system without a container engine, by the Dockerfile's own steps in chroots.

`python -m tests.deploy.image_root build/image` needs root, debootstrap and the network. Each stage is a directory. An
existing stage is not built again. A step that this file does not know is an error, so that the Dockerfile cannot get a
step that no test runs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
DOCKERFILE: Final = ROOT / "deploy" / "Dockerfile"
MIRROR: Final = "http://deb.debian.org/debian"
BOUND: Final = ("proc", "dev")
_AUTHORITIES: Final = Path("/usr/local/share/ca-certificates")
_DONE: Final = ".image-root-done"
_IGNORED: Final = {"VOLUME", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT", "CMD", "USER"}


@dataclass(slots=True)
class Stage:
    """A stage of the Dockerfile: the name of its base, and its steps in order."""

    name: str
    base: str
    steps: list[tuple[str, str]] = field(default_factory=list)


def stages(text: str) -> list[Stage]:
    """Return the stages of a Dockerfile. The last one may have no name."""
    joined = re.sub(r"\\\n", " ", re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE))
    found: list[Stage] = []
    for line in filter(None, map(str.strip, joined.splitlines())):
        word, _, rest = line.partition(" ")
        if word == "FROM":
            base, _, name = rest.partition(" AS ")
            found.append(Stage(name.strip() or "image", base.strip()))
        elif found:
            found[-1].steps.append((word, rest.strip()))
    return found


def value_of(instruction: str, text: str) -> list[str]:
    """Return the words of ENTRYPOINT, HEALTHCHECK or the last CMD."""
    values = re.findall(rf"^{instruction} .*?(\[.*\])$", text, re.MULTILINE)
    words: list[str] = json.loads(values[-1])
    return words


class Builder:
    """The file systems of all stages below a directory."""

    def __init__(self, directory: Path, suite: str) -> None:
        self._directory = directory
        self._suite = suite
        self._environments: dict[str, dict[str, str]] = {}
        self._works: dict[str, str] = {}

    def build(self, text: str, last: str) -> Path:
        """Build the stage of this name and those that it needs."""
        by_name = {stage.name: stage for stage in stages(text)}
        self._build(by_name[last], by_name)
        return self._directory / last

    def _build(self, stage: Stage, by_name: Mapping[str, Stage]) -> None:
        for needed in self._needed(stage, by_name):
            self._build(needed, by_name)
        root = self._directory / stage.name
        environment = dict(self._environments.get(stage.base, {}))
        self._environments[stage.name] = environment
        done = (root / _DONE).exists()
        if not done:
            shutil.rmtree(root, ignore_errors=True)
            base = self._directory / stage.base if stage.base in by_name else self._bare()
            subprocess.run(["cp", "-a", "--reflink=auto", base, root], check=True)
            (root / _DONE).unlink(missing_ok=True)
        work = self._works.get(stage.base, "/")
        for word, rest in stage.steps:
            if word == "ENV":
                environment.update(re.findall(r"(\w+)=(\S+)", rest))
            elif word == "WORKDIR":
                work = rest
                (root / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)
            elif word == "RUN" and not done:
                self._run(root, work, rest, environment)
            elif word == "COPY" and not done:
                self._copy(root, work, rest)
            elif word not in _IGNORED | {"RUN", "COPY", "ARG"}:
                raise ValueError(f"{DOCKERFILE.name}: a step {word} of stage {stage.name}, which is not known here")
        self._works[stage.name] = work
        (root / _DONE).touch()

    def _needed(self, stage: Stage, by_name: Mapping[str, Stage]) -> Iterator[Stage]:
        names = [stage.base, *(name for word, rest in stage.steps for name in re.findall(r"--from=(\S+)", rest))]
        yield from (by_name[name] for name in names if name in by_name)

    def _bare(self) -> Path:
        """Return Debian's minimal system. It trusts this host's certificates, because builds may run behind a proxy."""
        root = self._directory / "bare"
        if not (root / _DONE).exists():
            shutil.rmtree(root, ignore_errors=True)
            subprocess.run(
                ["debootstrap", "--variant=minbase", self._suite, root, MIRROR], check=True, stdout=sys.stderr
            )
            if _AUTHORITIES.is_dir():
                shutil.copytree(_AUTHORITIES, root / _AUTHORITIES.relative_to("/"), dirs_exist_ok=True)
            shutil.copy("/etc/resolv.conf", root / "etc" / "resolv.conf")
            (root / _DONE).touch()
        return root

    def _run(self, root: Path, work: str, script: str, environment: Mapping[str, str]) -> None:
        print(f"== {root.name}: {script[:100]}", file=sys.stderr, flush=True)
        usual = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        kept = {"PATH": usual, "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive"}
        expanded = {name: value.replace("$PATH", usual) for name, value in environment.items()}
        binds = " && ".join(f'mount --rbind /{each} "$0/{each}"' for each in BOUND)
        inside = f'{binds} && exec chroot "$0" sh -c "cd $1 && $2"'
        subprocess.run(
            ["unshare", "--mount", "sh", "-c", inside, root, work, script],
            check=True,
            env={**kept, **expanded},
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
        )

    def _copy(self, root: Path, work: str, rest: str) -> None:
        words = rest.split()
        origin = words.pop(0).removeprefix("--from=") if words[0].startswith("--from=") else None
        source, target = words
        there = root / (target if target.startswith("/") else f"{work}/{target}").lstrip("/")
        if origin is None:
            self._copy_checkout(source, there)
            return
        there.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "-a", "--reflink=auto", self._directory / origin / source.lstrip("/"), there], check=True)

    def _copy_checkout(self, source: str, there: Path) -> None:
        """Copy the checkout's files below `source` that git knows, but for those that .dockerignore names."""
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            check=True,
            capture_output=True,
        ).stdout.split(b"\0")
        ignored = set((ROOT / ".dockerignore").read_text().split())
        for name in filter(None, map(os.fsdecode, listed)):
            is_sent = name.split("/")[0] not in ignored or f"!{name}" in ignored
            if is_sent and Path(name).is_relative_to(source) and (ROOT / name).is_file():
                copy = there / Path(name).relative_to(source)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, copy)


def main() -> None:
    """Build, and print the directory."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--stage", default="image", help="the stage to build (default: the last one)")
    asked = parser.parse_args()
    text = DOCKERFILE.read_text(encoding="utf-8")
    (suite,) = re.findall(r"^ARG BASE=debian:(\d+)", text, re.MULTILINE)
    names = {"12": "bookworm", "13": "trixie"}
    asked.directory.mkdir(parents=True, exist_ok=True)
    print(Builder(asked.directory.absolute(), names[suite]).build(text, asked.stage))


if __name__ == "__main__":
    main()
