"""Make lib/residual_gd/data/sst2_dev_hashes.json: RESIDUAL_GD_DATA=FOLDER python tools/make_sst2_hashes.py

The list holds a hash prefix of each sentence of SST-2's dev set, and of each movie-review sentence of the embedded
corpus that shares most of its words with one of them: a copy whose accents or words were changed.
"""

import json
import re
import sys

import pandas as pd

from residual_gd.data import SST2_DEV_HASHES
from residual_gd.experiments import sentiment

SHARED = 0.6  # words in common over words in either, from which on a sentence counts as a copy


def words(text):
    return set(re.findall("[a-z0-9]+", text.lower()))


def near(text, others):
    own = words(text)
    return any(len(own & other) >= SHARED * len(own | other) for other in others)


def main():
    dev = sentiment.load_sst2().dev.texts
    path = sentiment.package_file(sentiment.PACKAGE, sentiment.PACKAGE_FILE, sentiment.PACKAGE_SHA256)
    table = pd.read_csv(path)
    reviews = table["text"][table["source"] == "rotten_tomatoes"]
    exact = {sentiment.sentence_hash(text) for text in dev}
    others = [words(text) for text in dev]
    changed = {
        sentiment.sentence_hash(t) for t in reviews if sentiment.sentence_hash(t) not in exact and near(t, others)
    }
    SST2_DEV_HASHES.write_text(json.dumps(sorted(exact | changed), indent=0) + "\n")
    print(f"{len(exact)} of {len(dev)} sentences, and {len(changed)} changed copies among {len(reviews)} reviews")
    return 0


if __name__ == "__main__":
    sys.exit(main())
