# Invalid flags and paths raise clear errors with status 2.
. "$(dirname "$0")/common.sh"
small_data "$work/data"
expect_error 2 "unknown option '--no_such_flag'" "$bin/train_ctr" --no_such_flag 3
expect_error 2 "--epochs: must be a whole number, received 'many'" "$bin/train_ctr" --epochs many
expect_error 2 "--epochs: 1 required INT missing" "$bin/train_ctr" --epochs
expect_error 2 "unexpected argument 'data'" "$bin/train_ctr" data
expect_error 2 "no such folder" "$bin/train_ctr" --data "$work/nowhere"
expect_error 2 "schema.json" "$bin/train_ctr" --data "$work"
expect_error 2 "model must be" "$bin/train_ctr" --data "$work/data" --model svm
expect_error 2 "unknown strategy" "$bin/train_ctr" --data "$work/data" --strategy gpu
expect_error 2 "--resume requires --checkpoint_dir" "$bin/train_ctr" --data "$work/data" --resume
expect_error 2 "--batch_size: must be at least 0" "$bin/train_ctr" --batch_size -1
expect_error 2 "--learning_rate: must be above 0" "$bin/train_ctr" --learning_rate nan
expect_error 2 "--embedding_learning_rate: must be above 0" "$bin/train_ctr" --embedding_learning_rate -1
expect_error 2 "--dropout: must be at least 0 and below 1" "$bin/train_ctr" --dropout 1
expect_error 2 "--hidden must be positive integers" "$bin/train_ctr" --hidden 64,x
expect_error 2 "--min_count: must be at least 1" "$bin/train_ctr" --min_count 0
expect_error 2 "--workers: must be at least 0" "$bin/train_ctr" --workers -1
expect_error 2 "nowhere.h5" "$bin/serve_hdf5" --model "$work/nowhere.h5" --csv "$work/data/test.csv"
expect_error 2 "--model is required" "$bin/serve_hdf5"
"$bin/train_ctr" --help >"$work/help"
grep -q -- "--embedding_optimizer" "$work/help" || fail "no help"
# Output that cannot be written to its file is an error.
if [ -w /dev/full ]; then
  expect_full_disk() {
    local got=0
    "$@" >/dev/full 2>"$work/out" || got=$?
    [ "$got" -ne 0 ] || fail "a full disk is no error for: $*"
  }
  expect_full_disk "$bin/train_ctr" --help
  expect_full_disk "$bin/train_ctr" --data "$work/data" --epochs 1
  grep -q "standard output cannot be written" "$work/out" || fail "$(cat "$work/out")"
  expect_full_disk "$bin/train_ctr" --data "$work/data" --epochs 1 --export "$work/model.h5"
  expect_full_disk "$bin/functional_model"
  expect_full_disk "$bin/subclassed_model"
  expect_full_disk "$bin/text_classifier"
fi
