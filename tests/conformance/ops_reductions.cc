#include "tests/conformance/ops_arguments.h"

namespace keel::conformance {
namespace {

namespace K = keras_ops;
using Results = std::vector<Tensor>;

bool keepdims(OpArguments& a) { return a.boolean("keepdims", false); }

OpAdapter reduction(Tensor (*f)(const Tensor&, const K::Axes&, bool)) {
  return [f](OpArguments& a) -> Results { return {f(a.tensor("x"), a.axes(), keepdims(a))}; };
}
OpAdapter extremum(Tensor (*f)(const Tensor&, const K::Axes&, bool, std::optional<double>)) {
  return [f](OpArguments& a) -> Results {
    return {f(a.tensor("x"), a.axes(), keepdims(a), a.maybe_number("initial"))};
  };
}
OpAdapter position(Tensor (*f)(const Tensor&, K::Axis, bool)) {
  return [f](OpArguments& a) -> Results { return {f(a.tensor("x"), a.axis(), keepdims(a))}; };
}
OpAdapter running(Tensor (*f)(const Tensor&, K::Axis, std::optional<DType>)) {
  return [f](OpArguments& a) -> Results { return {f(a.tensor("x"), a.axis(), a.dtype())}; };
}
OpAdapter quantile(Tensor (*f)(const Tensor&, const K::Operand&, const K::Axes&, const std::string&,
                               bool)) {
  return [f](OpArguments& a) -> Results {
    return {f(a.tensor("x"), a.operand("q"), a.axes(), a.string("method", "linear"), keepdims(a))};
  };
}

Results prod(OpArguments& a) { return {K::prod(a.tensor("x"), a.axes(), keepdims(a), a.dtype())}; }
Results count_nonzero(OpArguments& a) { return {K::count_nonzero(a.tensor("x"), a.axes())}; }
Results average(OpArguments& a) {
  return {K::average(a.tensor("x"), a.axis(), a.maybe_operand("weights"))};
}
Results moments(OpArguments& a) {
  const auto [mean, var] = K::moments(a.tensor("x"), a.axes("axes"), keepdims(a));
  return {mean, var};
}
Results diff(OpArguments& a) {
  return {K::diff(a.tensor("a"), static_cast<int>(a.integer("n", 1)),
                  static_cast<int>(a.integer("axis", -1)))};
}
Results trapezoid(OpArguments& a) {
  return {K::trapezoid(a.tensor("y"), a.maybe_tensor("x"), a.number("dx", 1),
                       static_cast<int>(a.integer("axis", -1)))};
}
Results bincount(OpArguments& a) {
  return {K::bincount(a.tensor("x"), a.maybe_tensor("weights"), a.integer("minlength", 0))};
}
Results histogram(OpArguments& a) {
  std::optional<std::pair<double, double>> range;
  if (a.has("range")) {
    const Config::List& ends = a.config("range").items();
    range = {ends.at(0).number(), ends.at(1).number()};
  }
  const auto [counts, edges] = K::histogram(a.tensor("x"), a.integer("bins", 10), range);
  return {counts, edges};
}

}  // namespace

OpAdapters reduction_adapters() {
  return {{"sum", reduction(K::sum)},
          {"mean", reduction(K::mean)},
          {"prod", prod},
          {"var", reduction(K::var)},
          {"std", reduction(K::std)},
          {"moments", moments},
          {"average", average},
          {"count_nonzero", count_nonzero},
          {"logsumexp", reduction(K::logsumexp)},
          {"max", extremum(K::max)},
          {"min", extremum(K::min)},
          {"amax", reduction(K::amax)},
          {"amin", reduction(K::amin)},
          {"ptp", reduction(K::ptp)},
          {"all", reduction(K::all)},
          {"any", reduction(K::any)},
          {"argmax", position(K::argmax)},
          {"argmin", position(K::argmin)},
          {"median", reduction(K::median)},
          {"quantile", quantile(K::quantile)},
          {"percentile", quantile(K::percentile)},
          {"nansum", reduction(K::nansum)},
          {"nanmean", reduction(K::nanmean)},
          {"nanprod", reduction(K::nanprod)},
          {"nanvar", reduction(K::nanvar)},
          {"nanstd", reduction(K::nanstd)},
          {"nanmax", reduction(K::nanmax)},
          {"nanmin", reduction(K::nanmin)},
          {"nanargmax", position(K::nanargmax)},
          {"nanargmin", position(K::nanargmin)},
          {"nanmedian", reduction(K::nanmedian)},
          {"nanquantile", quantile(K::nanquantile)},
          {"nanpercentile", quantile(K::nanpercentile)},
          {"cumsum", running(K::cumsum)},
          {"cumprod", running(K::cumprod)},
          {"nancumsum", running(K::nancumsum)},
          {"nancumprod", running(K::nancumprod)},
          {"diff", diff},
          {"trapezoid", trapezoid},
          {"bincount", bincount},
          {"histogram", histogram}};
}

}  // namespace keel::conformance
