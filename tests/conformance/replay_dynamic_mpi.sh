# replay_dynamic_mpi.sh MPIEXEC FLAG PROGRAM ROOT WORK: replays the cases of tables for unbounded ids in
# 1, 2 and 3 processes. The tables must have equal bits at the end.
set -eu
mpiexec=$1 flag=$2 program=$3 root=$4 work=$5
mkdir -p "$work"
cd "$work"

for processes in 1 2 3; do
  "$mpiexec" "$flag" "$processes" "$program" --bits "$root/tests/cases/dynamic_cases.json" \
    >"$processes.txt" 2>&1 || { echo "$processes processes:"; cat "$processes.txt"; exit 1; }
  grep '^bits' "$processes.txt" | sort >"$processes.bits"
done
for processes in 2 3; do
  if [ "$(wc -l <"$processes.bits")" -lt 60 ]; then
    echo "only $(wc -l <"$processes.bits") cases ran in $processes processes"
    exit 1
  fi
  if [ -n "$(comm -23 "$processes.bits" 1.bits)" ]; then
    echo "$processes processes have other bits than one:"
    comm -23 "$processes.bits" 1.bits
    exit 1
  fi
done
