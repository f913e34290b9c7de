# SPDX-License-Identifier: Apache-2.0
"""Operators on strings."""

import numpy
from maker import WORDS, generator


def words(m, shape, among=WORDS):
    flat = [m.r.choice(among) for _ in range(int(numpy.prod(shape)))]
    return numpy.array(flat, numpy.object_).reshape(tuple(shape))


@generator("StringConcat")
def string_concat(m):
    shape = m.shape(0, 3, zero=False, most=60)
    return m.case(words(m, m.narrowed(shape)), words(m, m.narrowed(shape)))


@generator("StringNormalizer")
def string_normalizer(m):
    shape = [m.int(1, 9)] if m.chance(0.6) else [1, m.int(1, 9)]
    attributes = m.maybe(0.7, case_change_action=m.pick("NONE", "LOWER", "UPPER"),
                         is_case_sensitive=m.pick(0, 1))
    x = words(m, shape, ["a", "bc", "Zebra", "the", "The", "0"])
    # ONNX's reference ignores stopwords where their case does not matter.
    return m.case(x, stopwords=["the", "bc"] if m.chance(0.6) else None, locale="C", only=["ort"],
                  **attributes)


@generator("StringSplit")
def string_split(m):
    among = ["a b c", "x,y,z", " lead", "one", "a,,b", "", "tail "]
    x = words(m, m.shape(1, 2, zero=False, most=12), among)
    attributes = m.maybe(0.6, delimiter=m.pick(" ", ",", "")) | m.maybe(0.4, maxsplit=m.int(1, 3))
    return m.case(x, outputs=2, **attributes)


@generator("RegexFullMatch")
def regex(m):
    pattern = m.pick(r"[a-z]+", r"\d*", r"a.*", r"(the )?cat", r".", r"x|bc", r"")
    return m.case(words(m, m.shape(0, 2, zero=False, most=30)), pattern=pattern)


@generator("TfIdfVectorizer")
def tfidf(m):
    x = m.n.integers(0, 8, (m.int(3, 12),) if m.chance(0.5) else (2, m.int(3, 9)))
    pool = [2, 3, 5, 4, 5, 6, 7, 8, 6, 7]  # four words, then three pairs
    mode = m.pick("TF", "IDF", "TFIDF")
    attributes = m.maybe(0.5, weights=[round(0.5 + i / 4, 2) for i in range(7)])
    if mode == "TF":
        attributes = {}
    attributes["pool_int64s"] = pool
    x = x.astype(m.pick(numpy.int32, numpy.int64))
    if m.chance(0.4):
        del attributes["pool_int64s"]
        attributes["pool_strings"] = [WORDS[i] for i in pool]
        x = numpy.array(WORDS, numpy.object_)[x]
    return m.case(x, mode=mode, min_gram_length=1, max_gram_length=2, max_skip_count=m.int(0, 2),
                  ngram_counts=[0, 4], ngram_indexes=list(range(7)), **attributes)
