#include <cmath>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>

#include "tests/conformance/golden_arrays.h"
#include "tests/conformance/golden_sections.h"
#include "tests/conformance/ops_arguments.h"

namespace keel::conformance {
namespace {

std::string kind_of(DType dtype) {
  if (is_floating(dtype)) return std::string(name_of(dtype));
  return dtype == DType::kBool || dtype == DType::kString ? std::string(name_of(dtype)) : "integer";
}

// Returns the magnitudes, for factors whose signs are not defined.
Array without_signs(Array array) {
  for (double& value : array.values) value = std::abs(value);
  return array;
}

void compare_output(const std::string& what, const Config& found, const Tensor& got,
                    bool up_to_sign, Comparison& result) {
  const Config expected = without_complex(found);
  if (expected.is_string()) {
    const std::string text = got.item<std::string>();
    if (text != expected.string()) result.report(what, expected.string(), text);
    return;
  }
  if (!expected.is_dict()) {  // a plain number, or a list of them
    const Config value =
        expected.is_bool() ? Config(static_cast<int>(expected.boolean())) : expected;
    const Array numbers = value.is_list() ? array_of(value) : Array{.values = {value.number()}};
    result.compare(what, numbers, array_of(got));
    return;
  }
  const Array numbers = golden_array(expected), actual = array_of(got);
  result.compare(what, up_to_sign ? without_signs(numbers) : numbers,
                 up_to_sign ? without_signs(actual) : actual);
  const std::string dtype = kind_of(golden_tensor(expected).dtype());
  if (kind_of(got.dtype()) != dtype) result.report(what, dtype, kind_of(got.dtype()));
}

// Outputs are a list of arrays if the function has several.
bool is_list_of_arrays(const Config& value) {
  return value.is_list() && !value.items().empty() && value.items()[0].is_dict();
}

void compare_gradient(const std::string& what, const Config& expected, const Gradient& gradient,
                      const Tensor& x, Comparison& result) {
  result.compare(what, golden_array(expected),
                 array_of(gradient ? gradient.dense() : ops::zeros_like(x)));
}

}  // namespace

Tensor weighted_sum(const std::vector<Tensor>& outputs, const Config& coef) {
  Tensor total;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Config& factors = coef.is_list() ? coef.items().at(i) : coef;
    if (factors.is_null()) continue;
    const Tensor part = ops::sum(outputs[i] * golden_tensor(factors).cast(outputs[i].dtype()));
    total = total ? total + part : part;
  }
  return total;
}

void replay_op(Fields& fields, Comparison& result) {
  Config record = Config::dict({{"name", fields.need("name")}});
  if (const Config* module = fields.find("module")) record.set("module", *module);
  fields.find("tag");
  const auto adapter = op_adapters().find(op_name(record));
  if (adapter == op_adapters().end()) throw ValueError("unknown function ", op_name(record));
  OpArguments arguments(fields.need("arguments"));
  const Config* gradients = fields.find("gradients");
  GradientTape tape;
  if (gradients != nullptr) {
    for (const auto& [name, expected] : gradients->entries()) {
      for (const Tensor& x : arguments.tensors(name)) tape.watch(x);
    }
  }
  const std::vector<Tensor> outputs = adapter->second(arguments);
  arguments.finish();
  const Config& expected = fields.need("output");
  const bool up_to_sign = fields.boolean("up_to_sign", false);
  if (!is_list_of_arrays(expected)) {
    compare_output("output", expected, outputs.at(0), up_to_sign, result);
  } else if (expected.items().size() != outputs.size()) {
    result.compare("number of outputs", static_cast<int64_t>(expected.items().size()),
                   static_cast<int64_t>(outputs.size()));
  } else {
    for (size_t i = 0; i < outputs.size(); ++i) {
      compare_output("output " + std::to_string(i), expected.items()[i], outputs[i], up_to_sign,
                     result);
    }
  }
  if (gradients == nullptr) return;
  const Tensor total = weighted_sum(outputs, fields.need("coef"));
  std::vector<Tensor> sources;
  for (const auto& [name, value] : gradients->entries()) {
    const std::vector<Tensor>& own = arguments.tensors(name);
    sources.insert(sources.end(), own.begin(), own.end());
  }
  const std::vector<Gradient> found = tape.input_gradient(total, sources);
  auto next = found.begin();
  for (const auto& [name, value] : gradients->entries()) {
    for (size_t i = 0; i < arguments.tensors(name).size(); ++i, ++next) {
      const Config& numbers = value.is_list() ? value.items().at(i) : value;
      compare_gradient("gradient of " + name, numbers, *next, arguments.tensors(name)[i], result);
    }
  }
}

}  // namespace keel::conformance
