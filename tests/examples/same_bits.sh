# Checks that the numbers of worker threads and of OpenMP threads do not change any trained bit.
. "$(dirname "$0")/common.sh"
small_data "$work/data"
for strategy in tpu cpu; do
  for model in dlrm wide_deep; do
    reference=
    for workers in 1 2 4; do
      out="$work/$strategy-$model-$workers.h5"
      OMP_NUM_THREADS=$workers "$bin/train_ctr" --data "$work/data" --strategy "$strategy" --cores 4 \
        --model "$model" --workers "$workers" --epochs 2 --batch_size 64 --export "$out" >"$work/out"
      [ -z "$reference" ] && reference=$out
      same_files "$reference" "$out"
    done
  done
done
