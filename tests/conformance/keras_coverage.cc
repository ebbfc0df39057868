#include "tests/conformance/keras_coverage.h"

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include <keel/framework/config/config.h>
#include <keel/layers/internal/refused_arguments.h>
#include <keel/optimizers/multi_optimizer.h>

#include "tests/conformance/keras_api.h"
#include "tests/conformance/known_classes.h"
#include "tests/conformance/ops_arguments.h"

namespace keel::conformance {
namespace {

constexpr char kIntroduction[] =
    R"(# Coverage of the Keras 3 API

This page lists the names of Keras 3's public API and shows which of them Keel offers under the same names. Aliases, base
classes and functions that create or serialize objects (`get`, `serialize`) are not listed.

A test, `replay_golden`, compares results and gradients with those of Keras. The rows "of these, not compared" list the
names for which it has no case. The rows "arguments that no case sets" list arguments of other names that have their
default in all cases, without initializers, regularizers, constraints and seeds. Tests below `tests/autodiff/keras_ops`,
`tests/layers/losses` and `tests/layers/image` have examples of losses and image functions with such arguments, integers
and images that are not square, worked by hand from Keras's formulas.

Another test compares configs that layers write, with the names and values of all
arguments, with those that Keras writes; it has cases for the layers in `tests/cases/keras_layer_configs.json`. A third
test creates every layer, loss, metric and optimizer with all arguments that Keras documents, and compares the defaults
(`tests/cases/keras_api.json`). No test compares the defaults of the arguments of other classes. Refused arguments of
layers are listed below. Others: `input_axes` and `output_axes` of the initializers derived from VarianceScaling, and
windows of STFT other than boxcar, hann, hamming and blackman.

Files of Keras 1 and 2 are read with the names and functions of those versions. For example, ThresholdedReLU becomes a
ReLU with a threshold. Their `hard_sigmoid` is 0.2 x + 0.5, but Keras 3 uses another slope, so it is written as a
Sequential of Rescaling and ReLU.

A program generates this page from the registries: `keras_coverage --write docs/keras_coverage.md`.
)";

using Names = std::vector<std::string>;

// Returns the names of a section that Keel offers.
Names names_here(const KerasSection& section) {
  const auto classes = known_classes();
  const std::string key = section.where.substr(section.where.rfind('.') + 1);
  if (key == "callbacks") return callback_names();
  Names out = classes.at(key == "keras" ? "layers" : key);
  if (key == "optimizers") out.emplace_back(OptimizerMap::kClassName);  // not an optimizer
  return out;
}

bool contains(const Names& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

// Writes a row of names in alphabetical order.
void add_row(std::ostream& out, const std::string& what, Names names) {
  if (names.empty()) return;
  std::ranges::sort(names);
  out << "| " << what << " |";
  for (const std::string& name : names) {
    out << (&name == &names.front() ? " `" : ", `") << name << "`";
  }
  out << " |\n";
}

// Returns the classes of a registry that no Keras section lists.
Names beyond_keras(const KerasSection& section) {
  Names out;
  for (const std::string& name : names_here(section)) {
    bool listed = false;
    for (const KerasSection& other : keras_api()) {
      // The layer registry also contains models.
      if (other.where != section.where && other.where != "keras") continue;
      for (const KerasNames& group : other.groups) listed = listed || contains(group.names, name);
    }
    if (!listed) out.push_back(name);
  }
  return out;
}

const std::vector<Config>& case_files() {
  static const std::vector<Config> kFiles = [] {
    std::vector<Config> out;
    for (const char* name : {"keras_golden", "keras_surface"}) {
      std::ifstream in(str(KEEL_SOURCE_DIR "/tests/cases/", name, ".json"));
      out.push_back(parse_json({std::istreambuf_iterator<char>(in), {}}));
    }
    return out;
  }();
  return kFiles;
}

// Returns the cases of a section, or nothing if no file has this section.
std::optional<std::vector<const Config*>> cases_of(const std::string& section) {
  std::optional<std::vector<const Config*>> out;
  for (const Config& file : case_files()) {
    for (const std::string& part : {section, "text_" + section}) {
      const Config* records = file.find(part);
      if (records == nullptr) continue;
      if (!out) out.emplace();
      for (const Config& record : records->items()) out->push_back(&record);
    }
  }
  return out;
}

std::string name_of_case(const Config& record) {
  const Config* name = record.find("class");
  return (name != nullptr ? *name : record["name"]).string();
}

// Arguments that are not worth a case of each class.
bool is_general(const std::string& argument) {
  static const Names kGeneral = {"name",     "dtype",   "trainable", "reduction", "seed",
                                 "autocast", "weights", "stateful",  "sparse"};
  if (contains(kGeneral, argument)) return true;
  return std::ranges::any_of(
      std::initializer_list<const char*>{"initializer", "regularizer", "constraint"},
      [&](const char* ending) { return argument.ends_with(ending); });
}

// Returns "name(argument, ...)", or nothing without arguments.
Names with_arguments(const std::string& name, const std::set<std::string>& arguments) {
  if (arguments.empty()) return {};
  std::string out = name + "(";
  for (const std::string& argument : arguments) {
    if (out.back() != '(') out += ", ";
    out += argument;
  }
  return {out + ")"};
}

// Returns the arguments of classes that have their defaults in all cases of the class.
Names unset_arguments(const std::string& where, const std::vector<const Config*>& cases) {
  static const Config kApi = [] {
    std::ifstream in(KEEL_SOURCE_DIR "/tests/cases/keras_api.json");
    return parse_json({std::istreambuf_iterator<char>(in), {}});
  }();
  Names out;
  const Config* const module = kApi["modules"].find(where);
  if (module == nullptr) return out;
  for (const auto& [name, described] : module->entries()) {
    if (described["kind"].string() != "class") continue;
    std::map<std::string, const Config*> defaults;
    for (const Config& argument : described["arguments"].items()) {
      const std::string key = argument["name"].string();
      const Config* const otherwise = argument.find("default");
      if (!is_general(key) && otherwise != nullptr) defaults[key] = otherwise;
    }
    bool has_case = false;
    std::set<std::string> unset;
    for (const auto& [key, otherwise] : defaults) unset.insert(key);
    for (const Config* record : cases) {
      if (name_of_case(*record) != name) continue;
      has_case = true;
      const Config* const config = record->find("config");
      if (config == nullptr || !config->is_dict()) continue;
      for (const auto& [key, value] : config->entries()) {
        const auto it = defaults.find(key);
        if (it != defaults.end() && !(value == *it->second)) unset.erase(key);
      }
    }
    if (!has_case) continue;
    for (std::string& text : with_arguments(name, unset)) out.push_back(std::move(text));
  }
  return out;
}

// Returns the arguments of functions that no case has. The functions that replay the cases tell
// which arguments there are.
Names unset_arguments_of_functions() {
  std::map<std::string, std::set<std::string>> all, set;
  const std::vector<const Config*> cases = cases_of("ops").value();
  for (const Config* record : cases) {
    const std::string name = op_name(*record);
    const auto adapter = op_adapters().find(name);
    if (adapter == op_adapters().end()) continue;
    OpArguments arguments((*record)["arguments"]);
    try {
      adapter->second(arguments);
    } catch (const Error&) {  // a case of an error; the arguments were read
    }
    for (const std::string& argument : arguments.asked()) {
      if (!is_general(argument)) all[name].insert(argument);
      if (arguments.names(argument)) set[name].insert(argument);
    }
  }
  Names out;
  for (auto& [name, arguments] : all) {
    std::erase_if(arguments, [&](const auto& argument) { return set[name].contains(argument); });
    for (std::string& text : with_arguments(name, arguments)) out.push_back(std::move(text));
  }
  return out;
}

// Returns the names of a section for which a file of Keras's results has a case, or nothing if no
// file has this section.
std::optional<Names> names_with_cases(const std::string& section) {
  const auto cases = cases_of(section);
  if (!cases) return {};
  Names out;
  for (const Config* record : *cases) out.push_back(name_of_case(*record));
  return out;
}

void add_section(std::ostream& out, const KerasSection& section) {
  const Names here = names_here(section);
  Names offered;
  std::ostringstream missing;
  size_t all = 0;
  for (const KerasNames& group : section.groups) {
    Names absent;
    for (const std::string& name : group.names) {
      (contains(here, name) ? offered : absent).push_back(name);
    }
    all += group.names.size();
    add_row(missing,
            "missing: " + (group.why_missing.empty() ? "not implemented yet" : group.why_missing),
            absent);
  }
  out << "\n## " << section.title << ": " << offered.size() << " of " << all << "\n\n"
      << "| `" << section.where << "` | |\n|---|---|\n";
  add_row(out, "offered", offered);
  const std::string key = section.where.substr(section.where.rfind('.') + 1);
  if (const auto cases = names_with_cases(key)) {
    std::erase_if(offered, [&](const std::string& name) { return contains(*cases, name); });
    add_row(out, "of these, not compared", offered);
    add_row(out, "arguments that no case sets", unset_arguments(section.where, *cases_of(key)));
  }
  out << missing.str();
  if (section.where != "keras") add_row(out, "not in Keras", beyond_keras(section));
}

// Functions that take functions have no records, so that no adapter names them.
const Names kFunctionsOfFunctions = {
    "associative_scan", "cond",           "fori_loop", "jvp", "map", "scan",
    "vectorize",        "vectorized_map", "while_loop"};
// Random functions, those without a defined result, aliases, and conversions.
const Names kUnrecorded = {"convert_to_numpy",        "empty", "empty_like", "hard_swish",
                           "image.elastic_transform", "swish"};

struct RefusedFunctions {
  std::string why;
  Names names;
};
const std::vector<RefusedFunctions>& refused_functions() {
  static const std::vector<RefusedFunctions> kRefused = {
      {"`switch` is a C++ keyword; use `switch_case`", {"switch"}},
      {"use GradientTape and custom_gradient() of `<keel/autodiff/tape.h>`", {"custom_gradient"}}};
  return kRefused;
}

void add_functions(std::ostream& out) {
  Names offered = kFunctionsOfFunctions;
  offered.insert(offered.end(), kUnrecorded.begin(), kUnrecorded.end());
  for (const auto& [name, adapter] : op_adapters()) offered.push_back(name);
  std::vector<RefusedFunctions> refused = refused_functions();
  size_t all = offered.size();
  for (RefusedFunctions& group : refused) {
    std::erase_if(group.names, [&](const auto& name) { return contains(offered, name); });
    all += group.names.size();
  }
  out << "\n## Functions: " << offered.size() << " of " << all << "\n\n"
      << "`<keel/ops.h>` has them in `keel::keras_ops`; those of `keras.ops.image` are in "
         "`keel::keras_ops::image`.\nArguments that Python gives by name are members of a struct "
         "where a function has many.\n\n"
      << "| `keras.ops` | |\n|---|---|\n";
  add_row(out, "offered", offered);
  Names unrecorded = kFunctionsOfFunctions;
  unrecorded.insert(unrecorded.end(), kUnrecorded.begin(), kUnrecorded.end());
  add_row(out, "of these, not compared", unrecorded);
  add_row(out, "arguments that no case sets", unset_arguments_of_functions());
  for (const RefusedFunctions& group : refused) add_row(out, "missing: " + group.why, group.names);
}

void add_refused_arguments(std::ostream& out) {
  out << "\n## Refused arguments of layers\n\nThese arguments may have their defaults only; other "
         "values raise an error with the reason.\n\n| layer | argument | reason |\n|---|---|---|\n";
  for (const RefusedArgument& refused : refused_arguments()) {
    out << "| `" << refused.class_name << "` | `" << refused.argument << "` | " << refused.why
        << " |\n";
  }
}

}  // namespace

// fit() returns the History.
std::vector<std::string> callback_names() {
  return {"BackupAndRestore", "CSVLogger",      "EarlyStopping",
          "History",          "LambdaCallback", "LearningRateScheduler",
          "ModelCheckpoint",  "ProgbarLogger",  "ReduceLROnPlateau",
          "SwapEMAWeights",   "TensorBoard",    "TerminateOnNaN"};
}

std::string keras_coverage_page() {
  std::ostringstream out;
  out << kIntroduction;
  for (const KerasSection& section : keras_api()) add_section(out, section);
  add_functions(out);
  add_refused_arguments(out);
  return out.str();
}

}  // namespace keel::conformance
