"""The embedded weather record and the hashes of SST-2's dev sentences. README.md in this folder tells their origin."""

from pathlib import Path

MAST_EXTRACT = Path(__file__).with_name("mast_extract.csv")
MAST_EXTRACT_SHA256 = "90ca2fa4dbfbeee21fd065d3289bacfeee4d6c8a87797471650f39f198c1ca86"
SST2_DEV_HASHES = Path(__file__).with_name("sst2_dev_hashes.json")
