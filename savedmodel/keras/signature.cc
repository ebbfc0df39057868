#include <keel/savedmodel/keras/signature.h>

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <algorithm>
#include <optional>
#include <ranges>
#include <set>

#include <keel/distribute/strategy.h>
#include <keel/framework/exact_cast.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/functional/sequential.h>
#include <keel/layers/serving/serving_plan.h>
#include <keel/layers/training/internal/output_names.h>
#include <keel/savedmodel/keras/internal/keras_model_config.h>
#include <keel/savedmodel/keras/internal/signature_files.h>

namespace keel {
namespace {

constexpr const char* kCaller = "Signature";
constexpr const char* kExamples = "examples";

struct Input {
  std::string name;
  TensorSpec spec;
};

// Returns the inputs of a model in flattening order.
std::vector<Input> inputs_of(const Model& model) {
  std::vector<Input> out;
  if (const auto* functional = dynamic_cast<const FunctionalModel*>(&model)) {
    for (const TensorLike& input : flatten(functional->inputs())) {
      const auto& layer = dynamic_cast<const Layer&>(*input.values().producer()->operation);
      out.push_back({layer.name(), input.spec()});
    }
  } else if (const auto* sequential = dynamic_cast<const SequentialModel*>(&model)) {
    if (!sequential->input_spec()) {
      throw ValueError(kCaller, ": model ", model.name(),
                       " has no known input; call it once first");
    }
    const Config input = sequential->get_config()["layers"].items()[0];
    out.push_back({input["config"]["name"].string(), *sequential->input_spec()});
  } else {
    throw ValueError(kCaller, ": requires a functional or sequential model, received ",
                     model.class_name(), " ", model.name());
  }
  return out;
}

std::map<std::string, TensorSpec> by_name(const std::vector<Input>& inputs) {
  std::map<std::string, TensorSpec> out;
  for (const Input& input : inputs) {
    if (!out.emplace(input.name, input.spec).second) {
      throw ValueError(kCaller, ": two inputs of the model have the name '", input.name,
                       "'; rename one of them");
    }
  }
  return out;
}

// Returns true if the rows of both shapes have the same number of values.
bool same_size(const Shape& a, const Shape& b) {
  const Shape rows_of_a = a.slice(1, a.rank()), rows_of_b = b.slice(1, b.rank());
  if (!rows_of_a.fully_defined() || !rows_of_b.fully_defined()) return compatible(a, b);
  return rows_of_a.size() == rows_of_b.size();
}

void check_feeds(const std::string& name, const data::FeatureSpec& feature, const Input& input) {
  const std::string caller =
      absl::StrCat(kCaller, ": feature '", name, "' feeds input '", input.name, "'");
  const TensorSpec parsed = data::parsed_spec(feature);
  if (parsed.layout != input.spec.layout) {
    constexpr const char* kNeeded[] = {"FixedLenFeature", "RaggedFeature", "VarLenFeature"};
    throw ValueError(caller, ", which requires a ", kNeeded[static_cast<size_t>(input.spec.layout)],
                     ", received a ", data::name_of(feature));
  }
  if ((parsed.dtype == DType::kString) != (input.spec.dtype == DType::kString)) {
    throw TypeError(caller, ", which requires ", input.spec.dtype, ", received ", parsed.dtype);
  }
  const bool fits = parsed.layout == Layout::kDense ? same_size(parsed.shape, input.spec.shape)
                                                    : input.spec.shape.rank() == 2;
  if (!fits) {
    throw ValueError(caller, " of shape ", input.spec.shape, ", received ", parsed.shape);
  }
}

// Converts a parsed feature to the shape and dtype of the input.
TensorLike adapted(const std::string& name, const TensorLike& feature, const Input& input) {
  const TensorSpec& spec = input.spec;
  const bool same = feature.values().dtype() == spec.dtype;
  const TensorLike parsed =
      same ? feature
           : exact_cast(str(kCaller, ": feature '", name, "' feeds input '", input.name, "'"),
                        feature, spec.dtype);
  if (parsed.layout() == Layout::kDense) {
    const Tensor& values = parsed.tensor();
    const Shape& shape = spec.shape;
    const bool known = shape.slice(1, shape.rank()).fully_defined();
    return known ? values.reshaped(shape.with(0, values.dim(0))) : values;
  }
  if (parsed.layout() == Layout::kRagged) return parsed;
  const SparseTensor& sparse = parsed.sparse();
  const int64_t width = spec.shape[1], longest = sparse.dense_shape[1];
  if (width != kUnknown && longest > width) {
    throw ValueError(kCaller, ": feature '", name, "' feeds input '", input.name, "', which takes ",
                     "at most ", width, " values, received ", longest);
  }
  return SparseTensor{sparse.indices, sparse.values,
                      sparse.dense_shape.with(1, width == kUnknown ? longest : width)};
}

// Returns true if all inputs have the same number of rows, as a ServingPlan requires.
bool same_rows(const Tensors& inputs) {
  const std::vector<TensorLike> leaves = flatten(inputs);
  return std::ranges::all_of(leaves, [&](const TensorLike& leaf) {
    return view_of(leaf).rows == view_of(leaves[0]).rows;
  });
}

data::FeatureSpecs specs_of(const ExampleFeatures& features) {
  data::FeatureSpecs out;
  for (const auto& [name, feature] : features) out.emplace(name, feature.feature);
  return out;
}

}  // namespace

std::map<std::string, TensorSpec> model_inputs(const Model& model) {
  return by_name(inputs_of(model));
}

struct Signature::Plan {
  ModelHandle model;
  std::vector<Input> model_inputs;
  std::map<std::string, TensorSpec> inputs;
  std::optional<data::ExampleParser> parser = {};
  std::vector<std::string> fed_by = {};             // feature for each of the model's inputs
  std::shared_ptr<const ServingPlan> serving = {};  // runs instead of the model if possible

  // Returns the parsed features in the order of the model's inputs.
  std::vector<TensorLike> parsed(const Tensor& serialized) const {
    const Tensors features = (*parser)(serialized);
    std::vector<TensorLike> out;
    for (size_t i = 0; i < fed_by.size(); ++i) {
      out.push_back(adapted(fed_by[i], features[fed_by[i]].leaf(), model_inputs[i]));
    }
    return out;
  }

  // Returns the values of a dict, which must contain exactly the inputs.
  std::vector<TensorLike> named(const Tensors& dict) const {
    if (dict.entries().size() != inputs.size()) throw_name_mismatch(dict);
    const Tensors& only = dict.entries().begin()->second;
    if (!parser && inputs.size() == 1 && only.is_leaf()) return {only.leaf()};  // any name
    std::vector<TensorLike> out;
    const auto take = [&](const std::string& name) {
      const auto at = dict.entries().find(name);
      if (at == dict.entries().end() || !at->second.is_leaf()) throw_name_mismatch(dict);
      out.push_back(at->second.leaf());
    };
    if (parser) {
      take(kExamples);
    } else {
      for (const Input& input : model_inputs) take(input.name);
    }
    return out;
  }

  [[noreturn]] void throw_name_mismatch(const Tensors& dict) const {
    throw ValueError(kCaller, ": requires the inputs {",
                     absl::StrJoin(std::views::keys(inputs), ", "), "}, received ",
                     dict.structure());
  }

  Tensors structured(const std::vector<TensorLike>& values) const {
    const auto* functional = dynamic_cast<const FunctionalModel*>(&*model);
    if (functional == nullptr) return values.at(0);
    return pack_sequence_as(functional->inputs(), values);
  }
};

Signature::Signature(ModelHandle model) {
  auto plan =
      std::make_shared<Plan>(Plan{.model = model, .model_inputs = inputs_of(*model), .inputs = {}});
  plan->inputs = by_name(plan->model_inputs);
  plan_ = std::move(plan);
}

Signature::Signature(ModelHandle model, const ExampleFeatures& features) {
  auto plan = std::make_shared<Plan>(
      Plan{.model = model,
           .model_inputs = inputs_of(*model),
           .inputs = {{kExamples, {.shape = {kUnknown}, .dtype = DType::kString}}}});
  plan->fed_by = check_signature(*model, features);
  plan->parser.emplace(specs_of(features));
  plan_ = std::move(plan);
}

const std::map<std::string, TensorSpec>& Signature::inputs() const { return plan_->inputs; }

const std::shared_ptr<const ServingPlan>& Signature::serving_plan() const { return plan_->serving; }

std::map<std::string, TensorSpec> Signature::outputs() const {
  Model& model = *plan_->model;
  const auto* functional = dynamic_cast<const FunctionalModel*>(&model);
  const Specs specs = functional != nullptr
                          ? specs_of(functional->outputs())
                          : model.compute_output_spec(plan_->model_inputs.at(0).spec);
  const Tensors symbols = map_structure(
      specs, [](const TensorSpec& spec) { return TensorLike(Tensor::symbolic(spec)); });
  const std::vector<std::string> names = output_names(model, symbols);
  const std::vector<TensorSpec> values = flatten(specs);
  std::map<std::string, TensorSpec> out;
  for (size_t i = 0; i < names.size(); ++i) out.emplace(names[i], values[i]);
  return out;
}

Tensors Signature::operator()(const Tensors& inputs) const {
  const Plan& plan = *plan_;
  Tensors model_inputs = inputs;
  if (plan.parser) {
    const Tensors& examples = inputs.is_dict() ? Tensors(plan.named(inputs).at(0)) : inputs;
    model_inputs = plan.structured(plan.parsed(examples.tensor()));
  } else if (inputs.is_dict()) {
    model_inputs = plan.structured(plan.named(inputs));
  }
  const Tensors outputs = plan.serving != nullptr && same_rows(model_inputs)
                              ? (*plan.serving)(model_inputs)
                              : (*plan.model)(model_inputs, {.training = false});
  const std::vector<std::string> names = output_names(*plan.model, outputs);
  const std::vector<TensorLike> values = flatten(outputs);
  Tensors::Dict out;
  for (size_t i = 0; i < names.size(); ++i) out.emplace(names[i], values[i]);
  return out;
}

std::vector<std::string> check_signature(const Model& model, const ExampleFeatures& features) {
  const std::vector<Input> inputs = inputs_of(model);
  by_name(inputs);
  std::map<std::string, std::string> feature_of;  // by input name
  for (const auto& [name, feature] : features) {
    const std::string& input = feature.input.empty() ? name : feature.input;
    const auto [at, added] = feature_of.emplace(input, name);
    if (!added) {
      throw ValueError(kCaller, ": input '", input, "' is fed by two features, '", at->second,
                       "' and '", name, "'; feed each input by one feature");
    }
  }
  std::vector<std::string> out;
  for (const Input& input : inputs) {
    const auto at = feature_of.find(input.name);
    if (at == feature_of.end()) {
      throw ValueError(kCaller, ": input '", input.name,
                       "' of the model has no feature; add one that feeds it");
    }
    check_feeds(at->second, features.at(at->second).feature, input);
    out.push_back(at->second);
    feature_of.erase(at);
  }
  if (!feature_of.empty()) {
    const auto& [input, name] = *feature_of.begin();
    throw ValueError(kCaller, ": feature '", name, "' feeds input '", input, "', which model ",
                     model.name(), " does not have; feed one of its inputs");
  }
  return out;
}

Signatures signatures(const ModelHandle& model, const std::string& path) {
  const SignatureSpecs specs = read_signature_specs(path);
  return naming_file(path, kSignaturesKey, [&] {
    Signatures out;
    for (const auto& [name, features] : specs) out.emplace(name, Signature(model, features));
    out.emplace(kServingDefault, Signature(model));
    return out;
  });
}

Signatures planned_signatures(const ModelHandle& model, const std::string& path) {
  Signatures out = signatures(model, path);
  // The caller has no other handle of the model, so its weights cannot change and a plan is valid.
  // A plan cannot read tables that an engine holds, as under a TPUStrategy.
  if (distribute::Strategy::current().is_tpu()) return out;
  const auto serving = std::make_shared<const ServingPlan>(model);
  for (auto& [_, signature] : out) {
    auto plan = std::make_shared<Signature::Plan>(*signature.plan_);
    plan->serving = serving;
    signature.plan_ = std::move(plan);
  }
  return out;
}

}  // namespace keel
