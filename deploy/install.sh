#!/bin/sh
# Makes .venv with all that Kontrast needs, gets Java where there is none, and fills the cache of Maven artifacts.
#
# $PYTHON names the Python to use (default: the first of python3, python3.10, ... that is 3.10 or newer).
# Done steps are skipped. As root on Debian, missing system packages are installed; otherwise it says what to install.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cd "$root"
venv_python=.venv/bin/python

say() { printf 'install: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

[ $# = 0 ] || fail "unknown argument $1: there is none"
profile=${profile:-run} # lab/install_dev.sh reads this file for the profile dev

# --- system packages --------------------------------------------------------------------------------------------------

can_apt() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; }

apt_updated=
apt_update() {
    [ -n "$apt_updated" ] || DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2
    apt_updated=yes
}

apt_install() {
    say "installing the system package $*"
    apt_update
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq -o Dpkg::Use-Pty=0 --no-install-recommends "$@" >&2
}

# --- Python -----------------------------------------------------------------------------------------------------------

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1; }

find_python() {
    if [ -n "${PYTHON-}" ]; then
        new_enough "$PYTHON" || fail "PYTHON is $PYTHON, which is no Python 3.10 or newer: name another or unset it"
        printf '%s' "$PYTHON"
        return
    fi
    for candidate in python3 python3.10 python3.11 python3.12 python3.13 python3.14; do
        if new_enough "$candidate"; then
            printf '%s' "$candidate"
            return
        fi
    done
    fail "no Python 3.10 or newer in PATH: install one, or set PYTHON to it"
}

make_venv() {
    if new_enough "$venv_python" && "$venv_python" -c 'import pip' 2>/dev/null; then
        return
    fi
    python=$(find_python)
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
        if can_apt; then
            apt_install "$package" || true
        fi
        "$python" -c 'import ensurepip, venv' 2>/dev/null ||
            fail "$python cannot make environments: install its venv module (Debian: apt-get install $package)"
    fi
    say "making .venv with $("$python" --version)"
    "$python" -m venv --clear .venv
}

# What an installation was made from; a moved checkout counts as another one.
checksum() { { printf '%s\n' "$root"; cat requirements/tools.txt "requirements/$1.txt" pyproject.toml; } | cksum; }

pip_install() { "$venv_python" -m pip install --quiet --disable-pip-version-check "$@"; }

# pip is silent while it builds pyspark, so that a slow machine looks like one that hangs.
report_progress() {
    seconds=0
    while sleep 10; do
        seconds=$((seconds + 10))
        say "still installing after $seconds s: .venv has $(du -sm .venv | cut -f 1) MB"
    done
}

install_packages() {
    if [ "$(cat ".venv/installed-$profile" 2>/dev/null)" = "$(checksum "$profile")" ]; then
        return
    fi
    say "installing the pinned packages (pyspark alone is 450 MB: a few minutes the first time)"
    report_progress &
    reporter=$!
    trap 'kill "$reporter" 2>/dev/null || true' EXIT
    # An environment begins with the pip and setuptools that its Python was released with, years old.
    pip_install --require-hashes -r requirements/tools.txt
    # pyspark is published as source only. pip builds it, and Kontrast, with the tools that are pinned by hash; in an
    # isolated environment pip would fetch tools of any version without a hash.
    pip_install --no-build-isolation --require-hashes -r "requirements/$profile.txt"
    pip_install --no-build-isolation --no-deps -e .
    kill "$reporter"
    trap - EXIT
    checksum run >.venv/installed-run # is part of dev
    checksum "$profile" >".venv/installed-$profile"
}

# --- Java and what runs on it -----------------------------------------------------------------------------------------

java_problem() {
    "$venv_python" -c '
import sys
from streaming.java.installation import JavaError, find_java
try:
    find_java()
except JavaError as error:
    sys.exit(str(error))
' 2>&1
}

get_java() {
    if java_problem >/dev/null; then
        return
    fi
    if can_apt && [ -z "${JAVA_HOME-}" ]; then
        apt_install openjdk-17-jre-headless || apt_install default-jre-headless || true
    fi
    problem=$(java_problem) || fail "$problem"
}

make_venv
install_packages
get_java
# For whoever runs it without the right to write here: each of Spark's Python processes would translate it again.
"$venv_python" -m compileall -q cli controller dashboards ingest migration outputs questions streaming transport wording
"$venv_python" -m streaming.java.artifacts --quiet
"$venv_python" -m streaming.spark_class_archive
