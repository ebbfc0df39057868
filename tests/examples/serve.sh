# Checks that an exported model makes the same predictions in a new process, and nearly the same
# with 8-bit tables, and that a truncated file is an error.
. "$(dirname "$0")/common.sh"
small_data "$work/data"
for model in dlrm wide_deep dcn; do
  "$bin/train_ctr" --data "$work/data" --model "$model" --epochs 1 --batch_size 64 \
    --export "$work/model.h5" --write_predictions "$work/trained.csv"
  "$bin/serve_hdf5" --model "$work/model.h5" --csv "$work/data/test.csv" --output "$work/served.csv"
  same_files "$work/trained.csv" "$work/served.csv"
done
"$bin/train_ctr" --data "$work/data" --epochs 1 --batch_size 64 --export "$work/int8.h5" \
  --export_table_dtype int8 --write_predictions "$work/trained.csv"
"$bin/serve_hdf5" --model "$work/int8.h5" --csv "$work/data/test.csv" --output "$work/served.csv"
paste -d, "$work/trained.csv" "$work/served.csv" |
  awk -F, 'NR > 1 && ($1 - $2) * ($1 - $2) > 1e-4 { far = 1 } END { exit far || NR < 100 }' ||
  fail "predictions of tables of 8 bits are far off"
expect_error 2 "table_dtype must be" "$bin/train_ctr" --data "$work/data" --epochs 1 \
  --export "$work/int4.h5" --export_table_dtype int4
size=$(stat -c %s "$work/model.h5")
for length in 0 100 $((size / 3)) $((size - 1)); do
  head -c "$length" "$work/model.h5" >"$work/cut.h5"
  expect_error 2 "cut.h5" "$bin/serve_hdf5" --model "$work/cut.h5" --csv "$work/data/test.csv"
done
sed 's/,[0-9.]*,u/,cheap,u/' "$work/data/test.csv" >"$work/bad.csv"
expect_error 2 "price" "$bin/serve_hdf5" --model "$work/model.h5" --csv "$work/bad.csv"
