#include "benchmarks/support/options.h"

#include <charconv>
#include <cstdlib>
#include <iostream>
#include <unistd.h>

#include <keel/framework/base/parallel.h>

namespace keel::bench {
namespace {

// Set by the first start for the second one, or by a user who provides a custom environment.
constexpr const char* kEnvironmentIsSet = "KEEL_BENCH_ENVIRONMENT";

void usage(std::ostream& out, const char* program, const char* what_it_measures) {
  out << "usage: " << program << " [--quick] [--json] [--threads N] [--only SUBSTRING] [--help]\n\n"
      << what_it_measures << "\n\n"
      << "  --quick           a subset of the cases that ends within a minute\n"
      << "  --json            print one JSON object\n"
      << "  --threads N       threads of Keel and of the peer; default 1\n"
      << "  --only SUBSTRING  only cases whose names contain SUBSTRING\n";
}

[[noreturn]] void reject(const char* program, const std::string& why) {
  std::cerr << program << ": " << why << "; see --help\n";
  std::exit(2);
}

int parse_threads(const char* program, std::string_view text) {
  int threads = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), threads);
  if (error != std::errc() || end != text.data() + text.size() || threads < 1 || threads > 1024) {
    reject(program,
           "--threads needs a number from 1 to 1024, received '" + std::string(text) + "'");
  }
  return threads;
}

// Without these variables, OpenBLAS does not recognize new processors, ATen uses only AVX2, each
// library chooses its own number of threads, and temporaries are on small pages. Values that a
// shell may have set for other purposes are overwritten.
void set_best_environment(int threads) {
  const auto set = [](const char* name, const std::string& value) {
    setenv(name, value.c_str(), /*overwrite=*/1);
  };
  unsetenv("OPENBLAS_L2_SIZE");
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) {
    set("OPENBLAS_CORETYPE", "SkylakeX");
    set("ATEN_CPU_CAPABILITY", "avx512");
  } else if (__builtin_cpu_supports("avx2")) {
    set("ATEN_CPU_CAPABILITY", "avx2");
  }
  set("OMP_NUM_THREADS", std::to_string(threads));
  set("OPENBLAS_NUM_THREADS", std::to_string(threads));
  set("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1");
}

}  // namespace

Options parse_options(int argc, char** argv, const char* program, const char* what_it_measures) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    const auto value = [&]() -> const char* {
      if (i + 1 == argc) reject(program, std::string(flag) + " needs a value");
      return argv[++i];
    };
    if (flag == "--help" || flag == "-h") {
      usage(std::cout, program, what_it_measures);
      std::exit(0);
    } else if (flag == "--quick") {
      options.quick = true;
    } else if (flag == "--json") {
      options.json = true;
    } else if (flag == "--threads") {
      options.threads = parse_threads(program, value());
    } else if (flag == "--only") {
      options.only = value();
    } else {
      reject(program, "unknown argument '" + std::string(flag) + "'");
    }
  }
  if (std::getenv(kEnvironmentIsSet) == nullptr) {
    setenv(kEnvironmentIsSet, "1", 1);
    set_best_environment(options.threads);
    execv("/proc/self/exe", argv);
    std::cerr << program << ": could not start again, so the peer is not at its best\n";
  }
  set_num_workers(options.threads);
  return options;
}

}  // namespace keel::bench
