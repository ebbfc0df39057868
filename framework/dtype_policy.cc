#include "framework/dtype_policy.h"

#include <atomic>

namespace keel {
namespace {

constexpr char kMixedBFloat16[] = "mixed_bfloat16";

// Apart, so that a policy made while the program starts finds it.
std::atomic<DTypePolicy>& global() {
  static std::atomic<DTypePolicy> policy = DTypePolicy(DType::kFloat32);
  return policy;
}

}  // namespace

DTypePolicy::DTypePolicy() : DTypePolicy(global().load(std::memory_order_relaxed)) {}

DTypePolicy::DTypePolicy(const std::string& name) {
  if (name == kMixedBFloat16) {
    bfloat16_products_ = true;
    return;
  }
  if (name == "mixed_float16" || name == "float16" || name == "bfloat16") {
    throw NotImplementedError("DTypePolicy: '", name, "' is not offered; use '", kMixedBFloat16,
                              "', whose products are in bfloat16 and all else in float32");
  }
  variables_ = dtype_from_name(name);
}

std::string DTypePolicy::name() const {
  return bfloat16_products_ ? kMixedBFloat16 : std::string(name_of(variables_));
}

DTypePolicy dtype_policy() { return {}; }

void set_dtype_policy(const DTypePolicy& policy) {
  if (!is_floating(policy.variable_dtype())) {
    throw ValueError("set_dtype_policy: needs a floating policy, received ", policy.name());
  }
  global().store(policy, std::memory_order_relaxed);
}

Config encode(const DTypePolicy& v) {
  if (!v.bfloat16_products()) return encode(v.variable_dtype());
  return Config::dict({{"module", "keras"},
                       {"class_name", "DTypePolicy"},
                       {"config", Config::dict({{"name", v.name()}})},
                       {"registered_name", Config()}});
}

void decode(const Config& c, DTypePolicy& v) {
  // Null: no choice.
  v = c.is_null() ? DTypePolicy() : DTypePolicy((c.is_dict() ? c["config"]["name"] : c).string());
}

}  // namespace keel
