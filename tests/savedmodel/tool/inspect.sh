# Tests keel inspect on files of every format.
# Tests savedmodel/tool/inspect.cc.
. "$(dirname "$0")/common.sh"
expect "model, Keras archive" "$keel" inspect "$files/ranker.keras"
for text in "Functional ranker" "score (Dense)" "users/embeddings" "float32 (8, 2)" \
  "optimizer adam" "iteration" \
  "serve_examples(examples: string (?,)) -> {score: float32 (?, 1)}" \
  "serving_default(age: float32 (?, 2), seen: ragged int64 (?, ?), user: int64 (?, 1))"; do
  grep -qF -- "$text" "$work/out" || fail "no '$text' in $(cat "$work/out")"
done
checksums() { "$keel" inspect "$1" | awk '/^  .*  crc32c/ {print $3}' | sort; }
checksums "$files/ranker.keras" >"$work/archive.sums"
[ -s "$work/archive.sums" ] || fail "no checksums"
checksums "$files/ranker.h5" >"$work/h5.sums"
[ -s "$work/h5.sums" ] || fail "no checksums"
weights() { "$keel" inspect "$1" | sed -n '/^weights/,/^$/p'; }
[ "$(weights "$files/ranker.keras")" = "$(weights "$files/ranker.h5")" ] || fail "weights differ"
expect "score/kernel/momentum" "$keel" inspect "$files/host.keras"
expect "the state of engine tables is in checkpoints only" \
  "$keel" inspect "$files/engine.keras"
grep -q "/momentum" "$work/out" && fail "state that is no file's: $(cat "$work/out")"
expect "model, Keras legacy HDF5" "$keel" inspect "$files/ranker.h5"
expect "weights, Keras 3 HDF5" "$keel" inspect "$files/ranker.weights.h5"
expect "layers/" "$keel" inspect "$files/ranker.weights.h5"
expect "weights, Keras legacy HDF5" "$keel" inspect "$files/alone.h5"
expect "users/users/embeddings" "$keel" inspect "$files/alone.h5"
expect "checkpoint" "$keel" inspect "$files/checkpoints/ckpt-1.h5"
expect "ckpt-2.h5" "$keel" inspect "$files/checkpoints"
grep -qE "^step +2$" "$work/out" || fail "no step: $(cat "$work/out")"
for model in "$cases"/*.keras "$cases"/*.h5; do
  "$keel" inspect "$model" >"$work/out" 2>&1 || fail "$model: $(cat "$work/out")"
done

expect "users/embeddings[3] = " "$keel" inspect "$files/ranker.keras" --row users 3
row=$(sed 's/.*= //' "$work/out")
expect "[3] = $row" "$keel" inspect "$files/ranker.h5" --row users/embeddings 3
expect "[3] = $row" "$keel" inspect "$files/alone.h5" --row users 3
expect "[3] = $row" "$keel" inspect "$files/ranker.weights.h5" --row layers/embedding 3
expect "[3] = $row" "$keel" inspect "$files/checkpoints" --row model/embedding/embeddings 3
expect_bad "has rows 0 to 7, received 8" "$keel" inspect "$files/ranker.keras" --row users 8
expect_bad "has rows 0 to 7, received -1" "$keel" inspect "$files/ranker.keras" --row users -1
expect_bad "must be a number, received 'x'" "$keel" inspect "$files/ranker.keras" --row users x
expect_bad "has no weight 'bars'" "$keel" inspect "$files/ranker.keras" --row bars 0
expect_bad "may be any of hidden/kernel, hidden/bias" \
  "$keel" inspect "$files/ranker.keras" --row hidden 0
expect_bad "no such file" "$keel" inspect "$work/nowhere.h5"
expect_bad "a folder without checkpoints" "$keel" inspect "$work"
for file in cut.keras cut.h5 empty.h5 text.keras; do
  expect_bad "$file" "$keel" inspect "$work/$file"
done

# Large tables: read in place as Keel writes them; copied, with the reason, from a compressed member.
for model in large.keras large.h5; do
  expect "1280000 bytes  read in place" "$keel" inspect "$files/$model"
done
python3 - "$files/large.keras" "$work/deflated.keras" <<'END'
import sys
import zipfile
with zipfile.ZipFile(sys.argv[1]) as old, zipfile.ZipFile(sys.argv[2], "w", zipfile.ZIP_DEFLATED) as new:
    for name in old.namelist():
        new.writestr(name, old.read(name))
END
expect "copied: the archive compresses it" "$keel" inspect "$work/deflated.keras"
expect "as keel serve loads them  none" "$keel" inspect "$files/ranker.keras"
