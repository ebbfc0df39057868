# A run that is stopped and resumed in a new process ends with the same bits as one that is not,
# dropout and all, under either strategy; and a checkpoint goes from one strategy to the other.
. "$(dirname "$0")/common.sh"
small_data "$work/data"
for strategy in tpu cpu; do
  flags=(--data "$work/data" --strategy "$strategy" --cores 3 --epochs 3 --batch_size 64 --dropout 0.2)
  "$bin/train_ctr" "${flags[@]}" --export "$work/whole.h5" --write_predictions "$work/whole.csv"
  rm -rf "$work/checkpoints"
  for stop in 5 14 0; do
    "$bin/train_ctr" "${flags[@]}" --checkpoint_dir "$work/checkpoints" --resume \
      --stop_after_steps "$stop" --export "$work/parts.h5" --write_predictions "$work/parts.csv"
  done
  same_files "$work/whole.csv" "$work/parts.csv"
  same_files "$work/whole.h5" "$work/parts.h5"
done
"$bin/train_ctr" --data "$work/data" --strategy tpu --cores 2 --epochs 4 --batch_size 64 \
  --checkpoint_dir "$work/checkpoints" --resume >"$work/out"
grep -q "resumed from" "$work/out" || fail "tpu did not resume from cpu"
