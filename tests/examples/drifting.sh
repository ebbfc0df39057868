# D-130: the order of tables by quality on items that appear and die. Skipped without the maker of
# the data or numpy.
. "$(dirname "$0")/common.sh"
data=${KEEL_DATA_DIR:-$root/../shared/data}
maker=$data/../tools/drifting_clicks.py
python=
for candidate in python3 /usr/bin/python3; do
  if [ -z "$python" ] && "$candidate" -c "import numpy" 2>/dev/null; then python=$candidate; fi
done
if [ ! -f "$maker" ] || [ -z "$python" ]; then
  echo "skipped: no $maker or no numpy"
  exit 77
fi
"$python" "$maker" "$work/drift" --rows 300000 --test_rows 10000 --births 155 >"$work/out"
items=$(awk -F: '/items_train/ {print int($2)}' "$work/drift/schema.json")
# The maker writes facts that train_ctr does not know.
"$python" - "$work/drift/schema.json" <<'PY'
import json, sys
known = json.load(open(sys.argv[1]))
json.dump({key: known[key] for key in ("label", "numeric", "categorical")}, open(sys.argv[1], "w"))
PY
rows=$((items / 4))
progressive() { # progressive FLAGS...: prints the progressive AUC in ten-thousandths
  "$bin/train_ctr" --data "$work/drift" --model dlrm --epochs 1 --validation_split 0 --batch_size 500 \
    --in_order --progressive --hidden 16 --dropout 0 --embedding_dropout 0 --learning_rate 0.01 \
    --embedding_learning_rate 0.1 --cores 1 --min_count 1 "$@" |
    awk '/^progressive auc/ {print int($3 * 10000 + 0.5)}'
}
item=(--dynamic --dynamic_columns item)
full=$(progressive "${item[@]}")
hashing=$(progressive "${item[@]}" --admission never --not_admitted "hashed:$rows")
lru=$(progressive "${item[@]}" --capacity $rows --eviction lru)
halved=$(progressive "${item[@]}" --capacity $rows --eviction lfu:150)
lfu=$(progressive "${item[@]}" --capacity $rows --eviction lfu)
echo "progressive AUC x 10000: full $full, hashing $hashing, lru $lru, lfu halved $halved, lfu $lfu"
[ "$lru" -ge $((full - 25)) ] || fail "lru loses too much"
[ "$halved" -ge $((full - 25)) ] || fail "lfu with halving loses too much"
[ "$lru" -ge $((hashing + 30)) ] || fail "lru gains too little over hashing"
[ "$halved" -ge $((hashing + 30)) ] || fail "lfu with halving gains too little over hashing"
[ "$lfu" -lt "$halved" ] || fail "halving does not help"
