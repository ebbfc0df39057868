// What a benchmark program prints: a table as results come, or one JSON object at the end.
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
  std::optional<double> ratio_to_libtorch = {};  // how many times faster ours is
  std::optional<double> ratio_to_limit = {};     // the share of what the machine can do
  std::vector<std::pair<std::string, double>> more = {};
  std::vector<std::pair<std::string, std::string>> labels = {};
};

// {"program", "machine", "peer": "libtorch 1.13.1" or null, "quick", "results", "notes"}. Numbers
// that are not finite become null.
class Report {
 public:
  Report(const Options& options, std::string program);

  void add(const Result& result);
  void note(const std::string& line);
  // What ours and the peer give for the same work differs by `difference`, relative to the largest
  // of the values. More than `allowed`, or no number: finish() will say so and fail.
  void check(const std::string& what, double difference, double allowed = 1e-4);
  // Prints what is left; returns the exit status of the program.
  int finish();

 private:
  const Options options_;
  const std::string program_;
  std::vector<Result> results_;
  std::vector<std::string> notes_;
  std::vector<std::string> failures_;
};

// "AMD EPYC, 2 processors, avx512f avx512_bf16, 23 GiB".
std::string machine();

// max |a - b| / max |a|; NaN if a value is not finite.
double relative_difference(const float* a, const float* b, int64_t n);

}  // namespace keel::bench
