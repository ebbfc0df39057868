# Checks that the C example makes the same predictions as the tool, from text and from records.
. "$(dirname "$0")/common.sh"
files=$work/files
"$bin/tool_fixtures" "$files"
for model in ranker.keras ranker.h5; do
  "$bin/serve_c" "$files/$model" >"$work/listed"
  grep -qF "serve_examples" "$work/listed" || fail "no signature: $(cat "$work/listed")"
  grep -qF "takes seen: ragged int64 [?, ?]" "$work/listed" || fail "no input: $(cat "$work/listed")"
  grep -qF "gives score: float32 [?, 1]" "$work/listed" || fail "no output: $(cat "$work/listed")"
  "$bin/serve_c" "$files/$model" "user=0;3;6;1;4" "seen=1,2;;9;4,4,7;0" \
    "age=0,1.5;0.25,0.5;0.5,-0.5;0.75,-1.5;1,-2.5" >"$work/text"
  "$bin/serve_c" "$files/$model" --records "$files/rows.tfrecord" >"$work/records"
  same_files "$work/text" "$work/records"
  # Compare "score A B ..." with {"data": [A, B, ...]}.
  sed 's/.*"data": \[//; s/\].*//; s/,//g' "$files/expected.json" >"$work/expected"
  paste -d ' ' "$work/text" "$work/expected" | awk '{
    n = (NF - 1) / 2
    if (n != 5) exit 1
    for (i = 2; i <= n + 1; ++i) { d = $i - $(i + n); if (d > 1e-5 || d < -1e-5) exit 1 }
  }' || fail "other scores: $(cat "$work/text" "$work/expected")"
done
model=$files/ranker.keras
expect_error 2 "nowhere.keras" "$bin/serve_c" "$work/nowhere.keras"
expect_error 2 "no signature 'other'" "$bin/serve_c" "$model" --signature other user=1
expect_error 2 "no input with this name" "$bin/serve_c" "$model" person=1
expect_error 2 "requires input" "$bin/serve_c" "$model" user=1
expect_error 2 "not a number" "$bin/serve_c" "$model" user=x
expect_error 2 "usage" "$bin/serve_c"
expect_error 2 "input 'user' has 1 rows, but 'age' has 2" \
  "$bin/serve_c" "$model" "age=1,2;3,4" "user=1" "seen=1;2"
