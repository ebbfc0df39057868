#include <keel/autodiff/keras_ops/comparison.h>
#include <keel/autodiff/keras_ops/creation.h>
#include <keel/autodiff/keras_ops/elementwise.h>
#include <keel/autodiff/keras_ops/linalg.h>
#include <keel/autodiff/keras_ops/products.h>
#include <keel/autodiff/keras_ops/reductions.h>
#include <keel/autodiff/keras_ops/shapes.h>
#include <keel/layers/functional/internal/operator_tables.h>

namespace keel {
namespace {

namespace K = keras_ops;
using Given = OperatorArguments;

void add_functions_of_one(OperatorTable& table) {
  const FunctionOfOne all[] = {{"angle", K::angle},
                               {"arccos", K::arccos},
                               {"arccosh", K::arccosh},
                               {"arcsin", K::arcsin},
                               {"arcsinh", K::arcsinh},
                               {"arctan", K::arctan},
                               {"arctanh", K::arctanh},
                               {"bitwise_invert", K::bitwise_invert},
                               {"bitwise_not", K::bitwise_not},
                               {"cbrt", K::cbrt},
                               {"conj", K::conj},
                               {"conjugate", K::conjugate},
                               {"corrcoef", K::corrcoef},
                               {"cosh", K::cosh},
                               {"deg2rad", K::deg2rad},
                               {"erfc", K::erfc},
                               {"erfinv", K::erfinv},
                               {"exp2", K::exp2},
                               {"fabs", K::fabs},
                               {"i0", K::i0},
                               {"imag", K::imag},
                               {"isinf", K::isinf},
                               {"isneginf", K::isneginf},
                               {"isposinf", K::isposinf},
                               {"isreal", K::isreal},
                               {"log10", K::log10},
                               {"log2", K::log2},
                               {"rad2deg", K::rad2deg},
                               {"real", K::real},
                               {"signbit", K::signbit},
                               {"sinc", K::sinc},
                               {"sinh", K::sinh},
                               {"trunc", K::trunc}};
  add_functions_of_one(table, all);
  add_operator(table, "nan_to_num", "x nan posinf neginf", [](const Given& a) {
    return Tensors(K::nan_to_num(a.tensor("x"), a.number("nan", 0), a.optional_number("posinf"),
                                 a.optional_number("neginf")));
  });
}

void add_binary_functions(OperatorTable& table) {
  const FunctionOfTwo all[] = {{"arctan2", K::arctan2},
                               {"divide_no_nan", K::divide_no_nan},
                               {"dot", K::dot},
                               {"fmax", K::fmax},
                               {"fmin", K::fmin},
                               {"fmod", K::fmod},
                               {"gammainc", K::gammainc},
                               {"gcd", K::gcd},
                               {"heaviside", K::heaviside},
                               {"hypot", K::hypot},
                               {"inner", K::inner},
                               {"lcm", K::lcm},
                               {"ldexp", K::ldexp},
                               {"logaddexp", K::logaddexp},
                               {"logaddexp2", K::logaddexp2},
                               {"logical_xor", K::logical_xor},
                               {"nextafter", K::nextafter}};
  add_functions_of_two(table, all, "x1", "x2");
  const FunctionOfTwo bitwise[] = {
      {"bitwise_and", K::bitwise_and}, {"bitwise_left_shift", K::bitwise_left_shift},
      {"bitwise_or", K::bitwise_or},   {"bitwise_right_shift", K::bitwise_right_shift},
      {"bitwise_xor", K::bitwise_xor}, {"left_shift", K::left_shift},
      {"right_shift", K::right_shift}};
  add_functions_of_two(table, bitwise, "x", "y");
  add_operator(table, "isclose", "x1 x2 rtol atol equal_nan", [](const Given& a) {
    return Tensors(K::isclose(a.operand("x1"), a.operand("x2"), a.number("rtol", 1e-5),
                              a.number("atol", 1e-8), a.flag("equal_nan")));
  });
  add_operator(table, "allclose", "x1 x2 rtol atol equal_nan", [](const Given& a) {
    return Tensors(K::allclose(a.operand("x1"), a.operand("x2"), a.number("rtol", 1e-5),
                               a.number("atol", 1e-8), a.flag("equal_nan")));
  });
  add_operator(table, "isin", "x1 x2 assume_unique invert", [](const Given& a) {
    return Tensors(
        K::isin(a.operand("x1"), a.operand("x2"), a.flag("assume_unique"), a.flag("invert")));
  });
}

void add_reduction_functions(OperatorTable& table) {
  using Reduction = Tensor (*)(const Tensor&, const K::Axes&, bool);
  const std::pair<const char*, Reduction> all[] = {
      {"median", K::median},   {"nanmax", K::nanmax},
      {"nanmean", K::nanmean}, {"nanmedian", K::nanmedian},
      {"nanmin", K::nanmin},   {"nanprod", K::nanprod},
      {"nanstd", K::nanstd},   {"nansum", K::nansum},
      {"nanvar", K::nanvar},   {"ptp", K::ptp}};
  for (const auto& [name, function] : all) {
    add_operator(table, name, "x axis keepdims", [f = function](const Given& a) {
      return Tensors(f(a.tensor("x"), a.axes(), a.flag("keepdims")));
    });
  }
  using Quantile =
      Tensor (*)(const Tensor&, const K::Operand&, const K::Axes&, const std::string&, bool);
  const std::pair<const char*, Quantile> quantiles[] = {{"nanpercentile", K::nanpercentile},
                                                        {"nanquantile", K::nanquantile},
                                                        {"percentile", K::percentile},
                                                        {"quantile", K::quantile}};
  for (const auto& [name, function] : quantiles) {
    add_operator(table, name, "x q axis method keepdims", [f = function](const Given& a) {
      return Tensors(f(a.tensor("x"), a.operand("q"), a.axes(), a.text("method", "linear"),
                       a.flag("keepdims")));
    });
  }
  using Position = Tensor (*)(const Tensor&, K::Axis, bool);
  const std::pair<const char*, Position> positions[] = {{"nanargmax", K::nanargmax},
                                                        {"nanargmin", K::nanargmin}};
  for (const auto& [name, function] : positions) {
    add_operator(table, name, "x axis keepdims", [f = function](const Given& a) {
      return Tensors(f(a.tensor("x"), a.axis(), a.flag("keepdims")));
    });
  }
  using Cumulative = Tensor (*)(const Tensor&, K::Axis, std::optional<DType>);
  const std::pair<const char*, Cumulative> cumulative[] = {
      {"cumprod", K::cumprod}, {"nancumprod", K::nancumprod}, {"nancumsum", K::nancumsum}};
  for (const auto& [name, function] : cumulative) {
    add_operator(table, name, "x axis dtype", [f = function](const Given& a) {
      return Tensors(f(a.tensor("x"), a.axis(), a.optional_dtype()));
    });
  }
  add_operator(table, "average", "x weights axis", [](const Given& a) {
    std::optional<K::Operand> weights;
    if (a.has("weights")) weights = a.operand("weights");
    return Tensors(K::average(a.tensor("x"), a.axis(), weights));
  });
  add_operator(table, "count_nonzero", "x axis",
               [](const Given& a) { return Tensors(K::count_nonzero(a.tensor("x"), a.axes())); });
  add_operator(table, "moments", "x axes keepdims synchronized", [](const Given& a) {
    const auto [mean, variance] = K::moments(a.tensor("x"), a.axes("axes"), a.flag("keepdims"));
    return Tensors::tuple({mean, variance});
  });
  add_operator(table, "diff", "a n axis", [](const Given& a) {
    return Tensors(K::diff(a.tensor("a"), a.int_or("n", 1), a.int_or("axis", -1)));
  });
  add_operator(table, "trapezoid", "y x dx axis", [](const Given& a) {
    return Tensors(K::trapezoid(a.tensor("y"), optional_tensor(a, "x"), a.number("dx", 1),
                                a.int_or("axis", -1)));
  });
}

// Keras stores the axes of tensordot() as a number or as two lists, of which each may be a number.
Tensor tensordot(const Given& a) {
  const Tensor x1 = a.tensor("x1"), x2 = a.tensor("x2");
  const Config axes = a.value("axes");
  if (!axes.is_list()) return K::tensordot(x1, x2, a.int_or("axes", 2));
  if (axes.items().size() != 2) throw ValueError("tensordot: axes must have two items");
  const auto list_of_one = [](const Config& side) {
    std::vector<int> out;
    if (!side.is_list()) return std::vector<int>{static_cast<int>(side.integer())};
    for (const Config& axis : side.items()) out.push_back(static_cast<int>(axis.integer()));
    return out;
  };
  return K::tensordot(x1, x2, {list_of_one(axes.items()[0]), list_of_one(axes.items()[1])});
}

void add_products(OperatorTable& table) {
  using Product = Tensor (*)(const Tensor&, const Tensor&);
  const std::pair<const char*, Product> all[] = {
      {"kron", K::kron}, {"outer", K::outer}, {"vdot", K::vdot}};
  for (const auto& [name, function] : all) {
    add_operator(table, name, "x1 x2", [f = function](const Given& a) {
      return Tensors(f(a.tensor("x1"), a.tensor("x2")));
    });
  }
  add_operator(table, "cdist", "x y",
               [](const Given& a) { return Tensors(K::cdist(a.tensor("x"), a.tensor("y"))); });
  add_operator(table, "einsum", "*operands subscripts", [](const Given& a) {
    return Tensors(K::einsum(a.text("subscripts"), a.tensors("operands")));
  });
  add_operator(table, "tensordot", "x1 x2 axes",
               [](const Given& a) { return Tensors(tensordot(a)); });
  add_operator(table, "cross", "x1 x2 axisa axisb axisc axis", [](const Given& a) {
    return Tensors(K::cross(a.tensor("x1"), a.tensor("x2"), a.int_or("axisa", -1),
                            a.int_or("axisb", -1), a.int_or("axisc", -1), a.axis()));
  });
  add_operator(table, "correlate", "x1 x2 mode", [](const Given& a) {
    return Tensors(K::correlate(a.tensor("x1"), a.tensor("x2"), a.text("mode", "valid")));
  });
}

K::NormOrder norm_order(const Given& a) {
  const Config order = a.value("ord");
  if (order.is_null()) return {};
  if (order.is_string()) return K::NormOrder(order.string());
  return K::NormOrder(order.number());
}

void add_linear_algebra(OperatorTable& table) {
  add_operator(table, "norm", "x ord axis keepdims", [](const Given& a) {
    return Tensors(K::norm(a.tensor("x"), norm_order(a), a.axes(), a.flag("keepdims")));
  });
  const FunctionOfOne all[] = {{"det", K::det}, {"inv", K::inv}, {"logdet", K::logdet}};
  add_functions_of_one(table, all);
  const auto pair_of = [](const std::pair<Tensor, Tensor>& pair) {
    return Tensors::tuple({pair.first, pair.second});
  };
  add_operator(table, "slogdet", "x",
               [=](const Given& a) { return pair_of(K::slogdet(a.tensor("x"))); });
  add_operator(table, "eigh", "x", [=](const Given& a) { return pair_of(K::eigh(a.tensor("x"))); });
  add_operator(table, "lu_factor", "x",
               [=](const Given& a) { return pair_of(K::lu_factor(a.tensor("x"))); });
  add_operator(table, "qr", "x mode", [=](const Given& a) {
    return pair_of(K::qr(a.tensor("x"), a.text("mode", "reduced")));
  });
  add_operator(table, "svd", "x full_matrices compute_uv", [](const Given& a) {
    const Tensor x = a.tensor("x");
    if (a.has("compute_uv") && !a.flag("compute_uv")) return Tensors(K::singular_values(x));
    const K::Svd parts = K::svd(x, !a.has("full_matrices") || a.flag("full_matrices"));
    return Tensors::tuple({parts.u, parts.s, parts.vh});
  });
  add_operator(table, "cholesky", "x upper",
               [](const Given& a) { return Tensors(K::cholesky(a.tensor("x"), a.flag("upper"))); });
  add_operator(table, "cholesky_inverse", "x upper", [](const Given& a) {
    return Tensors(K::cholesky_inverse(a.tensor("x"), a.flag("upper")));
  });
  add_operator(table, "solve", "a b",
               [](const Given& a) { return Tensors(K::solve(a.tensor("a"), a.tensor("b"))); });
  add_operator(table, "solve_triangular", "a b lower", [](const Given& a) {
    return Tensors(K::solve_triangular(a.tensor("a"), a.tensor("b"), a.flag("lower")));
  });
  add_operator(table, "lstsq", "a b rcond", [](const Given& a) {
    return Tensors(K::lstsq(a.tensor("a"), a.tensor("b"), a.optional_number("rcond")));
  });
  add_operator(table, "pinv", "x rcond", [](const Given& a) {
    return Tensors(K::pinv(a.tensor("x"), a.optional_number("rcond")));
  });
  add_operator(table, "matrix_power", "x n", [](const Given& a) {
    return Tensors(K::matrix_power(a.tensor("x"), a.integer("n", 1)));
  });
  add_operator(table, "matrix_rank", "x tol", [](const Given& a) {
    return Tensors(K::matrix_rank(a.tensor("x"), a.optional_number("tol")));
  });
}

}  // namespace

void add_math_operators(OperatorTable& table) {
  add_functions_of_one(table);
  add_binary_functions(table);
  add_reduction_functions(table);
  add_products(table);
  add_linear_algebra(table);
}

}  // namespace keel
