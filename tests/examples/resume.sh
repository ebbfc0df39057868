# Checks that a run that is stopped and resumed in a new process ends with the same bits as an
# uninterrupted run, including dropout, under either strategy, and that a checkpoint can be resumed
# under the other strategy.
. "$(dirname "$0")/common.sh"
small_data "$work/data"
for strategy in tpu cpu; do
  # Covers early stopping and its best weights: the second epoch is the last or the next to last.
  flags=(--data "$work/data" --strategy "$strategy" --cores 3 --epochs 3 --batch_size 64 --dropout 0.2 --patience 1)
  "$bin/train_ctr" "${flags[@]}" --export "$work/whole.h5" --write_predictions "$work/whole.csv"
  rm -rf "$work/checkpoints"
  for stop in 5 14 0; do
    "$bin/train_ctr" "${flags[@]}" --checkpoint_dir "$work/checkpoints" --resume \
      --stop_after_steps "$stop" --export "$work/parts.h5" --write_predictions "$work/parts.csv"
  done
  same_files "$work/whole.csv" "$work/parts.csv"
  same_files "$work/whole.h5" "$work/parts.h5"
done
same=(--data "$work/data" --batch_size 64 --dropout 0.2 --patience 1 --checkpoint_dir "$work/checkpoints" --resume)
"$bin/train_ctr" "${same[@]}" --strategy tpu --cores 2 --epochs 4 >"$work/out"
grep -q "resumed from" "$work/out" || fail "tpu did not resume from cpu"

# Options that differ from those of the run raise errors that name the option, both values and the
# remedy.
expect_error 2 "had --dropout=0.2, received 0.5; pass --dropout=0.2, or start a new run in another --checkpoint_dir" \
  "$bin/train_ctr" "${same[@]}" --dropout 0.5
for other in "--learning_rate 0.01" "--embedding_learning_rate 0.1" "--embedding_optimizer sgd" \
  "--model dcn" "--batch_size 32" "--embedding_dim 4" "--hidden 8" "--seed 2" "--min_count 3" \
  "--max_buckets 5" "--patience 4" "--validation_split 0.3" "--validation_csv $work/data/test.csv"; do
  # shellcheck disable=SC2086  # flag and value
  expect_error 2 "had ${other%% *}=" "$bin/train_ctr" "${same[@]}" $other
done
# A damaged file names itself, and the newest good checkpoint. Files that the index names are missed.
options=$work/checkpoints/options.json
cp "$options" "$work/options.json"
echo '{"cut": ' >"$options"
expect_error 2 "$options: not the options of a run" "$bin/train_ctr" "${same[@]}"
cp "$work/options.json" "$options"
names=$(cd "$work/checkpoints" && ls -v ckpt-*.h5 | tail -2)
good=${names%%$'\n'*} newest=${names##*$'\n'}
echo damaged >"$work/checkpoints/$newest"
expect_error 2 "the newest good checkpoint is $work/checkpoints/$good: remove $work/checkpoints/$newest" \
  "$bin/train_ctr" "${same[@]}"
rm "$work/checkpoints/$newest"
"$bin/train_ctr" "${same[@]}" --stop_after_steps 1 >"$work/out"
grep -q "resumed from $work/checkpoints/$good" "$work/out" || fail "not resumed: $(cat "$work/out")"
rm "$work/checkpoints"/ckpt-*.h5*
expect_error 2 "restore the file from a copy, or remove the index to start anew" "$bin/train_ctr" "${same[@]}"
# The next run removes the folder of synthetic clicks of a killed run.
mkdir "$work/tmp"
TMPDIR=$work/tmp "$bin/train_ctr" --epochs 1000 >"$work/out" 2>&1 &
victim=$!
for _ in $(seq 300); do
  compgen -G "$work/tmp/*.d/test.csv" >/dev/null && break
  sleep 0.1
done
kill -KILL "$victim"
wait "$victim" 2>/dev/null || true
[ -n "$(ls "$work/tmp")" ] || fail "the killed run left nothing to remove"
TMPDIR=$work/tmp "$bin/train_ctr" --epochs 1 >"$work/out"
[ -z "$(ls "$work/tmp")" ] || fail "left: $(ls "$work/tmp")"
