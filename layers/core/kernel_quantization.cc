#include <keel/layers/core/kernel_quantization.h>

namespace keel {
namespace {

Config object(const char* class_name, Config config) {
  return Config::dict({{"module", "keras.quantizers"},
                       {"class_name", class_name},
                       {"config", std::move(config)},
                       {"registered_name", Config()}});
}

Config abs_max_quantizer() {
  return object("AbsMaxQuantizer", Config::dict({{"value_range", Config::list({-127, 127})},
                                                 {"epsilon", 1e-7},
                                                 {"output_dtype", "int8"},
                                                 {"axis", Config::list({-1})}}));
}

// Throws unless the object is an AbsMaxQuantizer with the range [low, high].
void check_quantizer(const char* what, const Config& quantizer, int low, int high) {
  const Config& settings = quantizer["config"];
  const Config* range = settings.find("value_range");
  const Config* epsilon = settings.find("epsilon");
  const bool known =
      quantizer["class_name"] == Config("AbsMaxQuantizer") &&
      (range == nullptr || (range->items().size() == 2 && range->items()[0].number() == low &&
                            range->items()[1].number() == high)) &&
      (epsilon == nullptr || epsilon->number() == 1e-7);
  if (known) return;
  throw NotImplementedError("quantization_config: ", what, " must be an AbsMaxQuantizer with the ",
                            "value_range [", low, ", ", high, "] and epsilon 1e-7, received ",
                            to_json(quantizer), "; leave it at its default");
}

}  // namespace

KernelQuantization KernelQuantization::of_mode(const std::string& mode) {
  if (mode == "int8") return {};
  if (mode == "int4") return {.mode = mode, .quantize_inputs = false};
  throw ValueError("quantization_config: mode must be int8 or int4, received '", mode, "'");
}

Config encode(const KernelQuantization& v) {
  Config settings =
      Config::dict({{"weight_quantizer", Config()},
                    {"activation_quantizer", v.quantize_inputs ? abs_max_quantizer() : Config()}});
  if (v.mode == "int4") settings.set("block_size", v.block_size);
  return object(v.mode == "int4" ? "Int4QuantizationConfig" : "Int8QuantizationConfig",
                std::move(settings));
}

void decode(const Config& c, KernelQuantization& v) {
  if (!c.is_dict()) {
    v = KernelQuantization::of_mode(c.string());
    return;
  }
  const std::string& class_name = c["class_name"].string();
  if (class_name != "Int8QuantizationConfig" && class_name != "Int4QuantizationConfig") {
    throw NotImplementedError("quantization_config: '", class_name,
                              "' is not supported; use Int8QuantizationConfig or ",
                              "Int4QuantizationConfig");
  }
  v = KernelQuantization::of_mode(class_name == "Int4QuantizationConfig" ? "int4" : "int8");
  const Config& settings = c["config"];
  if (const Config* found = settings.find("weight_quantizer"); found && !found->is_null()) {
    v.mode == "int4" ? check_quantizer("weight_quantizer", *found, -8, 7)
                     : check_quantizer("weight_quantizer", *found, -127, 127);
  }
  if (const Config* found = settings.find("activation_quantizer")) {
    v.quantize_inputs = !found->is_null();
    if (v.quantize_inputs) check_quantizer("activation_quantizer", *found, -127, 127);
  }
  if (const Config* found = settings.find("block_size")) {
    v.block_size = found->is_null() ? -1 : found->integer();
  }
}

}  // namespace keel
