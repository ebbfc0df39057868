#include <keel/savedmodel/serving/protocol/status_page.h>

namespace keel::serving {
namespace {

constexpr const char* kPage = R"html(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>keel serve</title><link rel="icon" href="data:,">
<style>
:root { color-scheme: light dark; --ink: #1b1f24; --dim: #57606a; --line: #d8dee4; --back: #fff; --box: #f6f8fa;
  --good: #116329; --good-back: #dafbe1; --bad: #a40e26; --bad-back: #ffebe9; --busy: #7d4e00; --busy-back: #fff1cc;
  --accent: #0759b8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --dim: #9198a1; --line: #30363d; --back: #0d1117;
  --box: #161b22; --good: #56d364; --good-back: #12301b; --bad: #ff8f87; --bad-back: #3a1519; --busy: #e3b341;
  --busy-back: #332703; --accent: #58a6ff; } }
body { font: 15px/1.45 system-ui, sans-serif; margin: 0 auto; max-width: 72rem; padding: 1.5rem 1.25rem 3rem;
  color: var(--ink); background: var(--back); }
header { display: flex; flex-wrap: wrap; align-items: baseline; gap: .4rem 1rem; margin-bottom: 1rem; }
h1 { font-size: 1.4rem; margin: 0; } h2 { font-size: 1.1rem; margin: 2rem 0 .6rem; }
header a { margin-left: auto; } a { color: var(--accent); }
.dim { color: var(--dim); }
.pill { border-radius: 1rem; padding: .05rem .6rem; font-size: .85em; white-space: nowrap; }
.good { color: var(--good); background: var(--good-back); } .bad { color: var(--bad); background: var(--bad-back); }
.busy { color: var(--busy); background: var(--busy-back); } .off { color: var(--dim); background: var(--box); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th { text-align: left; font-weight: 500; font-size: .85em; color: var(--dim); white-space: nowrap; }
th, td { padding: .35rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
tr.model td { background: var(--box); font-weight: 600; }
td.name { overflow-wrap: anywhere; min-width: 11rem; max-width: 24rem; }
tr.version td.name { padding-left: 1.6rem; }
td.some { color: var(--bad); }
tr.message td { color: var(--bad); padding: 0 .6rem .5rem 1.6rem; overflow-wrap: anywhere; }
tr.joined td { border-bottom: 0; }
form p { display: flex; flex-wrap: wrap; align-items: center; gap: .6rem; margin: .5rem 0; }
label { font-size: .85em; color: var(--dim); }
select { max-width: 24rem; text-overflow: ellipsis; }
textarea, pre { width: 100%; box-sizing: border-box; font: 13px/1.45 ui-monospace, monospace; color: inherit;
  background: var(--box); border: 1px solid var(--line); border-radius: .4rem; padding: .7rem; margin: 0; }
textarea { height: 14rem; resize: vertical; }
pre { overflow: auto; max-height: 20rem; white-space: pre-wrap; overflow-wrap: anywhere; }
pre:empty { display: none; } pre.failed { color: var(--bad); }
button, select { font: inherit; padding: .25rem .7rem; border-radius: .4rem; border: 1px solid var(--line);
  background: var(--back); color: inherit; }
button:disabled { opacity: .5; }
button.main { background: var(--accent); border-color: var(--accent); color: var(--back); font-weight: 600; }
svg.rates { width: 6rem; height: 1.1rem; vertical-align: -.15rem; fill: none; stroke: var(--accent); stroke-width: 1.5; }
</style></head><body>
<header><h1>keel serve</h1><span id="ready" class="pill off">connecting</span>
<span id="summary" class="dim"></span><a href="metrics" id="metrics">Metrics</a></header>
<div class="wide"><table><thead><tr><th>Model, version</th><th>State</th><th class="n">Requests</th>
<th class="n">Errors</th><th class="n">Requests/s</th><th class="n">Mean</th><th class="n">p50</th><th class="n">p99</th>
<th class="n">Tables</th><th class="n">Loaded in</th></tr></thead><tbody id="models"></tbody></table></div>
<p class="dim" id="legend">Rates and latencies are those of the last minute, or since the start if there were no requests.
Quantiles are read from the buckets of the histogram.</p>
<h2>Send a prediction</h2>
<form id="form">
<p><label for="model">Model</label><select id="model"></select><label for="version">Version</label>
<select id="version"></select><button type="button" id="example">Example row</button></p>
<textarea id="body" spellcheck="false" aria-label="Body of the request"></textarea>
<p><button class="main" id="send">Predict</button><span id="took" class="dim"></span></p>
<pre id="answer"></pre></form>
<script>
"use strict";
const $ = id => document.getElementById(id);
const history = [], kept = 31;  // readings, one in 2 s
const key = (...parts) => parts.join("\n");
function make(tag, text, name) {
  const out = document.createElement(tag);
  out.textContent = text;
  if (name) out.className = name;
  return out;
}
function read_metrics(text) {
  const out = {sums: new Map(), buckets: new Map(), version: ""};
  const add = (name, value) => out.sums.set(name, (out.sums.get(name) || 0) + value);
  for (const line of text.split("\n")) {
    const m = /^([\w:]+)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (!m) continue;
    const labels = {}, value = Number(m[3]);
    for (const [, name, quoted] of (m[2] || "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) labels[name] = quoted.replace(/\\(.)/g, "$1");
    const latency = /^:tensorflow:serving:request_latency_(bucket|sum|count)$/.exec(m[1]);
    if (latency && latency[1] === "bucket") {
      const at = key(labels.model_name, labels.le);
      out.buckets.set(at, (out.buckets.get(at) || 0) + value);
    } else if (latency) {
      add(key(latency[1], labels.model_name), value);
    } else if (m[1] === ":tensorflow:serving:request_count") {
      add(key("requests", labels.model_name), value);
      if (labels.status !== "OK") add(key("errors", labels.model_name), value);
    } else if (["keel_connections", "keel_pending_requests", "keel_rejected_total"].includes(m[1])) {
      add(m[1], value);
    } else if (m[1] === "keel_build_info") {
      out.version = labels.version;
    } else {
      add(key(m[1], labels.model, labels.version, ...(labels.kind ? [labels.kind] : [])), value);
    }
  }
  return out;
}
function duration(us) {
  if (!isFinite(us)) return "";
  return us < 995 ? us.toPrecision(us < 99.5 ? 2 : 3) + " µs" : us < 995e3 ? (us / 1e3).toPrecision(3) + " ms" : (us / 1e6).toFixed(1) + " s";
}
function size(bytes) {
  let i = 0;
  for (; bytes >= 1000 && i < 4; ++i) bytes /= 1024;
  return (i && bytes < 99.5 ? bytes.toPrecision(2) : bytes.toFixed(0)) + " " + ["B", "KiB", "MiB", "GiB", "TiB"][i];
}
const rate = value => value >= 99.5 ? value.toFixed(0) : value.toFixed(1);
// The quantile of the requests between two readings, linear within a bucket.
function quantile(q, model, now, was) {
  const at = (reading, le) => (reading && reading.buckets.get(key(model, le))) || 0, limits = [];
  for (const name of now.buckets.keys()) {
    const [owner, le] = name.split("\n");
    if (owner === model) limits.push(le);
  }
  limits.sort((a, b) => (a === "+Inf") - (b === "+Inf") || a - b);
  if (!limits.length) return NaN;
  const counts = limits.map(le => at(now, le) - at(was, le)), wanted = q * counts[counts.length - 1];
  const i = counts.findIndex(count => count >= wanted), low = i ? Number(limits[i - 1]) : 0, below = i ? counts[i - 1] : 0;
  if (limits[i] === "+Inf") return low;
  return low + (Number(limits[i]) - low) * (wanted - below) / (counts[i] - below);
}
function sparkline(model) {
  const rates = [];
  for (let i = 1; i < history.length; ++i) {
    const get = j => history[j].sums.get(key("requests", model)) || 0;
    rates.push((get(i) - get(i - 1)) * 1000 / (history[i].time - history[i - 1].time));
  }
  const top = Math.max(...rates, 0);
  if (!top) return null;
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg"), line = document.createElementNS(svg.namespaceURI, "polyline");
  svg.setAttribute("viewBox", "0 0 96 18");
  svg.setAttribute("class", "rates");
  line.setAttribute("points", rates.map((r, i) => `${(96 * (i + kept - rates.length) / (kept - 1)).toFixed(1)},${(17 - 16 * r / top).toFixed(1)}`).join(" "));
  svg.append(line);
  return svg;
}
const looks = {AVAILABLE: "good", START: "busy", LOADING: "busy", UNLOADING: "busy"};
const failed = v => v.state === "END" && v.status.error_code !== "OK";
const unloaded = v => v.state === "END" && !failed(v);
// Appends a row of a name, a pill and numbers.
function add_row(body, kind, name, pill, look, numbers) {
  const row = body.insertRow(), state = make("td", "");
  row.className = kind;
  row.append(make("td", name, "name"), state);
  if (pill) state.append(make("span", pill, "pill " + look));
  for (const text of numbers) row.append(make("td", text, "n"));
  return row;
}
function show_model(body, model, now, then) {
  const get = (reading, ...name) => (reading && reading.sums.get(key(...name))) || 0;
  const seconds = then ? (now.time - then.time) / 1000 : 0;
  const recent = get(now, "count", model.name) - get(then, "count", model.name), was = recent ? then : undefined;
  const good = get(now, "count", model.name) - get(was, "count", model.name);
  const versions = model.model_version_status, serves = versions.some(v => v.state === "AVAILABLE");
  const per_second = seconds ? (get(now, "requests", model.name) - get(then, "requests", model.name)) / seconds : 0;
  const row = add_row(body, "model", model.name, serves ? "" : "no version", "bad", [get(now, "requests", model.name),
    get(now, "errors", model.name), seconds ? rate(per_second) : "",
    duration((get(now, "sum", model.name) - get(was, "sum", model.name)) / good),
    duration(good ? quantile(.5, model.name, now, was) : NaN), duration(good ? quantile(.99, model.name, now, was) : NaN), "", ""]);
  if (get(now, "errors", model.name)) row.cells[3].classList.add("some");
  const line = sparkline(model.name);
  if (line) row.cells[4].prepend(line, " ");
  for (const v of versions.filter(v => !unloaded(v))) {
    const of = (name, reading = now) => get(reading, name, model.name, v.version);
    const both = reading => of("nv_inference_request_success", reading) + of("nv_inference_request_failure", reading);
    const delta = both(now) - both(then), since = delta ? then : undefined;
    const tables = ["mapped", "resident", "copied"].map(k => [get(now, "keel_tables_bytes", model.name, v.version, k), k]).filter(t => t[0]);
    const on = v.state === "AVAILABLE" || v.state === "UNLOADING";
    const made = add_row(body, "version", "version " + v.version, failed(v) ? "failed" : v.state.toLowerCase(),
      failed(v) ? "bad" : looks[v.state] || "off", !on ? ["", "", "", "", "", "", "", ""] : [both(now), of("nv_inference_request_failure"),
      seconds ? rate(delta / seconds) : "",
      duration((of("nv_inference_request_duration_us") - of("nv_inference_request_duration_us", since || {sums: new Map()})) / (both(now) - (since ? both(since) : 0))),
      "", "", tables.map(t => `${size(t[0])} ${t[1]}`).join(", "), duration(of("keel_model_load_seconds") * 1e6 || NaN)]);
    if (on && of("nv_inference_request_failure")) made.cells[3].classList.add("some");
    if (!v.status.error_message) continue;
    made.classList.add("joined");
    const message = body.insertRow(), cell = make("td", v.status.error_message);
    message.className = "message";
    cell.colSpan = 10;
    message.append(cell);
  }
  const gone = versions.filter(unloaded).map(v => v.version);
  if (gone.length) add_row(body, "version dim", "unloaded: " + gone.join(", "), "", "", ["", "", "", "", "", "", "", ""]);
}
// Replaces the choices of a list and keeps what is chosen. Returns whether they were others before.
function choose(list, values, texts) {
  const chosen = list.value;
  if (JSON.stringify(values) === JSON.stringify([...list.options].map(o => o.value))) return false;
  list.replaceChildren(...values.map((value, i) => new Option(texts[i], value)));
  if (values.includes(chosen)) list.value = chosen;
  return list.value !== chosen || !chosen;
}
let models = [];
function show_choices() {
  const available = model => model.model_version_status.filter(v => v.state === "AVAILABLE").map(v => v.version);
  const names = models.filter(m => available(m).length).map(m => m.name), changed = choose($("model"), names, names);
  const model = models.find(m => m.name === $("model").value), numbers = model ? available(model) : [];
  choose($("version"), ["", ...numbers], ["newest", ...numbers]);
  $("send").disabled = $("example").disabled = !numbers.length;
  if ((changed || !$("body").value) && numbers.length) suggest();
}
async function refresh() {
  try {
    const [answer, page, ready] = await Promise.all([fetch("v1/models"), fetch("metrics"), fetch("readyz")]);
    models = (await answer.json()).models;
    const now = read_metrics(page.ok ? await page.text() : "");
    now.time = performance.now();
    history.push(now);
    if (history.length > kept) history.shift();
    $("ready").textContent = ready.ok ? "ready" : "not ready";
    $("ready").className = "pill " + (ready.ok ? "good" : "bad");
    const total = name => now.sums.get(name) || 0, plural = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;
    $("summary").textContent = [now.version && `version ${now.version}`, plural(models.length, "model"),
      ...(page.ok ? [plural(total("keel_connections"), "connection"), `${total("keel_pending_requests")} pending`] : []),
      total("keel_rejected_total") && plural(total("keel_rejected_total"), "request") + " refused"].filter(Boolean).join(", ");
    $("metrics").hidden = !page.ok;
    const body = document.createElement("tbody"), then = history.length > 1 ? history[0] : undefined;
    for (const model of models) show_model(body, model, now, then);
    $("models").replaceChildren(...body.rows);
    show_choices();
  } catch (error) {
    $("ready").textContent = "no connection";
    $("ready").className = "pill bad";
  }
}
const filled = (dims, value) => dims.length ? Array.from({length: Math.max(dims[0], 1)}, () => filled(dims.slice(1), value)) : value;
function example(info) {
  const value = {DT_STRING: "a", DT_BOOL: true, DT_FLOAT: .5, DT_DOUBLE: .5}[info.dtype] ?? 1;
  if (info.coo_sparse || info.composite_tensor) return [value === 1 ? 0 : value, value];
  return filled(info.tensor_shape.dim.slice(1).map(d => Number(d.size)), value);
}
const path = () => `v1/models/${encodeURIComponent($("model").value)}` + ($("version").value ? `/versions/${$("version").value}` : "");
async function suggest() {
  const answer = await fetch(path() + "/metadata");
  if (!answer.ok) { $("body").value = ""; return; }
  const inputs = (await answer.json()).metadata.signature_def.signature_def.serving_default.inputs;
  const lines = Object.entries(inputs).map(([name, info]) => `  ${JSON.stringify(name)}: ${JSON.stringify(example(info)).replaceAll(",", ", ")}`);
  $("body").value = `{"instances": [{\n${lines.join(",\n")}\n}]}`;
  $("answer").textContent = $("took").textContent = "";
}
$("model").onchange = () => { $("version").value = ""; show_choices(); suggest(); };
$("example").onclick = suggest;
$("form").onsubmit = async event => {
  event.preventDefault();
  const begin = performance.now();
  try {
    const answer = await fetch(path() + ":predict", {method: "POST", body: $("body").value}), text = await answer.text();
    const version = answer.headers.get("Keel-Model-Version");
    $("took").textContent = `${answer.status} ${answer.statusText}, ${(performance.now() - begin).toFixed(1)} ms` + (version ? `, version ${version}` : "");
    $("answer").className = answer.ok ? "" : "failed";
    $("answer").textContent = text;
  } catch (error) {
    $("took").textContent = "no connection";
  }
};
refresh();
setInterval(refresh, 2000);
</script></body></html>
)html";

}  // namespace

std::string status_page() { return kPage; }

}  // namespace keel::serving
