#!/bin/sh
# Sees to it that bubblewrap is there, the sandbox in which submissions are graded; on Debian as root it installs it.
# With --namespaces it also lets users make namespaces, which Ubuntu 24.04 forbids by default: for machines of the CI.
set -eu

if ! command -v bwrap >/dev/null 2>&1; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "== Installing bubblewrap"
        apt-get update -q
        DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends bubblewrap
    else
        echo "The tests of the sandbox need Linux with bubblewrap. Debian and Ubuntu: sudo apt-get install bubblewrap" >&2
        exit 1
    fi
fi
switch=/proc/sys/kernel/apparmor_restrict_unprivileged_userns
if [ "${1:-}" = --namespaces ] && [ -e "$switch" ]; then
    echo 0 >"$switch"
fi
