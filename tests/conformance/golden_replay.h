// Replays what Keras computed through the public API: a file is an object of sections, lists of
// records, each of which names a class and its config. Objects are made by the registries.
#pragma once

#include <string>
#include <vector>

#include <keel/framework/config/config.h>

namespace keel::conformance {

struct GoldenRecord {
  std::string section;  // "layers"
  size_t index = 0;     // in its section
  Config fields = {};
  Config optimizer_problem = {};  // of the file

  std::string class_name() const;  // or the function's name; empty if it has none
  std::string name() const;        // "layers[3] Dense [tag] {config}"
};

// All records of a file, section by section. ValueError if it is no object, a section is no list,
// or there are no records. Other things at the top, "meta" for one, say nothing to replay.
std::vector<GoldenRecord> golden_records(const Config& file);

// What went wrong, line by line: expected and got, an error of the library, or a class, section or
// field that is unknown. Empty if the record passes. Never throws.
std::string replay_golden_record(const GoldenRecord& record);

}  // namespace keel::conformance
