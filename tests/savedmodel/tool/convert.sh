# Tests keel convert: converting a model through every format does not change it.
# Tests savedmodel/tool/convert.cc.
. "$(dirname "$0")/common.sh"
cd "$work"
expect "wrote a.h5" "$keel" convert "$files/ranker.keras" a.h5
expect "wrote b.keras" "$keel" convert a.h5 b.keras
expect "no differences" "$keel" diff "$files/ranker.keras" b.keras
expect "serve_examples" "$keel" inspect b.keras
expect "wrote c.weights.h5" "$keel" convert b.keras c.weights.h5
expect "no differences" "$keel" diff c.weights.h5 "$files/ranker.weights.h5"
expect "wrote d.keras" "$keel" convert c.weights.h5 d.keras --model "$files/ranker.h5"
expect "no differences" "$keel" diff d.keras "$files/ranker.keras"
expect "wrote e.h5" "$keel" convert b.keras e.h5 --weights_only
expect "no differences" "$keel" diff e.h5 "$files/alone.h5"
for file in "$cases"/*.keras; do
  name=${file%.keras}
  expect "wrote" "$keel" convert "$file" f.h5
  expect "within atol" "$keel" predict f.h5 "$name.inputs.json" --expected "$name.expected.json"
  expect "wrote" "$keel" convert f.h5 f.keras
  expect "no differences" "$keel" diff "$file" f.keras
  expect "wrote" "$keel" convert f.keras f.weights.h5
  expect "no differences" "$keel" diff "$file" f.weights.h5
done
expect "wrote" "$keel" convert "$cases/ncf.keras" h.keras --table_dtype int8
expect "int8" "$keel" inspect h.keras
expect "within atol" "$keel" predict h.keras "$cases/ncf.inputs.json" \
  --expected "$cases/ncf.expected.json" --atol 0.01
expect_error 1 "not within atol" "$keel" predict h.keras "$cases/ncf.inputs.json" \
  --expected "$cases/ncf.expected.json" --atol 1e-9 --rtol 0
expect_bad "only for whole models" "$keel" convert b.keras j.weights.h5 --table_dtype int8
expect_bad "table_dtype must be" "$keel" convert b.keras g.keras --table_dtype int4
expect_bad "OUT must end in" "$keel" convert "$files/ranker.keras" g.onnx
expect_bad "contains only weights; pass the model with --model" \
  "$keel" convert c.weights.h5 g.keras
expect_bad "is a checkpoint" "$keel" convert "$files/checkpoints/ckpt-1.h5" g.keras
expect_bad "no such file" "$keel" convert nowhere.h5 g.keras
expect_bad "no such file" "$keel" convert c.weights.h5 g.keras --model nowhere.h5
expect_bad "requires" "$keel" convert c.weights.h5 g.keras --model "$files/mixed.keras"
expect_bad "nowhere/g.keras" "$keel" convert b.keras nowhere/g.keras
for file in cut.keras cut.h5 empty.h5 text.keras; do
  expect_bad "$file" "$keel" convert "$file" g.keras
done
[ ! -e g.keras ] || fail "an error left a file"
# Status 1 if the training configuration is dropped.
expect_error 1 "the training configuration was dropped" \
  "$keel" convert "$files/unknown.keras" k.keras
grep -q "wrote k.keras" out || fail "not written: $(cat out)"
expect "wrote" "$keel" convert "$files/compiled.keras" k.keras
# Weights that are matched by layer names.
expect "wrote" "$keel" convert "$files/alone.h5" l.keras --model "$files/ranker.keras" --by_name
expect "no differences" "$keel" diff "$files/ranker.keras" l.keras
expect_bad "no layer of the model has the name of a layer in the file" \
  "$keel" convert "$files/alone.h5" m.keras --model "$files/compiled.keras" --by_name
expect_bad "by_name is for weights" "$keel" convert "$files/compiled.keras" m.keras --by_name
