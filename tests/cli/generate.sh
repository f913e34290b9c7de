#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cltool generate: text and tokens of a model of letters, in which each letter's most likely
# successor is the next one of the alphabet; what is refused; Ctrl-C.
# shellcheck source=/dev/null
source "$(dirname "$0")/support.bash"
# Times and rates, which differ.
rates() { sed -E 's/(tokens in )[0-9.e-]+ s, [0-9.]+ a second/\1N s, N a second/'; }

# logits = embed[input_ids] head: 5 for the next letter, 2 for the one after it
language_graph() {
  local row column
  for row in 0 1 2 3 4 5 6 7; do
    for column in 0 1 2 3 4 5 6 7; do
      case $(((column - row + 8) % 8)) in
        0) f32 3f800000 >>look ;;
        *) f32 00000000 >>look ;;
      esac
      case $(((column - row + 8) % 8)) in
        1) f32 40a00000 >>score ;;
        2) f32 40000000 >>score ;;
        *) f32 00000000 >>score ;;
      esac
    done
  done
  onnx_node Gather look 'embed input_ids' x
  onnx_node MatMul score 'x head' logits
  pb_text 2 letters
  onnx_floats embed '8 8' look
  onnx_floats head '8 8' score
  onnx_input input_ids 7 batch tokens
  onnx_output logits 1 batch tokens 8
}
mkdir letters
onnx_model language_graph >letters/model.onnx
cat >letters/config.json <<'END'
{"model_type": "letters", "vocab_size": 8, "max_position_embeddings": 64, "eos_token_id": 7}
END
cat >letters/tokenizer.json <<'END'
{"version": "1.0", "added_tokens": [{"id": 7, "content": "<end>", "single_word": false,
  "lstrip": false, "rstrip": false, "normalized": false, "special": true}],
 "normalizer": null, "pre_tokenizer": null, "post_processor": null, "decoder": {"type": "Fuse"},
 "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "d": 3, "e": 4, "f": 5, "g": 6},
  "merges": []}}
END

echo "== text"
show rates -- generate letters --prompt ab
show generate letters --prompt ab --max-tokens 2 -q
show generate letters --prompt ab --stop ef -q
show generate letters --prompt ab --stop x --stop ef --stop d -q
printf 'abc' >prompt.txt
printf '$ cltool generate letters --prompt - -q <prompt.txt\n'
"$CLTOOL" generate letters --prompt - -q <prompt.txt
echo "== draws"
show generate letters --prompt a --temperature 3 --seed 1 --max-tokens 30 -q
show generate letters --prompt a --temperature 3 --seed 1 --max-tokens 30 --kernels simt -q
show generate letters --prompt a --temperature 3 --seed 2 --max-tokens 30 -q
show generate letters --prompt a --temperature 3 --top-k 2 --seed 2 -q
show generate letters --prompt a --temperature 3 --top-p 0.1 --seed 2 -q
show generate letters --prompt a --temperature 3 --top-k 0 --min-p 0.9 --seed 2 -q
show generate letters --prompt abcde --repetition-penalty 3 -q
echo "== tokens"
show generate letters --tokens 0,1 -q
show generate letters --tokens 6 -q
echo "== JSON"
show json_keys -- generate letters --prompt ab --json -q
printf '$ cltool generate letters --prompt ab --json -q\n'
"$CLTOOL" generate letters --prompt ab --json -q | tr -d ' \n' | grep -oE '"tokens":\[[0-9,]*\],"text":"[a-g]*","end":"[a-z]*"'

mkdir nul
cp letters/model.onnx letters/config.json nul
sed 's/"d": 3/"Ā": 3/; s/"Fuse"/"ByteLevel"/' letters/tokenizer.json >nul/tokenizer.json
printf '$ cltool generate nul --prompt ab --json -q\n'
"$CLTOOL" generate nul --prompt ab --json -q | grep -oE '"text": .*'

echo "== what is refused"
show generate letters -q
show generate letters --prompt a --tokens 0 -q
show generate letters --tokens 0 --stop b -q
show generate letters --tokens 0,8 -q
show generate letters --tokens 0,x -q
show generate letters --prompt abx -q
show generate letters --prompt '' -q
show generate letters --prompt a --stop '' -q
show generate letters --prompt a --top-p 1.5 -q
show generate letters --prompt abc --context 2 -q
show generate letters --prompt a --context 65 -q
show generate nothing --prompt a -q
mkdir bare
cp letters/model.onnx letters/config.json bare
show generate bare --prompt a -q
show generate bare --tokens 0 -q
printf '{"vocab_size": 8, "max_position_embeddings": "64"}' >bare/config.json
show generate bare --tokens 0 -q --json

echo "== Ctrl-C"
sed 's/"eos_token_id": 7/"eos_token_id": null/; s/: 64/: 100000000/' letters/config.json >bare/config.json
"$CLTOOL" generate bare --tokens 6 --max-tokens 100000000 >out 2>err &
pid=$!
for _ in $(seq 1200); do
  [ "$(wc -c <out)" -gt 20 ] && break
  sleep 0.05
done
kill -INT "$pid"
started=$(date +%s%N)
wait "$pid"
echo "[exit $?]"
echo "[within a second: $((($(date +%s%N) - started) / 1000000000))]"
grep -v device err
finish
