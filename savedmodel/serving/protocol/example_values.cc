#include <keel/savedmodel/serving/protocol/example_values.h>

#include <utility>

#include <keel/framework/data/tfrecord.h>
#include <keel/savedmodel/serving/protocol/value_reader.h>

namespace keel::serving {
namespace {

template <class... Args>
[[noreturn]] void fail_features(const Args&... args) {
  throw ServeError(Code::kInvalidArgument, args...);
}

int64_t count_of(const FeatureValues& values) {
  return std::visit(
      []<class List>(const List& list) -> int64_t {
        if constexpr (std::same_as<List, std::monostate>) {
          return 0;
        } else {
          return std::ssize(list);
        }
      },
      values);
}

std::string serialized(const ExampleValues& example) {
  std::map<std::string, Tensor> features;
  for (const auto& [name, values] : example) {
    features[name] = std::visit(
        []<class List>(const List& list) -> Tensor {
          if constexpr (std::same_as<List, std::monostate>) {
            return {};
          } else {
            using Value = List::value_type;
            return Tensor::from(std::span<const Value>(list), {std::ssize(list)});
          }
        },
        values);
  }
  return data::serialize_example(features);
}

// Appends the values of a feature to an input, which may be of a wider type.
void append_feature(const FeatureValues& values, InputValues& to) {
  const auto append_as = [&]<class T>(T, const auto& list) {
    for (const auto& value : list) {
      if constexpr (std::integral<T> && std::same_as<std::decay_t<decltype(value)>, int64_t>) {
        if (!std::in_range<T>(value)) throw ValueFault("is out of range: ", value);
      }
      to.numbers.push(static_cast<T>(value));
    }
  };
  if (const auto* strings = std::get_if<FeatureStrings>(&values)) {
    if (to.dtype() != DType::kString) throw ValueFault("must be numbers, received strings");
    for (const std::string& text : *strings) to.add_string() = text;
    return;
  }
  if (std::holds_alternative<std::monostate>(values)) return;
  if (to.dtype() == DType::kString) throw ValueFault("must be strings, received numbers");
  if (const auto* floats = std::get_if<FeatureFloats>(&values)) {
    if (to.dtype() == DType::kFloat32) return append_as(float{}, *floats);
    if (to.dtype() == DType::kFloat64) return append_as(double{}, *floats);
    throw ValueFault("must be integers, received numbers with a point or exponent");
  }
  const FeatureIntegers& integers = std::get<FeatureIntegers>(values);
  switch (to.dtype()) {
    case DType::kFloat32:
      return append_as(float{}, integers);
    case DType::kFloat64:
      return append_as(double{}, integers);
    case DType::kInt32:
      return append_as(int32_t{}, integers);
    case DType::kInt64:
      return append_as(int64_t{}, integers);
    case DType::kUint8:
      return append_as(uint8_t{}, integers);
    case DType::kInt8:
      return append_as(int8_t{}, integers);
    case DType::kBool:
      for (int64_t value : integers) to.numbers.push(value != 0);
      return;
    case DType::kString:
      return;
  }
}

// Feeds the features of the same name to an input of the model.
void feed_feature(const std::vector<ExampleValues>& examples, InputValues& to) {
  const TensorSpec& spec = to.info().spec;
  to.splits.assign(spec.layout == Layout::kRagged ? 1 : 0, 0);
  int64_t per_row = 1;
  const Shape row_shape = spec.shape.rank() == 0 ? Shape() : spec.shape.without(0);
  for (int64_t dim : row_shape.dims()) per_row *= dim;
  for (size_t row = 0; row < examples.size(); ++row) {
    const auto at = examples[row].find(to.info().name);
    const int64_t count = at == examples[row].end() ? 0 : count_of(at->second);
    if (spec.layout == Layout::kDense && (count != per_row || spec.shape.rank() == 0)) {
      throw ValueFault("needs ", per_row, " values in each example, received ", count,
                       " in examples[", row, "]");
    }
    if (at != examples[row].end()) append_feature(at->second, to);
    if (spec.layout == Layout::kRagged) to.splits.push_back(to.splits.back() + count);
    for (int64_t place = 0; spec.layout == Layout::kSparse && place < count; ++place) {
      to.indices.push_back(static_cast<int64_t>(row));
      to.indices.push_back(place);
    }
  }
  if (spec.layout != Layout::kDense && spec.shape.rank() != 2) {
    throw ValueFault("cannot be fed by a feature, because its rank is not 2");
  }
  to.dims.assign(spec.shape.dims().begin(), spec.shape.dims().end());
  if (spec.layout == Layout::kRagged) to.dims = {to.splits.back()};
  if (spec.layout == Layout::kDense && !to.dims.empty()) to.dims[0] = std::ssize(examples);
  finish_rows(to, std::ssize(examples));
}

void feed_inputs(const ServedSignature& signature, const std::vector<ExampleValues>& examples,
                 std::span<InputValues> inputs) {
  if (signature.takes_examples) {
    for (const ExampleValues& example : examples) inputs[0].add_string() = serialized(example);
    inputs[0].dims = {std::ssize(examples)};
    return inputs[0].finish();
  }
  for (InputValues& input : inputs) {
    try {
      feed_feature(examples, input);
    } catch (const ValueFault& fault) {
      fail_features("input '", input.info().name, "' ", fault.what());
    }
  }
}

// Returns the only output, [rows] or [rows, columns] of float32.
ExampleScores scores_of(const RunOutputs& outputs, Api api, int64_t rows) {
  const char* const name = name_of(api);
  if (outputs.outputs.size() != 1) {
    fail_features(name, " needs a model with one output, but this one has ",
                  outputs.outputs.size());
  }
  const TensorView& view = outputs.outputs[0].view;
  const bool plain = view.layout == Layout::kDense && view.dtype == DType::kFloat32;
  const int rank = view.shape.rank();
  const bool classifies = api == Api::kClassify || api == Api::kRpcClassify;
  const bool fits = classifies ? rank == 2 : rank == 1 || (rank == 2 && view.shape[1] == 1);
  if (!plain || !fits || view.rows != rows) {
    fail_features(name, " needs an output of dtype float32 and shape ",
                  classifies ? "[rows, classes]" : "[rows] or [rows, 1]", ", but '",
                  outputs.outputs[0].info->name, "' has shape ", view.shape);
  }
  return {.values = static_cast<const float*>(view.data),
          .rows = rows,
          .columns = rank == 1 ? 1 : view.shape[1]};
}

}  // namespace

void add_context(const ExampleValues& context, std::vector<ExampleValues>& examples) {
  for (ExampleValues& example : examples) example.insert(context.begin(), context.end());
}

ExampleScores run_examples(RequestTrace& trace, const ServedSignature& signature,
                           const std::vector<ExampleValues>& examples) {
  RequestMemory& memory = request_memory();
  const std::span<InputValues> inputs = reset_inputs(memory, signature);
  feed_inputs(signature, examples, inputs);
  run_signature(trace, signature, inputs, memory.outputs);
  const int64_t rows = std::ssize(examples);
  const ExampleScores scores = scores_of(memory.outputs, trace.api, rows);
  ModelMetrics& metrics = trace.version->model_metrics();
  metrics.example_counts.observe(static_cast<double>(rows));
  metrics.examples.add(rows);
  return scores;
}

}  // namespace keel::serving
