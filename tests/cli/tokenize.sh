#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cltool tokenize: ids of a text, text of ids, special tokens, and files and arguments that are
# refused.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
mkdir model
cat >model/tokenizer.json <<'END'
{"added_tokens": [{"id": 4, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false,
                   "normalized": false, "special": true}],
 "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
 "decoder": {"type": "ByteLevel", "add_prefix_space": false},
 "post_processor": {"type": "TemplateProcessing", "pair": [],
   "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
   "special_tokens": {"<s>": {"id": "<s>", "ids": [4], "tokens": ["<s>"]}}},
 "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "Ġ": 2, "ab": 3}, "merges": ["a b"]}}
END
echo '{"bos_token": "<s>", "eos_token": {"content": "ab"}}' >model/tokenizer_config.json

echo "== ids"
show tokenize model "ab ba"
show tokenize model/tokenizer.json "ab ba<s>" --no-special
show tokenize model "ab ba" -v
show tokenize model "ab" --json
show tokenize model ""
printf 'ab ab' | show tokenize model - --no-special
printf 'a\0b\377' | show tokenize model - --no-special

echo "== text"
show tokenize model --decode 4,3,2,1
show tokenize model --decode "4 3 2 1" --no-special
show tokenize model --decode 3,99 --json

sed 's/"a": 0/"Ā": 0/; s/"b": 1/"a": 1/; s/"ab": 3/"b": 3/; s/"merges": .*/"merges": []}}/' \
  model/tokenizer.json >nul.json
printf '$ cltool tokenize nul.json --decode 1,0,3 (with @ for NUL)\n'
"$CLTOOL" tokenize nul.json --decode 1,0,3 | tr '\0' '@'
show tokenize nul.json --decode 1,0,3 --json

echo "== the tokenizer"
show tokenize model
show tokenize model --json

echo "== refused"
show tokenize model ab --decode 1
show tokenize model --decode 1,x
show tokenize nothing.json ab
echo '{"model": {"type": "BPE", "vocab": {"a": 0, "c": 2}, "merges": []}}' >hole.json
show tokenize hole.json a
echo '{"model": {"type": "WordLevel", "vocab": {"a": 0}}}' >words.json
show tokenize words.json b
show tokenize words.json b --json
show tokenize
finish
