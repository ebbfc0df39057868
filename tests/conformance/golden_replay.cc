#include "tests/conformance/golden_replay.h"

#include <map>
#include <set>

#include "tests/conformance/golden_arrays.h"
#include "tests/conformance/golden_sections.h"

namespace keel::conformance {
namespace {

constexpr char kOptimizers[] = "optimizers";

using Replay = void (*)(Fields&, Comparison&);

const std::map<std::string, Replay>& replays() {
  static const std::map<std::string, Replay> kReplays = {{"activations", replay_activation},
                                                         {"constraints", replay_constraint},
                                                         {"initializers", replay_initializer},
                                                         {"layers", replay_layer},
                                                         {"losses", replay_loss},
                                                         {"metrics", replay_metric},
                                                         {"regularizers", replay_regularizer},
                                                         {"schedules", replay_schedule}};
  return kReplays;
}

// Returns the tolerances documented by replay_golden --help. Keras computes in float32: results are
// accurate to about 1e-7 of the largest operand, and gradients may cancel.
Comparison comparison_of(const std::string& section) {
  if (section == "schedules") return {1e-6, 1e-9, 1e-7};
  const bool may_cancel = section == "layers" || section == "losses" || section == "metrics";
  return {1e-5, may_cancel ? 1e-6 : 1e-7, 1e-6};
}

void replay(const GoldenRecord& record, Comparison& result) {
  if (!record.fields.is_dict()) throw ValueError("a record must be an object of named fields");
  Config named = record.fields;
  for (const char* comment : {"note", "description"}) named.erase(comment);
  Fields fields(named, record.section);
  if (record.section == kOptimizers) {
    replay_optimizer(fields, record.optimizer_problem, result);
  } else {
    const auto it = replays().find(record.section);
    if (it == replays().end()) throw ValueError("unknown section '", record.section, "'");
    it->second(fields, result);
  }
  fields.finish();
}

}  // namespace

std::string GoldenRecord::class_name() const {
  for (const char* key : {"class", "name"}) {
    const Config* found = fields.is_dict() ? fields.find(key) : nullptr;
    if (found != nullptr && found->is_string()) return found->string();
  }
  return {};
}

std::string GoldenRecord::name() const {
  std::string out = section + "[" + std::to_string(index) + "] " + class_name();
  if (!fields.is_dict()) return out;
  const Config* tag = fields.find("tag");
  if (tag != nullptr && tag->is_string()) out += " [" + tag->string() + "]";
  for (const char* key : {"config", "kwargs"}) {
    if (const Config* found = fields.find(key)) out += " " + to_json(*found);
  }
  return out;
}

std::vector<GoldenRecord> golden_records(const Config& file) {
  if (!file.is_dict()) throw ValueError("is not an object of sections");
  std::vector<GoldenRecord> out;
  const Config* problem = file.find("optimizer_problem");
  for (const auto& [section, records] : file.entries()) {
    const bool known = section == kOptimizers || replays().contains(section);
    if (!records.is_list()) {
      if (known) throw ValueError("section '", section, "' is not a list of records");
      continue;
    }
    for (const Config& record : records.items()) {
      out.push_back({.section = section, .index = 0, .fields = record});
      out.back().index = static_cast<size_t>(&record - records.items().data());
      if (problem != nullptr) out.back().optimizer_problem = *problem;
    }
  }
  if (out.empty()) throw ValueError("has no records");
  return out;
}

std::string replay_golden_record(const GoldenRecord& record) {
  Comparison result = comparison_of(record.section);
  std::string out;
  try {
    replay(record, result);
  } catch (const std::exception& error) {
    out = "  error: " + std::string(error.what()) + "\n";
  }
  return result.differences() + out;
}

Config class_and_config(Fields& fields) {
  return Config::dict(
      {{"class_name", fields.need("class")}, {"config", golden_config(fields.need("config"))}});
}

}  // namespace keel::conformance
