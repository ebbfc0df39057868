# Tests keel diff, which lists the differences of two files.
# Tests savedmodel/tool/diff.cc and difference.cc.
. "$(dirname "$0")/common.sh"
cd "$work"
model=$files/ranker.keras
expect "no differences" "$keel" diff "$model" "$model"
expect "no differences" "$keel" diff "$model" "$files/ranker.weights.h5"
expect "no differences" "$keel" diff "$files/alone.h5" "$files/ranker.h5"
expect_error 1 "config/" "$keel" diff "$model" "$files/mixed.keras"
expect_error 1 "only in A" "$keel" diff "$model" "$files/mixed.keras"
grep -q "only in B" out || fail "nothing only in B: $(cat out)"
expect_error 1 "signatures" "$keel" diff "$model" "$files/mixed.keras"
expect_error 1 "values differ, by up to" \
  "$keel" diff "$files/checkpoints/ckpt-1.h5" "$files/checkpoints/ckpt-2.h5"
expect_error 1 "optimizer optimizers/adam/iteration: 1 of 1 values differ, by up to 1 at" \
  "$keel" diff "$files/checkpoints/ckpt-1.h5" "$files/checkpoints"
expect "no differences" \
  "$keel" diff "$files/checkpoints/ckpt-1.h5" "$files/checkpoints/ckpt-2.h5" --atol 10
expect_error 1 "weight " "$keel" diff "$cases/ncf.keras" "$cases/nested.keras"
expect "no differences" "$keel" diff "$files/engine.keras" "$files/engine.keras"
expect_error 1 "optimizer in A: new: " "$keel" diff "$files/engine.keras" "$files/host.keras"
expect_bad "a checkpoint can only be compared with a checkpoint" "$keel" diff "$model" "$files/checkpoints"
expect_bad "weights in two formats cannot be matched without a model" \
  "$keel" diff "$files/alone.h5" "$files/ranker.weights.h5"
expect_bad "no such file" "$keel" diff "$model" nowhere.keras
for file in cut.keras cut.h5 empty.h5 text.keras; do
  expect_bad "$file" "$keel" diff "$model" "$file"
  expect_bad "$file" "$keel" diff "$file" "$model"
done
# A training configuration that cannot be read counts as a difference.
expect_error 1 "training in B cannot be read: " \
  "$keel" diff "$files/compiled.keras" "$files/unknown.keras"
expect_error 1 "training in A cannot be read: " \
  "$keel" diff "$files/unknown.keras" "$files/unknown.keras"
expect "no differences" "$keel" diff "$files/compiled.keras" "$files/compiled.keras"
