# Checks that SIGTERM and SIGINT end a training with a checkpoint, a message and the status of the
# signal, that the run then resumes to the same bits, and that a second signal ends the program at
# once.
. "$(dirname "$0")/common.sh"
small_data "$work/data"
# A failing test must not leave a training process behind.
pid=
trap 'kill -KILL "$pid" 2>/dev/null || true' EXIT
export TMPDIR=$work/tmp
mkdir "$TMPDIR"
flags=(--data "$work/data" --cores 2 --batch_size 16 --epochs 12 --patience 12)
"$bin/train_ctr" "${flags[@]}" --export "$work/whole.h5" >"$work/whole.out"

# start LOG ARGS...: starts a training in the background, with SIGINT enabled as in a terminal, and
# waits for a checkpoint.
start() {
  local log=$1
  shift
  rm -rf "$work/checkpoints"
  env --default-signal=INT "$bin/train_ctr" "${flags[@]}" --checkpoint_dir "$work/checkpoints" \
    --checkpoint_steps 1 "$@" >"$log" 2>&1 &
  pid=$!
  local i
  for ((i = 0; i < 600; ++i)); do
    [ -s "$work/checkpoints/checkpoint" ] && return
    sleep 0.05
  done
  fail "no checkpoint: $(cat "$log")"
}
expect_status() { # expect_status STATUS LOG
  local got=0
  wait "$pid" || got=$?
  pid=
  [ "$got" -eq "$1" ] || fail "status $got, expected $1: $(cat "$2")"
}

for signal in TERM INT; do
  start "$work/out" --epochs 2000 --patience 2000
  kill -"$signal" "$pid"
  expect_status $((128 + $(kill -l "$signal"))) "$work/out"
  grep -q "SIG$signal: ended after [0-9]* training steps; .*ckpt-[0-9]*.h5 written; continue with --resume" \
    "$work/out" || fail "no message: $(cat "$work/out")"
done

# Resume to the same bits. The run may end before the signal arrives; then there is nothing to
# resume.
start "$work/out"
kill -TERM "$pid"
wait "$pid" || [ $? -eq 143 ] || fail "no checkpoint: $(cat "$work/out")"
pid=
"$bin/train_ctr" "${flags[@]}" --checkpoint_dir "$work/checkpoints" --resume \
  --export "$work/resumed.h5" >"$work/out"
grep -q "resumed from" "$work/out" || fail "not resumed: $(cat "$work/out")"
same_files "$work/whole.h5" "$work/resumed.h5"

# Without a checkpoint folder, no checkpoint is written and no temporary file remains.
env --default-signal=INT "$bin/train_ctr" --data synthetic --epochs 2000 --patience 2000 \
  --cores 2 >"$work/out" 2>&1 &
pid=$!
for ((i = 0; i < 600; ++i)); do
  compgen -G "$TMPDIR/*.d/train.csv" >/dev/null && break
  sleep 0.05
done
compgen -G "$TMPDIR/*.d/train.csv" >/dev/null || fail "no synthetic data: $(ls "$TMPDIR") $(cat "$work/out")"
kill -INT "$pid"
expect_status 130 "$work/out"
grep -q "no checkpoint written; pass --checkpoint_dir" "$work/out" || fail "no message: $(cat "$work/out")"
[ -z "$(ls "$TMPDIR")" ] || fail "left behind: $(ls "$TMPDIR")"
