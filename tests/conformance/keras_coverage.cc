#include "tests/conformance/keras_coverage.h"

#include <algorithm>
#include <sstream>

#include "tests/conformance/keras_api.h"
#include "tests/conformance/known_classes.h"

namespace keel::conformance {
namespace {

constexpr char kIntroduction[] =
    R"(# Coverage of the Keras 3 API

This page lists the names of Keras 3's public API and shows which of them Keel offers under the same names. A test,
`replay_golden`, compares the results of many of them with results of Keras. No test compares the names and defaults of
all arguments. Aliases, base classes and functions that create or serialize objects (`get`, `serialize`) are not listed.

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
  return classes.at(key == "keras" ? "layers" : key);
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
  out << missing.str();
  if (section.where != "keras") add_row(out, "not in Keras", beyond_keras(section));
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
  return out.str();
}

}  // namespace keel::conformance
