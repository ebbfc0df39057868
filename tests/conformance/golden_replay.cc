#include "tests/conformance/golden_replay.h"

#include <algorithm>
#include <map>
#include <set>

#include <keel/layers/registry.h>

#include "tests/conformance/golden_arrays.h"
#include "tests/conformance/golden_sections.h"
#include "tests/conformance/known_classes.h"
#include "tests/conformance/ops_arguments.h"

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
                                                         {"ops", replay_op},
                                                         {"regularizers", replay_regularizer},
                                                         {"schedules", replay_schedule},
                                                         {"text_layers", replay_layer}};
  return kReplays;
}

// Returns the section of known_classes() that has the classes of a section of a file.
std::string section_of_classes(const std::string& section) {
  return section == "text_layers" ? "layers" : section;
}

// Returns the tolerances documented by replay_golden --help. Keras computes in float32: results are
// accurate to about 1e-7 of the largest operand, and gradients may cancel.
Comparison comparison_of(const GoldenRecord& record) {
  // Functions in which Keras's float32 results lose a digit, and optimizers whose steps amplify
  // rounding errors: a polynomial of a matrix, and quotients of averages.
  static const std::set<std::string> kLessExact = {
      "cholesky", "cholesky_inverse", "corrcoef",     "det",  "eigh", "inv",      "logdet",
      "lstsq",    "lu_factor",        "matrix_power", "norm", "pinv", "qr",       "slogdet",
      "solve",    "solve_triangular", "svd",          "ssim", "Muon", "Adafactor"};
  const std::string& section = record.section;
  if (section == "schedules") return {1e-6, 1e-9, 1e-7};
  if (kLessExact.contains(record.class_name())) return {1e-4, 1e-6, 1e-5};
  if (section == "ops") return {1e-5, 1e-7, 1e-6};
  const bool may_cancel =
      section_of_classes(section) == "layers" || section == "losses" || section == "metrics";
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

bool is_offered(const std::string& section, const std::string& name) {
  const auto known = known_classes();
  const auto names = known.find(section);
  return names != known.end() && std::ranges::find(names->second, name) != names->second.end();
}

// Returns the class of a layer inside a layer's config that Keel does not offer; empty if there is
// none.
std::string missing_layer_inside(const Config& config) {
  std::vector<Config> inside;
  if (config.is_list()) inside = config.items();
  if (config.is_dict()) {
    for (const auto& [key, value] : config.entries()) inside.push_back(value);
    const Config* name = config.find("class_name");
    if (name != nullptr && !is_offered("layers", name->string())) return name->string();
  }
  for (const Config& part : inside) {
    if (std::string name = missing_layer_inside(part); !name.empty()) return name;
  }
  return {};
}

// Returns the class and what is missing in it if it throws NotImplementedError for its config;
// empty otherwise.
std::string missing_option(const GoldenRecord& record) {
  try {
    Fields fields(record.fields, record.section);
    layers::deserialize(class_and_config(fields));
  } catch (const NotImplementedError& error) {
    const std::string text = error.what();
    return record.class_name() + text.substr(std::min(text.find(": "), text.size()));
  } catch (const std::exception&) {
    // The replay of the record reports it.
  }
  return {};
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

std::string missing_part(const GoldenRecord& record) {
  if (record.section == "ops") {
    const std::string name = op_name(record.fields);
    return op_adapters().contains(name) ? "" : name;
  }
  const std::string section = section_of_classes(record.section);
  if (!known_classes().contains(section)) return "(the whole section)";
  if (!is_offered(section, record.class_name())) return record.class_name();
  if (section != "layers") return {};
  const std::string inside = missing_layer_inside(record.fields["config"]);
  return inside.empty() ? missing_option(record) : inside;
}

std::string replay_golden_record(const GoldenRecord& record) {
  Comparison result = comparison_of(record);
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
