#!/bin/sh
# Sees to it that a Chromium is there for the browser tests; on Debian as root it installs one.
set -eu
for name in chromium chromium-browser google-chrome google-chrome-stable; do
    if command -v "$name" >/dev/null 2>&1; then exit 0; fi
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "== Installing chromium"
    apt-get update -q
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends chromium fonts-liberation
    exit 0
fi
echo "The browser tests need Chromium or Chrome on the path. Debian and Ubuntu: sudo apt-get install chromium" >&2
exit 1
