# Tests failing outputs: outputs that cannot be written raise errors before the training; failing
# predictions after the training do not prevent the export; a full disk under standard output is an
# error.
. "$(dirname "$0")/common.sh"
small_data "$work/data"
train=("$bin/train_ctr" --data "$work/data" --epochs 1)
# expect_early TEXT FLAGS...: expects an error before any training.
expect_early() {
  local text=$1
  shift
  expect_error 2 "$text" "${train[@]}" "$@"
  ! grep -q "rows, validated on" "$work/out" || fail "trained first: $*"
}
expect_early "nowhere/model.h5" --export "$work/nowhere/model.h5"
expect_early "must end in" --export "$work/model.hdf"
expect_early "holds only weights" --export "$work/model.weights.h5"
expect_early "table_dtype must be" --export "$work/model.h5" --export_table_dtype int4
mkdir "$work/folder.h5"
expect_early "folder.h5" --export "$work/folder.h5"
expect_early "nowhere/p.csv" --write_predictions "$work/nowhere/p.csv"
expect_early "nowhere/t.csv" --write_test_csv "$work/nowhere/t.csv"
expect_early "a_file/checkpoints" --checkpoint_dir "$(touch "$work/a_file" && echo "$work/a_file/checkpoints")"
if [ "$(id -u)" -ne 0 ]; then
  mkdir -m 555 "$work/read_only"
  expect_early "read_only/model.h5" --export "$work/read_only/model.h5"
fi
[ -z "$(find "$work" -maxdepth 1 -name '*.h5' -type f)" ] || fail "a probe was left: $(ls "$work")"

expect_error 2 "/dev/full" "${train[@]}" --export "$work/model.h5" --write_predictions /dev/full
[ -s "$work/model.h5" ] || fail "no export: $(cat "$work/out")"
"$bin/serve_hdf5" --model "$work/model.h5" --csv "$work/data/test.csv" >"$work/served.csv"

status=0
"${train[@]}" >/dev/full 2>"$work/err" || status=$?
[ "$status" -eq 1 ] || fail "train_ctr to a full disk: status $status"
grep -q "standard output cannot be written" "$work/err" || fail "no message: $(cat "$work/err")"
status=0
"$bin/serve_hdf5" --model "$work/model.h5" --csv "$work/data/test.csv" >/dev/full 2>"$work/err" || status=$?
[ "$status" -eq 1 ] || fail "serve_hdf5 to a full disk: status $status"

# Exports that only use Keras layers: every model makes nearly the same predictions, and none needs
# keras_rs.
for model in dlrm dcn wide_deep; do
  "${train[@]}" --model "$model" --export "$work/keras.h5" --for_keras --write_predictions "$work/trained.csv"
  "$bin/keel" inspect "$work/keras.h5" >"$work/inspected"
  ! grep -qE "TPUEmbedding|DotInteraction|FeatureCross" "$work/inspected" || fail "$model: $(cat "$work/inspected")"
  "$bin/serve_hdf5" --model "$work/keras.h5" --csv "$work/data/test.csv" --output "$work/served.csv"
  paste -d, "$work/trained.csv" "$work/served.csv" |
    awk -F, 'NR > 1 && ($1 - $2) * ($1 - $2) > 1e-10 { far = 1 } END { exit far || NR < 100 }' ||
    fail "$model: other predictions in layers of Keras"
done
