# Checks that the defaults reach the AUC of the README on real data sets. Skipped without the data.
. "$(dirname "$0")/common.sh"
data=${KEEL_DATA_DIR:-$root/../shared/data}
if [ ! -d "$data/adult" ]; then
  echo "skipped: no data in $data"
  exit 77
fi
check() { # check DATA LEAST FLAGS...
  local name=$1 least=$2
  shift 2
  local auc
  auc=$("$bin/train_ctr" --data "$data/$name" "$@" | awk '/^test auc/ {print $3}')
  awk -v auc="$auc" -v least="$least" 'BEGIN {exit !(auc >= least)}' || fail "$name $*: auc $auc < $least"
  echo "$name $*: auc $auc"
}
for strategy in tpu cpu; do
  check adult .915 --strategy "$strategy"
  check chicago_taxi .949 --strategy "$strategy"
done
