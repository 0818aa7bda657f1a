#!/bin/sh
# Sees to it that TeX Live is there for the PDF; on Debian as root it installs the packages.
set -eu
packages="latexmk texlive-xetex texlive-latex-recommended texlive-latex-extra texlive-fonts-recommended lmodern fonts-dejavu-core poppler-utils"
missing=""
for name in latexmk xelatex kpsewhich pdftotext pdftohtml; do
    command -v "$name" >/dev/null 2>&1 || missing="$missing $name"
done
if [ -z "$missing" ]; then
    for file in tcolorbox.sty newunicodechar.sty lmroman10-regular.otf DejaVuSansMono.ttf; do
        [ -n "$(kpsewhich "$file")" ] || missing="$missing $file"
    done
fi
[ -z "$missing" ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "== Installing TeX Live (missing:$missing)"
    apt-get update -q
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $packages
    exit 0
fi
echo "The PDF needs TeX Live; missing:$missing. Debian and Ubuntu: sudo apt-get install $packages" >&2
exit 1
