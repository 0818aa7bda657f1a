"""The embedded weather record. README.md in this folder tells where it comes from and what was left out."""

from pathlib import Path

MAST_EXTRACT = Path(__file__).with_name("mast_extract.csv")
MAST_EXTRACT_SHA256 = "90ca2fa4dbfbeee21fd065d3289bacfeee4d6c8a87797471650f39f198c1ca86"
