#include "benchmarks/support/report.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <unistd.h>

#include <keel/framework/kernels/gemm/amx_tiles.h>

#include "benchmarks/peer/peer.h"

namespace keel::bench {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) {
  if (!std::isfinite(value)) return nullptr;
  std::ostringstream digits;  // only the significant digits of a measurement
  digits << std::setprecision(6) << value;
  return std::stod(digits.str());
}

Json number(const std::optional<double>& value) { return value ? number(*value) : Json(nullptr); }

Json to_json(const Result& result) {
  Json out = {{"op", result.op}};
  for (const auto& [key, value] : result.labels) out[key] = value;
  out["dim"] = result.dim;
  out["optimizer"] = result.optimizer;
  out["threads"] = result.threads;
  out["value"] = number(result.value);
  out["unit"] = result.unit;
  out["ratio_to_libtorch"] = number(result.ratio_to_libtorch);
  out["ratio_to_limit"] = number(result.ratio_to_limit);
  for (const auto& [key, value] : result.more) out[key] = number(value);
  return out;
}

constexpr const char* kPeerVariant = "peer_variant";  // describes the ratio, not the value

std::string name_of(const Result& result) {
  std::string name = result.op;
  for (const auto& [key, value] : result.labels) {
    if (key != kPeerVariant) name += " " + value;
  }
  if (!result.optimizer.empty()) name += " " + result.optimizer;
  return name;
}

std::string significant(double value) {
  std::ostringstream out;
  if (std::abs(value) >= 1000) {
    out << std::fixed << std::setprecision(0) << value;
  } else {
    out << std::setprecision(4) << value;
  }
  return out.str();
}

std::string ratio(const std::optional<double>& value, const char* unit) {
  if (!value) return "-";
  std::ostringstream out;
  out << std::fixed << std::setprecision(2) << *value << unit;
  return out.str();
}

void print_heading() {
  std::cout << std::left << std::setw(46) << "what" << std::right << std::setw(5) << "dim"
            << std::setw(4) << "thr" << std::setw(10) << "value"
            << "  " << std::left << std::setw(10) << "unit" << std::right << std::setw(10)
            << "libtorch" << std::setw(9) << "of limit"
            << "  more\n";
}

void print_row(const Result& result) {
  std::cout << std::left << std::setw(46) << name_of(result) << std::right << std::setw(5)
            << (result.dim == 0 ? "" : std::to_string(result.dim)) << std::setw(4) << result.threads
            << std::setw(10) << significant(result.value) << "  " << std::left << std::setw(10)
            << result.unit << std::right << std::setw(10) << ratio(result.ratio_to_libtorch, "x")
            << std::setw(9) << ratio(result.ratio_to_limit, "") << " ";
  for (const auto& [key, value] : result.more) std::cout << " " << key << "=" << significant(value);
  for (const auto& [key, value] : result.labels) {
    if (key == kPeerVariant) std::cout << " (keel; ratio to libtorch with a " << value << ")";
  }
  std::cout << '\n' << std::flush;
}

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "processor";
}

}  // namespace

std::string machine() {
  __builtin_cpu_init();
  std::string out =
      processor() + ", " + std::to_string(sysconf(_SC_NPROCESSORS_ONLN)) + " processors,";
  if (__builtin_cpu_supports("avx2")) out += " avx2";
  if (__builtin_cpu_supports("avx512f")) out += " avx512f";
  if (__builtin_cpu_supports("avx512bf16")) out += " avx512_bf16";
  if (kernels::internal::may_use_tiles()) out += " amx_bf16";
  const int64_t bytes = sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  return out + ", " + std::to_string(bytes >> 30) + " GiB";
}

double relative_difference(const float* a, const float* b, int64_t n) {
  double largest = 0;
  double difference = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) {
      return std::numeric_limits<double>::quiet_NaN();
    }
    largest = std::max(largest, std::abs(static_cast<double>(a[i])));
    difference = std::max(difference, std::abs(static_cast<double>(a[i]) - b[i]));
  }
  return largest == 0 ? difference : difference / largest;
}

Report::Report(const Options& options, std::string program)
    : options_(options), program_(std::move(program)) {
  if (!peer_available()) notes_.push_back("libtorch not found: not compared");
  if (options_.json) return;
  std::cout << program_ << " on " << machine() << "\n"
            << (peer_available() ? "against " + peer_name() : notes_.back()) << "\n";
  print_heading();
}

void Report::add(const Result& result) {
  results_.push_back(result);
  if (!options_.json) print_row(result);
}

void Report::note(const std::string& line) {
  notes_.push_back(line);
  if (!options_.json) std::cout << line << '\n' << std::flush;
}

void Report::check(const std::string& what, double difference, double allowed) {
  if (difference <= allowed) return;
  std::ostringstream line;
  line << "ours and the peer's differ: " << what << " by " << difference << ", allowed " << allowed;
  failures_.push_back(line.str());
  std::cerr << program_ << ": " << line.str() << '\n';
}

int Report::finish() {
  if (options_.json) {
    Json out = {{"program", program_},
                {"machine", machine()},
                {"peer", peer_available() ? Json(peer_name()) : Json(nullptr)},
                {"quick", options_.quick},
                {"results", Json::array()},
                {"notes", notes_}};
    for (const Result& result : results_) out["results"].push_back(to_json(result));
    if (!failures_.empty()) out["failures"] = failures_;
    std::cout << out.dump(1) << '\n';
  }
  return failures_.empty() ? 0 : 1;
}

}  // namespace keel::bench
