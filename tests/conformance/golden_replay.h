// Replays results of Keras through the public API. A file is an object of sections. A section is a
// list of records, each of which names a class and its config. The registries create the objects.
#pragma once

#include <string>
#include <vector>

#include <keel/framework/config/config.h>

namespace keel::conformance {

struct GoldenRecord {
  std::string section;  // "layers"
  size_t index = 0;     // position in its section
  Config fields = {};
  Config optimizer_problem = {};  // shared by all optimizer records of the file

  std::string class_name() const;  // or the function's name; empty if it has none
  std::string name() const;        // "layers[3] Dense [tag] {config}"
};

// Returns all records of a file, section by section. Throws ValueError if the file is not an
// object, a section is not a list, or there are no records. Other top-level entries, for example
// "meta", are ignored.
std::vector<GoldenRecord> golden_records(const Config& file);

// Returns what a record needs and Keel does not offer: the name of a class, "Conv4D", with the
// reason if the class exists and throws NotImplementedError for the config, or "(the whole
// section)" for a section that cannot be replayed. Empty if nothing is missing.
std::string missing_part(const GoldenRecord& record);

// Returns the failures of a record, one per line: expected and actual values, an error of the
// library, or an unknown class, section or field. Empty if the record passes. Never throws.
std::string replay_golden_record(const GoldenRecord& record);

}  // namespace keel::conformance
