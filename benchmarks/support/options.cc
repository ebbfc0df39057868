#include "benchmarks/support/options.h"

#include <cstdlib>
#include <iostream>
#include <unistd.h>

#include <keel/framework/base/parallel.h>
#include <keel/savedmodel/tool/command_line.h>

namespace keel::bench {
namespace {

// Set by the first start for the second one, or by a user who provides a custom environment.
constexpr const char* kEnvironmentIsSet = "KEEL_BENCH_ENVIRONMENT";

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
  tool::CommandLine line(program, what_it_measures);
  line.option("--quick", &options.quick, "a subset of the cases that ends within a minute");
  line.option("--json", &options.json, "print one JSON object");
  line.option("--threads", &options.threads, "threads of Keel and of the peer",
              {.limits = {.least = 1, .most = 1024}});
  line.option("--only", &options.only, "only cases whose names contain this text",
              {.placeholder = "SUBSTRING"});
  if (const std::optional<int> status = line.parse(argc, argv)) std::exit(*status);
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
