#include <keel/framework/config/dtype_policy.h>

#include <atomic>

namespace keel {
namespace {

constexpr char kMixedBFloat16[] = "mixed_bfloat16";
constexpr char kQuantized[] = "_from_";
constexpr char kInt8[] = "int8";

// The global policy is local to a function, so that policies made during static initialization find
// it initialized.
std::atomic<DTypePolicy>& global() {
  static std::atomic<DTypePolicy> policy = DTypePolicy(DType::kFloat32);
  return policy;
}

}  // namespace

DTypePolicy::DTypePolicy() : DTypePolicy(global().load(std::memory_order_relaxed)) {}

DTypePolicy::DTypePolicy(const std::string& name) {
  if (const size_t at = name.find(kQuantized); at != std::string::npos) {
    if (name.substr(0, at) != kInt8) {
      throw NotImplementedError("DTypePolicy: '", name,
                                "' is not supported; weights can only be quantized ", "to int8");
    }
    *this = DTypePolicy(name.substr(at + sizeof kQuantized - 1)).with_int8_weights();
    return;
  }
  if (name == kMixedBFloat16) {
    bfloat16_products_ = true;
    return;
  }
  if (name == "mixed_float16" || name == "float16" || name == "bfloat16") {
    throw NotImplementedError(
        "DTypePolicy: '", name, "' is not supported; use '", kMixedBFloat16,
        "', which computes products in bfloat16 and everything else in float32");
  }
  variables_ = dtype_from_name(name);
}

std::string DTypePolicy::name() const {
  const std::string source = bfloat16_products_ ? kMixedBFloat16 : std::string(name_of(variables_));
  return int8_weights_ ? kInt8 + (kQuantized + source) : source;
}

DTypePolicy DTypePolicy::with_int8_weights() const {
  if (variables_ != DType::kFloat32 || int8_weights_) {
    throw NotImplementedError(
        "DTypePolicy: only float32 weights can be quantized to int8, received ", name(),
        "; use int8_from_float32");
  }
  DTypePolicy out = *this;
  out.int8_weights_ = true;
  return out;
}

DTypePolicy dtype_policy() { return {}; }

void set_dtype_policy(const DTypePolicy& policy) {
  if (!is_floating(policy.variable_dtype())) {
    throw ValueError("set_dtype_policy: the policy must be floating, received ", policy.name());
  }
  if (policy.int8_weights()) {
    throw ValueError(
        "set_dtype_policy: ", policy.name(),
        " is only valid for single layers; call Embedding::quantize(\"int8\") instead");
  }
  global().store(policy, std::memory_order_relaxed);
}

Config encode(const DTypePolicy& v) {
  if (v.int8_weights()) {
    const std::string name = v.name();
    const std::string source = name.substr(name.find(kQuantized) + sizeof kQuantized - 1);
    return Config::dict({{"module", "keras.dtype_policies"},
                         {"class_name", "QuantizedDTypePolicy"},
                         {"config", Config::dict({{"mode", kInt8}, {"source_name", source}})},
                         {"registered_name", Config()}});
  }
  if (!v.bfloat16_products()) return encode(v.variable_dtype());
  return Config::dict({{"module", "keras"},
                       {"class_name", "DTypePolicy"},
                       {"config", Config::dict({{"name", v.name()}})},
                       {"registered_name", Config()}});
}

void decode(const Config& c, DTypePolicy& v) {
  if (c.is_null()) {  // null selects the global policy
    v = DTypePolicy();
  } else if (!c.is_dict()) {
    v = DTypePolicy(c.string());
  } else if (const Config* const mode = c["config"].find("mode")) {
    const Config* const source = c["config"].find("source_name");
    v = DTypePolicy(
        mode->string() + kQuantized +
        (source == nullptr || source->is_null() ? DTypePolicy().name() : source->string()));
  } else {
    v = DTypePolicy(c["config"]["name"].string());
  }
}

}  // namespace keel
