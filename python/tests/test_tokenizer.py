# SPDX-License-Identifier: Apache-2.0
"""Tokenizers against those of Hugging Face's package `tokenizers`: the same ids and texts.

Vocabularies are trained here, in the configurations of well-known models. Characters are those that
Unicode 3.2 has, and emoji, whose properties do not depend on the versions of libraries.
"""

import json
import random
import struct
import unicodedata

import pytest

import clgraph

tokenizers = pytest.importorskip("tokenizers", reason="PyPI's package tokenizers is not installed")
from tokenizers import (  # noqa: E402
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

N_TEXTS = 1500

WORDS = (
    "the of and to in a is that it was for on are as with his they at be this from I have or by "
    "one had not but what all were when we there can an your which their said if do into has more "
    "her two like him see time could no make than first been its who now people my made over did "
    "down don't I'm they'll we've he'd it's naïve café façade über straße ñandú čeština "
    "žluťoučký привет мир как дела 你好 世界 中文 日本語 "
    "こんにちは カタカナ 한국어 안녕하세요 مرحبا العالم "
    "שלום नमस्ते ไทย Ελληνικά ὀδός "
    "123 2024 3.14159 1,000,000 x=y+1; if(a&&b){return;} #include <stdio.h> "
    "https://example.org/path?q=1&r=2 user@example.org ... --- ??? !!! \t \n\n "
    "🙂 👩‍👩‍👧 🇩🇪 ﬁ ½ Ⅷ ①"
).split(" ")

STABLE = [
    chr(c)
    for c in range(1, 0x20000)
    if unicodedata.ucd_3_2_0.category(chr(c)) not in ("Cn", "Cs", "Co")
    and unicodedata.ucd_3_2_0.category(chr(c)) == unicodedata.category(chr(c))
    and c not in (0x180E,)
]
EMOJI = ["🙂", "👩‍👩‍👧", "🇩🇪", "👍🏽", "❤️", "👨‍💻"]
EMOJI += ["🏳️‍🌈", "🤷🏾‍♀️", "1️⃣"]
SPACES = [" ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u2003", "\u3000", "\u0085", "\v"]
SPECIAL = ["<s>", "</s>", "<|end|>", "<|begin|>", "[MASK]", "<pad>", "<extra>", "[SEP]", "Word"]


def random_text(r):
    """Returns a text of a random kind."""
    kind = r.randrange(12)
    n = r.randrange(1, 40)
    if kind == 0:
        return "".join(r.choice(STABLE) for _ in range(n))
    if kind == 1:
        return "".join(chr(r.randrange(1, 0x250)) for _ in range(n))
    if kind == 2:  # combining marks, in any order
        marks = ["\u0301", "\u0327", "\u0323", "\u0308", "\u0345", "\u0334", "\u20dd"]
        return "".join(
            r.choice("aeo AÅé가") + "".join(r.choices(marks, k=r.randrange(5))) for _ in range(n)
        )
    if kind == 3:
        return "".join(r.choice(EMOJI + ["\u200d", "\ufe0f", "a", " "]) for _ in range(n))
    if kind == 4:
        return "".join(
            chr(r.randrange(0x4E00, 0x9FA5)) + r.choice(["", "", " ", "。"]) for _ in range(n)
        )
    if kind == 5:
        return "".join(
            r.choice([chr(r.randrange(1, 0x20)), "\x7f", "\x80", "a", " "]) for _ in range(n)
        )
    if kind == 6:
        return r.choice([" ", "1", "a", "\n", "=", "é", "中", "ab", "\t "]) * r.randrange(1, 600)
    if kind == 7:
        return "".join(r.choice(WORDS + SPECIAL + SPACES) for _ in range(n))
    if kind == 8:
        return r.choice(
            ["", " ", "  a", "a  ", " ' ", "'s", "I'LL", "İstanbul", "ΑΣ", "ǅ", "\ufffd"]
        )
    if kind == 9:
        return "".join(
            r.choice(["a", "1", "१", "²", "Ⅳ", " ", "x", "_", "-", "'"]) for _ in range(n)
        )
    text = "".join(r.choice(WORDS) + r.choice([" "] * 8 + SPACES + [""]) for _ in range(n))
    return text.title() if kind == 10 else text


def texts(seed):
    r = random.Random(seed)
    return ["", " ", "\n"] + [random_text(r) for _ in range(N_TEXTS)]


def corpus():
    r = random.Random(1)
    return [" ".join(r.choices(WORDS, k=20)) for _ in range(400)]


GPT2 = pre_tokenizers.ByteLevel(add_prefix_space=False)
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace("{1,3}", "")
O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve"
    r"|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
POSSESSIVE = LLAMA3.replace("]?\\p{L}+", "]?+\\p{L}++").replace("]+[\\r", "]++[\\r")


def byte_level(pattern=None, prefix=False, **model):
    """Returns an untrained tokenizer of bytes, split as GPT-2 does or by a pattern."""
    t = Tokenizer(models.BPE(**model))
    if pattern:
        t.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(Regex(pattern), "isolated", False),
                pre_tokenizers.ByteLevel(prefix, use_regex=False),
            ]
        )
    else:
        t.pre_tokenizer = pre_tokenizers.ByteLevel(prefix)
    t.decoder = decoders.ByteLevel()
    return t


def train_bytes(t, special=("<|begin|>", "<|end|>")):
    t.train_from_iterator(
        corpus(),
        trainers.BpeTrainer(
            vocab_size=1200,
            special_tokens=list(special),
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    return t


def gpt2():
    t = train_bytes(byte_level())
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    return t


def roberta():
    t = train_bytes(byte_level(prefix=True), ("<s>", "<pad>", "</s>", "<mask>"))
    t.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return t


def llama3():
    t = train_bytes(byte_level(LLAMA3, ignore_merges=True))
    t.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(
                single="<|begin|> $A", pair="<|begin|> $A $B:1", special_tokens=[("<|begin|>", 0)]
            ),
        ]
    )
    return t


def qwen2():
    t = byte_level(QWEN2)
    t.normalizer = normalizers.NFC()
    train_bytes(t)
    t.add_special_tokens(["[MASK]"])
    t.add_tokens(
        ["<extra>", AddedToken("Word", single_word=True), AddedToken("é1", normalized=True)]
    )
    return t


def o200k():
    return train_bytes(byte_level(O200K))


def possessive():
    return train_bytes(byte_level(POSSESSIVE))


def digits_split():
    t = byte_level()
    t.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex("[\r\n]"), "isolated", False),
            pre_tokenizers.Split(Regex(r"\s?\p{L}+"), "isolated", False),
            pre_tokenizers.Split(Regex(r"\s?\p{P}+"), "merged_with_previous", False),
            pre_tokenizers.Split(Regex("[一-龥ࠀ-一가-퟿]+"), "merged_with_next", False),
            pre_tokenizers.Split(" ", "contiguous", False),
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(False, use_regex=False),
        ]
    )
    return train_bytes(t)


def bytes_normalized():
    """Bytes by a normalizer, and a pattern on characters that stand for them."""
    t = Tokenizer(models.BPE())
    t.normalizer = normalizers.ByteLevel()
    t.pre_tokenizer = pre_tokenizers.Split("Ġ", "merged_with_next", False)
    t.decoder = decoders.ByteLevel()
    train_bytes(t)
    t.add_tokens([AddedToken("é x", normalized=True)])
    return t


def llama2():
    """BPE over characters with bytes for others, as SentencePiece's BPE is converted."""
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    steps = [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    t.normalizer = normalizers.Sequence(steps)
    t.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)]
    t.train_from_iterator(
        corpus()[:50],
        trainers.BpeTrainer(vocab_size=900, special_tokens=special, show_progress=False),
    )
    # Training makes all of them special; in the models only three are.
    state = json.loads(t.to_str())
    state["added_tokens"] = state["added_tokens"][:3]
    t = Tokenizer.from_str(json.dumps(state))
    t.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)]
    )
    return t


def bpe_words():
    """The first BPE: a suffix at the end of words, and tokens for unknown characters."""
    t = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    t.normalizer = normalizers.Sequence(
        [
            normalizers.NFKD(),
            normalizers.StripAccents(),
            normalizers.Lowercase(),
            normalizers.Strip(),
        ]
    )
    t.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation()]
    )
    t.decoder = decoders.BPEDecoder()
    t.train_from_iterator(
        corpus(),
        trainers.BpeTrainer(
            vocab_size=700,
            special_tokens=["<unk>", "<pad>"],
            end_of_word_suffix="</w>",
            limit_alphabet=60,
            show_progress=False,
        ),
    )
    return t


def bpe_prefix():
    t = Tokenizer(models.BPE(unk_token="<unk>", continuing_subword_prefix="##", fuse_unk=False))
    t.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    t.decoder = decoders.WordPiece()
    t.train_from_iterator(
        corpus(),
        trainers.BpeTrainer(
            vocab_size=700,
            special_tokens=["<unk>"],
            continuing_subword_prefix="##",
            limit_alphabet=60,
            show_progress=False,
        ),
    )
    return t


def charsmap(table):
    """Returns a table of SentencePiece that replaces the keys: a double array, and strings."""
    root, strings, starts = {}, b"", {}
    for key, text in table.items():
        node = root
        for byte in key.encode():
            node = node.setdefault(byte, {})
        starts[text] = starts.get(text, len(strings))
        strings += b"" if starts[text] < len(strings) else text.encode() + b"\0"
        node[None] = starts[text]
    units, used = [0] * 4096, {0}

    def place(at, node, label):
        labels = [c for c in node if c is not None]
        wanted = labels + ([0] if None in node else [])
        base = next(b for b in range(1, 3800) if all(b ^ c not in used for c in wanted))
        used.update(base ^ c for c in wanted)
        units[at] = (at ^ base) << 10 | (0x100 if None in node else 0) | label
        if None in node:
            units[base] = 1 << 31 | node[None]
        for c in labels:
            place(base ^ c, node[c], c)

    place(0, root, 0)
    return struct.pack(f"<I{len(units)}I", 4 * len(units), *units) + strings


def precompiled():
    table = {"ﬁ": "fi", "①": "1", "½": "1/2", "é": "E", "e\u0301": "ee", "\t": " ", "\r": " "}
    table.update(
        {"\u3000": " ", "\u200d": "", "🙂": ":)", "가": "ga", "中": "", "ab": "x", "a": "ä"}
    )
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizers.Sequence(
        [normalizers.Precompiled(charsmap(table)), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    t.decoder = decoders.Metaspace(prepend_scheme="first")
    return train_unigram(t)


def train_unigram(t, **options):
    trainer = trainers.UnigramTrainer(
        vocab_size=700,
        special_tokens=["<pad>", "</s>", "<unk>"],
        unk_token="<unk>",
        show_progress=False,
        **options,
    )
    t.train_from_iterator(corpus(), trainer)
    return t


def t5():
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC()])
    t.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    )
    t.decoder = decoders.Metaspace()
    train_unigram(t)
    t.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    return t


def unigram_bytes():
    """Unigram with bytes, and spaces only at the start of the text."""
    t = Tokenizer(models.Unigram())
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    t.decoder = decoders.Sequence(
        [decoders.ByteFallback(), decoders.Metaspace(prepend_scheme="first", split=False)]
    )
    train_unigram(t)
    state = json.loads(t.to_str())
    lowest = min(score for _, score in state["model"]["vocab"])
    state["model"]["vocab"] += [[f"<0x{i:02X}>", lowest - 5] for i in range(256)]
    state["model"]["byte_fallback"] = True
    t = Tokenizer.from_str(json.dumps(state))
    t.add_special_tokens([AddedToken("<s>"), AddedToken("<extra>", rstrip=True, lstrip=True)])
    return t


def unigram_regex():
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizers.Sequence(
        [
            normalizers.Replace("``", '"'),
            normalizers.NFKD(),
            normalizers.StripAccents(),
            normalizers.Lowercase(),
            normalizers.Replace(Regex(" {2,}"), " "),
        ]
    )
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    t.decoder = decoders.Metaspace(prepend_scheme="never")
    return train_unigram(t)


def bert(lowercase=True):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    t.train_from_iterator(
        corpus(),
        trainers.WordPieceTrainer(
            vocab_size=900,
            special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
            show_progress=False,
        ),
    )
    t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return t


def bert_cased():
    return bert(lowercase=False)


def word_level():
    t = Tokenizer(models.WordLevel(unk_token="<unk>"))
    t.normalizer = normalizers.NFD()
    t.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.CharDelimiterSplit("e"), pre_tokenizers.FixedLength(3)]
    )
    t.train_from_iterator(
        corpus(),
        trainers.WordLevelTrainer(vocab_size=500, special_tokens=["<unk>"], show_progress=False),
    )
    return t


ALL = [
    gpt2, roberta, llama3, qwen2, o200k, possessive, digits_split, bytes_normalized, llama2,
    bpe_words, bpe_prefix, precompiled, t5, unigram_bytes, unigram_regex, bert, bert_cased,
    word_level,
]  # fmt: skip


@pytest.fixture(scope="module", params=ALL, ids=lambda f: f.__name__)
def pair(request, tmp_path_factory):
    """Theirs and ours of one configuration."""
    theirs = request.param()
    path = tmp_path_factory.mktemp(request.param.__name__) / "tokenizer.json"
    theirs.save(str(path))
    return Tokenizer.from_file(str(path)), clgraph.Tokenizer(path)


def test_vocabulary(pair):
    theirs, ours = pair
    vocabulary = theirs.get_vocab(with_added_tokens=True)
    assert len(ours) == theirs.get_vocab_size(with_added_tokens=True)
    for token, number in vocabulary.items():
        assert ours.id(token) == number
        assert ours.token(number) == token
    assert ours.token(len(ours)) is None and ours.token(-1) is None


def test_encode(pair):
    theirs, ours = pair
    for text in texts(2):
        for special in (True, False):
            wanted = theirs.encode(text, add_special_tokens=special).ids
            assert ours.encode(text, special) == wanted, repr(text)


def test_invalid_utf8(pair):
    theirs, ours = pair
    r = random.Random(3)
    for _ in range(N_TEXTS // 5):
        data = bytes(
            r.choice([r.randrange(256), 0xE2, 0x82, 0xF0, 97, 32]) for _ in range(r.randrange(30))
        )
        assert ours.encode(data) == theirs.encode(data.decode("utf-8", "replace")).ids, data


def random_ids(r, ours, encoded):
    """Returns ids of a text, or of no text."""
    if r.random() < 0.5:
        return [r.randrange(len(ours) + 2) for _ in range(r.randrange(1, 25))]
    return encoded[: r.randrange(1, 40)]


def test_decode(pair):
    theirs, ours = pair
    r = random.Random(4)
    for text in texts(5):
        ids = random_ids(r, ours, theirs.encode(text).ids)
        for skip in (True, False):
            assert ours.decode(ids, skip) == theirs.decode(ids, skip_special_tokens=skip), ids


def test_stream(pair):
    theirs, ours = pair
    r = random.Random(6)
    n_compared = 0
    for text in texts(7)[: N_TEXTS // 2]:
        ids = random_ids(r, ours, theirs.encode(text).ids)
        skip = r.random() < 0.5
        stream, other = ours.stream(skip), decoders.DecodeStream(skip_special_tokens=skip)
        for i in ids:
            try:
                wanted = other.step(theirs, i)
            except Exception:  # the text of more tokens does not begin with that of fewer
                break
            assert stream.push(i) == (wanted or ""), ids
            n_compared += 1
    assert n_compared > N_TEXTS


def test_long_texts(pair):
    """Time linear in the text: 20 times longer runs would take 400 times as long otherwise."""
    theirs, ours = pair
    for text in (" ", "1", "a", "\n", "ab ", "é", "[MASK]", "a\u0301", "\u0301\u0327", "<"):
        short = text * 2000
        assert ours.encode(short) == theirs.encode(short).ids, text
        assert len(ours.encode(short * 20)) >= len(ours.encode(short)), text
