# Tests keel plot. Pictures require Graphviz; text does not.
# Tests savedmodel/tool/plot.cc.
. "$(dirname "$0")/common.sh"
cd "$work"
expect "wrote a.dot" "$keel" plot "$files/ranker.keras" a.dot --show_layer_names --show_shapes
grep -q "score" a.dot || fail "no layer: $(cat a.dot)"
expect "wrote b.dot" "$keel" plot "$cases/nested.keras" b.dot --expand_nested --rankdir LR
grep -q "LR" b.dot || fail "no direction: $(cat b.dot)"
for suffix in svg png; do
  if command -v dot >/dev/null; then
    expect "wrote a.$suffix" "$keel" plot "$files/ranker.keras" "a.$suffix"
    [ -s "a.$suffix" ] || fail "no picture"
  else
    expect_bad "raphviz" "$keel" plot "$files/ranker.keras" "a.$suffix"
  fi
done
expect_bad "rankdir" "$keel" plot "$files/ranker.keras" a.dot --rankdir UP
expect_bad "a.txt" "$keel" plot "$files/ranker.keras" a.txt
expect_bad "nowhere" "$keel" plot "$files/ranker.keras" nowhere/a.dot
expect_bad "no such file" "$keel" plot nowhere.keras a.dot
expect_bad "--dpi: must be a whole number" "$keel" plot "$files/ranker.keras" a.dot --dpi x
for file in cut.keras cut.h5 empty.h5 text.keras; do
  expect_bad "$file" "$keel" plot "$file" a.dot
done
