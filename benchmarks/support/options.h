// Options that every benchmark program has, and the environment it runs in.
#pragma once

#include <string>
#include <string_view>

namespace keel::bench {

struct Options {
  bool quick = false;     // a subset that ends within a minute
  bool json = false;      // one object in place of a table
  int threads = 1;        // of ours and of the peer
  std::string only = {};  // of cases whose names hold this

  bool wants(std::string_view case_name) const {
    return case_name.find(only) != std::string_view::npos;
  }
};

// Reads --quick --json --threads N --only SUBSTRING --help. Exits with 0 after --help and with 2
// for what it does not know. The first time it starts the program again with the variables that
// give the peer its best speed, for libraries read them as they are loaded, unless
// KEEL_BENCH_ENVIRONMENT is set: then the environment stays as it is. Then the process has
// `threads` workers.
Options parse_options(int argc, char** argv, const char* program, const char* what_it_measures);

}  // namespace keel::bench
