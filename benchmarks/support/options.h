// Options of every benchmark program, and its environment.
#pragma once

#include <string>
#include <string_view>

namespace keel::bench {

struct Options {
  bool quick = false;     // a subset that ends within a minute
  bool json = false;      // print one object instead of a table
  int threads = 1;        // threads of Keel and of the peer
  std::string only = {};  // only cases whose names contain this text

  bool wants(std::string_view case_name) const {
    return case_name.find(only) != std::string_view::npos;
  }
};

// Parses --quick --json --threads N --only SUBSTRING --help. Exits with 0 after --help and with 2
// for unknown arguments. The first call restarts the program with the environment variables that
// give the peer its best speed, because libraries read them when they are loaded. It does not
// restart if KEEL_BENCH_ENVIRONMENT is set. Then sets the number of workers to `threads`.
Options parse_options(int argc, char** argv, const char* program, const char* what_it_measures);

}  // namespace keel::bench
