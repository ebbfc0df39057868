// Prints the results of a benchmark program: a table while results arrive, or one JSON object at
// the end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/support/options.h"

namespace keel::bench {

struct Result {
  std::string op;  // or model
  int64_t dim = 0;
  std::string optimizer = {};
  int threads = 1;
  double value = 0;
  std::string unit = {};
  std::optional<double> ratio_to_libtorch = {};  // speedup of Keel over libtorch
  std::optional<double> ratio_to_limit = {};     // fraction of the machine's limit
  std::vector<std::pair<std::string, double>> more = {};
  std::vector<std::pair<std::string, std::string>> labels = {};
};

// Prints {"program", "machine", "peer": "libtorch 1.13.1" or null, "quick", "results", "notes"}.
// Numbers that are not finite become null.
class Report {
 public:
  Report(const Options& options, std::string program);

  void add(const Result& result);
  void note(const std::string& line);
  // Checks that the results of Keel and the peer for the same work differ by at most `allowed`,
  // relative to the largest value. If `difference` is larger or NaN, finish() reports it and fails.
  void check(const std::string& what, double difference, double allowed = 1e-4);
  // Prints the remaining results and returns the exit status of the program.
  int finish();

 private:
  const Options options_;
  const std::string program_;
  std::vector<Result> results_;
  std::vector<std::string> notes_;
  std::vector<std::string> failures_;
};

// Returns a description such as "AMD EPYC, 2 processors, avx512f avx512_bf16, 23 GiB".
std::string machine();

// Returns max |a - b| / max |a|, or NaN if a value is not finite.
double relative_difference(const float* a, const float* b, int64_t n);

}  // namespace keel::bench
