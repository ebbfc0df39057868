#include <keel/layers/functional/internal/operator_functions.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include <keel/autodiff/keras_ops/comparison.h>
#include <keel/autodiff/keras_ops/creation.h>
#include <keel/autodiff/keras_ops/elementwise.h>
#include <keel/autodiff/keras_ops/products.h>
#include <keel/autodiff/keras_ops/reductions.h>
#include <keel/autodiff/keras_ops/shapes.h>
#include <keel/autodiff/keras_ops/sorting.h>
#include <keel/layers/keras_ops/nn.h>

namespace keel {
namespace {

namespace K = keras_ops;
using Given = OperatorArguments;
using Table = std::map<std::string, OperatorFunction>;

std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

void add(Table& table, const char* name, const char* parameters,
         std::function<Tensors(const Given&)> compute) {
  table.emplace(name, OperatorFunction{words(parameters), std::move(compute)});
}

void add_unary(Table& table) {
  using Unary = Tensor (*)(const Tensor&);
  const std::pair<const char*, Unary> all[] = {{"abs", K::abs},
                                               {"absolute", K::absolute},
                                               {"ceil", K::ceil},
                                               {"cos", K::cos},
                                               {"celu", [](const Tensor& x) { return K::celu(x); }},
                                               {"hard_sigmoid", K::hard_sigmoid},
                                               {"hard_silu", K::hard_silu},
                                               {"hard_tanh", K::hard_tanh},
                                               {"erf", K::erf},
                                               {"exp", K::exp},
                                               {"expm1", K::expm1},
                                               {"floor", K::floor},
                                               {"identity", K::copy},
                                               {"isfinite", K::isfinite},
                                               {"isnan", K::isnan},
                                               {"log", K::log},
                                               {"log1p", K::log1p},
                                               {"log_sigmoid", K::log_sigmoid},
                                               {"logical_not", K::logical_not},
                                               {"negative", K::negative},
                                               {"reciprocal", K::reciprocal},
                                               {"relu", K::relu},
                                               {"relu6", K::relu6},
                                               {"rsqrt", K::rsqrt},
                                               {"selu", K::selu},
                                               {"sigmoid", K::sigmoid},
                                               {"sign", K::sign},
                                               {"silu", K::silu},
                                               {"sin", K::sin},
                                               {"softplus", K::softplus},
                                               {"softsign", K::softsign},
                                               {"sqrt", K::sqrt},
                                               {"square", K::square},
                                               {"stop_gradient", K::stop_gradient},
                                               {"tan", K::tan},
                                               {"tanh", K::tanh}};
  for (const auto& [name, function] : all) {
    add(table, name, "x", [f = function](const Given& a) { return Tensors(f(a.tensor("x"))); });
  }
  add(table, "round", "x decimals", [](const Given& a) {
    return Tensors(K::round(a.tensor("x"), static_cast<int>(a.integer("decimals", 0))));
  });
  add(table, "zeros_like", "x",
      [](const Given& a) { return Tensors(K::zeros_like(a.tensor("x"))); });
  add(table, "ones_like", "x", [](const Given& a) { return Tensors(K::ones_like(a.tensor("x"))); });
  add(table, "gelu", "x approximate", [](const Given& a) {
    return Tensors(K::gelu(a.tensor("x"), !a.has("approximate") || a.flag("approximate")));
  });
  add(table, "elu", "x alpha",
      [](const Given& a) { return Tensors(K::elu(a.tensor("x"), a.number("alpha", 1))); });
  add(table, "leaky_relu", "x negative_slope", [](const Given& a) {
    return Tensors(K::leaky_relu(a.tensor("x"), a.number("negative_slope", 0.2)));
  });
  add(table, "cast", "x dtype",
      [](const Given& a) { return Tensors(K::cast(a.tensor("x"), a.dtype())); });
}

void add_binary(Table& table) {
  using Binary = Tensor (*)(const K::Operand&, const K::Operand&);
  const std::pair<const char*, Binary> all[] = {{"add", K::add},
                                                {"divide", K::divide},
                                                {"equal", K::equal},
                                                {"floor_divide", K::floor_divide},
                                                {"greater", K::greater},
                                                {"greater_equal", K::greater_equal},
                                                {"less", K::less},
                                                {"less_equal", K::less_equal},
                                                {"logical_and", K::logical_and},
                                                {"logical_or", K::logical_or},
                                                {"maximum", K::maximum},
                                                {"minimum", K::minimum},
                                                {"mod", K::mod},
                                                {"multiply", K::multiply},
                                                {"not_equal", K::not_equal},
                                                {"power", K::power},
                                                {"subtract", K::subtract},
                                                {"true_divide", K::true_divide}};
  for (const auto& [name, function] : all) {
    add(table, name, "x1 x2",
        [f = function](const Given& a) { return Tensors(f(a.operand("x1"), a.operand("x2"))); });
  }
}

void add_reductions(Table& table) {
  using Reduction = Tensor (*)(const Tensor&, const K::Axes&, bool);
  const std::pair<const char*, Reduction> all[] = {
      {"all", K::all},  {"amax", K::amax}, {"amin", K::amin},
      {"any", K::any},  {"mean", K::mean}, {"std", K::std},
      {"sum", K::sum},  {"var", K::var},   {"logsumexp", K::logsumexp},
      {"max", K::amax}, {"min", K::amin}};
  for (const auto& [name, function] : all) {
    add(table, name, "x axis keepdims", [f = function](const Given& a) {
      return Tensors(f(a.tensor("x"), a.axes(), a.flag("keepdims")));
    });
  }
  add(table, "prod", "x axis keepdims",
      [](const Given& a) { return Tensors(K::prod(a.tensor("x"), a.axes(), a.flag("keepdims"))); });
  for (const bool greatest : {true, false}) {
    add(table, greatest ? "argmax" : "argmin", "x axis keepdims", [greatest](const Given& a) {
      const Tensor x = a.tensor("x");
      return Tensors(greatest ? K::argmax(x, a.axis(), a.flag("keepdims"))
                              : K::argmin(x, a.axis(), a.flag("keepdims")));
    });
  }
  add(table, "cumsum", "x axis",
      [](const Given& a) { return Tensors(K::cumsum(a.tensor("x"), a.axis())); });
  const auto last = [](const Given& a) { return a.has("axis") ? a.axes() : K::Axes(-1); };
  add(table, "softmax", "x axis",
      [last](const Given& a) { return Tensors(K::softmax(a.tensor("x"), last(a))); });
  add(table, "log_softmax", "x axis",
      [last](const Given& a) { return Tensors(K::log_softmax(a.tensor("x"), last(a))); });
  add(table, "normalize", "x axis order", [last](const Given& a) {
    return Tensors(K::normalize(a.tensor("x"), last(a), a.number("order", 2)));
  });
  // TensorFlow's function, which normalizes all elements by default.
  add(table, "l2_normalize", "x axis epsilon", [](const Given& a) {
    return Tensors(K::normalize(a.tensor("x"), a.axes(), 2, std::sqrt(a.number("epsilon", 1e-12))));
  });
}

Tensor swapped_if(const Tensor& x, bool swaps) { return swaps ? K::swapaxes(x, -1, -2) : x; }

void add_shapes(Table& table) {
  const auto axis_or = [](const Given& a, int64_t otherwise) {
    return static_cast<int>(a.integer("axis", otherwise));
  };
  add(table, "reshape", "x newshape", [](const Given& a) {
    return Tensors(K::reshape(a.tensor("x"), Shape(a.integers("newshape"))));
  });
  add(table, "transpose", "x axes", [](const Given& a) {
    std::vector<int> axes;
    if (a.has("axes")) {
      for (const int64_t axis : a.integers("axes")) axes.push_back(static_cast<int>(axis));
    }
    return Tensors(K::transpose(a.tensor("x"), axes));
  });
  add(table, "expand_dims", "x axis",
      [](const Given& a) { return Tensors(K::expand_dims(a.tensor("x"), a.axes())); });
  add(table, "squeeze", "x axis",
      [](const Given& a) { return Tensors(K::squeeze(a.tensor("x"), a.axes())); });
  add(table, "flip", "x axis",
      [](const Given& a) { return Tensors(K::flip(a.tensor("x"), a.axes())); });
  add(table, "tile", "x repeats",
      [](const Given& a) { return Tensors(K::tile(a.tensor("x"), a.integers("repeats"))); });
  add(table, "broadcast_to", "x shape", [](const Given& a) {
    return Tensors(K::broadcast_to(a.tensor("x"), Shape(a.integers("shape"))));
  });
  add(table, "concatenate", "xs axis", [axis_or](const Given& a) {
    return Tensors(K::concatenate(a.tensors("xs"), axis_or(a, 0)));
  });
  add(table, "stack", "x axis",
      [axis_or](const Given& a) { return Tensors(K::stack(a.tensors("x"), axis_or(a, 0))); });
  const auto listed = [](const std::vector<Tensor>& all) {
    return Tensors::list(Tensors::Items(all.begin(), all.end()));
  };
  add(table, "split", "x indices_or_sections axis", [=](const Given& a) {
    return listed(K::split(a.tensor("x"), a.integer("indices_or_sections", 1), axis_or(a, 0)));
  });
  add(table, "unstack", "x num axis",
      [=](const Given& a) { return listed(K::unstack(a.tensor("x"), {}, axis_or(a, 0))); });
  add(table, "get_item", "x key",
      [](const Given& a) { return Tensors(a.item(a.tensor("x"), "key")); });
}

void add_others(Table& table) {
  add(table, "matmul", "x1 x2 transpose_a transpose_b", [](const Given& a) {
    return Tensors(K::matmul(swapped_if(a.tensor("x1"), a.flag("transpose_a")),
                             swapped_if(a.tensor("x2"), a.flag("transpose_b"))));
  });
  add(table, "clip", "x x_min x_max", [](const Given& a) {
    return Tensors(K::clip(a.tensor("x"), a.operand("x_min"), a.operand("x_max")));
  });
  add(table, "where", "condition x1 x2", [](const Given& a) {
    return Tensors(K::where(a.tensor("condition"), a.operand("x1"), a.operand("x2")));
  });
  add(table, "take", "x indices axis", [](const Given& a) {
    return Tensors(K::take(a.tensor("x"), a.tensor("indices"), a.axis()));
  });
  add(table, "one_hot", "x num_classes axis", [](const Given& a) {
    return Tensors(K::one_hot(a.tensor("x"), a.integer("num_classes", 0),
                              static_cast<int>(a.integer("axis", -1))));
  });
}

// Functions of TensorFlow: the name in keras.ops, and renamed parameters as "theirs=ours". "0" is
// the first argument of the call, "c:axis=0" an integer default that differs.
struct TensorFlowName {
  const char *theirs, *ours, *parameters;
};
constexpr TensorFlowName kTensorFlowNames[] = {
    {"__operators__.getitem", "get_item", "0=x slice_spec=key"},
    {"broadcast_to", "broadcast_to", "0=x input=x shape=shape"},
    {"cast", "cast", "0=x x=x dtype=dtype"},
    {"clip_by_value", "clip", "0=x t=x clip_value_min=x_min clip_value_max=x_max"},
    {"concat", "concatenate", "0=xs values=xs axis=axis"},
    {"expand_dims", "expand_dims", "0=x input=x axis=axis"},
    {"gather", "take", "0=x params=x indices=indices axis=axis c:axis=0"},
    {"linalg.l2_normalize", "l2_normalize", "0=x axis=axis"},
    {"linalg.matmul", "matmul", "0=x1 a=x1 b=x2 transpose_a=transpose_a transpose_b=transpose_b"},
    {"math.argmax", "argmax", "0=x input=x axis=axis c:axis=0"},
    {"math.argmin", "argmin", "0=x input=x axis=axis c:axis=0"},
    {"math.cumsum", "cumsum", "0=x axis=axis c:axis=0"},
    {"math.l2_normalize", "l2_normalize", "0=x axis=axis"},
    {"math.pow", "power", "0=x1 x=x1 y=x2"},
    {"math.floordiv", "floor_divide", "0=x1 x=x1 y=x2"},
    {"math.floormod", "mod", "0=x1 x=x1 y=x2"},
    {"math.truediv", "divide", "0=x1 x=x1 y=x2"},
    {"nn.bias_add", "add", "0=x1 value=x1 bias=x2"},
    {"nn.gelu", "gelu", "0=x features=x approximate=approximate"},
    {"nn.l2_normalize", "l2_normalize", "0=x axis=axis"},
    {"nn.leaky_relu", "leaky_relu", "0=x features=x alpha=negative_slope"},
    {"nn.log_softmax", "log_softmax", "0=x logits=x axis=axis"},
    {"nn.softmax", "softmax", "0=x logits=x axis=axis"},
    {"nn.swish", "silu", "0=x features=x"},
    {"one_hot", "one_hot", "0=x indices=x depth=num_classes axis=axis"},
    {"reshape", "reshape", "0=x tensor=x shape=newshape"},
    {"reverse", "flip", "0=x tensor=x axis=axis"},
    {"split", "split", "0=x value=x num_or_size_splits=indices_or_sections axis=axis"},
    {"squeeze", "squeeze", "0=x input=x axis=axis"},
    {"stack", "stack", "0=x values=x axis=axis"},
    {"tile", "tile", "0=x input=x multiples=repeats"},
    {"transpose", "transpose", "0=x a=x perm=axes"},
    {"unstack", "unstack", "0=x value=x num=num axis=axis"},
    {"where", "where", "0=condition condition=condition x=x1 y=x2"}};

FunctionCall renamed(const char* function, const std::string& parameters, const Config& arguments) {
  std::map<std::string, std::string> names;
  FunctionCall out{.function = function, .arguments = Config::dict()};
  for (const std::string& pair : words(parameters)) {
    const size_t equals = pair.find('=');
    const std::string theirs = pair.substr(0, equals), ours = pair.substr(equals + 1);
    if (theirs.starts_with("c:")) {
      out.arguments.set(theirs.substr(2), int64_t{std::stoi(ours)});
    } else {
      names[theirs] = ours;
    }
  }
  for (const auto& [key, value] : arguments.entries()) {
    if (key == "name" || value.is_null()) continue;
    const auto it = names.find(key);
    out.arguments.set(it == names.end() ? key : it->second, value);
  }
  return out;
}

bool has_parameters(const std::string& function, const std::vector<std::string>& parameters) {
  const OperatorFunction* const found = operator_function(function);
  return found != nullptr && found->parameters == parameters;
}

}  // namespace

const OperatorFunction* operator_function(const std::string& name) {
  static const Table kTable = [] {
    Table table;
    add_unary(table);
    add_binary(table);
    add_reductions(table);
    add_shapes(table);
    add_others(table);
    return table;
  }();
  const auto it = kTable.find(name);
  return it == kTable.end() ? nullptr : &it->second;
}

FunctionCall from_tensorflow(const std::string& function, const Config& arguments) {
  for (const TensorFlowName& known : kTensorFlowNames) {
    if (function == known.theirs) return renamed(known.ours, known.parameters, arguments);
  }
  // "math.reduce_sum", "math.sigmoid", "nn.relu", "__operators__.add" and so on.
  std::string name = function.substr(function.rfind('.') + 1);
  if (name.starts_with("reduce_")) {
    name.erase(0, 7);
    return renamed(name.c_str(), "0=x input_tensor=x keep_dims=keepdims", arguments);
  }
  if (has_parameters(name, {"x1", "x2"})) return renamed(name.c_str(), "0=x1 x=x1 y=x2", arguments);
  return renamed(name.c_str(), "0=x x=x features=x input=x", arguments);
}

}  // namespace keel
