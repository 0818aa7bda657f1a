#!/bin/sh
# Installs Debian's bubblewrap, the sandbox in which submissions are graded, and lets users make namespaces, which
# Ubuntu 24.04 forbids by default. For machines that build the book; run it as root.
set -eu

if ! command -v bwrap >/dev/null 2>&1; then
    apt-get update -q
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends bubblewrap
fi
switch=/proc/sys/kernel/apparmor_restrict_unprivileged_userns
if [ -e "$switch" ]; then
    echo 0 >"$switch"
fi
