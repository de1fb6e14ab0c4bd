#!/bin/sh
# Makes .venv with what the tests need, too: what deploy/install.sh makes, packages, and programs that tests run.
set -eu

profile=dev
. "$(dirname -- "$0")/../deploy/install.sh"

# Some tests run programs of Prometheus. Only these are taken from the packages: nothing is set up or started.
get_monitoring() {
    get_programs prometheus prometheus promtool
    get_programs prometheus-alertmanager alertmanager amtool
}

# Debian's alertmanager does not start without this directory of its package; others have it within.
alertmanager_templates=/usr/share/prometheus/alertmanager

is_missing() {
    ! (PATH=$root/.venv/bin:$PATH && command -v "$1") >/dev/null 2>&1 ||
        { [ "$1" = alertmanager ] && [ -e .venv/bin/alertmanager ] && [ ! -e "$alertmanager_templates" ]; }
}

# get_programs PACKAGE PROGRAM...: Debian puts the package's name before a program's where the bare one is too general.
get_programs() (
    package=$1
    shift
    missing=
    for program in "$@"; do
        is_missing "$program" && missing="$missing $program"
    done
    [ -n "$missing" ] || exit 0
    if ! can_apt; then
        say "not in PATH:$missing. Tests that need them will fail: install them (Debian: package $package)"
        exit 0
    fi
    say "fetching the programs of the system package $package"
    unpacked=$(mktemp -d)
    trap 'rm -rf "$unpacked"' EXIT
    apt_update
    (cd "$unpacked" && apt-get download -qq -o APT::Sandbox::User=root "$package" >&2 && dpkg-deb -x ./*.deb .)
    for program in $missing; do
        found=$unpacked/usr/bin/$program
        [ -e "$found" ] || found=$unpacked/usr/bin/prometheus-$program
        mv "$found" ".venv/bin/$program"
    done
    if [ -d "$unpacked$alertmanager_templates" ] && [ ! -e "$alertmanager_templates" ]; then
        mkdir -p "$(dirname "$alertmanager_templates")"
        cp -R "$unpacked$alertmanager_templates" "$alertmanager_templates"
    fi
)

# The live page is tested in it. It needs some hundred libraries, so it is installed and not unpacked.
get_browser() {
    is_missing chromium || return 0
    if can_apt; then
        apt_install chromium
    else
        say "not in PATH: chromium. Tests that need it will fail: install it (Debian: package chromium)"
    fi
}

# A test sets the wall clock of a process by it. It brings a library that has its place, so it is installed as well.
get_clock() {
    is_missing faketime || return 0
    if can_apt; then
        apt_install faketime
    else
        say "not in PATH: faketime. Tests that need it will fail: install it (Debian: package faketime)"
    fi
}

get_monitoring
get_browser
get_clock
"$venv_python" -m cli.embedded.class_archives
