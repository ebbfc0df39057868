# Follows docs/serving.md from training to requests: trains, publishes and serves a model, sends the
# test rows with curl, and checks that the answers equal the predictions of the training process. Runs
# the documented requests too, and the client for gRPC where stubs can be generated.
. "$(dirname "$0")/common.sh"
if ! command -v curl >/dev/null; then
  echo "skipped: install curl"
  exit 77
fi
cd "$work"
"$bin/train_ctr" --data synthetic --model dlrm --epochs 1 --export ranker.keras --write_test_csv test.csv \
  --write_predictions trained.csv
mkdir -p models/ranker/.1.tmp
cp ranker.keras models/ranker/.1.tmp/model.keras
mv models/ranker/.1.tmp models/ranker/1

port=--port=0  # of gRPC, in programs that have it
! "$bin/keel" serve --help | grep -A1 -e "--port" | grep -q 8500 || port=--port=-1
"$bin/keel" serve --model_name ranker --model_base_path models/ranker --rest_api_port=-1 $port 2>log &
server=$!
trap 'kill $server 2>/dev/null || true' EXIT
for _ in $(seq 300); do
  port=$(sed -n 's/^serving REST at http:.*:\([0-9]*\)$/\1/p' log)
  [ -z "$port" ] || ! curl -fso ready "http://127.0.0.1:$port/readyz" || break
  sleep 0.1
done
[ -e ready ] || fail "the server is not ready: $(cat log)"
url=http://127.0.0.1:$port/v1/models/ranker:predict

# A row of the data is a row of the request, without the label.
python3 - <<'ROWS'
import csv, json
with open("test.csv") as file:
    rows = [{key: float(value) if key in ("age", "price", "hour") else value for key, value in row.items() if key != "label"}
            for row in csv.DictReader(file)]
json.dump({"instances": rows}, open("request.json", "w"))
ROWS
curl -fsS -d @request.json "$url" >answer.json
python3 - <<'COMPARE'
import json, struct
bits = lambda number: struct.pack("<f", float(number))
answers = [bits(row[0]) for row in json.load(open("answer.json"))["predictions"]]
trained = [bits(line) for line in open("trained.csv").read().split()[1:]]
assert len(answers) > 1000 and answers == trained, (len(answers), len(trained))
COMPARE

# The requests of the documentation.
python3 - "$root/docs/serving.md" "$port" >documented.sh <<'BLOCK'
import re, sys
text = open(sys.argv[1]).read()
block = text.split("In another shell, ask for the inputs", 1)[1].split("\n\n", 2)[1]
print(re.sub(r"(?m)^    \{.*", "", block).replace("curl ", "curl -fsS ").replace(":8501", ":" + sys.argv[2]))
BLOCK
bash -e documented.sh >documented.txt || fail "the documented requests: $(cat documented.sh documented.txt)"
grep -q '"name": "user", "datatype": "BYTES"' documented.txt || fail "$(cat documented.txt)"
grep -q '{"predictions": \[\[0\.' documented.txt || fail "$(cat documented.txt)"

grpc=$(sed -n 's/^serving gRPC at //p' log)
if [ -n "$grpc" ]; then
  python3 "$root/tests/savedmodel/serving/grpc/documented_client.py" "$root/docs/serving.md" "$grpc" "$work/stubs" >grpc.txt ||
    [ $? -eq 77 ] || fail "the documented client: $(cat grpc.txt)"
  cat grpc.txt
fi
kill $server
wait $server || fail "the server has not ended well: $(cat log)"
trap - EXIT
