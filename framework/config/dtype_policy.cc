#include <keel/framework/config/dtype_policy.h>

#include <absl/strings/str_cat.h>
#include <atomic>
#include <charconv>
#include <limits>

namespace keel {
namespace {

constexpr char kMixedBFloat16[] = "mixed_bfloat16";
constexpr char kMixedFloat16[] = "mixed_float16";
constexpr char kQuantized[] = "_from_";
constexpr char kInt8[] = "int8";
constexpr char kInt4[] = "int4/";

// Returns the number after "int4/", or 0 if the mode is malformed. Keras reads "None" as -1.
int64_t block_size_of(const std::string& mode) {
  const std::string digits = mode.substr(sizeof kInt4 - 1);
  if (digits == "None") return -1;
  int64_t out = 0;
  const auto end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, out);
  return error == std::errc() && stop == end ? out : 0;
}

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
    const std::string mode = name.substr(0, at);
    const DTypePolicy source(name.substr(at + sizeof kQuantized - 1));
    if (mode == kInt8) {
      *this = source.with_int8_weights();
    } else if (mode.starts_with(kInt4)) {
      *this = source.with_int4_weights(block_size_of(mode));
    } else {
      throw NotImplementedError("DTypePolicy: '", name,
                                "' is not supported; weights can only be quantized to int8 or ",
                                "int4/<block size>");
    }
    return;
  }
  if (name == kMixedBFloat16) {
    bfloat16_products_ = true;
    return;
  }
  if (name == kMixedFloat16) {
    float16_products_ = true;
    return;
  }
  if (name == "float16" || name == "bfloat16") {
    throw NotImplementedError("DTypePolicy: '", name, "' is not supported; use 'mixed_", name,
                              "', which computes products in ", name,
                              " and everything else in float32");
  }
  variables_ = dtype_from_name(name);
}

std::string DTypePolicy::name() const {
  const std::string source = bfloat16_products_  ? kMixedBFloat16
                             : float16_products_ ? kMixedFloat16
                                                 : std::string(name_of(variables_));
  if (int8_weights_) return kInt8 + (kQuantized + source);
  return int4_weights() ? absl::StrCat(kInt4, int4_block_size_, kQuantized, source) : source;
}

DTypePolicy DTypePolicy::with_int8_weights() const {
  check_quantizable();
  DTypePolicy out = *this;
  out.int8_weights_ = true;
  return out;
}

DTypePolicy DTypePolicy::with_int4_weights(int64_t block_size) const {
  if (block_size != -1 && (block_size < 1 || block_size > std::numeric_limits<int32_t>::max())) {
    throw ValueError(
        "DTypePolicy: the block size of int4 weights must be positive or -1, received ",
        block_size);
  }
  check_quantizable();
  DTypePolicy out = *this;
  out.int4_block_size_ = static_cast<int32_t>(block_size);
  return out;
}

void DTypePolicy::check_quantizable() const {
  if (variables_ == DType::kFloat32 && !quantized_weights()) return;
  throw NotImplementedError("DTypePolicy: only float32 weights can be quantized, received ",
                            name());
}

DTypePolicy dtype_policy() { return {}; }

void set_dtype_policy(const DTypePolicy& policy) {
  if (!is_floating(policy.variable_dtype())) {
    throw ValueError("set_dtype_policy: the policy must be floating, received ", policy.name());
  }
  if (policy.quantized_weights()) {
    throw ValueError("set_dtype_policy: ", policy.name(),
                     " is only valid for single layers; call their quantize() instead");
  }
  global().store(policy, std::memory_order_relaxed);
}

Config encode(const DTypePolicy& v) {
  if (v.quantized_weights()) {
    const std::string name = v.name();
    const size_t at = name.find(kQuantized);
    const std::string source = name.substr(at + sizeof kQuantized - 1);
    const char* class_name = v.int8_weights() ? "QuantizedDTypePolicy" : "Int4DTypePolicy";
    return Config::dict(
        {{"module", "keras.dtype_policies"},
         {"class_name", class_name},
         {"config", Config::dict({{"mode", name.substr(0, at)}, {"source_name", source}})},
         {"registered_name", Config()}});
  }
  if (!v.bfloat16_products() && !v.float16_products()) return encode(v.variable_dtype());
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
